"""Sends orders to SQL nodes over HTTP, with the token of the cluster's Secret (images/herddb, README)."""

from __future__ import annotations

import http.client
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import structlog

from herdkeeper.api import HerdDBCluster
from herdkeeper.clients.bounded_http import Question, Trust, ask
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.counters import WRITES
from herdkeeper.clients.http import document_of
from herdkeeper.clients.kubernetes_writer import RefusedError
from herdkeeper.clients.look import require_time
from herdkeeper.herddb.observe.address import address_of
from herdkeeper.herddb.observe.users import read_token
from herdkeeper.planning.actions import BarPromotion, CheckpointFollower, CloseLedger, OnNode, SetCopyAside, StartFullCheck, WakeNodes
from herdkeeper.shared.lsn import lsn_text
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.unknown import Unknown

WAKE_SECONDS = 1.0
CHECKPOINT_SECONDS = 10.0
SET_ASIDE_SECONDS = 20.0
BAR_SECONDS = 5.0
CLOSE_SECONDS = 20.0
"""Longer than the node's own limit."""
FULL_CHECK_SECONDS = 5.0
"""The check is only started, not awaited."""

MOST_AT_A_TIME = 8

logger = structlog.get_logger()


class NodeOrders:
    """Sends orders by HTTP."""

    def post(self, url: str, token: str, timeout_seconds: float, trust: Trust | None = None) -> Any | Unknown:
        """Returns the decoded answer. Unknown, with the node's error, if there is none or it is no success. `trust` as in Question."""
        try:
            answer = ask(Question("POST", url, timeout_seconds, {"Authorization": f"Bearer {token}"}, trust=trust))
            if not answer.succeeded:
                return Unknown(f"{url} answered {answer.status}: {answer.body[:500].decode(errors='replace')}")
            return document_of(answer.body)
        except (http.client.HTTPException, OSError, ValueError, RecursionError) as error:
            return Unknown(f"{url} did not answer: {error}")


@dataclass(frozen=True)
class SqlNodes:
    """Sends actions as orders to the SQL nodes of a namespace. A refused one raises RefusedError with the node's error."""

    namespace: str
    reader: ClusterReader
    orders: NodeOrders

    def order(self, herddb: str, node: str, path: str, *, seconds: float) -> Any | Unknown:
        """Send one order to a node of a HerdDBCluster, e.g. `/activator/wake`. Returns Unknown with the reason if it failed."""
        database = ObjectKey(self.namespace, herddb)
        cluster = self.reader.kubernetes.readable(HerdDBCluster, database)
        token = read_token(cluster, self.reader) if cluster is not None else Unknown(f"the HerdDBCluster {herddb} does not exist")
        if isinstance(token, Unknown):
            return token
        address = address_of(database, node, self.reader)
        return address if isinstance(address, Unknown) else self.orders.post(address.url(path), token, seconds, address.trust)

    def wake(self, action: WakeNodes) -> None:
        """All are sent concurrently, so that an unreachable node does not delay the others."""

        def wake(node: str) -> Any | Unknown:
            return self.order(action.herddb, node, "/activator/wake", seconds=WAKE_SECONDS)

        with ThreadPoolExecutor(max_workers=MOST_AT_A_TIME) as threads:
            for node, answer in zip(action.nodes, threads.map(wake, action.nodes), strict=True):
                if isinstance(answer, Unknown):
                    logger.info("not woken", node=node, why=answer.why)

    def checkpoint(self, action: CheckpointFollower) -> None:
        """A failure is no reason not to move a leadership."""
        answer = self._about(action, "checkpoint", CHECKPOINT_SECONDS)
        if isinstance(answer, Unknown):
            logger.info("not checkpointed", node=action.node, tablespace=action.tablespace, why=answer.why)

    def set_aside(self, action: SetCopyAside) -> None:
        """See SetCopyAside. Idempotent."""
        answer = _followed(self._about(action, f"set-aside?uuid={action.uuid}", SET_ASIDE_SECONDS), "Evidence")
        logger.info("copy set aside", node=action.node, tablespace=action.tablespace, evidence=answer.get("evidence"), why=action.why)

    def bar(self, action: BarPromotion) -> None:
        """See BarPromotion. Idempotent."""
        until = f"&until={lsn_text(action.until)}" if action.until is not None else ""
        order = f"{'bar' if action.barred else 'unbar'}?uuid={action.uuid}{until}"
        _followed(self._about(action, order, BAR_SECONDS), "PromotionBar")

    def close_ledger(self, action: CloseLedger) -> None:
        """A node refuses that does not lead, or can't open another ledger now. Silent ones must not take all of the worker's time."""
        require_time()
        _followed(self._about(action, f"close-ledger?ledger={action.ledger_id}", CLOSE_SECONDS), "Ledger")

    def start_full_check(self, action: StartFullCheck) -> None:
        """A node refuses that does not lead."""
        _followed(self._about(action, f"check?maxStopMillis={action.longest_stop_millis}", FULL_CHECK_SECONDS), "FullCheck")

    def _about(self, action: OnNode, order: str, seconds: float) -> Any | Unknown:
        """Sends an order about one tablespace. Its name is any text that a SQL user gave it."""
        path = f"/tablespaces/{urllib.parse.quote(action.tablespace, safe='')}/{order}"
        return self.order(action.herddb, action.node, path, seconds=seconds)


def _followed(answer: Any | Unknown, counted_as: str) -> Any:
    """Count an order that succeeded and return its answer. Raises RefusedError with the node's error."""
    if isinstance(answer, Unknown):
        raise RefusedError(answer.why)
    WRITES.labels("post", counted_as).inc()
    return answer
