"""The report of an audit: one self-contained file with every finding, and what to do."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from herdkeeper.protocol.audit_finding import AuditDepth, Finding, FindingKind, RepairOutcome, Severity
from herdkeeper.protocol.job_summary import AuditSummary, JobOutcome
from herdkeeper_jobs.audit.bookie_health import BookieHealth
from herdkeeper_jobs.audit.publish import publish
from herdkeeper_jobs.audit.report import MOST_RUNS, render_report, what_to_do
from herdkeeper_jobs.audit.tables import AuditRun, PastRun

WHEN = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
MISSING = Finding(FindingKind.MISSING, Severity.CRITICAL, 1377, 4500, 4512, "b2", 0, 3, 1, "NO_ENTRY")
FINDINGS = (
    MISSING,
    Finding(FindingKind.CORRUPT_DIGEST, Severity.UNDER_REPLICATED, 1401, 77, 77, "b0", 1, 3, 2, "CRC32C digest is 1, <expected> & 2"),
    Finding(FindingKind.TOO_FEW_RACKS, Severity.AT_RISK, 1290, 0, 202, segment=0, detail="bookies b0, b1: in zone-a"),
    Finding(FindingKind.MISSING, Severity.PENDING, 1455, 330, 331, "b1", 0, 3, 2, "NO_ENTRY"),
    Finding(FindingKind.READ_FAILED, Severity.UNKNOWN, 1456, 5, 6, "b1", 0, 3, 2, "IO_ERROR"),
    Finding(FindingKind.BOOKIE_UNREACHABLE, Severity.UNKNOWN, bookie_id="b3", detail="23110 copies unknown"),
    Finding(FindingKind.LEDGER_UNREADABLE, Severity.UNKNOWN, 9, detail="metadata of ledger 9: rubbish"),
    Finding(FindingKind.END_UNKNOWN, Severity.UNKNOWN, 10, detail="open ledger 10: no bookie reported its LAC: bookie b3 is away"),
    Finding(FindingKind.CONTRADICTION, Severity.CRITICAL, 1500, 8, 9, "b0", 0, 3, 0, "right digests, but payload or length differ"),
    Finding(FindingKind.NAMED_TWICE, Severity.UNDER_REPLICATED, 1504, 0, 9, "b0", 0, 3, 2, "the ensemble is b0, b0, b1"),
    Finding(FindingKind.WRONG_LAST_CONFIRMED, Severity.CRITICAL, 1501, 3, 3, "b1", 0, detail="its LAC is 9"),
    Finding(FindingKind.WRONG_LENGTH, Severity.LOW, 1502, 7, 7, detail="70 and 75"),
    Finding(FindingKind.ORPHAN, Severity.LOW, 1503, detail="the tablespace u9 no longer exists"),
)
LOADS = re.compile(r"""(?:https?:)?//|\bsrc=|\bhref=|url\(|@import|<script|<link|<iframe""", re.IGNORECASE)


def run_of(*findings: Finding, days: int = 0, depth: AuditDepth = AuditDepth.DEEP) -> AuditRun:
    bookies = tuple(BookieHealth(f"b{n}", "zone-a", 4, 90_000, 900, 0, n, 0, 0) for n in range(4))
    summary = AuditSummary(f"run-{days}", JobOutcome.SUCCEEDED, "m", "i", 5, 1, 1200, 3606, 3600, findings=findings, depth=depth)
    return AuditRun(replace(summary, bytes_read=360_000, duration_seconds=9), bookies, WHEN + timedelta(days=days), "/shop/orders/ledgers")


def rendered(run: AuditRun, history: list[AuditRun]) -> str:
    return render_report(run, [PastRun.of(each, each.summary.findings) for each in history])


class Balanced(HTMLParser):
    """Tracks open tags."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Does nothing."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_report_loads_nothing_and_every_finding_is_in_it() -> None:
    run = run_of(*FINDINGS)
    html = rendered(run, [run_of(FINDINGS[0], days=-1), run])
    assert LOADS.search(html) is None
    for finding in FINDINGS:
        words = (finding.kind.value, finding.severity.value, finding.bookie_id, finding.ledger_id, finding.first_entry_id, finding.detail)
        (row,) = [
            row
            for row in re.findall(r"<tr>.*?</tr>", html)
            if finding.kind.value in row and escape(finding.detail) in row and str(finding.ledger_id or "") in row
        ]
        assert all(escape(str(word)) in row for word in words if word is not None)
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []


@pytest.mark.parametrize(
    ("findings", "depth", "verdict"),
    [
        ((), AuditDepth.DEEP, "Every copy of every entry is good"),
        ((), AuditDepth.LIGHT, "Every copy that was read is good"),
        (FINDINGS[:2], AuditDepth.DEEP, "Findings: 1 critical, 1 under-replicated"),
        (
            (replace(MISSING, repair=RepairOutcome.REPAIRED),),
            AuditDepth.DEEP,
            "1 finding repaired; every other copy of every entry is good",
        ),
        (
            (replace(MISSING, repair=RepairOutcome.REPAIRED),),
            AuditDepth.LIGHT,
            "1 finding repaired; every other copy that was read is good",
        ),
    ],
)
def test_the_verdict_stands_first(findings: tuple[Finding, ...], depth: AuditDepth, verdict: str) -> None:
    run = run_of(*findings, depth=depth)
    html = rendered(run, [run])
    assert html.index(f"<h2>{verdict}</h2>") < html.index("<svg")
    assert ("There is nothing to do." in html) is (not what_to_do(run))
    assert "Over time" not in html  # there is only one run


@pytest.mark.parametrize("racks", [(None, None), (None, "zone-a"), ("<img src=x>", "zone-a"), ("zone-a", "zone-b")])
def test_no_name_of_a_bookie_or_rack_is_markup(racks: tuple[str | None, str | None]) -> None:
    """Whoever can write to ZooKeeper gives bookies their names."""
    evil = '<img src=x onerror="alert(1)">'
    run = run_of(*(replace(finding, bookie_id=finding.bookie_id and evil, detail=evil, repair_detail=evil) for finding in FINDINGS[3:]))
    bookies = tuple(BookieHealth(each, rack, 4, 90_000, 900, 0, 1, 0, 0) for each, rack in zip((evil, "b1"), racks, strict=True))
    run = replace(run, bookies=bookies, ledgers_root=evil, summary=replace(run.summary, ledger_filter=evil, instance_id=evil, run_id=evil))
    html = rendered(run, [replace(run, finished_at=WHEN - timedelta(days=1)), run])
    assert "<img" not in html
    assert html.index("Content-Security-Policy") < html.index("<body>"), "a browser runs nothing of what got in all the same"


def test_each_kind_of_finding_has_a_step_and_what_a_repair_left_comes_first() -> None:
    refused = replace(MISSING, repair=RepairOutcome.REFUSED, repair_detail="entry 4503: no good replica")
    steps = what_to_do(run_of(refused, *FINDINGS[1:]))
    assert steps[0].startswith("Not repairable, or not repaired: 1 finding")
    assert len(steps) == 1 + len(FindingKind)
    assert {finding.kind for finding in FINDINGS} == set(FindingKind)
    assert "Bring back b3" in " ".join(steps)
    assert what_to_do(run_of(replace(MISSING, repair=RepairOutcome.REPAIRED))) == ()


def test_nobody_is_sent_to_the_metadata_of_an_open_ledger_whose_end_no_bookie_told() -> None:
    (step,) = what_to_do(run_of(*(finding for finding in FINDINGS if finding.ledger_id == 10)))
    assert "metadata" not in step
    assert "Bring them back" in step


def test_a_ledger_and_a_bookie_are_shown_over_the_newest_runs_up_to_this_one() -> None:
    runs = [run_of(*([MISSING] if days == 3 else []), days=days) for days in range(MOST_RUNS + 5)]
    html = rendered(runs[-2], runs)
    assert "ledger 1377, 2026-05-07: nothing found" not in html  # older than the shown runs
    html = rendered(runs[5], runs)
    assert "ledger 1377, 2026-05-07: critical: fewer good copies than the ack quorum" in html
    assert "ledger 1377, 2026-05-08: nothing found, or repaired (Deep)" in html
    assert "b2, 2026-05-04: 2 missing, 0 damaged of 902" in html
    assert "2026-05-10" not in html


def drawn(html: str, plot: str) -> list[tuple[str, float, float, str]]:
    """The bars of a plot, by its name: colour, width, height, and title."""
    (svg,) = re.findall(rf'<svg[^>]*aria-label="{plot}">(.*?)</svg>', html)
    box = r'<rect class="(\w+)"[^>]* width="([0-9.]+)" height="([0-9.]+)"[^>]*><title>([^<]*)</title>'
    return [(style, float(width), float(height), title) for style, width, height, title in re.findall(box, svg)]


def test_bars_over_time_are_as_high_as_the_findings_and_the_throughput() -> None:
    read = {-2: 9_000_000, -1: 4_500_000, 0: 18_000_000}  # within 9 s
    runs = [
        run_of(days=-2),
        run_of(MISSING, days=-1, depth=AuditDepth.LIGHT),
        run_of(MISSING, FINDINGS[1], replace(FINDINGS[1], first_entry_id=71, last_entry_id=76), days=0),
    ]
    runs = [replace(run, summary=replace(run.summary, bytes_read=read[days])) for run, days in zip(runs, sorted(read), strict=True)]
    html = rendered(runs[-1], runs)
    found = [(style, round(height), title) for style, _, height, title in drawn(html, "Copies of entries in findings")]
    whole = 130  # the height of the highest bar, 13 + 7 entries
    assert found == [
        ("critical", round(whole * 13 / 20), "05-03: 13 Critical"),
        ("critical", round(whole * 13 / 20), "05-04: 13 Critical"),
        ("under", round(whole * 7 / 20), "05-04: 7 UnderReplicated"),
    ]
    assert "<title>05-02: 0</title>" in html
    rates = [(style, round(height), title) for style, _, height, title in drawn(html, "Megabytes of entries read per second")]
    assert rates == [
        ("verified", whole / 2, "05-02: 1 MB/s Deep"),
        ("pending", round(whole / 4), "05-03: 0.5 MB/s Light"),
        ("verified", whole, "05-04: 2 MB/s Deep"),
    ]
    assert "2.0 MB/s" in html  # this run's rate, among its figures


def test_placement_shows_each_racks_share_of_all_copies() -> None:
    run = run_of(FINDINGS[2])
    copies = {"b0": ("zone-a", 300), "b1": ("zone-a", 200), "b2": ("zone-b", 400), "b3": (None, 100)}
    bookies = tuple(BookieHealth(name, rack, 4, 90_000, count - 10, 4, 3, 2, 1) for name, (rack, count) in copies.items())
    html = rendered(replace(run, bookies=bookies), [run])
    bars = drawn(html, "Share of all copies by rack")
    assert [(style, title) for style, _, _, title in bars] == [
        ("verified", "rack unknown: 100 of 1,000 copies here"),
        ("absent", "rack unknown: 900 of 1,000 copies elsewhere"),
        ("verified", "zone-a: 500 of 1,000 copies here"),
        ("absent", "zone-a: 500 of 1,000 copies elsewhere"),
        ("verified", "zone-b: 400 of 1,000 copies here"),
        ("absent", "zone-b: 600 of 1,000 copies elsewhere"),
    ]
    widths = [width for _, width, _, _ in bars]
    assert [here / (here + elsewhere) for here, elsewhere in zip(widths[::2], widths[1::2], strict=True)] == pytest.approx([0.1, 0.5, 0.4])
    assert "2 bookies, 500 copies" in html
    assert "Copies in too few racks: 1 ledger." in html
    nowhere = replace(run_of(), bookies=tuple(replace(bookie, rack=None) for bookie in bookies))
    assert "The bookies' racks are unknown, so placement was not judged." in rendered(nowhere, [nowhere])


def test_a_run_that_could_not_read_some_copies_calls_no_ledger_good_that_may_have_them() -> None:
    away = run_of(FINDINGS[5], days=1)
    away = replace(away, summary=replace(away.summary, copies_unknown=23_110))
    html = rendered(away, [run_of(MISSING), away])
    assert "ledger 1377, 2026-05-05: nothing found" not in html
    assert "ledger 1377, 2026-05-05: no finding, but 23,110 copies of this run could not be read" in html


def test_ledgers_on_a_bookie_without_a_known_rack_are_not_called_well_placed() -> None:
    run = run_of()
    html = rendered(replace(run, bookies=(*run.bookies[1:], replace(run.bookies[0], rack=None))), [run])
    assert "No ledger's copies are in too few racks." not in html
    assert "No ledger without b0, of which no rack is known, has copies in too few racks." in html


def test_a_run_of_chosen_ledgers_says_so_and_calls_no_ledger_good_that_it_may_have_left_out() -> None:
    chosen = run_of(days=1)
    chosen = replace(chosen, summary=replace(chosen.summary, ledger_filter="states Closed; bookies <b1>"))
    html = rendered(chosen, [run_of(MISSING), chosen])
    assert "<h2>Every copy of every entry is good in the requested ledgers</h2>" in html
    assert "Only these ledgers were requested: states Closed; bookies &lt;b1&gt;." in html
    assert "ledger 1377, 2026-05-04: critical" in html
    assert "ledger 1377, 2026-05-05: nothing found" not in html
    nothing = replace(chosen, summary=replace(chosen.summary, ledgers=0))
    assert "<h2>Nothing was audited: no ledger matches the request</h2>" in rendered(nothing, [nothing])


def test_of_the_ledgers_without_a_finding_now_those_that_were_worst_are_shown() -> None:
    low = [replace(FINDINGS[-1], ledger_id=ledger) for ledger in range(30)]
    now = run_of(days=1)
    html = rendered(now, [run_of(MISSING, *low), now])
    assert "ledger 1377, 2026-05-04: critical" in html
    assert [ledger for ledger in range(30) if f"ledger {ledger}, 2026-05-04" in html] == list(range(24))


def test_a_ledger_is_not_called_good_in_a_run_of_which_only_the_worst_are_known() -> None:
    many = run_of(*(replace(MISSING, ledger_id=ledger) for ledger in range(10_000, 11_500)))
    now = run_of(MISSING, days=1)
    html = rendered(now, [many, now])
    assert "ledger 1377, 2026-05-04: not among the 1,000 worst ledgers of this run" in html


def test_a_ledger_whose_findings_were_all_repaired_is_not_said_to_have_had_none() -> None:
    run = run_of(replace(MISSING, repair=RepairOutcome.REPAIRED))
    assert "No finding about a ledger in this run, or all were repaired." in rendered(run, [run])
    html = rendered(run, [run_of(MISSING, days=-1), run])
    assert "ledger 1377, 2026-05-04: nothing found, or repaired (Deep)" in html


def test_nobody_is_sent_to_metadata_that_is_gone() -> None:
    lost = Finding(FindingKind.LEDGER_UNREADABLE, Severity.CRITICAL, 11, detail="BookKeeper has no metadata of it")
    assert what_to_do(run_of(lost)) == (
        "BookKeeper has no metadata of 1 ledger that a log lists: keep the newest Checkpoint and the archive, and copy the tables into a "
        "new tablespace.",
    )
    (step,) = what_to_do(run_of(lost, *(finding for finding in FINDINGS if finding.kind is lost.kind)))
    assert "no metadata of 1 ledger" in step
    assert "look at the metadata of 1 ledger in ZooKeeper" in step


def test_each_colour_is_explained_without_the_others() -> None:
    pending = run_of(FINDINGS[3])
    assert "pending: fewer than the write quorum, on a ledger that is not closed" in rendered(pending, [pending])


def test_two_bookies_that_lack_the_same_entries_count_as_so_many_copies() -> None:
    run = run_of(MISSING, replace(MISSING, bookie_id="b1"))
    assert "<b>26</b><span>copies in findings</span>" in rendered(run, [run])


def test_a_report_of_very_many_findings_is_made_in_time_and_lists_the_most_urgent() -> None:
    findings = [replace(MISSING, ledger_id=ledger, repair=RepairOutcome.REPAIRED if ledger % 2 else None) for ledger in range(100_000)]
    run = run_of(*findings)
    html = rendered(run, [run])
    assert "The 5,000 most urgent of 100,000" in html
    assert "Findings: 50,000 critical; 50,000 findings repaired" in html
    assert len(html) < 4_000_000


def test_the_report_is_written_once_beside_the_tables(tmp_path: Path) -> None:
    summary = publish(tmp_path, run_of(*FINDINGS))
    assert summary.report == "audit_reports/run-0.html"
    written = (tmp_path / summary.report).read_bytes()
    publish(tmp_path, run_of(days=4, depth=AuditDepth.LIGHT))
    assert publish(tmp_path, run_of()) == summary
    assert (tmp_path / summary.report).read_bytes() == written
    assert len(list((tmp_path / "audit_reports").iterdir())) == 2
