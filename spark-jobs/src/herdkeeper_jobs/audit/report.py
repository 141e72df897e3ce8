"""Renders an audit and its predecessors as one self-contained HTML file (`report.page`). Pure.

It shows what was audited, the verdict, what to do, plots, and every finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Literal, assert_never

from herdkeeper.protocol.audit_finding import AuditDepth, Finding, FindingKind, RepairOutcome, Severity
from herdkeeper_jobs.audit.bookie_health import BookieHealth
from herdkeeper_jobs.audit.tables import MOST_LEDGERS, AuditRun, PastRun
from herdkeeper_jobs.report.page import Verdict, header, in_bytes, legend, many, page, section, table, tiles, verdict
from herdkeeper_jobs.report.plots import Axis, Bar, Cell, Part, bars, columns, grid, number

MOST_RUNS = 30
"""At most so many of the newest runs are shown."""
_MOST_ROWS = 5000
_MOST_LEDGERS = 25
_URGENCY = tuple(Severity)
_SEVERITIES = {
    Severity.CRITICAL: ("critical", "C", "critical: fewer good copies than the ack quorum, or entries are lost"),
    Severity.UNDER_REPLICATED: ("under", "U", "under-replicated: fewer than the write quorum, on a closed ledger"),
    Severity.AT_RISK: ("atrisk", "R", "at risk: all copies in too few racks"),
    Severity.PENDING: ("pending", "P", "pending: fewer than the write quorum, on a ledger that is not closed"),
    Severity.UNKNOWN: ("unknown", "?", "unknown: could not be read"),
    Severity.LOW: ("low", "L", "low: nothing is missing or damaged"),
}
_OfLedgers = Literal[
    FindingKind.LEDGER_UNREADABLE,
    FindingKind.END_UNKNOWN,
    FindingKind.TOO_FEW_RACKS,
    FindingKind.NAMED_TWICE,
    FindingKind.WRONG_LAST_CONFIRMED,
    FindingKind.WRONG_LENGTH,
    FindingKind.ORPHAN,
]
_DEPTHS = {AuditDepth.DEEP: "verified", AuditDepth.LIGHT: "pending"}
_COPIES = (
    ("verified", "verified"),
    ("unread", "not read (light audit)"),
    ("missing", "missing"),
    ("damaged", "damaged"),
    ("unknown", "unknown"),
)


def render_report(run: AuditRun, history: Sequence[PastRun]) -> str:
    """Returns the report of `run`. `history`: the runs on the same cluster, oldest first, with this one; later ones are left out."""
    shown = tuple(each for each in history if each.run.finished_at <= run.finished_at)[-MOST_RUNS:]
    title = f"Replication audit of {run.ledgers_root}"
    style, sentence = _judge(run)
    body = header(title, _about(run)) + verdict(Verdict(style, sentence, _audited(run), what_to_do(run)))
    body += _numbers(run) + _by_bookie(run, shown) + _by_ledger(run, shown) + _over_time(shown)
    body += _placement(run) + _findings(run.summary.findings) + _explanations()
    return page(title, _day(run), body)


def _about(run: AuditRun) -> str:
    when = f"{run.finished_at:%Y-%m-%d %H:%M} UTC"
    return f"{run.summary.depth.value} audit, finished {when}, run {run.summary.run_id}, cluster {run.summary.instance_id}"


def _judge(run: AuditRun) -> tuple[str, str]:
    """Returns a colour, and the result in a sentence."""
    summary = run.summary
    unrepaired = _unrepaired(summary.findings)
    counts = [(severity, sum(1 for each in unrepaired if each.severity is severity)) for severity in _URGENCY]
    found = [f"{count:,} {_SEVERITIES[severity][2].partition(':')[0]}" for severity, count in counts if count]
    repair_count = len(summary.findings) - len(unrepaired)
    repaired = f"{many(repair_count, 'finding')} repaired" if repair_count else ""
    if not found and summary.ledger_filter and not summary.ledgers:
        return "doubtful", "Nothing was audited: no ledger matches the request"
    if not found:
        good = "copy that was read is good" if summary.depth is AuditDepth.LIGHT else "copy of every entry is good"
        good += " in the requested ledgers" if summary.ledger_filter else ""
        return "good", f"{repaired}; every other {good}" if repaired else f"Every {good}"
    worst = next(severity for severity, count in counts if count)
    style = "bad" if worst in (Severity.CRITICAL, Severity.UNDER_REPLICATED) else "doubtful"
    return style, f"Findings: {', '.join(found)}" + (f"; {repaired}" if repaired else "")


def _audited(run: AuditRun) -> str:
    summary = run.summary
    copies = f"{summary.copies_verified:,} of {summary.copies_expected:,} copies read and verified"
    unread = f", {summary.copies_unread:,} not read since a sample of their neighbours is good" if summary.copies_unread else ""
    unknown = f", {summary.copies_unknown:,} could not be read" if summary.copies_unknown else ""
    ledgers = f"{many(summary.ledgers, 'ledger')} ({summary.open_ledgers:,} open) with {summary.entries:,} confirmed entries"
    only = f" Only these ledgers were requested: {summary.ledger_filter}." if summary.ledger_filter else ""
    return f"{ledgers} on {many(len(run.bookies), 'bookie')}: {copies}{unread}{unknown}.{only}"


def what_to_do(run: AuditRun) -> tuple[str, ...]:
    """Steps for a person, most urgent first."""
    open_findings = _unrepaired(run.summary.findings)
    steps: list[str] = []
    refused = [each for each in open_findings if each.repair in (RepairOutcome.REFUSED, RepairOutcome.FAILED)]
    if refused:
        steps.append(f"Not repairable, or not repaired: {many(len(refused), 'finding')}; the last column below says why.")
    for kind in FindingKind:
        own = [each for each in open_findings if each.kind is kind]
        if own:
            steps.append(_step(kind, own))
    return tuple(steps)


def _step(kind: FindingKind, own: Sequence[Finding]) -> str:
    bookies = ", ".join(sorted({each.bookie_id for each in own if each.bookie_id}))
    ledgers = many(len({each.ledger_id for each in own}), "ledger")
    pending = (
        " Those on open ledgers can wait until the ledger is closed." if any(each.severity is Severity.PENDING for each in own) else ""
    )
    match kind:
        case FindingKind.MISSING:
            return f"Entries of {ledgers} are missing on {bookies}: audit with repair: DryRun, then Repair.{pending}"
        case FindingKind.CORRUPT_DIGEST:
            return f"Entries of {ledgers} are damaged on {bookies}: look at disk and log there, then audit with repair: Repair.{pending}"
        case FindingKind.CONTRADICTION:
            return f"Copies of {ledgers} on {bookies} contradict other copies, with valid digests: compare them by hand."
        case FindingKind.BOOKIE_UNREACHABLE:
            return f"Bring back {bookies}, or let the cluster replace it; then audit again, since the state of its copies is unknown."
        case FindingKind.READ_FAILED:
            return f"{bookies} answers with errors for entries of {ledgers}: look at disk and log there."
        case _:
            return _step_for_ledgers(kind, ledgers, own)


def _step_for_ledgers(kind: _OfLedgers, ledgers: str, own: Sequence[Finding]) -> str:
    match kind:
        case FindingKind.LEDGER_UNREADABLE:
            return _step_for_unreadable(own)
        case FindingKind.END_UNKNOWN:
            return (
                f"The last segment of {ledgers} was not read to its end: too few bookies reported where that is. Bring them back (the "
                'column "what was seen" below names them), then audit again.'
            )
        case FindingKind.TOO_FEW_RACKS | FindingKind.NAMED_TWICE:
            narrow = f"Copies of {ledgers} are in too few racks and are not moved automatically: drain one of their bookies."
            doubled = f"Two places of {ledgers} are on one bookie, and BookKeeper doesn't mend that: make a Checkpoint."
            return narrow if kind is FindingKind.TOO_FEW_RACKS else doubled
        case FindingKind.WRONG_LAST_CONFIRMED:
            return f"Entries of {ledgers} refer to confirmed entries that are missing: compare with a checkpoint or with the archive."
        case FindingKind.WRONG_LENGTH:
            return f"In {ledgers} the lengths in entries don't add up, in all copies alike: check their writer."
        case FindingKind.ORPHAN:
            return f"You may delete {ledgers} to free space: no log uses what is there."
        case _:
            assert_never(kind)


def _step_for_unreadable(own: Sequence[Finding]) -> str:
    """Nobody can look at metadata that is gone."""
    lost = len({each.ledger_id for each in own if each.severity is Severity.CRITICAL})
    rest = len({each.ledger_id for each in own if each.severity is not Severity.CRITICAL})
    steps = [
        f"BookKeeper has no metadata of {many(lost, 'ledger')} that a log lists: keep the newest Checkpoint and the archive, and copy the "
        "tables into a new tablespace.",
        f"A person must look at the metadata of {many(rest, 'ledger')} in ZooKeeper, which can't be read.",
    ]
    return " ".join(step for step, count in zip(steps, (lost, rest), strict=True) if count)


def _unrepaired(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(each for each in findings if each.repair is not RepairOutcome.REPAIRED)


def _numbers(run: AuditRun) -> str:
    summary = run.summary
    seconds = summary.duration_seconds
    figures = [
        ("ledgers", f"{summary.ledgers:,}"),
        ("entries", number(summary.entries)),
        ("copies verified", number(summary.copies_verified)),
        *([("copies not read", number(summary.copies_unread))] if summary.depth is AuditDepth.LIGHT else []),
        ("copies in findings", number(sum(each.entries_of_copies for each in summary.findings))),
        ("read", in_bytes(summary.bytes_read)),
        ("took", f"{seconds:,.0f} s"),
        ("throughput", f"{in_bytes(summary.bytes_read / seconds)}/s" if seconds else "–"),
    ]
    return tiles(figures)


def _by_bookie(run: AuditRun, shown: Sequence[PastRun]) -> str:
    rows = [Bar(_labelled(each), _parts(each), _copies_note(each)) for each in run.bookies]
    plots = legend([(style, name) for style, name in _COPIES if any(_count(each, style) for each in run.bookies)])
    plots += bars(rows, "Copies by bookie and state")
    if len(shown) > 1:
        known = [{each.bookie_id: each for each in one.run.bookies} for one in shown]
        bookies = sorted({bookie_id for one in known for bookie_id in one})
        cells = [[_bookie_cell(one.get(bookie_id)) for one in known] for bookie_id in bookies]
        plots += "<h3>Over time: copies missing or damaged</h3>"
        plots += legend([("ok", "none"), ("under", "some"), ("critical", "more than 1 %"), ("unknown", "could not be read")])
        plots += grid(bookies, [_day(one.run) for one in shown], cells, "Bad copies by bookie and run")
    return section("Health by bookie", plots)


def _parts(bookie: BookieHealth) -> tuple[Part, ...]:
    return tuple(Part(name, style, _count(bookie, style)) for style, name in _COPIES)


def _count(bookie: BookieHealth, style: str) -> int:
    return int(getattr(bookie, f"copies_{style}"))


def _bookie_cell(bookie: BookieHealth | None) -> Cell | None:
    if bookie is None:
        return None
    bad = bookie.copies_missing + bookie.copies_damaged
    if bad:
        style = "critical" if bad * 100 > bookie.copies else "under"
        return Cell(style, f"{bookie.copies_missing:,} missing, {bookie.copies_damaged:,} damaged of {bookie.copies:,}", "!")
    if bookie.copies_unknown:
        return Cell("unknown", f"{bookie.copies_unknown:,} of {bookie.copies:,} unknown", "?")
    return Cell("ok", f"none of {bookie.copies:,}")


def _by_ledger(run: AuditRun, shown: Sequence[PastRun]) -> str:
    now = PastRun.of(run, run.summary.findings).worst
    every = sorted({ledger for one in shown for ledger in one.worst}, key=lambda ledger: _ledger_order(ledger, now, shown))
    if not every:
        return section("Health by ledger", f"<p>No finding about a ledger in {_runs(shown)}, or all were repaired.</p>")
    ledgers = every[:_MOST_LEDGERS]
    cells = [[_ledger_cell(ledger, one) for one in shown] for ledger in ledgers]
    chosen = "<p>A run of chosen ledgers shows nothing for a ledger without findings; it may not have read the ledger.</p>"
    filtered = chosen if any(one.run.summary.ledger_filter for one in shown) else ""
    names = [f"ledger {ledger}" for ledger in ledgers]
    some = " at least" if any(len(one.worst) >= MOST_LEDGERS for one in shown) else ""
    more = f"<p>… and{some} {len(every) - len(ledgers):,} more ledgers.</p>" if len(every) > len(ledgers) else ""
    plot = grid(names, [_day(one.run) for one in shown], cells, "Worst finding by ledger and run")
    colours = legend(
        [("ok", "nothing found, or repaired"), *((style, f"{letter} {words}") for style, letter, words in _SEVERITIES.values())]
    )
    earlier = "" if len(shown) == 1 else f", those of this run first, then those of {_runs(shown)}"
    words = f"<p>The {len(ledgers)} ledgers with the most urgent findings{earlier}; all {run.summary.ledgers:,} were audited.</p>"
    return section("Health by ledger", words + filtered + colours + plot + more)


def _ledger_order(ledger: int, now: Mapping[int, Severity], shown: Sequence[PastRun]) -> tuple[int, int, int]:
    ever = min(_URGENCY.index(one.worst[ledger]) for one in shown if ledger in one.worst)
    return (_URGENCY.index(now[ledger]) if ledger in now else len(_URGENCY), ever, ledger)


def _ledger_cell(ledger: int, one: PastRun) -> Cell | None:
    severity, run = one.worst.get(ledger), one.run
    if severity is None and run.summary.ledger_filter:
        return None
    if severity is None and len(one.worst) >= MOST_LEDGERS:
        return Cell("unknown", f"not among the {MOST_LEDGERS:,} worst ledgers of this run", "?")
    if severity is None and run.summary.copies_unknown:
        return Cell("unknown", f"no finding, but {run.summary.copies_unknown:,} copies of this run could not be read", "?")
    if severity is None:
        return Cell("ok", f"nothing found, or repaired ({run.summary.depth.value})")
    style, letter, words = _SEVERITIES[severity]
    return Cell(style, words, letter)


def _over_time(shown: Sequence[PastRun]) -> str:
    if len(shown) == 1:
        return ""
    days = [f"{one.run.finished_at:%m-%d}" for one in shown]
    present = [each for each in _URGENCY if any(one.entries_found[each] for one in shown)]
    found = [[Part(each.value, _SEVERITIES[each][0], one.entries_found[each]) for each in present] for one in shown]
    read = [[Part(one.run.summary.depth.value, _DEPTHS[one.run.summary.depth], _rate(one.run) / 1e6)] for one in shown]
    colours = legend([*((_SEVERITIES[each][0], _SEVERITIES[each][2]) for each in present), ("ok", "none")])
    plots = f"<h3>Copies of entries in findings</h3>{colours}{columns(days, found, Axis('Copies of entries in findings'))}"
    depths = legend([(_DEPTHS[each], f"{each.value} audits") for each in AuditDepth if any(one.run.summary.depth is each for one in shown)])
    plots += f"<h3>Throughput: entries read</h3>{depths}{columns(days, read, Axis('Megabytes of entries read per second', ' MB/s'))}"
    return section("Over time", plots)


def _rate(run: AuditRun) -> float:
    return run.summary.bytes_read / run.summary.duration_seconds if run.summary.duration_seconds else 0.0


def _placement(run: AuditRun) -> str:
    racks: dict[str, list[BookieHealth]] = {}
    for bookie in run.bookies:
        racks.setdefault(bookie.rack or "rack unknown", []).append(bookie)
    whole = sum(bookie.copies for bookie in run.bookies)
    rows = []
    for rack, own in sorted(racks.items()):
        copies = sum(bookie.copies for bookie in own)
        parts = (Part("copies here", "verified", copies), Part("copies elsewhere", "absent", whole - copies))
        rows.append(Bar(rack, parts, f"{many(len(own), 'bookie')}, {number(copies)} copies"))
    narrow = len({each.ledger_id for each in run.summary.findings if each.kind is FindingKind.TOO_FEW_RACKS})
    words = f"Copies in too few racks: {many(narrow, 'ledger')}." if narrow else "No ledger's copies are in too few racks."
    unknown = [bookie.bookie_id for bookie in run.bookies if bookie.rack is None]
    if unknown and not narrow:
        words = f"No ledger without {' and '.join(unknown)}, of which no rack is known, has copies in too few racks."
    if len(unknown) == len(run.bookies):
        words = "The bookies' racks are unknown, so placement was not judged."
    return section("Placement", f"<p>{escape(words, quote=False)}</p>{bars(rows, 'Share of all copies by rack')}")


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return section("Findings", "<p>None.</p>")
    more = f"<p>The {_MOST_ROWS:,} most urgent of {len(findings):,}; the others are in the table audit_findings.</p>"
    names = ("severity", "kind", "ledger", "entries", "bookie", "good copies", "what was seen", "repair")
    rows = table("findings", names, (_finding(each) for each in findings[:_MOST_ROWS]))
    return section("Findings", (more if len(findings) > _MOST_ROWS else "") + rows)


def _finding(finding: Finding) -> str:
    style, _, words = _SEVERITIES[finding.severity]
    entries = "" if finding.first_entry_id is None else f"{finding.first_entry_id}–{finding.last_entry_id}"
    copies = "" if finding.actual_copies is None else f"{finding.actual_copies} of {finding.expected_copies}"
    repair = ": ".join(part for part in (finding.repair.value if finding.repair else "", finding.repair_detail) if part)
    badge = f'<span class="badge {style}" title="{escape(words)}">{finding.severity.value}</span>'
    cells = (finding.kind.value, "" if finding.ledger_id is None else str(finding.ledger_id), entries, finding.bookie_id or "", copies)
    text = "".join(f"<td>{escape(cell)}</td>" for cell in (*cells, finding.detail, repair))
    return f"<tr><td>{badge}</td>{text}</tr>"


def _explanations() -> str:
    return (
        "<footer><p>A copy is an entry on one bookie. The entries of a finding are a range on one bookie; a striped ledger has entries in "
        "it that are other bookies' alone. A light audit reads a sample of each bookie's share of a ledger: only a deep one sees single "
        "entries that are missing or damaged inside a share.</p></footer>"
    )


def _labelled(bookie: BookieHealth) -> str:
    return f"{bookie.bookie_id} ({bookie.rack})" if bookie.rack else bookie.bookie_id


def _copies_note(bookie: BookieHealth) -> str:
    """The copies that a bookie should hold, and how many are bad."""
    bad = bookie.copies_missing + bookie.copies_damaged
    return f"{number(bookie.copies)} copies" + (f", {number(bad)} bad" if bad else "")


def _runs(shown: Sequence[PastRun]) -> str:
    return "this run" if len(shown) == 1 else f"the last {len(shown)} runs"


def _day(run: AuditRun) -> str:
    return f"{run.finished_at:%Y-%m-%d}"
