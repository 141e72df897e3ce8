"""The plots of reports, as inline SVG. Pure.

Hand-written: bars and grids of rectangles need no plotting library in the Spark image. A library's output would not follow the reader's
light or dark setting. Colours are classes in the style sheet of `page`; every mark has a title for browsers to show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH = 860
_LABEL = 250
_ROW = 24
_CHARACTERS = 34
_NOTE = 150
_LINE_ROW = 44
_MOST_MARKS = 120
_TICKS = 5


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar: `style` is its colour's class, `name` what it counts."""

    name: str
    style: str
    count: float


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of a bar chart, with a note behind it."""

    label: str
    parts: tuple[Part, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A square of a grid; `text` helps readers who can't tell it by its colour."""

    style: str
    title: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """What a column chart counts: `unit` follows the numbers."""

    name: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Times:
    """The time span of a plot's width; `label` formats a time."""

    first: float
    last: float
    label: Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A period, or a moment if both ends are equal."""

    begin: float
    end: float
    style: str
    title: str


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of a timeline, with a note behind it."""

    label: str
    stretches: tuple[Stretch, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    at: float
    value: float
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    """A value over time, with a note behind it; None breaks the line."""

    label: str
    points: tuple[Point | None, ...]
    note: str = ""


def bars(rows: Sequence[Bar], name: str) -> str:
    """Horizontal bars as shares of their own whole. Every part above zero is visible."""
    width = _WIDTH - _LABEL - _NOTE - 10
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
        marks.append(_note(row.note, top + 16))
    return _svg(len(rows) * _ROW, "".join(marks), name)


def columns(labels: Sequence[str], stacks: Sequence[Sequence[Part]], axis: Axis) -> str:
    """Vertical stacked bars, one per label, from zero to the highest total."""
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
            middle = x + bar / 2
            # A label under a narrow last column would be cut off.
            place = f'text-anchor="middle" x="{middle:g}"' if middle < _WIDTH - 20 else f'text-anchor="end" x="{_WIDTH}"'
            marks.append(f'<text class="note" {place} y="{height + top + 16}">{escape(label)}</text>')
    return _svg(height + top + foot, "".join(marks), axis.name)


def grid(labels: Sequence[str], runs: Sequence[str], rows: Sequence[Sequence[Cell | None]], name: str) -> str:
    """A square per row and run, the newest run at the right; empty if unknown."""
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
    for column in (0, len(runs) - 1) if len(runs) > 12 else (len(runs) - 1,):
        x = _LABEL + column * (side + 3)
        marks.append(f'<text class="note" text-anchor="start" x="{x:g}" y="{foot}">{escape(runs[column][:10])}</text>')
    return _svg(foot + 6, "".join(marks), name)


def timeline(lanes: Sequence[Lane], times: Times, name: str) -> str:
    """Periods per lane over the same time. A moment is a stroke."""
    marks = []
    for index, lane in enumerate(lanes):
        top = index * _ROW
        marks += [_label(lane.label, top), _note(lane.note, top + 16)]
        for each in lane.stretches:
            left, right = _across(each.begin, times), _across(each.end, times)
            thin = each.begin == each.end
            where = (left - 1, top + 2, 2, _ROW - 4) if thin else (left, top + 5, max(2.0, right - left), _ROW - 10)
            marks.append(_rectangle(where, each.style, each.title))
    return _svg(len(lanes) * _ROW + 24, "".join(marks) + _ticks(times, len(lanes) * _ROW), name)


def line_chart(rows: Sequence[Line], times: Times, name: str) -> str:
    """A line per row over the same time, each from zero to its own maximum."""
    marks = []
    for index, row in enumerate(rows):
        top, height = index * _LINE_ROW, _LINE_ROW - 18
        highest = max((point.value for point in row.points if point is not None), default=0)
        base = top + height + 8
        marks += [_label(row.label, top + 10), _note(row.note, top + 26)]
        marks.append(f'<line class="grid" x1="{_LABEL}" x2="{_WIDTH - _NOTE - 10}" y1="{base}" y2="{base}"/>')
        known = sum(point is not None for point in row.points)
        for piece in _pieces(row.points):
            places = [(_across(each.at, times), base - (height * each.value / highest if highest else 0)) for each in piece]
            if len(piece) > 1:
                marks.append(f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>')
            if known <= _MOST_MARKS or len(piece) == 1:
                marks += [_dot(*place, each.title) for place, each in zip(places, piece, strict=True)]
    return _svg(len(rows) * _LINE_ROW + 24, "".join(marks) + _ticks(times, len(rows) * _LINE_ROW), name)


def _pieces(points: Sequence[Point | None]) -> list[list[Point]]:
    """The runs of points between gaps."""
    pieces: list[list[Point]] = [[]]
    for point in points:
        if point is None:
            pieces.append([])
        else:
            pieces[-1].append(point)
    return [piece for piece in pieces if piece]


def _across(at: float, times: Times) -> float:
    """The x position of a time, between labels and notes."""
    width = _WIDTH - _LABEL - _NOTE - 10
    return _LABEL + (width * (at - times.first) / (times.last - times.first) if times.last > times.first else width)


def _ticks(times: Times, top: float) -> str:
    """The time axis below a plot."""
    shares = [step / (_TICKS - 1) for step in range(_TICKS)] if times.last > times.first else [1.0]
    marks = []
    for share in shares:
        at = times.first + (times.last - times.first) * share
        x = _across(at, times)
        marks.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{top + 2:g}" y2="{top + 6:g}"/>')
        marks.append(f'<text class="note" text-anchor="middle" x="{x:.1f}" y="{top + 19:g}">{escape(times.label(at))}</text>')
    return "".join(marks)


def _dot(x: float, y: float, title: str) -> str:
    return f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.2"><title>{escape(title)}</title></circle>'


def _note(text: str, y: float) -> str:
    return f'<text class="note" x="{_WIDTH - _NOTE}" y="{y:g}">{escape(text)}</text>'


def number(value: float) -> str:
    """Formats briefly: 1,234 or 3.2 M or 0.04."""
    if 0 < value < 1:
        return f"{value:.2g}"
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if value >= limit:
            return f"{value / (1e3 if unit == ' k' else limit):,.1f}{unit}"
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:,.1f}"


def _sizes(counts: Sequence[float], width: float) -> list[float]:
    """Proportional widths, at least 3 for what is not zero; the largest one gives way."""
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
