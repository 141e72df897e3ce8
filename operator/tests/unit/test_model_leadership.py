"""No row that was acknowledged is lost, and no copy that is known to differ is made the leader: in every state that the operator's plans,
the node program's rules, crashes and lost knowledge reach together, within small bounds.

`make model` goes further.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from exploration import MORE_FAULTS
from modelled_nodes import Rules, settled, unwritten
from modelled_operator import adjusting_orders, lead_orders
from modelled_world import Scope, World, holds_no_wrong_row, is_led

from herdkeeper.herddb.log import plan_pins
from herdkeeper.herddb.state.cluster import NodeTablespace
from herdkeeper.herddb.tablespace import verdicts as replica_verdict
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.protocol.log_pin import BEGIN
from herdkeeper.shared.unknown import Unknown

MOST_STATES = 80_000 if MORE_FAULTS == 0 else 400_000

KNOWLEDGE_LOST = frozenset({"crash", "wrong row", "status lost", "unreadable", "deleted", "expired"})
SCOPES = {
    "the first ledger of a log": Scope(unwritten(), 1, frozenset({"unheard", "own failover"}), rows=1, resource=None),
    "a ledger that an old leader lists": Scope(settled(), 1, frozenset({"unheard", "crash"}), ledgers=2, resource=None),
    "boots by a member of ZooKeeper that is behind": Scope(settled(), 2, frozenset({"behind", "crash"}), ledgers=2, resource=None),
    "followers that fail": Scope(settled(), 1, frozenset({"crash", "refused"})),
    "the release of the log": Scope(settled(), 2, frozenset({"crash", "away"}), rows=1, ledgers=2),
    "copies that are known to differ": Scope(settled(), 2, KNOWLEDGE_LOST, rows=1),
    "the log that a Checkpoint needs": Scope(settled()._replace(pin=BEGIN), 1, frozenset({"operator crash"}), 1, 3, keeps=True),
}


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
def test_whatever_happens_in_whichever_order_no_rule_is_broken(scope: Scope) -> None:
    replace(scope, most_faults=scope.most_faults + MORE_FAULTS).explored(MOST_STATES).require_right()


ENDS = {
    "two copies": (Scope(settled(), 1, frozenset({"crash", "unheard"}), rows=1, ledgers=2, resource=None), is_led),
    "three copies": (Scope(settled(3), 1, frozenset({"crash", "unheard", "refused"}), rows=1, resource=None), is_led),
    "a copy that differs": (Scope(settled(), 1, frozenset({"wrong row"}), rows=1), holds_no_wrong_row),
}


@pytest.mark.parametrize(("scope", "done"), ENDS.values(), ids=ENDS)
def test_a_lost_leader_can_be_replaced_and_a_wrong_copy_be_made_anew_whatever_happened(scope: Scope, done: Callable[[World], bool]) -> None:
    scope.stuck(done, MOST_STATES).require_right()


@pytest.mark.parametrize(
    ("without", "scope", "wrong"),
    [
        (Rules(first_list_is_created=False), "the first ledger of a log", "leads without row 0"),
        (Rules(list_is_the_fenced_one=False), "a ledger that an old leader lists", "leads without row 1"),
        (Rules(only_closed_is_left=False), "boots by a member of ZooKeeper that is behind", "lacks row 0"),
        (Rules(only_applied_counts=False), "followers that fail", "lacks row 1"),
        (Rules(ledger_zero_counts=False), "the release of the log", "lacks row 0"),
    ],
)
def test_without_one_of_the_node_programs_rules_a_story_is_found_that_breaks_it(without: Rules, scope: str, wrong: str) -> None:
    replace(SCOPES[scope], rules=without).explored(MOST_STATES).require_wrong(wrong)


@pytest.fixture
def pins_are_a_ledger_ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The operator lets go of the ledger in which the newest Checkpoint ends."""
    newest = plan_pins._newest

    def ahead(seen: TablespaceObserved, uuid: str) -> tuple[tuple[int, int], str] | Unknown | None:
        found = newest(seen, uuid)
        return ((found[0][0] + 1, 0), found[1]) if isinstance(found, tuple) else found

    monkeypatch.setattr(plan_pins, "_newest", ahead)
    adjusting_orders.cache_clear()
    yield
    adjusting_orders.cache_clear()


@pytest.mark.usefixtures("pins_are_a_ledger_ahead")
def test_with_a_pin_that_is_ahead_of_the_newest_checkpoint_a_story_is_found_in_which_the_next_one_lacks_log() -> None:
    SCOPES["the log that a Checkpoint needs"].explored(MOST_STATES).require_wrong("ledger 0 is gone, which the next Checkpoint needs")


@pytest.fixture
def bars_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The operator's plans for leaders without what nodes keep on their disks."""
    told = property(lambda copy: f"it {copy.differs}" if isinstance(copy.differs, str) else None)
    monkeypatch.setattr(NodeTablespace, "why_wrong", told)
    monkeypatch.setattr(replica_verdict, "_barred", lambda _nodes, _uuid: ())
    lead_orders.cache_clear()
    yield
    lead_orders.cache_clear()


@pytest.mark.usefixtures("bars_are_not_asked_for")
def test_without_asking_nodes_for_their_bars_a_story_is_found_in_which_a_wrong_copy_leads() -> None:
    known = SCOPES["copies that are known to differ"]
    found = replace(known, most_faults=known.most_faults + 1).explored(MOST_STATES)
    print(found)
    assert found.wrong == "node 1 is made the leader, though its rows differ and its own disk says so"
