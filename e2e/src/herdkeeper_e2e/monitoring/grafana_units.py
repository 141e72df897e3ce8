"""Numbers with units, as Grafana writes them. Source: grafana/grafana packages/grafana-data/src/valueFormats (v11). Pure."""

from __future__ import annotations

import math

Scale = tuple[str, float]
"""What follows a number, and what it is divided by."""
_TIMES = (
    (" µs", 1e-6),
    (" ms", 1e-3),
    (" s", 1.0),
    (" min", 60.0),
    (" hours", 3600.0),
    (" days", 86_400.0),
    (" weeks", 604_800.0),
    (" years", 31_536_000.0),
)
_SCALES: dict[str, tuple[Scale, ...]] = {
    "short": (("", 1.0), (" K", 1e3), (" Mil", 1e6), (" Bil", 1e9)),
    "ops": ((" ops/s", 1.0), (" K ops/s", 1e3), (" M ops/s", 1e6)),
    "reqps": ((" req/s", 1.0), (" K req/s", 1e3), (" M req/s", 1e6)),
    "bytes": ((" B", 1.0), (" KiB", 2.0**10), (" MiB", 2.0**20), (" GiB", 2.0**30), (" TiB", 2.0**40)),
    "Bps": ((" B/s", 1.0), (" kB/s", 1e3), (" MB/s", 1e6), (" GB/s", 1e9)),
    "s": _TIMES,
    "ms": tuple((suffix, size * 1e3) for suffix, size in _TIMES),
    "percent": (("%", 1.0),),
    "percentunit": (("%", 0.01),),
}
_OF_ZERO = {"s": " s", "ms": " ms"}


def scale_of(unit: str, value: float) -> Scale:
    """Returns the scale for numbers of about this size. Raises KeyError for a unit that is not known here."""
    if unit.startswith("suffix:"):
        return f" {unit.removeprefix('suffix:')}", 1.0
    scales = _SCALES[unit]
    if not value:
        return next((each for each in scales if each[0] == _OF_ZERO.get(unit)), scales[0])
    return next((each for each in reversed(scales) if abs(value) >= each[1]), scales[0])


def written(unit: str, value: float) -> str:
    """A value by itself, as in a stat."""
    if not math.isfinite(value):
        return str(value)
    suffix, size = scale_of(unit, value)
    scaled = value / size
    if scaled == int(scaled):
        return f"{scaled:.0f}{suffix}"
    return f"{scaled:.{max(0, 2 - math.floor(math.log10(abs(scaled))))}f}{suffix}"
