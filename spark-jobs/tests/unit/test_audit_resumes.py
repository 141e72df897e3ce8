"""A resumed run: it continues from durable progress, and finds what an undisturbed run finds, wherever it was killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from played_bookie import PlayedBookie, ledger, nowhere, served
from test_replication_audit import NAMES, PlayedCatalog, full, run_here, short, versioned

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.protocol.audit_finding import AuditDepth, Finding, FindingKind
from herdkeeper.protocol.job_summary import AuditSummary, JobOutcome
from herdkeeper_jobs import durable_file
from herdkeeper_jobs.audit import cli
from herdkeeper_jobs.audit.job import AuditResult, audit
from herdkeeper_jobs.audit.portion import (
    LEDGERS_AT_ONCE,
    Counted,
    Portion,
    RunProgress,
    Work,
    bytes_of_portion,
    next_portion,
    remaining_work,
)
from herdkeeper_jobs.audit.progress import Progress, ProgressRefusedError, RunIdentity
from herdkeeper_jobs.audit.request import AuditRequest, LedgerFilter
from herdkeeper_jobs.audit.scope import Scope
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, MetadataUnavailableError, UndecodableMetadata, VersionedMetadata
from herdkeeper_jobs.copies.plan import AuditBudget, AuditTask, estimated_ledger_bytes
from herdkeeper_jobs.termination_message import VARIABLE

RUN = RunIdentity("run-1", "instance-1", AuditDepth.DEEP, "")
BUDGET = AuditBudget(cores=2, timeout_seconds=30.0, portion_bytes=1)
LAST = 4


class KilledError(Exception):
    """Stands for a kill of the process."""


@dataclass
class Deadline:
    """Kills the process at a step, counted from 1, or when it reads a ledger; 0 never does."""

    at: int = 0
    ledger: int = 0
    steps: int = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.at:
            raise KilledError

    def look(self, tasks: Sequence[AuditTask]) -> None:
        if any(check.ledger_id == self.ledger for task in tasks for check in task.checks):
            raise KilledError


@contextmanager
def damaged_cluster() -> Iterator[Callable[[], PlayedCatalog]]:
    """Seven ledgers: missing and damaged entries, undecodable metadata, an unknown LAC, and an absent bookie."""
    bookies = [PlayedBookie(full(*((number, LAST) for number in range(1, 6)))) for _ in NAMES]
    del bookies[1].entries[2, 1]
    del bookies[1].entries[5, 0]
    del bookies[0].entries[5, 0]
    bookies[2].entries[4, 3] = bookies[2].entries[4, 3][:-1] + b"?"
    with served(*bookies) as addresses:
        addresses["b3"] = nowhere()
        ledgers = (*(ledger(number, LAST, NAMES) for number in (1, 2, 4)), ledger(3, LAST, (*NAMES[:2], "b3")), ledger(5, None, NAMES))
        told = versioned(*ledgers, ledger(7, None, ("b3", "b4", "b5"))) | {6: UndecodableMetadata(6, "rubbish")}
        yield lambda: PlayedCatalog(addresses, told)


def attempt(catalog: PlayedCatalog, destination: Path, deadline: Deadline) -> AuditResult:
    """A process of the run, which continues from durable progress."""
    own = Progress(destination, RUN)

    def run(tasks: Sequence[AuditTask]) -> pa.Table:
        deadline.look(tasks)
        deadline.step()
        looked = run_here(tasks)
        deadline.step()
        return looked

    def keep(number: int, portion: Portion) -> Portion:
        deadline.step()
        kept = own.keep(number, portion, 1.0)
        deadline.step()
        return kept

    return audit(cast("LedgerCatalog", catalog), AuditRequest(seed="run-1"), BUDGET, run, RunProgress(own.read().portions, keep))


def test_a_run_that_is_killed_at_any_step_finds_what_an_undisturbed_one_finds(tmp_path: Path) -> None:
    with damaged_cluster() as catalog:
        steps = Deadline()
        undisturbed = attempt(catalog(), tmp_path / "undisturbed", steps)
        assert {finding.kind for finding in undisturbed.findings} == {
            *(FindingKind.MISSING, FindingKind.CORRUPT_DIGEST, FindingKind.BOOKIE_UNREACHABLE),
            *(FindingKind.LEDGER_UNREADABLE, FindingKind.END_UNKNOWN),
        }
        assert len(Progress(tmp_path / "undisturbed", RUN).read().portions) == 6
        for step in range(1, steps.steps + 1):
            place = tmp_path / str(step)
            with pytest.raises(KilledError):
                attempt(catalog(), place, Deadline(step))
            assert attempt(catalog(), place, Deadline()) == undisturbed, f"killed at step {step}"


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_a_run_that_is_killed_again_and_again_comes_to_the_same_end(tmp_path_factory: pytest.TempPathFactory, kills: list[int]) -> None:
    place = tmp_path_factory.mktemp("progress")
    with damaged_cluster() as catalog:
        undisturbed = attempt(catalog(), place / "undisturbed", Deadline())
        for kill in kills:
            try:
                attempt(catalog(), place / "killed", Deadline(kill))
            except KilledError:
                continue
        assert attempt(catalog(), place / "killed", Deadline()) == undisturbed


@pytest.mark.parametrize("syscall", ["fsync", "link"])
def test_a_portion_is_durable_as_a_whole_or_not_at_all(syscall: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KilledError

    own = Progress(tmp_path, RUN)
    with monkeypatch.context() as patch:
        patch.setattr(durable_file.os, syscall, broken)
        with pytest.raises(KilledError):
            own.keep(0, Portion(9, 3, False, Counted(ledgers=3)), 1.0)
    assert own.read().portions == ()
    assert own.keep(0, Portion(9, 4, False, Counted(ledgers=4)), 1.0).through == 4


def test_a_portion_reads_back_as_it_was_kept(tmp_path: Path) -> None:
    with damaged_cluster() as catalog:
        attempt(catalog(), tmp_path, Deadline())
        own = Progress(tmp_path, RUN)
        kept = own.read()
        for number, portion in enumerate(kept.portions):
            assert own.keep(number, replace(portion, through=10**9), 5.0) == portion, "who was first has it"
    assert kept.seconds == len(kept.portions)
    assert [portion.through for portion in kept.portions] == [1, 2, 3, 4, 7, 7]
    assert [portion.last_try for portion in kept.portions] == [False] * 5 + [True]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (replace(RUN, ledger_filter="bookies b1"), "was started with ledger_filter '', not 'bookies b1'"),
        (replace(RUN, depth=AuditDepth.LIGHT), "was started with depth 'Deep', not 'Light'"),
        (replace(RUN, instance_id="instance-2"), "was started with instance_id 'instance-1', not 'instance-2'"),
    ],
)
def test_the_progress_of_a_run_that_was_asked_for_something_else_is_refused(other: RunIdentity, words: str, tmp_path: Path) -> None:
    Progress(tmp_path, RUN).keep(0, Portion(9, 3, False, Counted()), 1.0)
    with pytest.raises(ProgressRefusedError, match=words):
        Progress(tmp_path, other).read()


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    own = Progress(tmp_path, RUN)
    own.keep(0, Portion(9, 3, False, Counted()), 1.0)
    (own.folder / "000000.parquet").write_bytes(b"rubbish")
    with pytest.raises(ProgressRefusedError, match=r"000000\.parquet can't be read .* delete .*run-1 to restart the run"):
        own.read()


def test_a_ledger_that_was_deleted_meanwhile_has_no_findings(tmp_path: Path) -> None:
    with damaged_cluster() as catalog:
        with pytest.raises(KilledError):
            attempt(catalog(), tmp_path, Deadline(ledger=3))
        assert any(finding.ledger_id == 2 for portion in Progress(tmp_path, RUN).read().portions for finding in portion.counted.findings)
        later = catalog()
        later = replace(later, ledgers={number: read for number, read in later.ledgers.items() if number != 2})
        result = attempt(later, tmp_path, Deadline())
    assert {finding.ledger_id for finding in result.findings} == {None, 4, 5, 6, 7}


def test_ledgers_that_are_created_while_a_run_is_paused_belong_to_the_next_one(tmp_path: Path) -> None:
    with damaged_cluster() as catalog:
        with pytest.raises(KilledError):
            attempt(catalog(), tmp_path, Deadline(ledger=3))
        later = catalog()
        later = replace(later, ledgers=later.ledgers | versioned(ledger(8, LAST, NAMES)))
        assert attempt(later, tmp_path, Deadline()).summary.ledgers == attempt(catalog(), tmp_path / "other", Deadline()).summary.ledgers


def portion(through: int, unreadable: tuple[int, ...] = (), last_try: bool = False) -> Portion:
    return Portion(9, through, last_try, Counted(unreadable=unreadable))


@pytest.mark.parametrize(
    ("ledger_ids", "done", "left"),
    [
        ([], [], None),
        ([3, 5, 9], [], Work([3, 5, 9], 9)),
        ([3, 5, 9], [portion(3)], Work([5, 9], 9)),
        ([3, 5, 9], [portion(4)], Work([5, 9], 9)),
        ([3, 5, 9], [portion(9)], None),
        ([3, 5, 9, 12], [portion(9)], None),
        ([3, 5, 9], [portion(3, (3,)), portion(9, (5,))], Work([3, 5], 9, last_try=True)),
        ([3, 5, 9], [portion(3, (3,)), portion(9, (5,)), portion(3, last_try=True)], Work([5], 9, last_try=True)),
        ([3, 4, 5, 9], [portion(3, (3,)), portion(9, (5,)), portion(5, last_try=True)], None),
        (list(range(LEDGERS_AT_ONCE + 1)), [], Work(list(range(LEDGERS_AT_ONCE)), LEDGERS_AT_ONCE)),
    ],
    ids=[
        *("no ledgers", "the beginning", "behind a portion", "its last one is gone", "the end", "a new ledger"),
        *("what could not be read", "the rest of that", "that, too", "some thousands at once"),
    ],
)
def test_remaining_work_follows_from_durable_portions(ledger_ids: list[int], done: list[Portion], left: Work | None) -> None:
    assert remaining_work(ledger_ids, done) == left


def of(*ledgers: LedgerMetadata) -> list[VersionedMetadata]:
    return [VersionedMetadata(each, 0) for each in ledgers]


def test_a_portion_ends_with_the_ledger_that_fills_it_and_reads_no_further() -> None:
    reads = iter(of(*(ledger(number, 99, NAMES) for number in (2, 4, 6, 8))))
    one = estimated_ledger_bytes(ledger(2, 99, NAMES), AuditDepth.DEEP)
    taken = next_portion(Work([2, 4, 6, 8], 8), reads, Scope(LedgerFilter(), None), AuditDepth.DEEP, 2 * one)
    assert (len(taken.reads), taken.through) == (2, 4)
    assert len(list(reads)) == 2
    rest = next_portion(Work([6, 8], 8), of(ledger(6, 99, NAMES)), Scope(LedgerFilter(), None), AuditDepth.DEEP, 2 * one)
    assert (len(rest.reads), rest.through) == (1, 8), "ledger 8 is gone"


def test_a_ledger_of_a_single_entry_counts_with_its_length() -> None:
    single = replace(ledger(1, 0, NAMES), length=5_000_000)
    for depth in AuditDepth:
        assert 15_000_000 <= estimated_ledger_bytes(single, depth) < 15_001_000


def test_what_a_light_audit_reads_of_a_ledger_does_not_grow_with_it() -> None:
    small, large = (estimated_ledger_bytes(ledger(1, last, NAMES), AuditDepth.LIGHT) for last in (999, 999_999))
    assert small == large < estimated_ledger_bytes(ledger(1, 999, NAMES), AuditDepth.DEEP)


@pytest.mark.parametrize(
    ("rate", "bookies", "most"),
    [(float("inf"), 3, 1024**3), (1e6, 3, 180_000_000), (1e3, 3, 16 * 1024**2), (1e9, 3, 1024**3), (1e6, 0, 60_000_000)],
    ids=["no limit", "a minute of three bookies", "slow", "fast", "no bookie"],
)
def test_a_portion_is_a_minute_of_reading_where_that_is_less(rate: float, bookies: int, most: float) -> None:
    assert bytes_of_portion(AuditBudget(2, rate), bookies) == most


@dataclass
class CatalogInZooKeeper(PlayedCatalog):
    """Like a catalog from `open_catalog`."""

    root: str = "/elsewhere/ledgers"

    def names_below(self, path: str) -> list[str]:
        return []


@dataclass
class Program:
    """`herdkeeper-audit` on a played cluster, without Spark."""

    monkeypatch: pytest.MonkeyPatch
    folder: Path
    asked: list[set[int]] = field(default_factory=list)
    """The ledgers that each run of the program read."""

    def run(self, catalog: PlayedCatalog, run_id: str, *more: str, fails_at: int = 0) -> tuple[int, AuditSummary]:
        asked: set[int] = set()
        self.asked.append(asked)
        deadline = Deadline(ledger=fails_at)

        def run_tasks(tasks: Sequence[AuditTask]) -> pa.Table:
            asked.update(check.ledger_id for task in tasks for check in task.checks)
            try:
                deadline.look(tasks)
            except KilledError as error:
                raise MetadataUnavailableError("ZooKeeper went away") from error
            return run_here(tasks)

        @contextmanager
        def opened(*_: object) -> Iterator[CatalogInZooKeeper]:
            yield CatalogInZooKeeper(catalog.addresses, catalog.ledgers)

        @contextmanager
        def tasks_here(_: object) -> Iterator[Callable[[Sequence[AuditTask]], pa.Table]]:
            yield run_tasks

        self.monkeypatch.setenv(VARIABLE, str(self.folder / "message"))
        self.monkeypatch.setattr(cli, "open_catalog", opened)
        self.monkeypatch.setattr(cli, "_tasks_on_spark", tasks_here)
        self.monkeypatch.setattr(cli, "AuditBudget", lambda *_: BUDGET)
        given = ["--zookeeper", "z:1", "--ledgers-root", "/elsewhere/ledgers", "--run-id", run_id, "--output", str(self.folder / "audits")]
        code = cli.main([*given, *more])
        return code, AuditSummary.from_json((self.folder / "message").read_text())


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    return Program(monkeypatch, tmp_path)


def table(program: Program, name: str, run_id: str) -> list[dict[str, Any]]:
    rows = pd.read_parquet(program.folder / "audits" / name)
    own = rows[rows["run_id"] == run_id].drop(columns=["run_id", "attempt", *({"finished_at", "duration_seconds"} & set(rows.columns))])
    return cast("list[dict[str, Any]]", own.astype(object).where(own.notna(), None).to_dict("records"))


def test_a_run_that_broke_off_goes_on_and_is_in_the_tables_as_an_undisturbed_one_is(program: Program) -> None:
    with damaged_cluster() as catalog:
        assert program.run(catalog(), "whole")[0] == 0
        code, summary = program.run(catalog(), "broken", fails_at=3)
        assert (code, summary.outcome) == (3, JobOutcome.RETRYABLE)
        code, summary = program.run(catalog(), "broken")
        assert (code, summary.outcome) == (0, JobOutcome.SUCCEEDED)
        again = program.run(catalog(), "broken")
    assert program.asked[1] & program.asked[2] == {3}, "only the portion that was not durable is read again"
    for name in ("audit_runs", "audit_findings", "audit_bookies"):
        assert table(program, name, "broken") == table(program, name, "whole") != []
    assert again[1].outcome is JobOutcome.ALREADY_DONE
    assert list((program.folder / "audits" / "audit_progress").iterdir()) == [], "what is in the tables is kept once"


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (("--depth", "light"), "depth 'Deep', not 'Light'"),
        (("--ledgers", "1"), "ledger_filter '', not 'ledgers 1'"),
        (("--ledgers-root", "/another/ledgers"), "ledgers_root '/elsewhere/ledgers', not '/another/ledgers'"),
    ],
)
def test_the_result_of_a_run_is_not_given_for_another_one_of_its_id(program: Program, other: tuple[str, str], named: str) -> None:
    with damaged_cluster() as catalog:
        assert program.run(catalog(), "whole")[0] == 0
        code, summary = program.run(catalog(), "whole", *other)
    assert (code, summary.outcome) == (2, JobOutcome.CONFIGURATION_REFUSED)
    assert f"the run whole was of {named}: give another --run-id" in summary.message


def test_a_run_whose_time_is_over_pauses_and_goes_on_when_it_may(program: Program) -> None:
    past, later = ((datetime.now(UTC) + timedelta(hours=hours)).isoformat() for hours in (-1, 1))
    with damaged_cluster() as catalog:
        assert program.run(catalog(), "whole")[0] == 0
        program.run(catalog(), "night", "--read-until", later, fails_at=3)
        code, summary = program.run(catalog(), "night", "--read-until", past)
        assert (code, summary.outcome, summary.ledgers) == (0, JobOutcome.PAUSED, 2)
        assert summary.message == "paused; so far 2 ledgers, 10 entries, 29 of 30 copies verified: 1 finding"
        assert program.asked[-1] == set()
        assert not list((program.folder / "audits" / "audit_runs").glob("night*"))
        assert program.run(catalog(), "night", "--read-until", later)[1].outcome is JobOutcome.SUCCEEDED
    assert table(program, "audit_findings", "night") == table(program, "audit_findings", "whole")


@pytest.mark.parametrize("how", ["repair", "dry-run"])
@pytest.mark.parametrize("window", [(), ("--read-until", "2020-01-01T05:00:00Z")], ids=["always", "its window is over"])
def test_a_run_that_broke_off_while_it_repaired_goes_on_with_the_same_findings(
    how: str, window: tuple[str, ...], program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    repaired: list[tuple[Finding, ...]] = []

    def broken(_: object, result: AuditResult, __: object) -> AuditResult:
        repaired.append(result.findings)
        raise MetadataUnavailableError("ZooKeeper went away")

    def nothing_repaired(_: object, result: AuditResult, __: object) -> AuditResult:
        repaired.append(result.findings)
        return result

    with damaged_cluster() as catalog:
        monkeypatch.setattr(cli, "repaired", broken)
        assert program.run(catalog(), "r", "--repair", how)[0] == 3
        monkeypatch.setattr(cli, "repaired", nothing_repaired)
        code, summary = program.run(catalog(), "r", "--repair", how, *window)
    assert (code, summary.outcome, summary.ledgers) == (0, JobOutcome.SUCCEEDED, 6)
    assert program.asked == [{1, 2, 3, 4, 5}, set()], "nothing is read again that was read in all the nights before"
    assert repaired[0] == repaired[1] != ()
    assert len(table(program, "audit_findings", "r")) == len(repaired[0])


def test_a_pause_without_stored_progress_or_a_zone_is_refused(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(program.folder / "message"))
    given = ["--zookeeper", "z:1", "--ledgers-root", "/elsewhere/ledgers", "--run-id", "r", "--read-until", "2026-11-23T05:00:00Z"]
    assert cli.main(given) == 2
    assert "--read-until: a run resumes from its stored progress; add --output" in (program.folder / "message").read_text()
    assert cli.main([*given[:-1], "2026-11-23T05:00:00", "--output", str(program.folder)]) == 2
    assert "'2026-11-23T05:00:00' is not a time with a zone" in (program.folder / "message").read_text()


def test_a_run_that_was_begun_for_other_ledgers_is_refused(program: Program) -> None:
    with damaged_cluster() as catalog:
        program.run(catalog(), "r", fails_at=3)
        code, summary = program.run(catalog(), "r", "--ledgers", "1-3")
    assert code == 2
    assert "was started with ledger_filter '', not 'ledgers 1-3'" in summary.message


def test_short_findings_are_the_same_with_and_without_portions(tmp_path: Path) -> None:
    with damaged_cluster() as catalog:
        whole = audit(cast("LedgerCatalog", catalog()), AuditRequest(seed="run-1"), replace(BUDGET, portion_bytes=1 << 30), run_here)
        assert [short(each) for each in attempt(catalog(), tmp_path, Deadline()).findings] == [short(each) for each in whole.findings]
