"""Renders the history of a tablespace's checkpoints as one self-contained HTML file (`report.page`). Pure.

It shows what can be restored, what is odd, plots, and every checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from typing import assert_never

from herdkeeper_jobs.archive.window import Window
from herdkeeper_jobs.checkpoint.history import (
    History,
    HistoryWarning,
    Link,
    Recorded,
    Start,
    TableSize,
    Unreadable,
    WarningLevel,
    WindowUnknown,
)
from herdkeeper_jobs.report.page import Verdict, header, in_bytes, legend, many, page, section, table, tiles, verdict
from herdkeeper_jobs.report.plots import Axis, Lane, Line, Part, Point, Stretch, Times, columns, line_chart, number, timeline
from herdkeeper_jobs.wal.moment import stamp

_MOST_LINES = 20
_MOST_TABLES = 25
_MAX_WARNINGS = 50
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_SHORT = 10 * _MINUTE
"""Up to this, labels of times need seconds."""
_WEIGHTS = {
    WarningLevel.LOST: ("critical", "lost", "a checkpoint that can't be restored"),
    WarningLevel.DOUBTFUL: ("atrisk", "doubtful", "something is unknown"),
    WarningLevel.NOTE: ("unknown", "note", "the existing files are correct"),
}
_COLUMNS = ("LSN", "moment (UTC)", "gap", "made from", "entries read", "verified", "open transactions", "rows", "bytes", "made (UTC)")


def render_history(history: History, now_millis: int) -> str:
    """Returns the report; `now_millis` is its time."""
    title = f"Checkpoints of {history.identity.tablespace}"
    about = (
        f"tablespace {history.identity.tablespace_uuid}, cluster {history.identity.instance_id}, as of {_minute(now_millis)} UTC; "
        "updated after each Checkpoint"
    )
    body = header(title, about) + verdict(_verdict(history)) + _figures(history, now_millis) + _warnings(history.warnings)
    if history.links:
        body += _restorable(history) + _tables(history.links) + _by_checkpoint(history)
    return page(title, _minute(now_millis), body + _every(history) + _explanations())


def what_to_do(history: History) -> tuple[str, ...]:
    """Steps for a person, most urgent first."""
    steps: list[str] = []
    links = history.links
    if lacking := [link.checkpoint for link in links if link.checkpoint.missing]:
        lsns = ", ".join(str(each.lsn) for each in lacking[-5:])
        newest = " The newest is one of them: make another Checkpoint now." if lacking[-1] is links[-1].checkpoint else ""
        steps.append(
            f"Put back the missing files of {many(len(lacking), 'checkpoint')} ({lsns}), or delete the checkpoints that can't be"
            f" restored.{newest}"
        )
    if broken := [entry for entry in history.entries if isinstance(entry, Unreadable)]:
        steps.append(
            f"Put {many(len(broken), 'manifest')} back from a copy of the destination ({broken[-1].name}), or delete the file: while it"
            f" exists and can't be read, no checkpoint's files are deleted."
        )
    if isinstance(history.window, WindowUnknown):
        steps.append("Look at the condition LogArchived of the Tablespace: the archive beside these checkpoints can't be read.")
    return tuple(steps)


def _verdict(history: History) -> Verdict:
    weights = {warning.level for warning in history.warnings}
    lost = sum(warning.level is WarningLevel.LOST for warning in history.warnings)
    whole = len(history.entries) - lost
    if lost:
        style, sentence = "bad", f"{many(whole, 'checkpoint')} with all files, {lost:,} can't be restored"
    else:
        style = "doubtful" if WarningLevel.DOUBTFUL in weights else "good"
        sentence = f"{many(whole, 'checkpoint')}, each with a manifest and all of its files"
    return Verdict(style, sentence, f"{_period(history)} {_window(history)}", what_to_do(history))


def _period(history: History) -> str:
    """The period shown, and what is left out."""
    if not history.links:
        return "No manifest could be read."
    first, last = history.links[0].checkpoint, history.links[-1].checkpoint
    span = f"From {_moment(first)} UTC (LSN {first.lsn}) to {_moment(last)} UTC (LSN {last.lsn})."
    if not history.older:
        return span
    return f"{span} These are the newest {len(history.entries):,} of {len(history.entries) + history.older:,}; older ones are not shown."


def _window(history: History) -> str:
    match history.window:
        case Window():
            return f"With the archive of the log, {history.window}; and the moments in the remaining log after it."
        case WindowUnknown():
            return "The range of the log's archive is unknown."
        case None:
            return (
                "No archive of the log continues from one of them: you can restore only the moments of these checkpoints, and later ones "
                "in the remaining log."
            )
        case _:
            assert_never(history.window)


def _figures(history: History, now_millis: int) -> str:
    links = history.links
    newest = links[-1].checkpoint if links else None
    longest = history.longest
    full = sum(link.start is Start.WHOLE_LOG for link in links)
    age = "–" if newest is None or newest.moment_millis is None else _duration(now_millis - newest.moment_millis)
    return tiles(
        [
            ("checkpoints shown", f"{len(history.entries):,}"),
            ("from the whole log / from another one", f"{full:,} / {len(links) - full:,}"),
            ("age of the newest moment, then", age),
            ("longest gap", "–" if longest is None or longest.gap is None else _duration(longest.gap.millis)),
            ("rows of the newest", "–" if newest is None else number(newest.rows)),
            ("bytes of the newest", "–" if newest is None else in_bytes(newest.bytes)),
            ("bytes of all shown", in_bytes(sum(link.checkpoint.bytes for link in links))),
            ("open transactions in the newest", "–" if newest is None else f"{newest.open_transactions:,}"),
        ]
    )


def _warnings(found: Sequence[HistoryWarning]) -> str:
    if not found:
        return section("What is odd", "<p>Nothing.</p>")
    order = list(_WEIGHTS)
    shown = sorted(found, key=lambda warning: order.index(warning.level))[:_MAX_WARNINGS]
    rows = (f"<tr><td>{_badge(warning.level)}</td><td>{escape(warning.words)}</td></tr>" for warning in shown)
    more = f"<p>… and {len(found) - len(shown):,} more.</p>" if len(found) > len(shown) else ""
    return section("What is odd", table("oddities", ("weight", "what"), rows) + more)


def _badge(weight: WarningLevel) -> str:
    style, word, words = _WEIGHTS[weight]
    return f'<span class="badge {style}" title="{escape(words)}">{word}</span>'


def _restorable(history: History) -> str:
    stamped = [(link, at) for link in history.links if (at := link.checkpoint.moment_millis) is not None]
    window = history.window if isinstance(history.window, Window) else None
    covered = _covered(window, stamped[0][1] if stamped else None)
    ends = [at for _, at in stamped] + ([] if covered is None else [int(covered.begin), int(covered.end)])
    if not ends:
        return ""
    strokes = tuple(Stretch(at, at, _style(link), f"{_moment(link.checkpoint)} UTC, LSN {link.checkpoint.lsn}") for link, at in stamped)
    lanes = [Lane("the moment of a checkpoint", strokes, many(len(strokes), "moment"))]
    if covered is not None:
        lanes.append(Lane("any moment, with the archive", (covered,), _duration(int(covered.end - covered.begin))))
    plot = timeline(lanes, _times(ends), "What can be restored")
    return section("What can be restored", _legend(history.links) + plot)


def _covered(window: Window | None, first_millis: int | None) -> Stretch | None:
    """The archive's period. If its beginning has no time, the first checkpoint's time stands in."""
    begin = None if window is None else first_millis if window.begin_millis is None else window.begin_millis
    if window is None or begin is None:
        return None
    return Stretch(begin, max(begin, window.end_millis), "ok", f"{_minute(begin)} to {_minute(window.end_millis)} UTC")


def _tables(links: Sequence[Link]) -> str:
    stamped = [(link.checkpoint, at) for link in links if (at := link.checkpoint.moment_millis) is not None]
    # Sorted by time: leaders' clocks may go back.
    stamped.sort(key=lambda pair: pair[1])
    newest = {size.name: size.rows for size in links[-1].checkpoint.tables}
    names = sorted({size.name for each, _ in stamped for size in each.tables}, key=lambda name: (-newest.get(name, -1), name))
    if not names:
        return section("Rows by table", "<p>No table, or no moment is known.</p>")
    sizes = [(each, at, {size.name: size for size in each.tables}) for each, at in stamped]
    rows = [_line(name, sizes) for name in names[:_MOST_LINES]]
    left = len(names) - len(rows)
    more = f"<p>… and {many(left, 'smaller or dropped table')}.</p>" if left else ""
    words = "<p>Each line from zero to the table's own greatest value; behind it the newest one.</p>"
    return section("Rows by table", words + line_chart(rows, _times([at for _, at in stamped]), "Rows by table over time") + more)


def _line(name: str, sizes: Sequence[tuple[Recorded, int, dict[str, TableSize]]]) -> Line:
    points: list[Point | None] = []
    for each, at, tables in sizes:
        size = tables.get(name)
        title = "" if size is None else f"{name}, {_moment(each)} UTC: {many(size.rows, 'row')}, {in_bytes(size.bytes)}"
        points.append(None if size is None else Point(at, size.rows, title))
    newest = sizes[-1][2].get(name)
    rows = "dropped" if newest is None else "1 row" if newest.rows == 1 else f"{number(newest.rows)} rows"
    return Line(name, tuple(points), rows)


def _by_checkpoint(history: History) -> str:
    links = history.links
    labels = _labels(links)
    scale, unit = _scale([link.checkpoint.bytes for link in links], ((1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1, " B")))
    written = [[Part(_title(link), _style(link), link.checkpoint.bytes / scale)] for link in links]
    plots = f"<h3>Bytes written</h3>{_legend(links)}{columns(labels, written, Axis('Bytes written by checkpoint', unit))}"
    return section("By checkpoint", plots + _gaps(history, labels) + _durations(links, labels))


def _gaps(history: History, labels: Sequence[str]) -> str:
    gaps = [(label, link, link.gap) for label, link in zip(labels, history.links, strict=True) if link.gap is not None]
    longest = history.longest
    if longest is None or longest.gap is None:
        return ""
    scale, unit = _time_scale([gap.millis for _, _, gap in gaps])
    stacks = [[Part(_title(link), _gap_style(link, longest), gap.millis / scale)] for _, link, gap in gaps]
    end = longest.checkpoint
    words = (
        f"The longest, {_duration(longest.gap.millis)}, ends with the checkpoint at {end.lsn} ({_moment(end)} UTC): without an "
        "archive, the loss of the cluster could have lost this much"
    )
    words += "." if longest.gap.is_whole else "; but a checkpoint in between is gone, or can't be read."
    key = legend([("verified", "from the moment before"), ("under", "the longest"), ("unread", "one in between is gone or unreadable")])
    plot = columns([label for label, _, _ in gaps], stacks, Axis("Time between the moments of checkpoints", unit))
    return f"<h3>Gap before each</h3><p>{escape(words)}</p>{key}{plot}"


def _gap_style(link: Link, longest: Link) -> str:
    if link is longest:
        return "under"
    return "verified" if link.gap is None or link.gap.is_whole else "unread"


def _durations(links: Sequence[Link], labels: Sequence[str]) -> str:
    known = [(label, link, made) for label, link in zip(labels, links, strict=True) if (made := link.checkpoint.made) is not None]
    if not known:
        return ""
    scale, unit = _time_scale([made.seconds * _SECOND for _, _, made in known])
    stacks = [[Part(_title(link), _style(link), made.seconds * _SECOND / scale)] for _, link, made in known]
    unrecorded = len(links) - len(known)
    words = f"<p>{many(unrecorded, 'checkpoint')} of an earlier version left out: that version did not record it.</p>" if unrecorded else ""
    return f"<h3>Time that it took to make</h3>{words}{columns([label for label, _, _ in known], stacks, Axis('Time of the job', unit))}"


def _every(history: History) -> str:
    rows = (_row(entry) for entry in reversed(history.entries))
    older = f"<p>{many(history.older, 'older checkpoint')} not read.</p>" if history.older else ""
    return section("Every checkpoint, the newest first", table("checkpoints", (*_COLUMNS, "tables"), rows) + older)


def _row(entry: Link | Unreadable) -> str:
    if isinstance(entry, Unreadable):
        words = f'<span class="badge critical">unreadable</span> {escape(entry.name)}: {escape(entry.reason)}'
        return f'<tr><td colspan="{len(_COLUMNS) + 1}" class="text">{words}</td></tr>'
    each, gap = entry.checkpoint, entry.gap
    lacking = f' <span class="badge critical">{len(each.missing):,} files missing</span>' if each.missing else ""
    moment = "" if each.moment_millis is None else stamp(each.moment_millis).removesuffix("Z").replace("T", " ")
    making = "" if each.made is None else f"{_minute(each.made.at_millis)}, took {_duration(int(each.made.seconds * _SECOND))}"
    cells = ("" if gap is None else _duration(gap.millis), _origin(entry), f"{each.entries_read:,}")
    sizes = (f"{each.open_transactions:,}", f"{each.rows:,}", in_bytes(each.bytes))
    text = "".join(f"<td>{escape(cell)}</td>" for cell in cells) + f'<td class="text">{escape(each.verified)}</td>'
    text += "".join(f"<td>{escape(cell)}</td>" for cell in sizes) + f'<td class="text">{escape(making)}</td>'
    return f"<tr><td>{escape(str(each.lsn))}{lacking}</td><td>{escape(moment)}</td>{text}<td>{_listed(each.tables)}</td></tr>"


def _origin(link: Link) -> str:
    base = link.checkpoint.base
    if base is None:
        return "the whole log"
    match link.start:
        case Start.WHOLE_LOG | Start.THERE:
            return str(base.lsn.lsn)
        case Start.FOLLOWER:
            return f"{base.lsn.lsn} (tables of a follower)"
        case Start.GONE:
            return f"{base.lsn.lsn} (gone)"
        case Start.REPLACED:
            return f"{base.lsn.lsn} (made anew)"
        case Start.UNREADABLE:
            return f"{base.lsn.lsn} (unreadable)"
        case _:
            assert_never(link.start)


def _listed(tables: Sequence[TableSize]) -> str:
    largest = sorted(tables, key=lambda size: (-size.rows, size.name))
    lines = "".join(f"<div>{escape(size.name)}: {many(size.rows, 'row')}, {in_bytes(size.bytes)}</div>" for size in largest[:_MOST_TABLES])
    left = largest[_MOST_TABLES:]
    more = f"<div>… and {len(left):,} more with {many(sum(size.rows for size in left), 'row')}</div>" if left else ""
    return f"<details><summary>{many(len(tables), 'table')}</summary>{lines}{more}</details>"


def _explanations() -> str:
    return (
        "<footer><p>This page shows the existing manifests, without expired or removed checkpoints. Each checkpoint has all rows in its"
        " own files, so its base may be deleted. Files were checked by name; their content was not read. Whether a restore accepts their "
        "rows is in the status of each Checkpoint. A "
        "moment is the time of the last entry by the clock of the node that led.</p></footer>"
    )


def _legend(links: Sequence[Link]) -> str:
    styles = {_style(link) for link in links}
    words = (
        ("verified", "made from the whole log"),
        ("pending", "made from another checkpoint, or from a follower's tables"),
        ("critical", "files missing"),
    )
    return legend([each for each in words if each[0] in styles])


def _style(link: Link) -> str:
    if link.checkpoint.missing:
        return "critical"
    return "verified" if link.checkpoint.base is None else "pending"


def _title(link: Link) -> str:
    return f"({_moment(link.checkpoint)} UTC, LSN {link.checkpoint.lsn})"


def _moment(checkpoint: Recorded) -> str:
    return "an unknown moment" if checkpoint.moment_millis is None else _minute(checkpoint.moment_millis)


def _minute(millis: float) -> str:
    return _second(millis)[:16]


def _second(millis: float) -> str:
    return stamp(int(millis))[:19].replace("T", " ")


def _labels(links: Sequence[Link]) -> list[str]:
    """The part of each moment that distinguishes neighbouring columns."""
    moments = [link.checkpoint.moment_millis for link in links]
    known = [at for at in moments if at is not None]
    span = max(known, default=0) - min(known, default=0)
    begin, end = (11, 16) if _SHORT < span <= 2 * _DAY else _label_slice(span)
    return ["?" if at is None else _second(at)[begin:end] for at in moments]


def _times(moments: Sequence[int]) -> Times:
    """The time axis; labels are as short as distinct ticks allow."""
    first, last = min(moments), max(moments)
    begin, end = (5, 16) if first == last or _SHORT < last - first <= 2 * _DAY else _label_slice(last - first)
    return Times(first, last, lambda at: _second(at)[begin:end])


def _label_slice(span: int) -> tuple[int, int]:
    """The label's slice of `2026-05-04 03:00:07`: the time of day for minutes, month and day, or year and month for more than 300 days."""
    if 0 < span <= _SHORT:
        return (11, 19)
    return (5, 10) if span <= 300 * _DAY else (0, 7)


def _scale(values: Iterable[float], units: Sequence[tuple[float, str]]) -> tuple[float, str]:
    """The largest unit not above the highest value, else the smallest one."""
    highest = max(values, default=0)
    return next((unit for unit in units if highest >= unit[0]), units[-1])


def _time_scale(millis: Iterable[float]) -> tuple[float, str]:
    return _scale(millis, ((_DAY, " d"), (_HOUR, " h"), (_MINUTE, " min"), (_SECOND, " s")))


def _duration(millis: int) -> str:
    """For example 3 d 4 h, 5 min 6 s, 0.4 s."""
    units = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (_SECOND, "s"))
    for (size, name), (less, lesser) in pairwise(units):
        if millis >= size:
            rest = millis % size // less
            return f"{millis // size:,} {name}" + (f" {rest} {lesser}" if rest else "")
    return f"{max(0, millis) / _SECOND:.1f} s"
