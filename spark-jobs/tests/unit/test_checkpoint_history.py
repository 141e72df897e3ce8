"""The report of a destination's checkpoints: made from existing manifests only, and never at the cost of a checkpoint."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from threading import Barrier
from typing import Any

import object_store_server
import pytest
from test_checkpoint_manifest import IDENTITY, manifest, table

from herdkeeper_jobs.archive.parts import WholeLog
from herdkeeper_jobs.archive.window import Window
from herdkeeper_jobs.checkpoint import history_files
from herdkeeper_jobs.checkpoint.history import (
    Gap,
    History,
    Listing,
    Recorded,
    Start,
    TableSize,
    Unreadable,
    WarningLevel,
    WindowUnknown,
    checkpoint_history,
)
from herdkeeper_jobs.checkpoint.history_files import publish_history, read_listing
from herdkeeper_jobs.checkpoint.history_report import render_history, what_to_do
from herdkeeper_jobs.manifests.manifest import (
    Making,
    Manifest,
    ManifestBase,
    ManifestFile,
    Outline,
    Position,
    commit_manifest,
    manifest_path,
    read_manifest,
    tablespace_folder,
)
from herdkeeper_jobs.storage.stored_path import StoredPath, replace_file
from herdkeeper_jobs.wal.lsn import Lsn

BEGIN = datetime(2026, 5, 4, 3, 0, tzinfo=UTC)
HOUR, DAY = 3_600_000, 86_400_000
LOADS = re.compile(r"""(?:https?:)?//|\bsrc=|\bhref=|url\(|@import|<script|<link|<iframe""", re.IGNORECASE)


def at(hours: float) -> int:
    return round((BEGIN + timedelta(hours=hours)).timestamp() * 1000)


def named(lsn: Lsn) -> str:
    return f"{lsn.ledger_id:020d}-{lsn.entry_id:020d}.json"


def based_on(lsn: Lsn, run_id: str | None = None) -> ManifestBase:
    return ManifestBase(manifest=named(lsn), lsn=Position.of(lsn), run_id=run_id or f"run-{lsn.ledger_id}")


def checkpoint(ledger: int, hours: float | None, base: ManifestBase | None = None) -> Recorded:
    lsn = Lsn(ledger, 7)
    return Recorded(
        name=named(lsn),
        lsn=lsn,
        moment_millis=None if hours is None else at(hours),
        run_id=f"run-{ledger}",
        entries_read=1200,
        base=base,
        verified="files re-read",
        open_transactions=0,
        tables=(TableSize("flights", 1000 * ledger, 50_000), TableSize("airports", 12, 900)),
        files=4,
        missing=(),
        made=Making(at_millis=at(hours or 0) + 90_000, seconds=42.5),
    )


def history_of(*read: Recorded | Unreadable, gone: tuple[Lsn, ...] = (), older: tuple[str, ...] = (), **more: Any) -> History:
    names = tuple(name for name in (*older, *(each.name for each in read)) if name not in {named(lsn) for lsn in gone})
    return checkpoint_history(IDENTITY, Listing(names, read), more.get("window"))


OF_FOLLOWER = ManifestBase(manifest="", lsn=Position.of(Lsn(4, 0)), run_id="", follower="n1.nodes.demo.svc:9845")
A, B, C = checkpoint(3, 0), checkpoint(5, 24, based_on(Lsn(3, 7))), checkpoint(9, 30, based_on(Lsn(5, 7)))
BROKEN = Unreadable(named(Lsn(4, 7)), "is not a manifest: Expecting value")


@pytest.mark.parametrize(
    ("read", "starts", "gaps"),
    [
        ((A, B, C), [Start.WHOLE_LOG, Start.THERE, Start.THERE], [None, Gap(24 * HOUR, True), Gap(6 * HOUR, True)]),
        ((B, C), [Start.GONE, Start.THERE], [None, Gap(6 * HOUR, True)]),
        ((A, C), [Start.WHOLE_LOG, Start.GONE], [None, Gap(30 * HOUR, False)]),
        ((A, BROKEN, B), [Start.WHOLE_LOG, Start.THERE], [None, Gap(24 * HOUR, False)]),
        ((A, Unreadable(B.name, "no"), C), [Start.WHOLE_LOG, Start.UNREADABLE], [None, Gap(30 * HOUR, False)]),
        (
            (A, replace(B, run_id="again"), C),
            [Start.WHOLE_LOG, Start.THERE, Start.REPLACED],
            [None, Gap(24 * HOUR, True), Gap(6 * HOUR, True)],
        ),
        ((A, replace(B, moment_millis=None), C), [Start.WHOLE_LOG, Start.THERE, Start.THERE], [None, None, None]),
        ((A, replace(B, moment_millis=at(-2))), [Start.WHOLE_LOG, Start.THERE], [None, Gap(0, True)]),
        ((A, replace(B, base=OF_FOLLOWER)), [Start.WHOLE_LOG, Start.FOLLOWER], [None, Gap(24 * HOUR, True)]),
        ((), [], []),
    ],
)
def test_each_checkpoint_is_shown_with_the_fate_of_its_base_and_the_time_since_the_one_before(
    read: tuple[Recorded | Unreadable, ...], starts: list[Start], gaps: list[Gap | None]
) -> None:
    history = history_of(*read)
    assert [link.start for link in history.links] == starts
    assert [link.gap for link in history.links] == gaps
    assert [entry.name if isinstance(entry, Unreadable) else entry.checkpoint.name for entry in history.entries] == [
        each.name for each in read
    ]


def test_a_base_that_is_older_than_what_is_read_is_there_by_its_name() -> None:
    history = history_of(B, C, older=("00000000000000000001-00000000000000000001.json", A.name))
    assert (history.older, history.links[0].start, history.links[0].gap) == (2, Start.THERE, None)
    assert history.warnings == ()


@pytest.mark.parametrize(
    ("read", "odd"),
    [
        ((A, B, C), []),
        ((B, C), []),  # the oldest one's base has expired
        ((A, C), [(WarningLevel.NOTE, "goes on from the one at 5,7, which is missing, though older ones exist")]),
        ((A, BROKEN), [(WarningLevel.LOST, f"The manifest {BROKEN.name} can't be read: is not a manifest: Expecting value")]),
        (
            (A, replace(B, missing=("data/run-5/t/0.parquet", "data/run-5/t/1.parquet"))),
            [(WarningLevel.LOST, "The checkpoint at 5,7 lacks 2 of its 4 files, data/run-5/t/0.parquet first: it can't be restored")],
        ),
        (
            (A, replace(B, run_id="again"), C),
            [(WarningLevel.NOTE, "The checkpoint at 9,7 goes on from the one at 5,7 of run run-5, which was replaced")],
        ),
        (
            (A, replace(B, moment_millis=at(-2))),
            [(WarningLevel.NOTE, "has an earlier moment than the one before it, at 3,7: leaders' clocks differ")],
        ),
        ((replace(A, moment_millis=None),), [(WarningLevel.NOTE, "The checkpoint at 3,7 has no moment")]),
    ],
)
def test_what_is_odd_is_named_in_words(read: tuple[Recorded | Unreadable, ...], odd: list[tuple[WarningLevel, str]]) -> None:
    found = history_of(*read).warnings
    assert [warning.level for warning in found] == [weight for weight, _ in odd]
    assert all(words in warning.words for warning, (_, words) in zip(found, odd, strict=True))


def test_the_longest_gap_is_what_could_have_been_lost() -> None:
    history = history_of(A, B, C)
    assert history.longest is not None
    assert history.longest.checkpoint is B
    assert "The longest, 1 d, ends with the checkpoint at 5,7 (2026-05-05 03:00 UTC)" in render_history(history, at(31))
    assert history_of(A).longest is None


class Balanced(HTMLParser):
    """Tracks open tags, and keeps the plots by name."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.plots: dict[str, list[tuple[str, dict[str, str | None]]]] = {}
        self.plot = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "svg":
            self.plot = dict(attrs)["aria-label"] or ""
            self.plots[self.plot] = []
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.plots[self.plot].append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(html: str) -> Balanced:
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    return parser


def long_history(count: int) -> History:
    """A checkpoint from the whole log, then one per day from its predecessor, one of them late."""
    read = [
        replace(
            checkpoint(number, 24 * number + (9 if number == 40 else 0), based_on(Lsn(number - 1, 7)) if number > 1 else None),
            tables=(TableSize("flights", 1000 * number, 40_000 * number), TableSize("airports", 12, 900)),
        )
        for number in range(1, count + 1)
    ]
    return history_of(*read, window=Window(Lsn(10, 0), at(240), Lsn(count, 99), at(24 * count + 1)))


def test_the_report_loads_nothing_and_has_every_checkpoint_in_it() -> None:
    history = long_history(60)
    html = render_history(history, at(24 * 61))
    assert LOADS.search(html) is None
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    for link in history.links:
        (row,) = [row for row in rows if row.startswith(f"<td>{link.checkpoint.lsn}</td>")]
        assert f"flights: {link.checkpoint.tables[0].rows:,} rows" in row
        assert "took 42.5 s" in row
    plots = parsed(html).plots
    assert set(plots) == {
        "What can be restored",
        "Rows by table over time",
        "Bytes written by checkpoint",
        "Time between the moments of checkpoints",
        "Time of the job",
    }
    drawn = re.findall(r'<svg[^>]*aria-label="Bytes written by checkpoint">(.*?)</svg>', html)[0]
    heights = [float(height) for height in re.findall(r'<rect class="pending"[^>]*height="([0-9.]+)"', drawn)]
    assert len(heights) == 59
    assert heights == sorted(heights)  # each wrote more than its predecessor
    assert drawn.count('<rect class="verified"') == 1
    assert html.count('class="under"') == 2  # the longest gap, and its legend
    assert "the LSNs from 10,0 to " in html


def test_lines_lie_within_their_plot_and_end_where_a_table_was_dropped() -> None:
    without = replace(C, tables=(TableSize("flights", 1, 1),))
    html = render_history(history_of(A, B, without), at(31))
    lines = [
        [tuple(map(float, place.split(","))) for place in line.split()]
        for line in re.findall(r'<polyline class="line" points="([^"]*)"', html)
    ]
    assert [len(line) for line in lines] == [3, 2]
    assert all(250 <= x <= 700 and y >= 0 for line in lines for x, y in line)
    flights, _ = lines
    assert flights[1][1] < flights[0][1] < flights[2][1]  # 5,000 rows are above 3,000, and 1 is below both
    assert (flights[1][0] - flights[0][0]) == pytest.approx(4 * (flights[2][0] - flights[1][0]), rel=0.01)  # a day, and six hours
    assert ">dropped</text>" in html


def test_names_and_reasons_can_not_become_a_part_of_the_page() -> None:
    evil = '<script>alert("x")</script>&'
    each = replace(
        A,
        verified=evil,
        missing=(evil,),
        tables=(TableSize(evil, 1, 1),),
        base=ManifestBase(manifest="m", lsn=Position(ledger_id=1, entry_id=1), run_id=evil),
    )
    identity = IDENTITY.model_copy(update={"tablespace": evil, "instance_id": evil})
    listing = Listing((each.name, evil), (each, Unreadable(evil, evil)))
    html = render_history(checkpoint_history(identity, listing, WindowUnknown(evil)), at(1))
    assert "<script" not in html
    assert escape(evil) in html
    parsed(html)


@pytest.mark.parametrize(
    ("history", "style", "sentence", "steps"),
    [
        (history_of(A, B, C), "good", "3 checkpoints, each with a manifest and all of its files", []),
        (history_of(A, window=WindowUnknown("no")), "doubtful", "1 checkpoint, each with", ["Look at the condition LogArchived"]),
        (history_of(A, BROKEN), "bad", "1 checkpoint with all files, 1 can&#x27;t be restored", ["Put 1 manifest back"]),
        (
            history_of(A, replace(B, missing=("x",))),
            "bad",
            "1 checkpoint with all files, 1 can&#x27;t be restored",
            ["make another Checkpoint now"],
        ),
        (
            history_of(replace(A, missing=("x",)), B),
            "bad",
            "1 checkpoint with all files, 1 can&#x27;t be restored",
            ["Put back the missing files of 1 checkpoint (3,7)"],
        ),
        (history_of(), "good", "0 checkpoints", []),
    ],
)
def test_the_verdict_stands_first_with_what_to_do(history: History, style: str, sentence: str, steps: list[str]) -> None:
    html = render_history(history, at(31))
    assert f'<section class="verdict {style}"><h2>{sentence}' in html
    found = what_to_do(history)
    assert len(found) == len(steps)
    assert all(words in step for step, words in zip(found, steps, strict=True))
    parsed(html)


def test_without_an_archive_only_the_moments_of_checkpoints_are_offered() -> None:
    assert "you can restore only the moments of these checkpoints" in render_history(history_of(A, B), at(31))


def write(folder: Path, ledger: int, hours: float) -> Manifest:
    """Writes a checkpoint of one table with one file, as a run commits it."""
    path = f"data/run-{ledger}/t/0-a.parquet"
    (folder / path).parent.mkdir(parents=True)
    (folder / path).write_bytes(b"rows")
    content = table(files=(ManifestFile(path=path, rows=ledger, size=4, hash=""),))
    made = manifest(f"run-{ledger}", content=content).model_copy(
        update={"lsn": Position(ledger_id=ledger, entry_id=7), "lsn_timestamp_millis": at(hours)}
    )
    return commit_manifest(made, folder).manifest


def whole_log(folder: Path) -> WholeLog:
    log: Any = None
    return WholeLog(log, folder, IDENTITY)


def test_what_lies_in_the_folder_is_read_and_only_the_newest_of_many(tmp_path: Path) -> None:
    folder = tablespace_folder(tmp_path, IDENTITY)
    for ledger in range(3, 10):
        write(folder, ledger, ledger)
    (folder / "data/run-9/t/0-a.parquet").unlink()
    manifest_path(folder, Lsn(8, 7)).write_text("{")
    moved = manifest_path(folder, Lsn(7, 7))
    moved.rename(manifest_path(folder, Lsn(7, 8)))
    manifest_path(folder, Lsn(6, 7)).rename(folder / "manifests" / f".{named(Lsn(6, 7))}.removed-by-x")
    listing = read_listing(folder, IDENTITY, 4)
    assert len(listing.names) == 6
    found = {Lsn(int(each.name[:20]), int(each.name[21:41])): each for each in listing.read}
    assert list(found) == [Lsn(5, 7), Lsn(7, 8), Lsn(8, 7), Lsn(9, 7)]
    five, seven, eight, nine = found.values()
    assert isinstance(five, Recorded)
    assert (five.moment_millis, five.tables, five.missing, five.made) == (at(5), (TableSize("t", 5, 4),), (), None)
    assert isinstance(seven, Unreadable)
    assert seven.reason == "its content is of 7,7"
    assert isinstance(eight, Unreadable)
    assert isinstance(nine, Recorded)
    assert nine.missing == ("data/run-9/t/0-a.parquet",)
    history = checkpoint_history(IDENTITY, listing, None)
    assert history.older == 2
    assert "These are the newest 4 of 6; older ones are not shown." in render_history(history, at(31))


def test_several_manifests_are_read_from_an_object_store_at_once_and_shown_in_log_order(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tablespace_folder(object_store_server.new_bucket() / "checkpoints", IDENTITY)
    for ledger in (3, 5, 7):
        made = manifest(f"run-{ledger}").model_copy(update={"lsn": Position(ledger_id=ledger, entry_id=7)})
        commit_manifest(made, folder)
    real, together = history_files.read_outline, Barrier(3)

    def read(path: StoredPath) -> Outline:
        together.wait(120)  # breaks, and fails the test, if manifests are read one by one
        return real(path)

    monkeypatch.setattr(history_files, "read_outline", read)
    assert [each.name for each in read_listing(folder, IDENTITY, 10).read] == [named(Lsn(ledger, 7)) for ledger in (3, 5, 7)]


def test_a_manifest_of_an_earlier_version_is_read_without_a_duration(tmp_path: Path) -> None:
    path = commit_manifest(manifest(), tmp_path).path
    text = path.read_text()
    assert '"made": null' in text
    path.write_text(re.sub(r',\s*"made": null', "", text))
    assert read_manifest(path).made is None


def test_the_report_is_replaced_as_a_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    folder = tablespace_folder(tmp_path, IDENTITY)
    write(folder, 3, 0)
    assert publish_history(whole_log(folder), folder, at(1)).path == "cluster-1/ts-1/report.html"
    report = folder / "report.html"
    first = report.read_text()
    assert "1 checkpoint, each" in first
    with report.open() as reader:
        write(folder, 5, 24)
        assert publish_history(whole_log(folder), folder, at(25)).failure == ""
        assert reader.read() == first  # a reader with the old file open sees it to its end
    assert "2 checkpoints, each" in report.read_text()
    assert sorted(path.name for path in folder.iterdir()) == ["data", "manifests", "report.html"]
    parsed(report.read_text())


def test_a_report_that_can_not_be_written_is_reported_and_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tablespace_folder(tmp_path, IDENTITY)
    write(folder, 3, 0)
    publish_history(whole_log(folder), folder, at(1))
    first = (folder / "report.html").read_text()

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(history_files, "replace_file", full)
    published = publish_history(whole_log(folder), folder, at(2))
    assert (published.path, published.failure) == ("", "OSError: [Errno 28] No space left on device")
    assert (folder / "report.html").read_text() == first
    monkeypatch.setattr(history_files, "render_history", lambda history, now: 1 / 0)
    assert publish_history(whole_log(folder), folder, at(2)).failure == "ZeroDivisionError: division by zero"


def test_a_file_that_could_not_be_finished_takes_no_room(tmp_path: Path) -> None:
    content: Any = "no bytes"
    with pytest.raises(TypeError):
        replace_file(tmp_path / "report.html", content)
    assert list(tmp_path.iterdir()) == []


def test_an_unreadable_archive_is_a_warning_and_does_not_fail_the_report(tmp_path: Path) -> None:
    folder = tablespace_folder(tmp_path, IDENTITY)
    write(folder, 3, 0)
    segments = folder / "log" / "segments"
    segments.mkdir(parents=True)
    (segments / named(Lsn(3, 0))).write_text("{")
    assert publish_history(whole_log(folder), folder, at(1)).failure == ""
    assert "The archive of the log can&#x27;t be read, so its range is unknown" in (folder / "report.html").read_text()


def test_a_long_history_is_rendered_in_bounds() -> None:
    read = [
        replace(checkpoint(number, number), tables=tuple(TableSize(f"table_{each}", each, 9) for each in range(60)))
        for number in range(1, 501)
    ]
    html = render_history(history_of(*read, older=tuple(named(Lsn(0, entry)) for entry in range(700))), at(501))
    assert "These are the newest 500 of 1,200" in html
    assert "… and 40 smaller or dropped tables." in html
    assert "… and 35 more with" in html
    assert len(html) < 2_500_000


@pytest.mark.parametrize(
    ("hours", "axis", "column"),
    [
        ((0, 0.01), ["03:00:00", "03:00:09", "03:00:18", "03:00:27", "03:00:36"], ["03:00:00", "03:00:36"]),
        ((0, 2), ["05-04 03:00", "05-04 03:30", "05-04 04:00", "05-04 04:30", "05-04 05:00"], ["03:00", "05:00"]),
        ((0,), ["05-04 03:00"], ["05-04"]),
    ],
)
def test_labels_of_times_differ_also_when_the_checkpoints_are_seconds_apart(
    hours: tuple[float, ...], axis: list[str], column: list[str]
) -> None:
    page = render_history(history_of(*(checkpoint(3 + index, each) for index, each in enumerate(hours))), at(30))
    for plot, expected in (("What can be restored", axis), ("Time of the job", column)):
        svg = page.partition(f'aria-label="{plot}"')[2].partition("</svg>")[0]
        assert [label for label in re.findall(r">([^<>]+)</text>", svg) if ":" in label or "05-04" in label] == expected


def test_one_row_is_told_as_one() -> None:
    page = render_history(history_of(replace(A, tables=(TableSize("t", 1, 697),))), at(30))
    assert (">1 row<" in page, "t: 1 row, 697 B" in page, "1 rows" in page) == (True, True, False)
