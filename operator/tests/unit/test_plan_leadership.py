"""Who shall lead: every situation with its sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.leadership.decision import Blocked, Decision, Keep, Move, Node, Postponed, Refused, Situation, decide
from herdkeeper.herddb.state.cluster import NodeTablespace
from herdkeeper.protocol.self_report import SelfReport
from herdkeeper.shared.unknown import NotListening, Unknown

A, B, C = "db-herddb-0", "db-herddb-1", "db-herddb-2"
LEADER = NodeTablespace("flights", "a-uuid", "leader", True, (7, 900), None, (7, 0), True)
FOLLOWER = replace(LEADER, role="follower", lsn=(7, 890), checkpoint=(7, 800))
RECORD = TablespaceRecord("a-uuid", "flights", A, (A, B, C), 1, 10_000)
WELL = {A: Node(copy=LEADER), B: Node(copy=FOLLOWER), C: Node(copy=FOLLOWER)}
CALM = Situation(RECORD, WELL, None, changed_at=1000.0, now=2000.0)
DEAD = Node(gone="its pod is gone", copy=Unknown("silence"))


def situation(a: Node = WELL[A], b: Node = WELL[B], c: Node = WELL[C], **more: object) -> Situation:
    return replace(CALM, nodes={A: a, B: b, C: c}, **more)  # type: ignore[arg-type] - fields of Situation


def unbooted(error: str) -> Node:
    return Node(copy=replace(LEADER, role="booting", ready=False, last_error=error))


def follower(**more: object) -> Node:
    return Node(copy=replace(FOLLOWER, **more))  # type: ignore[arg-type] - fields of NodeTablespace


LEAVING = replace(WELL[A], leaving="its pod is being deleted")
RELIEVED = replace(WELL[A], relieved="its node is restarted")
NOT_KNOWN = Unknown("how many bookies are writable is not known")
BOOTING = Node(copy=replace(LEADER, role="booting", ready=False), running_since=1500.0)
UNHEARD = "its process answers neither the operator nor ZooKeeper"
HUNG = Node(copy=Unknown("silence"), silent_seconds=5.0, heartbeat=1994.0)
BEATING = replace(WELL[B], silent_seconds=0.4, heartbeat=1997.0)
OTHER_ROWS = "had other rows than the log"
DIFFERING = follower(differs=OTHER_ROWS)
WRONG = Node(copy=replace(LEADER, differs=OTHER_ROWS))
BARRED = follower(barred=True)
KEPT_ON_DISK = "it differs from the log, as its node has noted on its disk"
UNTOLD = Unknown("it is unknown whether its rows match the log: the status of the Tablespace flights can't be read")
DOUBTED = Keep(f"{A} does not answer (silence): HerdDB's own failover decides whether it is alive", settled=False)
FAILED = Node(copy=replace(LEADER, role="failed", ready=False, last_error="not enough bookies"))
TOO_FEW = "org.apache.bookkeeper.client.BKException$BKNotEnoughBookiesException: Not enough non-faulty bookies available"
NO_LEDGER = "it finds fewer writable bookies than a ledger needs, and so would the others"
EARLIER = replace(LEADER, uuid="an-earlier-uuid", role="booting", ready=False, last_error=f"1970-01-01T00:33:10Z {TOO_FEW}")
LEFT = Move(B, f"{A} must not lead any more (its pod is being deleted)", in_turn=True)
GONE = f"{A} can't lead any more (its pod is gone)"
UNACKNOWLEDGED = "its bookies no longer acknowledge"
UNANSWERED = Keep(f"{A} does not answer (no ZooKeeper): HerdDB's own failover decides whether it is alive", settled=False)
SERVED = replace(WELL[B], heartbeat=1999.0, report=SelfReport(zookeeper_steady=7.0))


def cut_off(seconds: float) -> Node:
    return Node(copy=Unknown("no ZooKeeper"), silent_seconds=0.4, heartbeat=1994.0, report=SelfReport(zookeeper_silent=seconds))


def waiting(node: Node, seconds: float, tablespace: str = "flights") -> Node:
    return replace(node, report=SelfReport(zookeeper_steady=100.0, unacknowledged={tablespace: seconds}))


def ahead(leader: Node) -> Node:
    """The same leader, whose log went on to FAR."""
    return replace(leader, copy=replace(LEADER, lsn=FAR))


def silent(seconds: float) -> Node:
    return Node(copy=Unknown("silence"), silent_seconds=seconds)


CUT_OFF = cut_off(7.0)
REBOOTING = follower(role="booting", ready=False)
FAR = (7, 20_000)
STILL_BOOTING = Keep(f"{A} is booting: HerdDB's own failover decides whether it is alive", settled=False)
STOPPED, UNSETTLED = follower(role="stopped", ready=False), follower(ready=False)
RELIEVED_WHY = f"{A} must not lead any more (its node is restarted)"
CANT_TELL = "its lag is unknown"
TABLE: list[tuple[str, Situation, Decision]] = [
    # the leader serves
    ("all is well", CALM, Keep(f"{A} leads")),
    ("a follower is gone", situation(b=DEAD), Keep(f"{A} leads")),
    (
        "the leader is silent",
        situation(a=Node(copy=Unknown("no answer in 3 s"))),
        Keep(f"{A} does not answer (no answer in 3 s): HerdDB's own failover decides whether it is alive", settled=False),
    ),
    (
        "the leader has just got the leadership and boots",
        situation(a=BOOTING, changed_at=1999.0),
        Keep(f"{A} is booting: HerdDB's own failover decides whether it is alive", settled=False),
    ),
    (
        "the leader's copy has stopped",
        situation(a=Node(copy=replace(LEADER, role="stopped", ready=False))),
        Keep(f"{A} is stopped: HerdDB's own failover decides whether it is alive", settled=False),
    ),
    # the leader lives, and can't boot the tablespace, or write its log
    (
        "its boot fails since it got the leadership",
        situation(a=unbooted("1970-01-01T00:16:44Z no such file")),
        Move(B, f"{A} can't lead any more (its boot fails: 1970-01-01T00:16:44Z no such file)", leader_lost=True),
    ),
    (
        "its boot fails, and it got the leadership a moment ago",
        situation(a=unbooted("1970-01-01T00:33:19.250Z no such file"), changed_at=1990.0),
        Blocked(
            f"{A} can't lead any more (its boot fails: 1970-01-01T00:33:19.250Z no such file), but the leader was changed 10 s ago: "
            "the storage may be the cause, the next change is possible after 30 s"
        ),
    ),
    ("its boot failed before, as far as clocks tell", situation(a=unbooted("1970-01-01T00:16:43Z no such file")), STILL_BOOTING),
    ("when its boot failed is not told", situation(a=unbooted("no such file")), STILL_BOOTING),
    ("its boot failed once, nobody knows when", situation(a=unbooted("1970-01-01T00:16:44Z x"), changed_at=None), STILL_BOOTING),
    ("its log has failed", situation(a=FAILED), Move(B, f"{A} can't lead any more (it has failed: not enough bookies)", leader_lost=True)),
    (
        "its log has failed soon after it got the leadership",
        situation(a=FAILED, changed_at=1971.0),
        Blocked(
            f"{A} can't lead any more (it has failed: not enough bookies), but the leader was changed 29 s ago: "
            "the storage may be the cause, "
            "the next change is possible after 30 s"
        ),
    ),
    (
        "its boot fails since there are too few bookies, which moving does not change",
        situation(a=unbooted(f"1970-01-01T00:33:10Z {TOO_FEW}")),
        Blocked(f"{A} can't lead any more (its boot fails: 1970-01-01T00:33:10Z {TOO_FEW}), and no other replica could lead: {NO_LEDGER}"),
    ),
    (
        "its process has restarted, and finds too few bookies",
        situation(a=replace(unbooted(f"1970-01-01T00:33:10Z {TOO_FEW}"), running_since=1500.0)),
        Blocked(f"{A} can't lead any more (its process has restarted), and no other replica could lead: {NO_LEDGER}"),
    ),
    (
        "its process has restarted, and found too few bookies at a time that it does not tell",
        situation(a=replace(unbooted(TOO_FEW), running_since=1500.0)),
        Move(B, f"{A} can't lead any more (its process has restarted)", leader_lost=True),
    ),
    (
        "its process has restarted, and an earlier tablespace of the name found too few bookies there",
        situation(a=Node(copy=EARLIER, running_since=1500.0)),
        Move(B, f"{A} can't lead any more (its process has restarted)", leader_lost=True),
    ),
    (
        "its boot failed for too few bookies, and for something else since: it boots each second",
        situation(a=unbooted(f"1970-01-01T00:32:50Z {TOO_FEW}")),
        Move(B, f"{A} can't lead any more (its boot fails: 1970-01-01T00:32:50Z {TOO_FEW})", leader_lost=True),
    ),
    (
        "its log has failed since there are too few bookies",
        situation(a=Node(copy=replace(LEADER, role="failed", ready=False, last_error=TOO_FEW))),
        Blocked(f"{A} can't lead any more (it has failed: {TOO_FEW}), and no other replica could lead: {NO_LEDGER}"),
    ),
    (
        "its log has failed just now since it finds too few bookies, though enough are counted",
        situation(a=Node(copy=replace(LEADER, role="failed", ready=False, last_error=f"1970-01-01T00:32:30Z the log failed: {TOO_FEW}"))),
        Blocked(
            f"{A} can't lead any more (it has failed: 1970-01-01T00:32:30Z the log failed: {TOO_FEW}), and no other replica could lead:"
            f" {NO_LEDGER}"
        ),
    ),
    (
        "its log failed a minute ago since it finds too few bookies, though enough are counted: it alone may not reach them",
        situation(a=Node(copy=replace(LEADER, role="failed", ready=False, last_error=f"1970-01-01T00:32:10Z the log failed: {TOO_FEW}"))),
        Move(B, f"{A} can't lead any more (it has failed: 1970-01-01T00:32:10Z the log failed: {TOO_FEW})", leader_lost=True),
    ),
    (
        "its log has failed, and nobody could write",
        situation(a=FAILED, why_no_writing="2 writable bookies of 3"),
        Blocked(f"{A} can't lead any more (it has failed: not enough bookies), and no other replica could lead: 2 writable bookies of 3"),
    ),
    (
        "a copy of an earlier tablespace of that name has failed",
        situation(a=Node(copy=replace(LEADER, role="failed", uuid="an-older-uuid"))),
        Keep(f"{A} does not hold the tablespace yet: HerdDB's own failover decides whether it is alive", settled=False),
    ),
    (
        "its log has failed, and it is about to end",
        situation(a=replace(FAILED, leaving="its pod is being deleted"), changed_at=1999.0),
        replace(LEFT, in_turn=False),
    ),
    (
        "its bookies acknowledge nothing",
        situation(a=waiting(WELL[A], 7.0)),
        Move(B, f"{A} can't lead any more ({UNACKNOWLEDGED})", leader_lost=True),
    ),
    ("they have not for a moment", situation(a=waiting(WELL[A], 6.9)), Keep(f"{A} leads, and waits for its bookies", settled=False)),
    (
        "a longer wait is allowed",
        situation(a=waiting(WELL[A], 8.9), hung_seconds=9.0),
        Keep(f"{A} leads, and waits for its bookies", settled=False),
    ),
    ("they acknowledge nothing of another tablespace", situation(a=waiting(WELL[A], 7.0, "other")), Keep(f"{A} leads")),
    (
        "they acknowledge nothing soon after it got the leadership",
        situation(a=waiting(WELL[A], 7.0), changed_at=1990.0),
        Blocked(
            f"{A} can't lead any more ({UNACKNOWLEDGED}), but the leader was changed 10 s ago: the storage may be the cause, "
            "the next change is possible after 30 s"
        ),
    ),
    (
        "they acknowledge nothing of what a follower leads either",
        situation(a=waiting(WELL[A], 7.0), b=waiting(WELL[B], 2.0, "other")),
        Move(C, f"{A} can't lead any more ({UNACKNOWLEDGED})", leader_lost=True),
    ),
    (
        "they answer nobody",
        situation(a=waiting(WELL[A], 7.0), b=waiting(WELL[B], 2.0, "other"), c=DEAD),
        Blocked(
            f"{A} can't lead any more ({UNACKNOWLEDGED}), and no other replica can lead: "
            f"{B}: its bookies don't answer it; {C}: its pod is gone"
        ),
    ),
    (
        "a follower waits for its bookies, and the leader is gone: another one takes over",
        situation(a=DEAD, b=waiting(follower(checkpoint=(7, 850)), 2.0, "other")),
        Move(C, GONE, leader_lost=True),
    ),
    (
        "the only follower waits for its bookies, and the leader is gone",
        situation(a=DEAD, b=waiting(WELL[B], 9.0, "other"), c=DEAD),
        Move(B, GONE, leader_lost=True),
    ),
    (
        "the only follower waits for its bookies, and the leader leaves",
        situation(a=LEAVING, b=waiting(WELL[B], 9.0, "other"), c=DEAD),
        LEFT,
    ),
    (
        "one is asked for that waits for its bookies",
        situation(b=waiting(WELL[B], 2.0, "other"), requested=B),
        Refused(f"{B} can't lead now: its bookies don't answer it"),
    ),
    (
        "the preferred one waits for its bookies",
        situation(c=waiting(WELL[C], 2.0, "other"), preferred=C),
        Keep(f"{A} leads; the preferred {C} can't lead: its bookies don't answer it"),
    ),
    (
        "the leader differs, and the others wait for their bookies",
        situation(a=WRONG, b=waiting(follower(lsn=(7, 900)), 2.0, "other"), c=DEAD),
        Keep(
            f"{A} still leads, although it {OTHER_ROWS}: no other replica can lead ({B}: its bookies don't answer it; {C}: its pod is gone)"
        ),
    ),
    # the leader says that it is cut off from ZooKeeper
    (
        "ZooKeeper answers others",
        situation(a=CUT_OFF, b=SERVED),
        Move(B, f"{A} can't lead any more (ZooKeeper answers others, but not it)", leader_lost=True),
    ),
    ("it may still find another member", situation(a=cut_off(6.9), b=SERVED), UNANSWERED),
    ("a longer time is allowed", situation(a=CUT_OFF, b=SERVED, hung_seconds=8.0), UNANSWERED),
    ("ZooKeeper has heard of it since", situation(a=replace(CUT_OFF, heartbeat=1994.1), b=SERVED), UNANSWERED),
    ("ZooKeeper answers nobody", situation(a=CUT_OFF, b=cut_off(7.0)), UNANSWERED),
    (
        "ZooKeeper has just begun to answer others",
        situation(a=CUT_OFF, b=replace(SERVED, report=SelfReport(zookeeper_steady=6.9))),
        UNANSWERED,
    ),
    ("others don't tell whether it answers them", situation(a=CUT_OFF, b=replace(SERVED, report=None)), UNANSWERED),
    ("no heartbeat of others can be read", situation(a=CUT_OFF, b=replace(SERVED, heartbeat=None)), UNANSWERED),
    ("its own heartbeat can't be read", situation(a=replace(CUT_OFF, heartbeat=None), b=SERVED), UNANSWERED),
    (
        "ZooKeeper answers others, and the record was changed a moment ago",
        situation(a=CUT_OFF, b=SERVED, changed_at=1997.0),
        Blocked(
            f"{A} can't lead any more (ZooKeeper answers others, but not it), but the leader was changed 3 s ago: "
            "the next change is possible after 5 s"
        ),
    ),
    # the leader gives no sign of life: it hangs, or it is only this or that which does not hear it
    (
        "its process answers neither the operator nor ZooKeeper",
        situation(a=HUNG, b=BEATING),
        Move(B, f"{A} can't lead any more ({UNHEARD})", leader_lost=True),
    ),
    ("it has been silent for too short a time", situation(a=replace(HUNG, silent_seconds=4.9), b=BEATING), DOUBTED),
    ("a longer silence is allowed", situation(a=HUNG, b=BEATING, hung_seconds=6.0), DOUBTED),
    ("the operator never heard it", situation(a=replace(HUNG, silent_seconds=None), b=BEATING), DOUBTED),
    ("ZooKeeper hears it: only the operator is cut off", situation(a=replace(HUNG, heartbeat=1998.0), b=BEATING), DOUBTED),
    ("ZooKeeper hears nobody: it is to blame", situation(a=HUNG, b=replace(BEATING, heartbeat=1994.9)), DOUBTED),
    ("no other replica sends heartbeats", situation(a=HUNG), DOUBTED),
    ("its heartbeat can't be read", situation(a=replace(HUNG, heartbeat=None), b=BEATING), DOUBTED),
    (
        "the operator hears it: a long checkpoint keeps the heartbeats back",
        situation(a=replace(WELL[A], silent_seconds=0.3, heartbeat=1900.0), b=BEATING),
        Keep(f"{A} leads"),
    ),
    # rows that the log does not have, as a Checkpoint found out
    ("a follower differs: nothing is to be moved", situation(b=DIFFERING), Keep(f"{A} leads")),
    (
        "a follower differs: another one takes over",
        situation(a=DEAD, b=DIFFERING),
        Move(C, f"{A} can't lead any more (its pod is gone)", leader_lost=True),
    ),
    (
        "a follower differs and no other is there",
        situation(a=DEAD, b=DIFFERING, c=DEAD),
        Blocked(f"{A} can't lead any more (its pod is gone), and no other replica can lead: {B}: it {OTHER_ROWS}; {C}: its pod is gone"),
    ),
    ("a follower that differs is asked for", situation(b=DIFFERING, requested=B), Refused(f"{B} can't lead now: it {OTHER_ROWS}")),
    (
        "the leader differs",
        situation(a=WRONG, b=follower(lsn=(7, 900), checkpoint=(7, 890))),
        Move(B, f"{A} must not lead any more (it {OTHER_ROWS})"),
    ),
    ("the leader differs, and shall be left alone", situation(a=WRONG, relieve=False), Keep(f"{A} leads")),
    (
        "the leader differs and the others can't lead",
        situation(
            a=Node(copy=replace(LEADER, differs=OTHER_ROWS, lsn=(7, 90_000))),
            b=follower(recoverable=False),
            c=follower(lsn=(7, 1), checkpoint=(7, 0)),
        ),
        Keep(
            f"{A} still leads, although it {OTHER_ROWS}: no other replica can lead "
            f"({B}: the log no longer has entries that its disk lacks; "
            f"{C}: it is 89999 entries behind)"
        ),
    ),
    (
        "the leader differs and nobody could write",
        situation(a=WRONG, why_no_writing="2 bookies of 3"),
        Keep(f"{A} still leads, although it {OTHER_ROWS}: 2 bookies of 3"),
    ),
    # the same, remembered by the node alone
    ("a barred follower is asked for", situation(b=BARRED, requested=B), Refused(f"{B} can't lead now: {KEPT_ON_DISK}")),
    ("a barred follower is preferred", situation(b=BARRED, preferred=B), Keep(f"{A} leads; the preferred {B} can't lead: {KEPT_ON_DISK}")),
    ("the leader is gone, and one follower is barred", situation(a=DEAD, b=BARRED), Move(C, GONE, leader_lost=True)),
    (
        "the leader is gone, and no follower is left that is not barred",
        situation(a=DEAD, b=BARRED, c=DEAD),
        Blocked(f"{GONE}, and no other replica can lead: {B}: {KEPT_ON_DISK}; {C}: its pod is gone"),
    ),
    (
        "the leader was barred before it led",
        situation(a=Node(copy=replace(LEADER, barred=True))),
        Move(B, f"{A} must not lead any more ({KEPT_ON_DISK})", checkpoint_first=False),
    ),
    # whether its rows are right can't be read
    (
        "the leader is gone, and nobody tells whether the rows of the only follower are right",
        situation(a=DEAD, b=follower(differs=UNTOLD), c=DEAD),
        Blocked(f"{GONE}, and no other replica can lead: {B}: {UNTOLD.why}; {C}: its pod is gone"),
    ),
    ("nobody tells whether the leader's rows are right", situation(a=Node(copy=replace(LEADER, differs=UNTOLD))), Keep(f"{A} leads")),
    # the leader is gone
    ("its pod is gone", situation(a=DEAD), Move(B, f"{A} can't lead any more (its pod is gone)", leader_lost=True)),
    (
        "nobody listens",
        situation(a=Node(copy=NotListening("refused"))),
        Move(B, f"{A} can't lead any more (its process does not listen)", leader_lost=True),
    ),
    (
        "it has started anew and must boot",
        situation(a=BOOTING),
        Move(B, f"{A} can't lead any more (its process has restarted)", leader_lost=True),
    ),
    (
        "it is no node of the cluster any more",
        replace(CALM, nodes={B: WELL[B], C: WELL[C]}),
        Move(B, f"{A} can't lead any more (it is not a node of this cluster)", leader_lost=True),
    ),
    (
        "another follower has less to replay",
        situation(a=DEAD, c=follower(checkpoint=(7, 801))),
        Move(C, f"{A} can't lead any more (its pod is gone)", leader_lost=True),
    ),
    (
        "what is applied in memory only does not count before what is on the disk",
        situation(a=DEAD, b=follower(lsn=(7, 900), checkpoint=(6, 9))),
        Move(C, f"{A} can't lead any more (its pod is gone)", leader_lost=True),
    ),
    (
        "a follower's checkpoints are equal and one applied more",
        situation(a=DEAD, c=follower(lsn=(7, 891))),
        Move(C, f"{A} can't lead any more (its pod is gone)", leader_lost=True),
    ),
    (
        "the first follower failed a check",
        situation(a=DEAD, b=follower(differs="had other rows than the leader")),
        Move(C, f"{A} can't lead any more (its pod is gone)", leader_lost=True),
    ),
    (
        "nobody could write",
        situation(a=DEAD, why_no_writing="2 writable bookies of 3"),
        Blocked(f"{A} can't lead any more (its pod is gone), and no other replica could lead: 2 writable bookies of 3"),
    ),
    (
        "the record was changed a moment ago",
        situation(a=DEAD, changed_at=1997.0),
        Blocked(f"{A} can't lead any more (its pod is gone), but the leader was changed 3 s ago: the next change is possible after 5 s"),
    ),
    (
        "the operator's clock alone is known, and ZooKeeper's is a little ahead",
        situation(a=DEAD, changed_at=2004.0),
        Blocked(f"{GONE}, but the leader was changed 0 s ago: the next change is possible after 5 s"),
    ),
    (
        "the operator's clock alone is known, and ZooKeeper's is so far ahead that it tells nothing",
        situation(a=DEAD, changed_at=2030.0),
        Move(B, GONE, leader_lost=True),
    ),
    ("it boots, and nobody tells since when its process runs", situation(a=replace(BOOTING, running_since=None)), STILL_BOOTING),
    ("it boots, and its process is older than its leadership", situation(a=replace(BOOTING, running_since=999.0)), STILL_BOOTING),
    (
        "no follower can",
        situation(a=DEAD, b=Node(copy=Unknown("silence")), c=follower(recoverable=False)),
        Blocked(
            f"{A} can't lead any more (its pod is gone), and no other replica can lead: {B}: it does not answer (silence); "
            f"{C}: the log no longer has entries that its disk lacks"
        ),
    ),
    (
        "the followers have stopped, or are not settled",
        situation(a=DEAD, b=STOPPED, c=UNSETTLED),
        Blocked(f"{GONE}, and no other replica can lead: {B}: it is stopped; {C}: it is not settled"),
    ),
    (
        "how far a follower is behind does not matter, nor whether it tells",
        situation(a=DEAD, b=follower(lsn=None), c=DEAD),
        Move(B, GONE, leader_lost=True),
    ),
    (
        "the followers do not tell, boot, leave or hold another generation",
        replace(situation(a=DEAD, b=follower(recoverable=None), c=follower(role="booting")), record=replace(RECORD, replicas=(A, B, C))),
        Blocked(
            f"{A} can't lead any more (its pod is gone), and no other replica can lead: "
            f"{B}: it does not report whether its disk and the log are complete; {C}: it is booting"
        ),
    ),
    (
        "the followers leave, or hold another generation",
        situation(a=DEAD, b=replace(WELL[B], leaving="its pod is being deleted"), c=follower(uuid="another")),
        Blocked(
            f"{A} can't lead any more (its pod is gone), and no other replica can lead: "
            f"{B}: its pod is being deleted; {C}: it does not hold the tablespace"
        ),
    ),
    (
        "there is no other replica",
        replace(CALM, record=replace(RECORD, replicas=(A,)), nodes={A: DEAD}),
        Blocked(f"{A} can't lead any more (its pod is gone), and no other replica can lead: there is none"),
    ),
    (
        "it is gone, and nobody knows whether another one could write",
        situation(a=DEAD, why_no_writing=NOT_KNOWN),
        Move(B, GONE, leader_lost=True),
    ),
    (
        "it hangs, and nobody knows whether another one could write",
        situation(a=HUNG, b=BEATING, why_no_writing=NOT_KNOWN),
        Move(B, f"{A} can't lead any more ({UNHEARD})", leader_lost=True),
    ),
    (
        "its log has failed, and nobody knows whether another one could write",
        situation(a=FAILED, why_no_writing=NOT_KNOWN),
        Blocked(f"{A} can't lead any more (it has failed: not enough bookies), and no other replica could lead: {NOT_KNOWN.why}"),
    ),
    (
        "the leader differs, and nobody knows whether another one could write",
        situation(a=WRONG, why_no_writing=NOT_KNOWN),
        Keep(f"{A} still leads, although it {OTHER_ROWS}: {NOT_KNOWN.why}"),
    ),
    (
        "one is asked for, and nobody knows whether it could write",
        replace(CALM, requested=B, why_no_writing=NOT_KNOWN),
        Refused(f"{B} can't lead now: {NOT_KNOWN.why}"),
    ),
    (
        "the preferred one is healthy, and nobody knows whether it could write",
        replace(CALM, preferred=C, why_no_writing=NOT_KNOWN),
        Keep(f"{A} leads; the preferred {C} can't lead: {NOT_KNOWN.why}"),
    ),
    # the leader is about to stop
    ("its pod is being deleted", situation(a=LEAVING), LEFT),
    ("it was changed a moment ago, but still serves", situation(a=LEAVING, changed_at=1999.0), LEFT),
    (
        "it boots, and its pod is being deleted: nobody serves meanwhile",
        situation(a=replace(BOOTING, leaving="its pod is being deleted"), changed_at=1999.0),
        replace(LEFT, in_turn=False),
    ),
    (
        "it does not answer, and its pod is being deleted",
        situation(a=Node(copy=Unknown("silence"), leaving="its pod is being deleted")),
        replace(LEFT, in_turn=False),
    ),
    (
        "its bookies acknowledge nothing, and its pod is being deleted",
        situation(a=waiting(LEAVING, 7.0)),
        replace(LEFT, in_turn=False),
    ),
    ("its pod is being deleted, and a person waits for another one", situation(a=LEAVING, requested=C), replace(LEFT, in_turn=False)),
    ("the next one has much to replay", situation(a=LEAVING, b=follower(checkpoint=(6, 5)), c=DEAD), replace(LEFT, checkpoint_first=True)),
    (
        "nobody can take over",
        situation(a=LEAVING, b=DEAD, c=DEAD),
        Blocked(
            f"{A} must not lead any more (its pod is being deleted), and no other replica can lead: "
            f"{B}: its pod is gone; {C}: its pod is gone"
        ),
    ),
    (
        "nobody could write after it",
        situation(a=LEAVING, why_no_writing="no bookies"),
        Blocked(f"{A} must not lead any more (its pod is being deleted), but it stays: no bookies"),
    ),
    ("it ends, and nobody knows whether another one could write", situation(a=LEAVING, why_no_writing=NOT_KNOWN), LEFT),
    (
        "it is to be relieved",
        situation(a=RELIEVED),
        Move(B, f"{A} must not lead any more (its node is restarted)", in_turn=True),
    ),
    (
        "it is to be relieved, and nobody knows whether another one could write",
        situation(a=RELIEVED, why_no_writing=NOT_KNOWN),
        Blocked(f"{A} must not lead any more (its node is restarted), but it stays: {NOT_KNOWN.why}"),
    ),
    (
        "a follower is to be relieved: another one takes over",
        situation(a=LEAVING, b=replace(WELL[B], relieved="it leaves")),
        replace(LEFT, to=C),
    ),
    (
        "it is gone, and the only follower that can lead is to be relieved: better than nobody",
        situation(a=DEAD, b=replace(WELL[B], relieved="its node is restarted"), c=DEAD),
        Move(B, GONE, leader_lost=True),
    ),
    (
        "it is to be relieved, and the follower with the newest checkpoint lags: another one takes over",
        situation(a=ahead(RELIEVED), b=follower(checkpoint=(7, 880)), c=follower(lsn=(7, 19_990), checkpoint=(7, 800))),
        Move(C, RELIEVED_WHY, checkpoint_first=True, in_turn=True),
    ),
    (
        "it is to be relieved, and all others lag",
        situation(a=ahead(RELIEVED), c=follower(lsn=(6, 900))),
        Blocked(
            f"{RELIEVED_WHY}, and no other replica can lead: "
            f"{B}: it is 19110 entries behind; {C}: it is at (6, 900) and the leader at {FAR}"
        ),
    ),
    (
        "it is to be relieved, and can't be asked how far the others are behind",
        situation(a=replace(RELIEVED, copy=Unknown("silence"))),
        Blocked(f"{RELIEVED_WHY}, and no other replica can lead: {B}: {CANT_TELL}; {C}: {CANT_TELL}"),
    ),
    (
        "it is to be relieved, and the others wait for their bookies",
        situation(a=RELIEVED, b=waiting(WELL[B], 2.0, "other"), c=DEAD),
        Blocked(f"{RELIEVED_WHY}, and no other replica can lead: {B}: its bookies don't answer it; {C}: its pod is gone"),
    ),
    (
        "it is to be relieved, and the follower's checkpoint is in an earlier ledger",
        situation(a=RELIEVED, b=follower(checkpoint=(6, 880)), c=DEAD),
        Move(B, RELIEVED_WHY, checkpoint_first=True, in_turn=True),
    ),
    (
        "it is to be relieved, and its log has failed",
        situation(a=replace(FAILED, relieved="its node is restarted")),
        Move(B, f"{A} can't lead any more (it has failed: not enough bookies)", leader_lost=True),
    ),
    ("its pod is being deleted, and all others lag", situation(a=ahead(LEAVING)), LEFT),
    (
        "its pod is being deleted, and it can't be asked how far the others are behind",
        situation(a=replace(LEAVING, copy=Unknown("silence"))),
        replace(LEFT, in_turn=False),
    ),
    # a person asks
    (
        "one is asked for, and the leader does not tell how far it is",
        situation(a=Node(copy=replace(LEADER, lsn=None)), requested=B),
        Refused(f"{B} can't lead now: {CANT_TELL}"),
    ),
    (
        "one is asked for that does not tell how far it is",
        situation(b=follower(lsn=None), requested=B),
        Refused(f"{B} can't lead now: {CANT_TELL}"),
    ),
    ("one is asked for that has stopped", situation(b=STOPPED, requested=B), Refused(f"{B} can't lead now: it is stopped")),
    ("one is asked for that is not settled", situation(b=UNSETTLED, requested=B), Refused(f"{B} can't lead now: it is not settled")),
    (
        "one is asked for that boots, since it has just led",
        situation(b=REBOOTING, changed_at=1980.5, requested=B),
        Postponed(),
    ),
    (
        "one is asked for that boots, since its process has just started",
        situation(b=replace(REBOOTING, running_since=1999.0), requested=B),
        Postponed(),
    ),
    (
        "one is asked for that has booted for long",
        situation(b=replace(REBOOTING, running_since=1980.0), requested=B),
        Refused(f"{B} can't lead now: it is booting"),
    ),
    (
        "one is asked for that has just started, and holds no copy yet",
        situation(b=Node(running_since=1999.0), requested=B),
        Postponed(),
    ),
    (
        "one is asked for that has just fallen silent",
        situation(b=silent(2.0), requested=B),
        Postponed(),
    ),
    (
        "one is asked for that has been silent for long",
        situation(b=silent(20.0), requested=B),
        Refused(f"{B} can't lead now: it does not answer (silence)"),
    ),
    (
        "one is asked for that is heard from, and tells nothing of its copies",
        situation(b=silent(0.4), requested=B),
        Refused(f"{B} can't lead now: it does not answer (silence)"),
    ),
    (
        "one is asked for that has just fallen silent, and is to be relieved",
        situation(b=replace(silent(2.0), relieved="it is restarted"), requested=B),
        Refused(f"{B} can't lead now: it is restarted"),
    ),
    (
        "one is asked for that differs, just after the leader was changed",
        situation(b=DIFFERING, changed_at=1999.0, requested=B),
        Refused(f"{B} can't lead now: it {OTHER_ROWS}"),
    ),
    ("a follower is asked for", replace(CALM, requested=C), Move(C, f"{C} was requested")),
    ("the leader is asked for", replace(CALM, requested=A), Keep(f"{A} already leads")),
    (
        "the leader is asked for, and boots",
        situation(a=Node(copy=replace(LEADER, role="booting", ready=False)), requested=A),
        Keep(f"{A} is the leader already, but is booting", settled=False),
    ),
    (
        "the leader is asked for, and is silent",
        situation(a=Node(copy=Unknown("silence")), requested=A),
        Keep(f"{A} is the leader already, but does not answer (silence)", settled=False),
    ),
    ("a stranger is asked for", replace(CALM, requested="d"), Refused(f"d holds no replica; replicas are on {A}, {B}, {C}")),
    ("a dead one is asked for", situation(b=DEAD, requested=B), Refused(f"{B} can't lead now: its pod is gone")),
    (
        "one is asked for that is far behind",
        situation(a=Node(copy=replace(LEADER, lsn=(7, 20_000))), requested=B),
        Refused(f"{B} can't lead now: it is 19110 entries behind"),
    ),
    (
        "one is asked for that is ledgers behind",
        situation(a=Node(copy=replace(LEADER, lsn=(8, 20_000))), requested=B),
        Refused(f"{B} can't lead now: it is at (7, 890) and the leader at (8, 20000)"),
    ),
    (
        "the follower has yet to see the leader's new ledger",
        situation(a=Node(copy=replace(LEADER, lsn=(8, 3))), requested=B),
        Move(B, f"{B} was requested"),
    ),
    (
        "nobody could write after a switchover",
        replace(CALM, requested=B, why_no_writing="no bookies"),
        Refused(f"{B} can't lead now: no bookies"),
    ),
    (
        "there is no leader to take over from",
        situation(a=Node(copy=Unknown("silence")), requested=B),
        Refused(f"there is no leader to take over from: {A} does not answer (silence)"),
    ),
    (
        "a failover comes before a request",
        situation(a=DEAD, requested=C),
        Move(B, f"{A} can't lead any more (its pod is gone)", leader_lost=True),
    ),
    # a leader is preferred
    (
        "how far the preferred one is behind can't be told",
        situation(c=follower(lsn=None), preferred=C),
        Keep(f"{A} leads; the preferred {C} can't lead: {CANT_TELL}"),
    ),
    ("the preferred one has stopped", situation(c=STOPPED, preferred=C), Keep(f"{A} leads; the preferred {C} can't lead: it is stopped")),
    (
        "the preferred one is not settled",
        situation(c=UNSETTLED, preferred=C),
        Keep(f"{A} leads; the preferred {C} can't lead: it is not settled"),
    ),
    ("the preferred one leads", replace(CALM, preferred=A), Keep(f"{A} leads")),
    ("the preferred one is healthy", replace(CALM, preferred=C), Move(C, f"{C} is preferred and healthy", in_turn=True)),
    ("the preferred one is not", situation(c=DEAD, preferred=C), Keep(f"{A} leads; the preferred {C} can't lead: its pod is gone")),
    ("the preferred one is a stranger", replace(CALM, preferred="d"), Keep(f"{A} leads; the preferred d holds no replica")),
    (
        "the preferred one waits for its bookies since a moment ago",
        situation(c=waiting(WELL[C], 1.9, "other"), preferred=C),
        Move(C, f"{C} is preferred and healthy", in_turn=True),
    ),
    (
        "nobody knows when the leader was changed, and another one is preferred",
        replace(CALM, preferred=C, changed_at=None),
        Keep(f"{A} leads; the preferred {C} takes over 60 s after the last leader change"),
    ),
    (
        "a failover was a moment ago",
        replace(CALM, preferred=C, changed_at=1990.0),
        Keep(f"{A} leads; the preferred {C} takes over 60 s after the last leader change"),
    ),
]


@pytest.mark.parametrize(("name", "seen", "decision"), TABLE, ids=[name for name, _, _ in TABLE])
def test_the_leader(name: str, seen: Situation, decision: Decision) -> None:
    assert decide(seen) == decision, name


def test_every_kind_of_decision_is_in_the_table() -> None:
    assert {type(decision) for _, _, decision in TABLE} == {Keep, Move, Blocked, Refused, Postponed}
