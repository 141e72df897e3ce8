"""The leadership controller: who leads each tablespace of a HerdDBCluster.

It has its own queue and workers, and waits for nothing else of its stack. It acts on what the watches have seen. A move for a stale reason
loses no row: it is a compare-and-set in ZooKeeper, and the new leader fences and replays the log before it writes. But its rows may have
been found wrong meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from herdkeeper.api import HerdDBCluster
from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.engine.execute import Attempt, Clients, attempted
from herdkeeper.engine.key import Key
from herdkeeper.engine.result import Outcome, Result
from herdkeeper.herddb.leadership.plan import LeadershipPlan, plan_leadership
from herdkeeper.herddb.observe.cluster import observe_leadership
from herdkeeper.planning.actions import Action, ChangeTablespaceRecord, CheckpointFollower
from herdkeeper.planning.status import Failed
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.paused import paused_by


def reconcile_leadership(key: Key, clients: Clients, cache: ObjectCache | None = None) -> Result:
    """Moves the leaderships that are due. Raises ApiException if something is not cached and the API server does not answer."""
    if cache is not None:
        kubernetes = clients.reader.kubernetes
        clients = replace(clients, reader=replace(clients.reader, kubernetes=kubernetes.over(kubernetes.watched(cache))))
    cluster = clients.reader.kubernetes.readable(HerdDBCluster, ObjectKey(key.namespace, key.name))
    if cluster is None:
        return Result(Outcome.GONE)
    if paused_by(cluster.metadata.annotations) is not None:
        return Result(Outcome.OK)

    def planned() -> LeadershipPlan:
        return plan_leadership(observe_leadership(cluster, clients.reader))

    plan = planned()
    failed = execute_leadership(cluster, plan, clients, planned)
    return Result(Outcome.OK if failed is None else Outcome.FAILED, plan.requeue_after_seconds)


def execute_leadership(
    cluster: HerdDBCluster, plan: LeadershipPlan, clients: Clients, planned: Callable[[], LeadershipPlan]
) -> Failed | None:
    """Executes all moves, even if one fails, and then what follows them, if none failed. The groups beside them are executed in any case,
    each up to its first failure. Returns the first failure, or None. Events come last: the API server may be slow, or be lost with the
    leaders.

    A follower's checkpoint takes seconds, in which its rows may be found wrong. So it is `planned` again which of the other moves are due.
    The rest waits for the next look, and so does what follows the moves.
    """
    made: list[Attempt] = []

    def succeeds(action: Action) -> bool:
        made.append(attempted(cluster, action, clients))
        return made[-1].failed is None

    due, all_moved = plan.moves, True
    try:
        for action in plan.moves:
            if isinstance(action, ChangeTablespaceRecord) and not any(_is_same_move(action, each) for each in due):
                all_moved = False
                continue
            all_moved &= succeeds(action)
            if isinstance(action, CheckpointFollower):
                due = planned().moves
        for group in (plan.after if all_moved else (), *plan.beside):
            all(succeeds(action) for action in group)
    finally:
        for each in made:
            each.report(cluster, clients)
    return next((each.failed for each in made if each.failed is not None), None)


def _is_same_move(action: ChangeTablespaceRecord, other: Action) -> bool:
    return isinstance(other, ChangeTablespaceRecord) and (other.path, other.record) == (action.path, action.record)
