"""Filters of an audit: which ledgers match, and the refusal of unknown names."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from played_bookie import PlayedBookie, ledger, served
from test_audit_orphans import zookeeper
from test_ledger_catalog import ROOT, catalog_of
from test_replication_audit import NAMES, PlayedCatalog, audited, full, versioned

from herdkeeper.codecs.bookkeeper.metadata import LedgerState, Segment
from herdkeeper.codecs.bookkeeper.striping import EntryRange
from herdkeeper.protocol.job_summary import AuditSummary, JobOutcome
from herdkeeper_jobs.audit import arguments
from herdkeeper_jobs.audit.request import AuditRequest, LedgerFilter, TablespaceName
from herdkeeper_jobs.audit.scope import FilterRefusedError, Scope, scope_of
from herdkeeper_jobs.bookkeeper.metadata import UndecodableMetadata

ORDERS = TablespaceName("/shop/db/herd", "orders")
MOVED = replace(ledger(4, 9, NAMES), segments=(Segment(0, ("b0", "b1", "b9")), Segment(5, NAMES)))
RECOVERING = replace(ledger(3, None, NAMES), state=LedgerState.IN_RECOVERY)
LEDGERS = (ledger(1, 9, NAMES), ledger(2, None, NAMES), RECOVERING, MOVED)


@pytest.mark.parametrize(
    ("ledgers", "of_tablespaces", "admitted"),
    [
        (LedgerFilter(), None, [1, 2, 3, 4]),
        (LedgerFilter((EntryRange(1, 2), EntryRange(4, 9))), None, [1, 2, 4]),
        (LedgerFilter(), frozenset({2, 4, 7}), [2, 4]),
        (LedgerFilter(states=frozenset({LedgerState.CLOSED})), None, [1, 4]),
        (LedgerFilter(states=frozenset({LedgerState.OPEN, LedgerState.IN_RECOVERY})), None, [2, 3]),
        (LedgerFilter(bookies=frozenset({"b9", "b8"})), None, [4]),
        (LedgerFilter((EntryRange(1, 3),), states=frozenset({LedgerState.CLOSED}), bookies=frozenset({"b0"})), None, [1]),
        (LedgerFilter((EntryRange(1, 3),), bookies=frozenset({"b9"})), None, []),
        (LedgerFilter((EntryRange(3, 4),)), frozenset({1, 4}), [4]),
    ],
    ids=[
        "none",
        "ids",
        "a tablespace",
        "closed",
        "not closed",
        "a bookie, of a segment that is over",
        "all three",
        "nothing",
        "both of ids",
    ],
)
def test_a_ledger_must_meet_each_condition(ledgers: LedgerFilter, of_tablespaces: frozenset[int] | None, admitted: list[int]) -> None:
    scope = Scope(ledgers, of_tablespaces)
    assert [each.ledger_id for each in LEDGERS if scope.admits_id(each.ledger_id) and scope.admits(each)] == admitted


def test_the_ledgers_of_a_tablespace_are_those_of_its_log_whatever_the_case_of_its_name() -> None:
    for name in ("orders", "Orders"):
        scope = scope_of(catalog_of(zookeeper()), LedgerFilter(tablespaces=(replace(ORDERS, name=name),)))
        assert scope.of_tablespaces == frozenset({7, 8})


def test_a_tablespace_that_nobody_has_written_to_has_no_ledgers() -> None:
    played = zookeeper()
    del played.nodes["/shop/db/herd/ledgers/u1"]
    assert scope_of(catalog_of(played), LedgerFilter(tablespaces=(ORDERS,))).of_tablespaces == frozenset()


@pytest.mark.parametrize(
    ("ledgers", "words"),
    [
        (
            LedgerFilter(tablespaces=(replace(ORDERS, name="order"),)),
            "the tablespace 'order' does not exist in the database at /shop/db/herd; existing ones: orders",
        ),
        (
            LedgerFilter(tablespaces=(TablespaceName("/shop/dc/herd", "orders"),)),
            "the tablespace 'orders' does not exist in the database at /shop/dc/herd; existing ones: none",
        ),
        (
            LedgerFilter(bookies=frozenset({"b0", "b7"})),
            r"the bookie b7 does not exist: it has no cookie and is not registered; known bookies: 10\.0\.0\.7:3181, b0",
        ),
    ],
    ids=["another tablespace", "another database", "a bookie"],
)
def test_an_unknown_name_is_refused_with_the_known_ones(ledgers: LedgerFilter, words: str) -> None:
    with pytest.raises(FilterRefusedError, match=words):
        scope_of(catalog_of(zookeeper()), ledgers)


@pytest.mark.parametrize("damaged", ["ledgers__u1", "tableSpaces__orders"])
def test_a_tablespace_whose_ledgers_cannot_be_known_is_refused(damaged: str) -> None:
    with pytest.raises(FilterRefusedError, match=r"the ledgers of tablespace 'orders' .* can't be known"):
        scope_of(catalog_of(zookeeper(**{damaged: b"rubbish"})), LedgerFilter(tablespaces=(ORDERS,)))


def test_names_that_vanish_while_a_run_is_paused_are_no_mistake() -> None:
    gone = LedgerFilter(tablespaces=(replace(ORDERS, name="order"), ORDERS), bookies=frozenset({"b7"}))
    assert scope_of(catalog_of(zookeeper()), gone, begun=True).of_tablespaces == frozenset({7, 8})


def test_a_bookie_that_is_down_is_known_by_its_cookie() -> None:
    played = zookeeper()
    played.nodes[f"{ROOT}/cookies/b7"] = b""
    assert scope_of(catalog_of(played), LedgerFilter(bookies=frozenset({"b7"}))).admits_id(1)


def test_an_audit_says_which_ledgers_it_was_asked_for_and_reads_no_others() -> None:
    bookies = [PlayedBookie(full((1, 9), (2, 9), (3, 9))) for _ in NAMES]
    with served(*bookies) as addresses:
        catalog = PlayedCatalog(addresses, versioned(ledger(1, 9, NAMES), ledger(2, None, NAMES), ledger(3, 9, NAMES)))
        result = audited(catalog, request=AuditRequest(LedgerFilter(states=frozenset({LedgerState.CLOSED}))))
    assert (result.summary.ledgers, result.summary.ledger_filter) == (2, "states Closed")
    assert result.summary.message.startswith("2 ledgers (only states Closed), 20 entries")
    assert {request[1] for bookie in bookies for request in bookie.requests} == {1, 3}


def test_an_audit_of_one_ledger_with_one_finding_counts_them_as_one() -> None:
    with served(*(PlayedBookie(full((1, 9)) if name != NAMES[0] else {}) for name in NAMES)) as addresses:
        message = audited(PlayedCatalog(addresses, versioned(ledger(1, 9, NAMES)))).summary.message
    assert (message.startswith("1 ledger, 10 entries, "), message.endswith(": 1 finding")) == (True, True), message


def test_an_audit_of_no_ledger_says_that_nothing_was_audited() -> None:
    result = audited(PlayedCatalog({}, versioned(ledger(1, -1, NAMES))), request=AuditRequest(LedgerFilter((EntryRange(5, 9),))))
    assert (result.findings, result.summary.outcome) == ((), JobOutcome.SUCCEEDED)
    assert result.summary.message == "nothing was audited: no ledger matches (only ledgers 5-9)"


def test_a_ledger_of_unknown_state_is_reported_whatever_states_the_filter_wants() -> None:
    catalog = PlayedCatalog({}, {1: UndecodableMetadata(1, "rubbish")})
    found = audited(catalog, request=AuditRequest(LedgerFilter(states=frozenset({LedgerState.CLOSED})))).findings
    assert [finding.ledger_id for finding in found] == [1]


def test_a_filter_is_described_the_same_however_it_was_written() -> None:
    one = LedgerFilter(
        (EntryRange(5, 9), EntryRange(1, 1)), (ORDERS,), frozenset({LedgerState.OPEN, LedgerState.CLOSED}), frozenset({"b1", "b0"})
    )
    assert one.described == "ledgers 1, 5-9; tablespaces orders of /shop/db/herd; states Open, Closed; bookies b0, b1"
    assert replace(one, ranges=one.ranges[::-1]).described == one.described
    assert LedgerFilter().described == ""


def test_the_command_line_takes_all_conditions() -> None:
    given = ["--zookeeper", "z:1", "--ledgers-root", "/shop/bk/ledgers", "--run-id", "r", "--ledgers", "1-9", "--states", "Closed, Open"]
    given += ["--bookies", "b0,b1", "--tablespace", "/shop/db/herd", "orders", "--tablespace", "/shop/db/herd/", "default"]
    found = arguments.validated(arguments.audit_parser().parse_args(given)).request.ledgers
    assert found == LedgerFilter(
        (EntryRange(1, 9),),
        (ORDERS, replace(ORDERS, name="default")),
        frozenset({LedgerState.CLOSED, LedgerState.OPEN}),
        frozenset({"b0", "b1"}),
    )


def test_an_unknown_state_is_refused_with_the_known_ones() -> None:
    with pytest.raises(arguments.ArgumentError, match=r"--states: 'closed' is not a ledger state; use one of Open, InRecovery, Closed"):
        arguments.parse_states("closed")


def test_a_long_filter_leaves_room_for_what_was_found() -> None:
    described = LedgerFilter(tuple(EntryRange(each, each) for each in range(0, 2000, 2))).described
    summary = AuditSummary("r", JobOutcome.SUCCEEDED, "m", ledger_filter=described, critical=1)
    told = json.loads(summary.to_json())
    assert (len(told["ledgerFilter"]), told["critical"]) == (500, 1)
    result = audited(PlayedCatalog({}, versioned(ledger(2, -1, NAMES))), request=AuditRequest(LedgerFilter((EntryRange(0, 2),) * 300)))
    assert result.summary.message.endswith("nothing found")
    assert len(result.summary.message) < 400
