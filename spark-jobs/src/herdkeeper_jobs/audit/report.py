"""One audit, and those before it, as one HTML file for people: what was audited, the verdict, what to do, plots, and every finding. Pure.

The file needs nothing else: style and plots are inside, nothing is loaded, nothing is run. It follows the reader's light or dark setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import assert_never

from herdkeeper.domain.audit_depth import AuditDepth
from herdkeeper.domain.audit_finding import Finding, FindingKind, RepairOutcome, Severity
from herdkeeper_jobs.audit.bookie_health import BookieHealth
from herdkeeper_jobs.audit.history import MOST_LEDGERS, AuditRun, PastRun
from herdkeeper_jobs.audit.plots import Axis, Bar, Cell, Part, bars, columns, grid, number

MOST_RUNS = 30
"""As many of the newest runs are shown."""
_MOST_ROWS = 5000
_MOST_LEDGERS = 25
_URGENCY = (Severity.CRITICAL, Severity.UNDER_REPLICATED, Severity.AT_RISK, Severity.PENDING, Severity.UNKNOWN)
_SEVERITIES = {
    Severity.CRITICAL: ("critical", "C", "critical: fewer good copies than the ack quorum"),
    Severity.UNDER_REPLICATED: ("under", "U", "under-replicated: fewer than the write quorum, on a closed ledger"),
    Severity.AT_RISK: ("atrisk", "R", "at risk: all copies in too few racks"),
    Severity.PENDING: ("pending", "P", "pending: the same on a ledger that is being written"),
    Severity.UNKNOWN: ("unknown", "?", "unknown: could not be looked at"),
}
_DEPTHS = {AuditDepth.DEEP: "verified", AuditDepth.LIGHT: "pending"}
_COPIES = (
    ("verified", "verified"),
    ("unread", "not read (light audit)"),
    ("missing", "missing"),
    ("damaged", "damaged"),
    ("unknown", "unknown"),
)


def render_report(run: AuditRun, history: Sequence[PastRun]) -> str:
    """The report of `run`. `history` holds the runs on the same cluster, oldest first, this one included; later ones are left out."""
    shown = tuple(each for each in history if each.run.finished_at <= run.finished_at)[-MOST_RUNS:]
    title = f"Replication audit of {run.ledgers_root}"
    body = "".join((_head(title, run), _verdict(run), _numbers(run), _by_bookie(run, shown), _by_ledger(run, shown), _over_time(shown)))
    body += _placement(run) + _findings(run.summary.findings) + _explanations()
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}, {_day(run)}</title><style>{_STYLE}</style></head><body><main>{body}</main></body></html>\n"
    )


def _head(title: str, run: AuditRun) -> str:
    when = f"{run.finished_at:%Y-%m-%d %H:%M} UTC"
    return (
        f"<header><h1>{escape(title)}</h1><p>{run.summary.depth.value} audit, finished {when}, run {escape(run.summary.run_id)}, "
        f"cluster {escape(run.summary.instance_id)}</p></header>"
    )


def _verdict(run: AuditRun) -> str:
    style, verdict = _judge(run)
    todo = "".join(f"<li>{escape(each)}</li>" for each in what_to_do(run))
    steps = f"<h3>What to do</h3><ul>{todo}</ul>" if todo else "<p>There is nothing to do.</p>"
    return f'<section class="verdict {style}"><h2>{escape(verdict)}</h2><p>{escape(_audited(run))}</p>{steps}</section>'


def _judge(run: AuditRun) -> tuple[str, str]:
    """A colour, and the result in a sentence."""
    summary = run.summary
    left = _left(summary.findings)
    counts = [(severity, sum(1 for each in left if each.severity is severity)) for severity in _URGENCY]
    found = [f"{count:,} {_SEVERITIES[severity][2].partition(':')[0]}" for severity, count in counts if count]
    mended = len(summary.findings) - len(left)
    repaired = f"{_many(mended, 'finding')} repaired" if mended else ""
    if not found:
        good = "Every copy that was read is good" if summary.depth is AuditDepth.LIGHT else "Every copy of every entry is good"
        return "good", f"{repaired}; the rest is good" if repaired else good
    worst = next(severity for severity, count in counts if count)
    style = "bad" if worst in (Severity.CRITICAL, Severity.UNDER_REPLICATED) else "doubtful"
    return style, f"Findings: {', '.join(found)}" + (f"; {repaired}" if repaired else "")


def _audited(run: AuditRun) -> str:
    summary = run.summary
    copies = f"{summary.copies_verified:,} of {summary.copies_expected:,} copies read and verified"
    unread = f", {summary.copies_unread:,} not read since a sample of their neighbours is good" if summary.copies_unread else ""
    unknown = f", {summary.copies_unknown:,} could not be looked at" if summary.copies_unknown else ""
    ledgers = f"{_many(summary.ledgers, 'ledger')} ({summary.open_ledgers:,} open) with {summary.entries:,} confirmed entries"
    return f"{ledgers} on {_many(len(run.bookies), 'bookie')}: {copies}{unread}{unknown}."


def what_to_do(run: AuditRun) -> tuple[str, ...]:
    """Steps for a person, most urgent first."""
    open_findings = _left(run.summary.findings)
    steps: list[str] = []
    refused = [each for each in open_findings if each.repair in (RepairOutcome.REFUSED, RepairOutcome.FAILED)]
    if refused:
        steps.append(f"Not repairable, or not repaired: {_many(len(refused), 'finding')}; the last column below says why.")
    for kind in FindingKind:
        own = [each for each in open_findings if each.kind is kind]
        if own:
            steps.append(_step(kind, own))
    return tuple(steps)


def _step(kind: FindingKind, own: Sequence[Finding]) -> str:
    bookies = ", ".join(sorted({each.bookie_id for each in own if each.bookie_id}))
    ledgers = _many(len({each.ledger_id for each in own}), "ledger")
    pending = (
        " Those on open ledgers can wait until the ledger is closed." if any(each.severity is Severity.PENDING for each in own) else ""
    )
    match kind:
        case FindingKind.MISSING:
            return f"Entries of {ledgers} are missing on {bookies}: audit with repair: DryRun, then Repair.{pending}"
        case FindingKind.CORRUPT_DIGEST:
            return f"Entries of {ledgers} are damaged on {bookies}: look at disk and log there, then audit with repair: Repair.{pending}"
        case FindingKind.BOOKIE_UNREACHABLE:
            return f"Bring back {bookies}, or let the cluster replace it; then audit again, since nothing is known of its copies."
        case FindingKind.READ_FAILED:
            return f"{bookies} answers with errors for entries of {ledgers}: look at disk and log there."
        case FindingKind.LEDGER_UNREADABLE:
            return f"{ledgers} can't be read at all: a person must look at their metadata in ZooKeeper."
        case FindingKind.TOO_FEW_RACKS:
            return f"Copies of {ledgers} stand in too few racks: nothing moves them by itself; to have them copied, drain a bookie of them."
        case _:
            assert_never(kind)


def _left(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those that were not repaired."""
    return tuple(each for each in findings if each.repair is not RepairOutcome.REPAIRED)


def _numbers(run: AuditRun) -> str:
    summary = run.summary
    seconds = summary.duration_seconds
    tiles = [
        ("ledgers", f"{summary.ledgers:,}"),
        ("entries", number(summary.entries)),
        ("copies verified", number(summary.copies_verified)),
        *([("copies not read", number(summary.copies_unread))] if summary.depth is AuditDepth.LIGHT else []),
        ("entries in findings", number(sum(each.entries_of_copies for each in summary.findings))),
        ("read", _bytes(summary.bytes_read)),
        ("took", f"{seconds:,.0f} s"),
        ("throughput", f"{_bytes(summary.bytes_read / seconds)}/s" if seconds else "–"),
    ]
    return '<section class="tiles">' + "".join(f"<div><b>{value}</b><span>{name}</span></div>" for name, value in tiles) + "</section>"


def _by_bookie(run: AuditRun, shown: Sequence[PastRun]) -> str:
    rows = [Bar(_labelled(each), _parts(each), _counted(each)) for each in run.bookies]
    plots = _key([(style, name) for style, name in _COPIES if any(_count(each, style) for each in run.bookies)])
    plots += bars(rows, "Copies by bookie and state")
    if len(shown) > 1:
        known = [{each.bookie_id: each for each in one.run.bookies} for one in shown]
        bookies = sorted({bookie_id for one in known for bookie_id in one})
        cells = [[_bookie_cell(one.get(bookie_id)) for one in known] for bookie_id in bookies]
        plots += "<h3>Over time: copies missing or damaged</h3>"
        plots += _key([("ok", "none"), ("under", "some"), ("critical", "more than 1 %"), ("unknown", "did not answer")])
        plots += grid(bookies, [_day(one.run) for one in shown], cells, "Bad copies by bookie and run")
    return f"<section><h2>Health by bookie</h2>{plots}</section>"


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
    every = sorted({ledger for one in shown for ledger in one.worst}, key=lambda ledger: _ledger_order(ledger, now))
    if not every:
        return f"<section><h2>Health by ledger</h2><p>No finding about a ledger in {_runs(shown)}.</p></section>"
    ledgers = every[:_MOST_LEDGERS]
    cells = [[_ledger_cell(one.worst.get(ledger), one.run) for one in shown] for ledger in ledgers]
    names = [f"ledger {ledger}" for ledger in ledgers]
    some = " at least" if any(len(one.worst) >= MOST_LEDGERS for one in shown) else ""
    more = f"<p>… and{some} {len(every) - len(ledgers):,} more ledgers.</p>" if len(every) > len(ledgers) else ""
    plot = grid(names, [_day(one.run) for one in shown], cells, "Worst finding by ledger and run")
    key = _key([("ok", "nothing found"), *((style, f"{letter} {words}") for style, letter, words in _SEVERITIES.values())])
    words = f"<p>The {len(ledgers)} ledgers with the most urgent findings in {_runs(shown)}; all {run.summary.ledgers:,} were audited.</p>"
    return f"<section><h2>Health by ledger</h2>{words}{key}{plot}{more}</section>"


def _ledger_order(ledger: int, now: Mapping[int, Severity]) -> tuple[int, int]:
    return (_URGENCY.index(now[ledger]) if ledger in now else len(_URGENCY), ledger)


def _ledger_cell(severity: Severity | None, run: AuditRun) -> Cell:
    if severity is None:
        return Cell("ok", f"nothing found ({run.summary.depth.value})")
    style, letter, words = _SEVERITIES[severity]
    return Cell(style, words, letter)


def _over_time(shown: Sequence[PastRun]) -> str:
    if len(shown) == 1:
        return ""
    days = [f"{one.run.finished_at:%m-%d}" for one in shown]
    present = [each for each in _URGENCY if any(one.entries_found[each] for one in shown)]
    found = [[Part(each.value, _SEVERITIES[each][0], one.entries_found[each]) for each in present] for one in shown]
    read = [[Part(one.run.summary.depth.value, _DEPTHS[one.run.summary.depth], _rate(one.run) / 1e6)] for one in shown]
    key = _key([*((_SEVERITIES[each][0], _SEVERITIES[each][2]) for each in present), ("ok", "none")])
    plots = f"<h3>Copies of entries in findings</h3>{key}{columns(days, found, Axis('Copies of entries in findings'))}"
    depths = _key([(_DEPTHS[each], f"{each.value} audits") for each in AuditDepth if any(one.run.summary.depth is each for one in shown)])
    plots += f"<h3>Throughput: entries read</h3>{depths}{columns(days, read, Axis('Megabytes of entries read per second', ' MB/s'))}"
    return f"<section><h2>Over time</h2>{plots}</section>"


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
        rows.append(Bar(rack, parts, f"{_many(len(own), 'bookie')}, {number(copies)} copies"))
    narrow = len({each.ledger_id for each in run.summary.findings if each.kind is FindingKind.TOO_FEW_RACKS})
    words = f"Copies in too few racks: {_many(narrow, 'ledger')}." if narrow else "No ledger's copies are in too few racks."
    if all(bookie.rack is None for bookie in run.bookies):
        words = "It is not known where the bookies stand, so placement was not judged."
    return f"<section><h2>Placement</h2><p>{words}</p>{bars(rows, 'Share of all copies by rack')}</section>"


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return "<section><h2>Findings</h2><p>None.</p></section>"
    more = f"<p>The {_MOST_ROWS:,} most urgent of {len(findings):,}; the others are in the table audit_findings.</p>"
    names = ("severity", "kind", "ledger", "entries", "bookie", "good copies", "what was seen", "repair")
    head = "".join(f"<th>{name}</th>" for name in names)
    rows = "".join(_finding(each) for each in findings[:_MOST_ROWS])
    table = f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    return f"<section><h2>Findings</h2>{more if len(findings) > _MOST_ROWS else ''}{table}</section>"


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


def _counted(bookie: BookieHealth) -> str:
    """The copies that a bookie should hold, and how many of them are not good."""
    bad = bookie.copies_missing + bookie.copies_damaged
    return f"{number(bookie.copies)} copies" + (f", {number(bad)} bad" if bad else "")


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _runs(shown: Sequence[PastRun]) -> str:
    return "this run" if len(shown) == 1 else f"the last {len(shown)} runs"


def _key(entries: Iterable[tuple[str, str]]) -> str:
    return '<p class="key">' + "".join(f'<span><i class="{style}"></i>{escape(words)}</span>' for style, words in entries) + "</p>"


def _bytes(count: float) -> str:
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= limit:
            return f"{count / limit:,.1f} {unit}"
    return f"{count:,.0f} B"


def _day(run: AuditRun) -> str:
    return f"{run.finished_at:%Y-%m-%d}"


_STYLE = """
:root{--paper:#fff;--ink:#1c2530;--soft:#5c6875;--line:#dde3ea;--panel:#f5f7fa;--verified:#3d7fc1;--unread:#b9d2ea;--ok:#9fd3b4;
--missing:#d9480f;--damaged:#7b3fc4;--unknown:#9aa3ad;--critical:#c92a2a;--under:#ee7a30;--atrisk:#e0aa1f;--pending:#4dabf7;--good:#2b8a4e}
@media (prefers-color-scheme:dark){:root{--paper:#14191f;--ink:#e4e9ef;--soft:#9aa7b4;--line:#2c3641;--panel:#1c232b;--verified:#5b9bd8;
--unread:#2f4d6b;--ok:#2f6b48;--missing:#ff7a3d;--damaged:#b088f0;--unknown:#6b7682;--critical:#f05252;--under:#f08c45;--atrisk:#e3b341;
--pending:#3f8fd6;--good:#4fbf7b}}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
main{max-width:920px;margin:0 auto;padding:28px 24px 60px}h1{font-size:24px;margin:0}h2{font-size:18px;margin:0 0 8px}
h3{font-size:14px;margin:18px 0 4px}header p,footer p,.note,.key{color:var(--soft)}header p{margin:4px 0 18px}section{margin:0 0 34px}
.verdict{background:var(--panel);border-left:6px solid var(--good);padding:16px 20px;border-radius:4px}.verdict h2{font-size:20px}
.verdict.bad{border-color:var(--critical)}.verdict.doubtful{border-color:var(--atrisk)}.verdict ul{margin:4px 0 0;padding-left:20px}
.verdict p{margin:0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(180px,1fr));gap:10px}.tiles div{background:var(--panel);
border-radius:4px;padding:10px 12px}
.tiles b{display:block;font-size:18px;font-variant-numeric:tabular-nums;white-space:nowrap}.tiles span{color:var(--soft);font-size:12px}
svg{display:block;width:100%;height:auto}svg text{font-size:12px;fill:var(--ink)}svg .note{fill:var(--soft)}
svg .on{fill:#fff;font-weight:700}
.axis{stroke:var(--soft)}.grid{stroke:var(--line)}.key{font-size:12px;margin:2px 0 8px}.key span{margin-right:14px;white-space:nowrap}
.key i{display:inline-block;width:11px;height:11px;border-radius:2px;margin-right:5px;vertical-align:-1px}
.verified{fill:var(--verified);background:var(--verified)}.unread{fill:var(--unread);background:var(--unread)}
.ok{fill:var(--ok);background:var(--ok)}.missing{fill:var(--missing);background:var(--missing)}.damaged{fill:var(--damaged);background:var(--damaged)}
.unknown{fill:var(--unknown);background:var(--unknown)}.critical{fill:var(--critical);background:var(--critical)}
.under{fill:var(--under);background:var(--under)}.atrisk{fill:var(--atrisk);background:var(--atrisk)}
.pending{fill:var(--pending);background:var(--pending)}.absent{fill:var(--line);background:var(--line)}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:12px}td:nth-child(4),td:nth-child(5){white-space:nowrap}th{text-align:left;color:var(--soft);font-weight:600}
th,td{padding:5px 10px 5px 0;border-bottom:1px solid var(--line);vertical-align:top;font-variant-numeric:tabular-nums}
.badge{color:#fff;border-radius:3px;padding:1px 6px;font-size:12px;white-space:nowrap}footer{font-size:13px}
"""
