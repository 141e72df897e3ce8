"""The plots of reports, as inline SVG. Pure.

Hand-written: bars and grids of rectangles are less than a plotting library in the Spark image, whose output would not follow the
reader's light or dark background. Colours are classes that the style sheet of `page` defines; every mark has a title that a browser shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH = 860
_LABEL = 250
_ROW = 24
_CHARACTERS = 34


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar: `style` is its colour's class, `name` what it counts."""

    name: str
    style: str
    count: float


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of a bar chart, with what stands behind it."""

    label: str
    parts: tuple[Part, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A square of a grid; `text` is for those who don't tell it by its colour."""

    style: str
    title: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """What a column chart counts: `unit` follows the numbers."""

    name: str
    unit: str = ""


def bars(rows: Sequence[Bar], name: str) -> str:
    """Horizontal bars as shares of their own whole. A part that is not zero is always seen, however small."""
    note, width = 150, _WIDTH - _LABEL - 160
    marks = []
    for index, row in enumerate(rows):
        top = index * _ROW
        whole = sum(part.count for part in row.parts)
        marks.append(_label(row.label, top))
        left = float(_LABEL)
        for part, size in zip(row.parts, _sizes([part.count for part in row.parts], width), strict=True):
            if size:
                title = f"{row.label}: {part.count:,.0f} of {whole:,.0f} {part.name}"
                marks.append(_rectangle((left, top + 4, size, _ROW - 8), part.style, title))
                left += size
        marks.append(f'<text class="note" x="{_WIDTH - note}" y="{top + 16}">{escape(row.note)}</text>')
    return _svg(len(rows) * _ROW, "".join(marks), name)


def columns(labels: Sequence[str], stacks: Sequence[Sequence[Part]], axis: Axis) -> str:
    """Vertical stacked bars, one for each label, from zero to the greatest whole."""
    height, foot, top = 130, 22, 12
    highest = max((sum(part.count for part in stack) for stack in stacks), default=0)
    left = 70
    step = (_WIDTH - left - 10) / max(1, len(stacks))
    every = max(1, -(-len(stacks) // 12))
    bar = min(34.0, step * 0.7)
    marks = [f'<line class="axis" x1="{left}" x2="{_WIDTH}" y1="{height + top}" y2="{height + top}"/>']
    for share in (0.5, 1.0) if highest else ():
        y = top + height * (1 - share)
        marks.append(f'<line class="grid" x1="{left}" x2="{_WIDTH}" y1="{y:g}" y2="{y:g}"/>')
        marks.append(f'<text class="note" text-anchor="end" x="{left - 8}" y="{y + 4:g}">{number(highest * share)}{axis.unit}</text>')
    for index, (label, stack) in enumerate(zip(labels, stacks, strict=True)):
        x, y = left + step * index + (step - bar) / 2, float(top + height)
        for part in stack:
            if part.count:
                size = max(2.0, height * part.count / highest)
                y -= size
                title = f"{label}: {number(part.count)}{axis.unit} {part.name}".strip()
                marks.append(_rectangle((x, y, bar, size), part.style, title))
        if not any(part.count for part in stack):
            marks.append(
                f'<circle class="ok" cx="{x + bar / 2:g}" cy="{top + height - 4}" r="3"><title>{escape(label)}: 0</title></circle>'
            )
        if (len(stacks) - 1 - index) % every == 0:
            marks.append(f'<text class="note" text-anchor="middle" x="{x + bar / 2:g}" y="{height + top + 16}">{escape(label)}</text>')
    return _svg(height + top + foot, "".join(marks), axis.name)


def grid(labels: Sequence[str], runs: Sequence[str], rows: Sequence[Sequence[Cell | None]], name: str) -> str:
    """A square for each row and run, the newest run at the right; none where nothing is known."""
    side = min(_ROW - 4.0, (_WIDTH - _LABEL) / max(1, len(runs)) - 3)
    marks = []
    for index, (label, cells) in enumerate(zip(labels, rows, strict=True)):
        top = index * _ROW
        marks.append(_label(label, top))
        for column, cell in enumerate(cells):
            x = _LABEL + column * (side + 3)
            if cell is None:
                marks.append(_rectangle((x, top + 2, side, _ROW - 4), "absent", f"{label}, {runs[column]}: not audited"))
                continue
            marks.append(_rectangle((x, top + 2, side, _ROW - 4), cell.style, f"{label}, {runs[column]}: {cell.title}"))
            if cell.text and side >= 14:
                marks.append(f'<text class="on" text-anchor="middle" x="{x + side / 2:g}" y="{top + 16}">{escape(cell.text)}</text>')
    foot = len(rows) * _ROW + 14
    ends = {0: "start", len(runs) - 1: "start"} if len(runs) > 12 else {len(runs) - 1: "start"}
    for column, anchor in ends.items():
        x = _LABEL + column * (side + 3)
        marks.append(f'<text class="note" text-anchor="{anchor}" x="{x:g}" y="{foot}">{escape(runs[column][:10])}</text>')
    return _svg(foot + 6, "".join(marks), name)


def number(value: float) -> str:
    """Short: 1,234 or 3.2 M."""
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if value >= limit:
            return f"{value / (1e3 if unit == ' k' else limit):,.1f}{unit}"
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:,.1f}"


def _sizes(counts: Sequence[float], width: float) -> list[float]:
    """Widths in proportion, but 3 at least for what is not zero; the largest gives what the small ones take."""
    whole = sum(counts)
    if not whole:
        return [0.0] * len(counts)
    sizes = [max(3.0, width * count / whole) if count else 0.0 for count in counts]
    largest = max(range(len(sizes)), key=lambda index: sizes[index])
    sizes[largest] -= sum(sizes) - width
    return sizes


def _label(text: str, top: float) -> str:
    short = text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 1]}…"
    return f'<text class="label" x="0" y="{top + 16:g}"><title>{escape(text)}</title>{escape(short)}</text>'


def _rectangle(where: tuple[float, float, float, float], style: str, title: str) -> str:
    x, y, width, height = where
    box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{style}" {box} rx="2"><title>{escape(title)}</title></rect>'


def _svg(height: float, content: str, name: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {max(height, 1):g}" role="img" aria-label="{escape(name)}">{content}</svg>'
