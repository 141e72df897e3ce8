"""Lines and states over time, as inline SVG. Colours are classes of the page's style sheet. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from herdkeeper_e2e.monitoring.grafana_units import scale_of, written

COLOURS = 10
"""Lines have one of so many colours, in turn."""
_LEFT, _RIGHT, _TOP, _FOOT = 66, 12, 8, 20
_STEPS = (1, 2, 5, 10)
_CHARACTER, _MOST_CHARACTERS = 6.5, 30


@dataclass(frozen=True)
class Span:
    """The time that a chart shows, in seconds since 1970; values are `step` seconds apart."""

    begin: float
    end: float
    step: float


@dataclass(frozen=True)
class Line:
    """A series with its name in the legend. A value that lacks breaks the line."""

    name: str
    values: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Size:
    width: float
    height: float


@dataclass(frozen=True)
class Scale:
    """The axis of values: its ends, if they are given, its unit, and the limits that are marked, each with a colour."""

    unit: str
    low: float | None
    high: float | None
    limits: tuple[tuple[float, str], ...] = ()


def line_chart(lines: Sequence[Line], span: Span, scale: Scale, size: Size) -> str:
    """All lines over one axis."""
    ticks = _ticks([value for line in lines for _, value in line.values], scale)
    low, high = min(ticks), max(ticks)

    def up(value: float) -> float:
        return size.height - _FOOT - (value - low) / (high - low) * (size.height - _FOOT - _TOP)

    right = size.width - _RIGHT
    suffix, unit = scale_of(scale.unit, max(abs(low), abs(high)))
    decimals = max(0, -math.floor(math.log10((ticks[1] - ticks[0]) / unit) + 1e-9))
    marks = [_time_axis(span, size)]
    for tick in ticks:
        marks.append(f'<line class="grid" x1="{_LEFT}" x2="{right:g}" y1="{up(tick):.1f}" y2="{up(tick):.1f}"/>')
        words = f"{tick / unit + 0.0:.{decimals}f}{suffix}"
        marks.append(f'<text text-anchor="end" x="{_LEFT - 6}" y="{up(tick) + 4:.1f}">{escape(words)}</text>')
    for value, colour in scale.limits:
        if low <= value <= high:
            marks.append(f'<line class="limit {colour}" x1="{_LEFT}" x2="{right:g}" y1="{up(value):.1f}" y2="{up(value):.1f}"/>')
    for number, line in enumerate(lines):
        title = f"<title>{escape(line.name)}: {written(scale.unit, line.values[-1][1])}</title>"
        for piece in _pieces(line, span):
            places = " ".join(f"{_across(at, span, size):.1f},{up(value):.1f}" for at, value in piece)
            if len(piece) > 1:
                marks.append(f'<polyline class="line c{number % COLOURS}" points="{places}">{title}</polyline>')
            else:
                x, _, y = places.partition(",")
                marks.append(f'<circle class="c{number % COLOURS}" cx="{x}" cy="{y}" r="2">{title}</circle>')
    return _svg("".join(marks), size)


def states(lines: Sequence[Line], span: Span, words: Mapping[float, tuple[str, str]], size: Size) -> str:
    """A bar per line, with a colour for each value. `words`: what a value is called, and its colour."""
    height = (size.height - _FOOT - _TOP) / max(1, len(lines))
    left = max(len(_short(line.name)) for line in lines) * _CHARACTER + 8
    marks = [_time_axis(span, size, left)]
    for number, line in enumerate(lines):
        top = _TOP + number * height
        marks.append(f'<text text-anchor="end" x="{left - 6}" y="{top + height / 2 + 4:.1f}">{escape(_short(line.name))}</text>')
        for begin, end, value in _stretches(line, span):
            word, colour = words.get(value, (f"{value:g}", "grey"))
            x, width = _across(begin, span, size, left), max(1.0, _across(end, span, size, left) - _across(begin, span, size, left))
            place = f'x="{x:.1f}" y="{top + height * 0.1:.1f}" width="{width:.1f}" height="{height * 0.8:.1f}"'
            marks.append(f'<rect class="{colour}" {place}><title>{escape(f"{line.name}: {word}")}</title></rect>')
    return _svg("".join(marks), size)


def _short(name: str) -> str:
    return name if len(name) <= _MOST_CHARACTERS else f"{name[: _MOST_CHARACTERS - 1]}…"


def _stretches(line: Line, span: Span) -> Iterator[tuple[float, float, float]]:
    """Begin, end and value of each time of one value."""
    for piece in _pieces(line, span):
        begin, before = piece[0]
        for at, value in piece[1:]:
            if value != before:
                yield begin, at, before
                begin, before = at, value
        yield begin, min(span.end, piece[-1][0] + span.step), before


def _pieces(line: Line, span: Span) -> list[list[tuple[float, float]]]:
    pieces: list[list[tuple[float, float]]] = []
    for at, value in line.values:
        if math.isnan(value):
            continue
        if pieces and at - pieces[-1][-1][0] <= span.step * 1.5:
            pieces[-1].append((at, value))
        else:
            pieces.append([(at, value)])
    return pieces


def _ticks(values: Sequence[float], scale: Scale) -> list[float]:
    """Round numbers below, among and above the values."""
    known = [value for value in values if math.isfinite(value)]
    low = min(known, default=0.0) if scale.low is None else scale.low
    high = max(known, default=1.0) if scale.high is None else scale.high
    if high <= low:
        high = low + (abs(low) or 1)
    _, unit = scale_of(scale.unit, max(abs(low), abs(high)))
    rough = (high - low) / unit / 4
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(each * magnitude for each in _STEPS if each * magnitude >= rough * 0.999) * unit
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def _time_axis(span: Span, size: Size, left: float = _LEFT) -> str:
    marks = []
    count = 3 if size.width < 500 else 6
    form = "%H:%M" if span.end - span.begin >= 1800 else "%H:%M:%S"
    for number in range(count + 1):
        at = span.begin + (span.end - span.begin) * number / count
        anchor = "end" if number == count else "start" if number == 0 else "middle"
        words = f"{datetime.fromtimestamp(at, UTC):{form}}"
        marks.append(f'<text text-anchor="{anchor}" x="{_across(at, span, size, left):.1f}" y="{size.height - 4:g}">{words}</text>')
    return "".join(marks)


def _across(at: float, span: Span, size: Size, left: float = _LEFT) -> float:
    return left + (at - span.begin) / (span.end - span.begin) * (size.width - left - _RIGHT)


def _svg(content: str, size: Size) -> str:
    return f'<svg viewBox="0 0 {size.width:g} {size.height:g}" role="img">{content}</svg>'
