"""The full check: when it is begun, and what is known of it afterwards."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from situations import quickstart, with_metadata, with_spec, with_status
from test_plan_tablespace import RECORD, SETTLED
from test_replica_verdicts import CHECKPOINT

from herdkeeper.api.checkpoint import ComparisonStatus, Lsn
from herdkeeper.api.resource import Condition
from herdkeeper.api.tablespace import FullCheckTiming, TablespaceStatus
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.herddb.leadership.decision import Move, Node, Situation, decide
from herdkeeper.herddb.observe.address import NodeAddress
from herdkeeper.herddb.observe.nodes import read_node
from herdkeeper.herddb.state.cluster import FullCheck, NodeTablespace, RecordAbsent, TableVerdict, VersionedRecord
from herdkeeper.herddb.tablespace.plan import plan_tablespace
from herdkeeper.herddb.tablespace.plan_full_check import full_check_steps
from herdkeeper.herddb.tablespace.status import summarize_tablespace
from herdkeeper.herddb.tablespace.status_full_check import NOTE, full_check_fields, newly_failed
from herdkeeper.herddb.tablespace.verdicts import judged, verdicts_in_force
from herdkeeper.planning.actions import AnswerRequest, BarPromotion, ChangeTablespaceRecord, Request, SetCopyAside, StartFullCheck
from herdkeeper.shared import names
from herdkeeper.shared.conditions import REPLICAS_VERIFIED
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

LEADER, FOLLOWER = "db-herddb-0", "db-herddb-1"
STARTED, ENDED = "2026-11-22T02:00:00.000Z", "2026-11-22T02:00:01.500Z"
STARTED_MILLIS = 1_795_312_800_000
TABLES = (("airports", 900), ("flights", 500))
DONE = FullCheck(STARTED_MILLIS, STARTED_MILLIS + 1500, (7, 10), (7, 14), TABLES, (), 1450, 400, None)
RUNNING = replace(DONE, ended_millis=None, until=None, tables=TABLES[:1])


def conditions(**status: str):
    """Conditions by their status, of the first generation."""
    at = "2026-01-01T00:00:00Z"
    return tuple(
        Condition(type=kind, status=value, reason="Said", message=f"{kind} is {value}", last_transition_time=at, observed_generation=1)
        for kind, value in status.items()
    )


CALM = {"Ready": "True", "Progressing": "False"}
ON_REQUEST = FullCheckTiming(suspend=True)
NEW = with_spec(quickstart("Tablespace"), full_check=ON_REQUEST)
TABLESPACE = with_status(NEW, uuid="a-uuid", conditions=conditions(**CALM))
DATABASE = with_status(quickstart("HerdDBCluster"), conditions=conditions(**CALM))


def leader(check: FullCheck | Unknown | None = None, **changes) -> NodeTablespace:
    return replace(NodeTablespace("flights", "a-uuid", "leader", True, (7, 20), None, full_check=check), **changes)


def follower(*verdicts: TableVerdict, **changes) -> NodeTablespace:
    return replace(NodeTablespace("flights", "a-uuid", "follower", True, (7, 20), None, checks=verdicts), **changes)


def found(table: str, passed: bool, lsn: tuple[int, int], of: str = LEADER) -> TableVerdict:
    """What a follower found of a table in the check of the leader `of`."""
    return TableVerdict(table, passed, lsn, of)


def seen(first=leader(), second=follower(), **changes):  # noqa: B008 - frozen
    """The settled tablespace with these copies; Unknown for a node that does not answer."""
    views = {node: copy if isinstance(copy, Unknown) else (copy,) for node, copy in ((LEADER, first), (FOLLOWER, second))}
    return replace(SETTLED, tablespace=TABLESPACE, herddb=DATABASE, nodes=views, **changes)


def asking(tablespace=TABLESPACE, **more: str):
    return with_metadata(
        tablespace, annotations={**tablespace.metadata.annotations, names.FULL_CHECK_ANNOTATION: "now", **more}, resource_version="77"
    )


def plan(tablespace, situation):
    return plan_tablespace(replace(situation, tablespace=tablespace), "spark:1")


def answer(tablespace, situation) -> str:
    """The only thing that is done: an answer."""
    (only,) = plan(tablespace, situation).actions
    assert isinstance(only, AnswerRequest)
    assert (only.request, only.resource_version) == (Request.FULL_CHECK, "77")
    return only.answer


def known(situation, tablespace=TABLESPACE):
    """The tablespace with the status that follows from what was seen."""
    return with_status(
        tablespace, uuid="a-uuid", conditions=conditions(**CALM), full_check=full_check_fields(replace(situation, tablespace=tablespace))
    )


def verdicts(tablespace, situation) -> dict[str, tuple[str, tuple[str, ...]]]:
    fields = full_check_fields(replace(situation, tablespace=tablespace))
    assert fields is not None
    return {replica["node"]: (replica["verdict"], tuple(replica.get("differentTables", ()))) for replica in fields["replicas"]}


PASSED = (found("airports", True, (7, 12)), found("flights", True, (7, 14)))


def test_nobody_asks_and_nothing_is_checked():
    assert plan(TABLESPACE, seen()).actions == ()


def test_the_leader_is_ordered_to_check_and_then_the_request_is_answered():
    order, said = plan(asking(), seen()).actions
    assert order == StartFullCheck("db", LEADER, "flights", 200)
    assert isinstance(said, AnswerRequest)
    assert said.answer == f"done: {LEADER} checks all tables; see status.fullCheck for the result"


@pytest.mark.parametrize(
    ("tablespace", "situation", "why"),
    [
        (asking(NEW), seen(), "the tablespace is not Ready (it has not been reconciled yet)"),
        (
            asking(with_status(TABLESPACE, uuid="a-uuid", conditions=conditions(Ready="False"))),
            seen(),
            "the tablespace is not Ready (Said: Ready is False)",
        ),
        (asking(**{names.SWITCHOVER_ANNOTATION: FOLLOWER}), seen(), "a switchover is requested"),
        (
            asking(),
            replace(seen(), herddb=with_status(DATABASE, conditions=conditions(Ready="True", Progressing="True"))),
            "the HerdDBCluster db is not settled (Progressing is True)",
        ),
        (asking(), replace(seen(), herddb=None), "the HerdDBCluster db does not exist"),
        (asking(), seen(Unknown("silence")), f"{LEADER} can't be reached (silence)"),
        (asking(), seen(leader(role="failed", ready=False)), f"{LEADER} is not a settled leader (it is failed)"),
        (asking(), seen(leader(), Unknown("silence")), f"{FOLLOWER} can't be reached (silence)"),
        (asking(), seen(leader(), follower(ready=False, role="booting")), f"{FOLLOWER} is not a settled follower (it is booting)"),
        (asking(), seen(leader(), follower(ready=False)), f"{FOLLOWER} is not a settled follower (it is not ready)"),
        (asking(), seen(leader(), follower(uuid="other")), f"{FOLLOWER} is not a settled follower (it does not hold the tablespace)"),
        (asking(), seen(leader(Unknown("too old"))), f"{LEADER} can't check all tables (too old)"),
        (asking(), seen(leader(), follower(full_check=Unknown("too old"))), f"{FOLLOWER} can't check all tables (too old)"),
        (asking(known(seen(leader(RUNNING)))), seen(leader(RUNNING)), f"one runs on {LEADER} since {STARTED}"),
        (asking(), replace(seen(), record=Unknown("ZooKeeper does not answer")), "ZooKeeper does not answer"),
        (asking(NEW), replace(seen(), record=RecordAbsent(), system_leader=None), "the tablespace does not exist yet"),
    ],
)
def test_it_is_refused_with_the_reason_while(tablespace, situation, why):
    answers = [action for action in plan(tablespace, situation).actions if isinstance(action, AnswerRequest)]
    assert [each.answer for each in answers] == [f"refused: {why}"]
    assert not any(isinstance(action, StartFullCheck) for action in plan(tablespace, situation).actions)


def test_it_is_refused_while_the_record_is_being_changed():
    pinned = replace(seen(), record=VersionedRecord(replace(RECORD, expected_replica_count=2), 4))
    change, said = plan(asking(), pinned).actions
    assert isinstance(change, ChangeTablespaceRecord)
    assert isinstance(said, AnswerRequest)
    assert said.answer == "refused: it is being changed: failover settings as declared"


def test_a_tablespace_without_followers_is_not_stopped_for_nothing():
    alone = replace(seen(), record=VersionedRecord(replace(RECORD, replicas=(LEADER,)), 4))
    answers = [
        action.answer for action in plan(asking(with_spec(TABLESPACE, replicas=1)), alone).actions if isinstance(action, AnswerRequest)
    ]
    assert answers == ["refused: there is no follower to compare with, so writes would stop for nothing"]


@pytest.mark.parametrize("check", [RUNNING, DONE])
def test_a_check_that_was_begun_before_the_process_ended_is_the_answer_and_is_not_begun_twice(check):
    assert answer(asking(), seen(leader(check))) == f"done: {LEADER} checks all tables since {STARTED}"


def test_a_check_that_is_over_and_known_is_followed_by_another_one():
    situation = seen(leader(DONE), follower(*PASSED))
    assert StartFullCheck("db", LEADER, "flights", 200) in plan(asking(known(situation)), situation).actions


@pytest.mark.parametrize(
    ("situation", "soon"),
    [
        (seen(leader(RUNNING)), 2.0),
        (seen(leader(DONE), follower(lsn=(7, 13))), 2.0),
        (seen(leader(DONE), follower(*PASSED)), None),
        (seen(leader(DONE), follower(lsn=(7, 20))), None),
    ],
)
def test_it_is_looked_at_again_until_the_leader_is_done_and_each_follower_has_come_by(situation, soon):
    assert plan(TABLESPACE, situation).requeue_after_seconds == soon


def test_the_status_tells_for_how_long_writes_could_have_been_stopped_and_by_which_table():
    fields = full_check_fields(seen(leader(replace(DONE, not_checked=(("t", "a page can't be read"),))), follower(*PASSED)))
    assert fields is not None
    assert fields.pop("schedule")["declared"].endswith("(UTC)")
    assert fields == {
        "leader": LEADER,
        "startedAt": STARTED,
        "completedAt": ENDED,
        "writesStoppedSeconds": 1.45,
        "longestWritesStoppedSeconds": 0.4,
        "tables": [{"name": "airports", "writesStoppedSeconds": 0.9}, {"name": "flights", "writesStoppedSeconds": 0.5}],
        "notChecked": [{"name": "t", "why": "a page can't be read"}],
        "replicas": [{"node": FOLLOWER, "verdict": "Passed"}],
        "afterLsn": {"ledgerId": 7, "entryId": 10},
        "untilLsn": {"ledgerId": 7, "entryId": 14},
    }


@pytest.mark.parametrize("after", [(-1, -1), (7, -1)])
def test_a_check_that_begins_with_the_log_or_with_a_ledger_is_remembered_as_the_same_one(after):
    situation = seen(leader(replace(DONE, after=after)), follower(*PASSED))
    before = known(situation)
    assert verdicts(before, seen(leader(replace(DONE, after=after)), Unknown("silence")))[FOLLOWER][0] == "Passed"
    assert StartFullCheck("db", LEADER, "flights", 200) in plan(asking(before), situation).actions


FAILED = (PASSED[0], found("flights", False, (7, 14)))


@pytest.mark.parametrize(
    ("check", "copy", "verdict"),
    [
        (DONE, follower(*PASSED), "Passed"),
        (DONE, follower(*FAILED), "Failed"),
        (DONE, follower(PASSED[0]), "NotAnswered"),
        (DONE, follower(), "NotAnswered"),
        (DONE, Unknown("silence"), "NotAnswered"),
        (DONE, follower(*PASSED, uuid="of an earlier one"), "NotAnswered"),
        (DONE, follower(PASSED[0], found("flights", True, (7, 10))), "NotAnswered"),  # of an earlier check
        (DONE, follower(PASSED[0], found("flights", True, (6, 99))), "NotAnswered"),
        (DONE, follower(PASSED[0], found("flights", True, (7, 15))), "NotAnswered"),  # of a later one
        (DONE, follower(PASSED[0], found("flights", False, (7, 9))), "NotAnswered"),
        (replace(DONE, until=None, tables=()), follower(found("flights", False, (7, 15))), "NotAnswered"),  # of another one
        (RUNNING, follower(PASSED[0]), "NotAnswered"),
        (RUNNING, follower(found("airports", False, (7, 12))), "Failed"),
        (replace(DONE, error="it broke"), follower(*PASSED), "NotAnswered"),
        (replace(DONE, tables=()), follower(), "NotAnswered"),
    ],
)
def test_a_replica_has_passed_only_when_it_told_so_of_each_table_of_this_check(check, copy, verdict):
    assert verdicts(TABLESPACE, seen(leader(check), copy))[FOLLOWER][0] == verdict


@pytest.mark.parametrize(("answered", "verdict"), [(PASSED, "Passed"), (FAILED, "Failed")])
@pytest.mark.parametrize(
    "later",
    [
        seen(Unknown("silence"), Unknown("silence")),
        seen(leader(None), follower()),
        replace(seen(), record=Unknown("ZooKeeper does not answer")),
        replace(seen(), herddb=None, log=None, record=Unknown("the HerdDBCluster does not exist yet")),
    ],
)
def test_what_a_replica_answered_stays_known_though_the_nodes_forget_it(answered, verdict, later):
    before = known(seen(leader(DONE), follower(*answered)))
    assert verdicts(before, later)[FOLLOWER][0] == verdict


def test_a_follower_that_comes_later_answers_a_check_that_only_the_status_remembers():
    before = known(seen(leader(DONE), follower(lsn=(7, 11))))
    assert verdicts(before, seen(leader(None), follower(*PASSED)))[FOLLOWER][0] == "Passed"


def test_a_check_of_which_its_node_knows_nothing_any_more_did_not_come_to_its_end():
    before = known(seen(leader(RUNNING)))
    silent = full_check_fields(replace(seen(Unknown("silence")), tablespace=before))
    assert silent is not None
    assert "error" not in silent, "it may still run"
    lost = full_check_fields(replace(seen(leader(None), follower(*PASSED)), tablespace=before))
    assert lost is not None
    assert lost["error"] == f"{LEADER} no longer knows the check: its process ended before the check did"
    assert "completedAt" not in lost
    assert lost["replicas"] == [{"node": FOLLOWER, "verdict": "NotAnswered"}]


def test_a_check_of_a_leader_that_was_replaced_and_can_not_be_asked_is_not_waited_for_and_told_whole_when_it_is_back():
    before = known(seen(leader(RUNNING)))
    replaced = replace(seen(Unknown("silence"), leader(None)), record=VersionedRecord(replace(RECORD, leader=FOLLOWER), 4))
    fields = full_check_fields(replace(replaced, tablespace=before))
    assert fields is not None
    assert fields["error"] == f"{LEADER} can't be reached, and no longer leads"
    assert full_check_steps(replace(replaced, tablespace=before), None).requeue_after_seconds is None
    back = replace(replaced, nodes={**replaced.nodes, LEADER: (follower(full_check=DONE),)})
    told = full_check_fields(replace(back, tablespace=known(replaced, before)))
    assert told is not None
    assert (told["completedAt"], "error" in told) == (ENDED, False)


def test_a_newer_check_begins_with_no_verdict():
    before = known(seen(leader(DONE), follower(*PASSED)))
    newer = replace(DONE, started_millis=STARTED_MILLIS + 60_000, after=(7, 30), until=(7, 33))
    assert verdicts(before, seen(leader(newer), follower(*PASSED)))[FOLLOWER][0] == "NotAnswered"


def test_which_check_is_the_newer_one_is_told_by_the_log_and_not_by_clocks():
    before = known(seen(leader(DONE), follower(*PASSED)))
    slow_clock = replace(DONE, started_millis=STARTED_MILLIS - 3_600_000, after=(8, 3), until=(8, 5))
    moved = replace(seen(), record=VersionedRecord(replace(RECORD, leader=FOLLOWER), 4))
    moved = replace(moved, nodes={LEADER: (follower(full_check=DONE),), FOLLOWER: (leader(slow_clock),)})
    fields = full_check_fields(replace(moved, tablespace=before))
    assert fields is not None
    assert (fields["leader"], fields["startedAt"]) == (FOLLOWER, "2026-11-22T01:00:00.000Z")
    assert fields["replicas"] == [{"node": LEADER, "verdict": "NotAnswered"}]


def test_a_failed_replica_is_told_once_with_its_tables_and_what_to_do():
    before = full_check_fields(seen(leader(DONE), follower(lsn=(7, 11))))
    after = full_check_fields(seen(leader(DONE), follower(*FAILED)))
    assert after is not None
    assert after["note"] == NOTE
    (told,) = newly_failed(before, after)
    assert told.startswith(
        f"{FOLLOWER} had other rows than the leader {LEADER} in flights at the full check of {STARTED}; no other follower"
    )
    assert "the leader may be wrong" in told
    assert "verify: Follower" in told
    assert newly_failed(after, after) == ()
    assert newly_failed(None, after) == (told,)
    assert newly_failed(after, None) == ()


def test_a_failed_replica_is_barred_and_never_made_anew_for_that():
    situation = seen(leader(DONE), follower(*FAILED, barred=False))
    (bar,) = plan(known(situation), situation).actions
    assert isinstance(bar, BarPromotion)
    assert (bar.node, bar.barred) == (FOLLOWER, True)
    assert bar.why == "it had other rows than the leader at LSN 7,14 in flights"
    asked = plan(asking(known(situation)), situation).actions
    assert not any(isinstance(action, ChangeTablespaceRecord | SetCopyAside) for action in asked)


def told(situation, tablespace=TABLESPACE):
    """The condition, and the tablespace as its status then remembers everything."""
    summary = summarize_tablespace(replace(situation, tablespace=tablespace))
    status = TablespaceStatus.model_validate({**summary.fields, "uuid": "a-uuid"})
    calm = status.model_copy(update={"conditions": conditions(**CALM)})
    return summary.conditions[REPLICAS_VERIFIED], tablespace.model_copy(update={"status": calm})


def test_a_failed_check_stays_known_though_the_node_forgets_it_and_another_one_passes():
    condition, tablespace = told(seen(leader(DONE), follower(*FAILED)))
    assert condition.reason is Reason.DIFFERS_FROM_LEADER
    assert "had other rows than the leader at LSN 7,14 in flights" in condition.message
    later = (found("airports", True, (7, 18)), found("flights", True, (7, 19)))
    for copy in (follower(), follower(*later)):
        condition, tablespace = told(seen(leader(None), copy), tablespace)
        assert condition.reason is Reason.DIFFERS_FROM_LEADER


@pytest.mark.parametrize(
    ("lsn", "equal", "left"),
    [
        ((7, 13), True, "had other rows than the leader at LSN 7,14 in flights"),
        ((7, 14), True, None),
        ((8, 0), True, None),
        ((7, 13), False, "had other rows than the log at LSN 7,13 (Checkpoint c) in t"),
        ((8, 0), False, "had other rows than the log at LSN 8,0 (Checkpoint c) in t"),
    ],
)
def test_a_checkpoint_decides_and_what_it_found_different_stays_so(lsn, equal, left):
    checkpoint = verified(FOLLOWER, lsn, *(() if equal else ("t",)))
    nodes = {FOLLOWER: (follower(*FAILED, lsn=(8, 4)),)}
    (copy,) = judged(nodes, "a-uuid", verdicts_in_force(TABLESPACE, "a-uuid", (checkpoint,), nodes))[FOLLOWER]
    assert copy.differs == left


def verified(node: str, lsn: tuple[int, int], *tables: str):
    """A Checkpoint that compared this node, and found these tables different."""
    ledger, entry = lsn
    comparison = ComparisonStatus(
        node=node,
        tablespace_uuid="a-uuid",
        lsn=Lsn(ledger_id=ledger, entry_id=entry),
        result="Different" if tables else "Equal",
        different_tables=tables,
    )
    return with_status(with_metadata(CHECKPOINT, name="c"), phase="Succeeded", completed_at=ENDED, comparison=comparison)


def test_a_check_of_a_leader_that_is_known_to_differ_bars_no_copy():
    wrong = verified(LEADER, (7, 9), "flights")
    nodes = {LEADER: (leader(),), FOLLOWER: (follower(*FAILED),)}
    assert FOLLOWER not in verdicts_in_force(TABLESPACE, "a-uuid", (wrong,), nodes)
    assert FOLLOWER in verdicts_in_force(TABLESPACE, "a-uuid", (verified("db-herddb-2", (7, 9), "flights"),), nodes)
    remembers = {**nodes, LEADER: (leader(barred=True),)}
    assert FOLLOWER not in verdicts_in_force(TABLESPACE, "a-uuid", (), remembers), "the leader's own node remembers that it differs"


@pytest.mark.parametrize(
    ("mark", "proves"),
    [("7,9 until 7,30", False), ("7,15 until 7,30", True), ("7,9 until 7,13", True)],
    ids=["it was wrong by then", "it was found wrong later", "it was made anew before"],
)
def test_a_check_of_a_leader_that_differed_proves_nothing_after_its_copy_was_made_anew_either(mark, proves):
    anew = with_metadata(TABLESPACE, annotations={f"{names.SET_ASIDE_PREFIX}{LEADER}": f"{mark} of a-uuid"})
    nodes = {FOLLOWER: (leader(checks=FAILED),), LEADER: (follower(),)}
    found = verdicts_in_force(anew, "a-uuid", (verified(LEADER, (7, 9), "flights"),), nodes)
    assert (FOLLOWER in found) is proves


def test_a_later_failure_is_noted_where_an_earlier_one_is_known_from_the_node_alone():
    barred = follower(barred=True, barred_until=(7, 13))
    _, tablespace = told(seen(leader(), barred))
    again = seen(leader(), replace(barred, lsn=(7, 45), checks=(found("flights", False, (7, 40)),)))
    (bar,) = plan(tablespace, again).actions
    assert isinstance(bar, BarPromotion)
    assert (bar.barred, bar.until) == (True, (7, 39))
    _, tablespace = told(again, tablespace)
    forgotten = replace(seen(leader(), replace(barred, lsn=(7, 45))), checkpoints=(verified(FOLLOWER, (7, 20)),))
    assert all(action.barred for action in plan(tablespace, forgotten).actions if isinstance(action, BarPromotion))


def test_a_leader_with_other_rows_than_a_follower_that_equals_the_log_is_told_until_the_next_check():
    _, tablespace = told(seen(leader(DONE), follower(*FAILED)))
    equal = replace(seen(leader(DONE), follower(*FAILED)), checkpoints=(verified(FOLLOWER, (7, 18)),))
    condition, tablespace = told(equal, tablespace)
    assert (condition.status, condition.reason) == ("False", Reason.DIFFERS_FROM_LEADER)
    assert condition.message.startswith(f"{LEADER} leads, and had other rows than {FOLLOWER} in flights at its full check of {STARTED}")
    assert "Checkpoint c" in condition.message
    assert "compare the leader's rows of these tables by SQL" in condition.message
    newer = replace(DONE, started_millis=STARTED_MILLIS + 60_000, after=(7, 30), until=(7, 33))
    condition, _ = told(seen(leader(newer), follower(found("airports", True, (7, 32)), found("flights", True, (7, 33)))), tablespace)
    assert condition.reason is Reason.VERIFIED


@pytest.mark.parametrize(
    ("compared", "mark", "leads_again"),
    [((), None, False), (((7, 13),), None, False), (((7, 14),), None, True), ((), "7,12 until 8,1 of a-uuid", True)],
    ids=["nobody compared it since", "a Checkpoint before the end of the check", "a Checkpoint since", "it was made anew"],
)
def test_a_leader_that_was_in_doubt_does_not_lead_again_before_a_checkpoint_compared_it(compared, mark, leads_again):
    """It had been equal once, and another node leads now."""
    equal = verified(LEADER, (7, 5))
    _, tablespace = told(replace(seen(leader(DONE), follower(*FAILED)), checkpoints=(equal,)))
    doubted = replace(seen(leader(DONE), follower(*FAILED)), checkpoints=(verified(FOLLOWER, (7, 18)),))
    _, tablespace = told(doubted, tablespace)
    if mark is not None:
        tablespace = with_metadata(tablespace, annotations={f"{names.SET_ASIDE_PREFIX}{LEADER}": mark})
    record = replace(RECORD, leader=FOLLOWER, max_leader_inactivity_millis=TABLESPACE.spec.failover.max_leader_inactivity_seconds * 1000)
    now = seen(
        follower(lsn=(8, 3), recoverable=True, barred=False),
        leader(lsn=(8, 3)),
        record=VersionedRecord(record, 9),
        checkpoints=tuple(verified(LEADER, lsn) for lsn in compared),
    )
    found = verdicts_in_force(tablespace, "a-uuid", now.checkpoints, now.nodes)
    nodes = {node: Node(copy=view[0]) for node, view in judged(now.nodes, "a-uuid", found).items()}
    decision = decide(Situation(record, nodes, None, changed_at=0.0, now=1000.0, preferred=LEADER))
    assert isinstance(decision, Move) is leads_again, decision
    bars = [(action.node, action.barred, action.until) for action in plan(tablespace, now).actions if isinstance(action, BarPromotion)]
    assert bars == ([] if leads_again else [(LEADER, True, (7, 13))])
    condition, tablespace = told(now, tablespace)
    assert (condition.reason is Reason.DIFFERS_FROM_LEADER) is not leads_again
    if not leads_again:
        assert f"{LEADER} had other rows than {FOLLOWER}, which equals the log, at LSN 7,14 in flights" in condition.message
        assert not verdicts_in_force(tablespace, "a-uuid", now.checkpoints, now.nodes)[LEADER].equal, "the status remembers it"


@pytest.mark.parametrize(("until", "doubted"), [((7, 9), True), ((7, 10), False), ((7, 20), False)])
def test_a_leader_is_not_in_doubt_for_a_copy_that_was_made_anew_since(until, doubted):
    _, tablespace = told(seen(leader(DONE), follower(*FAILED)))
    mark = {f"{names.SET_ASIDE_PREFIX}{FOLLOWER}": f"7,3 until {until[0]},{until[1]}"}
    anew = with_metadata(tablespace, annotations=mark)
    equal = replace(seen(leader(DONE), follower()), checkpoints=(verified(FOLLOWER, (7, 25)),))
    condition, _ = told(equal, anew)
    assert (condition.reason is Reason.DIFFERS_FROM_LEADER) is doubted


TOLD = {
    "startedAtMillis": STARTED_MILLIS,
    "endedAtMillis": STARTED_MILLIS + 1500,
    "after": {"ledgerId": 7, "entryId": 10},
    "until": {"ledgerId": 7, "entryId": 14},
    "tables": dict(TABLES),
    "notChecked": {},
    "writesStoppedMillis": 1450,
    "longestStopMillis": 400,
    "error": None,
}


def read(**fields) -> NodeTablespace:
    """What is read of a node that tells this of its copy."""
    copy = {"name": "flights", "uuid": "a-uuid", "role": "leader", "ready": True, **fields}
    reader = ClusterReader(None, None, SimpleNamespace(get=lambda _url, _trust: [copy]))
    view = read_node(reader, NodeAddress("node", None))
    assert not isinstance(view, Unknown)
    return view[0]


def test_what_a_node_tells_of_a_check_and_of_its_verdicts_is_read():
    position = {"ledgerId": 7, "entryId": 12}
    said = {
        "airports": {"pass": True, "leader": LEADER, "position": position},
        "flights": {"pass": False, "leader": LEADER, "position": position},
        "by HerdDB's own digest": {"pass": False, "digest": "-59", "position": None},
    }
    copy = read(fullCheck=TOLD, checks=said)
    assert copy.full_check == DONE
    assert copy.checks == (found("airports", True, (7, 12)), found("flights", False, (7, 12)))
    assert read(fullCheck=None).full_check is None


@pytest.mark.parametrize(
    "fields", [{}, {"fullCheck": {"startedAtMillis": 1}}, {"fullCheck": {**TOLD, "tables": []}}, {"fullCheck": "running"}]
)
def test_a_check_that_can_not_be_read_hides_nothing_else(fields):
    copy = read(**fields)
    assert isinstance(copy.full_check, Unknown)
    assert (copy.role, copy.ready) == ("leader", True)
