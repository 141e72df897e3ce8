"""The leadership controller: who leads each tablespace of a HerdDBCluster.

It has its own queue and workers, and waits for nothing else of its stack. It acts on what the watches have seen. A move for a stale reason
loses no row: it is a compare-and-set in ZooKeeper, and the new leader fences and replays the log before it writes. But its rows may have
been found wrong meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import structlog

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

logger = structlog.get_logger()


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
    """Executes all moves, even if one fails. Then, for each move that was done, what follows it, and the groups beside the moves in any
    case. Each group ends with its first failure. Returns the first failure, or None. Events come last: the API server may be slow, or be
    lost with the leaders. An unexpected error, such as an API server that does not answer, is raised: one of the moves once all else is
    done, another one at once.

    A follower's checkpoint takes seconds, in which its rows may be found wrong. So it is `planned` again which of the other moves are due.
    The rest waits for the next look. So do all of them if that can't be planned, until it is after the next checkpoint.
    """
    made: list[Attempt] = []
    errors: list[Exception] = []

    def succeeds(action: Action) -> bool:
        made.append(attempted(cluster, action, clients))
        return made[-1].failed is None

    due, moved = plan.moves, set()
    try:
        for action in plan.moves:
            if isinstance(action, ChangeTablespaceRecord) and not any(_is_same_move(action, each) for each in due):
                continue
            with _kept(errors):
                if succeeds(action) and isinstance(action, ChangeTablespaceRecord):
                    moved.add(action.record.name)
            if isinstance(action, CheckpointFollower):
                due = ()
                with _kept(errors):
                    due = planned().moves
        following = (actions for tablespace, actions in plan.after if tablespace in moved)
        for group in (*following, *plan.beside):
            all(succeeds(action) for action in group)
    finally:
        for each in made:
            each.report(cluster, clients)
    if errors:
        raise errors[0]
    return next((each.failed for each in made if each.failed is not None), None)


@contextmanager
def _kept(errors: list[Exception]) -> Iterator[None]:
    """Keeps an error for later: what comes next is about other tablespaces."""
    try:
        yield
    except Exception as error:
        logger.warning("the other moves go on after an error", error=str(error)[:500])
        errors.append(error)


def _is_same_move(action: ChangeTablespaceRecord, other: Action) -> bool:
    return isinstance(other, ChangeTablespaceRecord) and (other.path, other.record) == (action.path, action.record)
