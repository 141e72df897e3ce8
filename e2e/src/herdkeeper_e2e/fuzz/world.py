"""The cluster for stories: ZooKeeper, bookies with autorecovery, and SQL nodes, each a process that can be hit.

Without an operator, this module does what the operator would, with the same records and requests.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError

from herdkeeper.codecs.bookkeeper.metadata import LedgerState
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, decode_tablespace, encode_tablespace, tablespace_path, tablespaces_path
from herdkeeper.sql.connection import Address, Connection
from herdkeeper.sql.errors import ConnectionLost, ServerError
from herdkeeper_e2e.fuzz import story
from herdkeeper_e2e.server_processes import CREDENTIALS, HERD_ROOT, LEDGERS_ROOT, TOKEN, Servers, servers
from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata, open_catalog

BOOKIES = 4
CALL_SECONDS = 15.0
_LEADS_SECONDS = 90.0
_READY_SECONDS = 90.0
_POLL_SECONDS = 0.05
_ORDER_SECONDS = 20
_KEPT_FOR_EVER = 10 * 24 * 3600 * 1000
_BOOKIE = {
    "zkTimeout": 4000,
    "dbStorage_writeCacheMaxSizeMb": 16,
    "dbStorage_readAheadCacheMaxSizeMb": 16,
    "autoRecoveryDaemonEnabled": "true",
    "lostBookieRecoveryDelay": 0,
    "openLedgerRereplicationGracePeriod": 200,
    "rwRereplicateBackoffMs": 200,
}
"""Each bookie's process also has autorecovery, which closes the open ledgers of a missing bookie."""
_DISPLACED = 75
"""Exit code of a node that did not stop leading what another one leads, and restarts by design."""
_TOLD_TO_STOP = 128 + signal.SIGTERM
"""Exit code of Java after SIGTERM."""
_NO_BYTES, _ANY_BYTES = "0", "unlimited"


class Stuck(Exception):  # noqa: N818 - what the world is, not what the code did wrong
    """The cluster exceeded a time limit. The message says what was awaited."""


@dataclass
class World:
    """A running cluster. Thread-safe; each thread opens its own connections."""

    servers: Servers
    zookeeper: KazooClient
    plan: story.World
    addresses: dict[str, Address] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    ended: list[str] = field(default_factory=list)
    """Nodes that ended although nobody killed them, with exit codes."""
    _restarts: threading.Lock = field(default_factory=threading.Lock)

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(sorted(self.addresses))

    # who leads

    def record(self, tablespace: str) -> TablespaceRecord:
        """Returns the record. Raises NoNodeError."""
        return decode_tablespace(self._retried("get", tablespace_path(HERD_ROOT, tablespace))[0])

    def _retried(self, call: str, *arguments: object) -> Any:
        return self.zookeeper.retry(getattr(self.zookeeper, call), *arguments)

    def create(self, tablespace: str, leader: str) -> None:
        """Create an empty tablespace with a replica on each node."""
        record = TablespaceRecord(uuid.uuid4().hex, tablespace, leader, self.nodes, 1, 0)
        with suppress(NodeExistsError):
            self._retried("create", tablespace_path(HERD_ROOT, tablespace), encode_tablespace(record))

    def drop(self, tablespace: str) -> None:
        """Delete the record, like DROP TABLESPACE."""
        with suppress(NoNodeError):
            self._retried("delete", tablespace_path(HERD_ROOT, tablespace))

    def name_leader(self, tablespace: str, node: str) -> None:
        """Name a leader by compare-and-set, with all nodes as replicas; then wake each node."""
        path = tablespace_path(HERD_ROOT, tablespace)
        while True:
            data, stat = self._retried("get", path)
            record = decode_tablespace(data)
            try:
                self._retried("set", path, encode_tablespace(replace(record, leader=node, replicas=self.nodes)), stat.version)
                break
            except BadVersionError:
                continue
        self.wake()

    def wake(self) -> None:
        """Make all reachable nodes read the records now."""
        for node in self.nodes:
            if self.runs(node):
                self.order(node, "activator/wake", seconds=2)

    def connect(self, tablespace: str, seconds: float = _LEADS_SECONDS) -> Connection:
        """Returns a connection to the leader, once it leads. Raises Stuck."""
        deadline = time.monotonic() + seconds
        while True:
            why = "its leader is not running"
            try:
                leader = self.record(tablespace).leader
                if self.runs(leader):
                    return self._connect_to(leader, tablespace)
            except (ConnectionLost, ServerError, KazooException) as error:
                why = str(error)
            if time.monotonic() > deadline:
                raise Stuck(f"nobody leads {tablespace} within {seconds:g} s: {why}")
            self._restart_ended_bookies()
            time.sleep(_POLL_SECONDS)

    def _restart_ended_bookies(self) -> None:
        """As the kubelet does: one whose session expired ends by itself. Those that a story has killed or stopped stay away."""
        with self._restarts:
            for bookie in self.bookies:
                if self.servers.processes[bookie].poll() not in (None, -signal.SIGKILL, _TOLD_TO_STOP):
                    self.start(bookie)

    def _connect_to(self, node: str, tablespace: str) -> Connection:
        connection = Connection.connect(self.addresses[node], CREDENTIALS, tablespace, timeout_seconds=3.0)
        try:
            connection.require_leader()
        except BaseException:
            connection.close()
            raise
        connection.timeout_seconds = CALL_SECONDS
        return connection

    def others(self, node: str) -> tuple[str, ...]:
        """Returns the other nodes, in cyclic order after this one."""
        place = self.nodes.index(node)
        return self.nodes[place + 1 :] + self.nodes[:place]

    def ledger_ids(self) -> int:
        """Returns a number that grows by two per allocated ledger id, the first time with the first request."""
        stat = self._retried("exists", f"{LEDGERS_ROOT}/idgen")
        return 0 if stat is None else int(stat.children_version)

    def open_ledgers(self, bookie: str) -> int:
        """Returns how many ledgers are open whose next entry would go to a bookie."""
        with open_catalog(self.servers.zookeeper, LEDGERS_ROOT) as catalog:
            found = [one.metadata for one in catalog.read_many(catalog.ledger_ids()) if isinstance(one, VersionedMetadata)]
        return sum(one.state is not LedgerState.CLOSED and bookie in one.segments[-1].bookies for one in found)

    def successor(self, tablespace: str) -> str | None:
        """Returns another running node that the operator would name as leader, or None."""
        for node in self.others(self.record(tablespace).leader):
            if self.runs(node) and self.may_lead(node, tablespace):
                return node
        return None

    def may_lead(self, node: str, tablespace: str) -> bool:
        """Returns whether the operator would name this node: its replica follows, and the log has what its disk lacks."""
        return is_promotable(self.tablespaces(node).get(tablespace, {}))

    # what nodes are asked by HTTP

    def order(self, node: str, path: str, *, seconds: float = _ORDER_SECONDS) -> tuple[int, Any]:
        """POST with the token; returns the status, 0 without an answer, and the JSON."""
        request = urllib.request.Request(f"{self.urls[node]}/{path}", method="POST", headers={"Authorization": f"Bearer {TOKEN}"})
        return _answer(request, seconds)

    def tablespaces(self, node: str) -> dict[str, Any]:
        """Returns GET /tablespaces by name; empty without an answer."""
        status, found = _answer(urllib.request.Request(f"{self.urls[node]}/tablespaces"), _ORDER_SECONDS)
        return {one["name"]: one for one in found} if status == 200 else {}

    # what happens to machines

    def runs(self, name: str) -> bool:
        """Returns whether a process exists and is not paused."""
        return self.servers.processes[name].poll() is None and name not in self.paused

    def kill(self, name: str) -> None:
        self.paused.discard(name)
        self.servers.kill(name)

    def pause(self, name: str) -> None:
        self.paused.add(name)
        self.servers.pause(name)

    def resume(self, name: str) -> None:
        self.servers.processes[name].send_signal(signal.SIGCONT)
        self.paused.discard(name)

    def fill_disk(self, node: str, *, full: bool) -> None:
        """Make all files of a node refuse further bytes, or accept them again."""
        process = str(self.servers.processes[node].pid)
        subprocess.run(["prlimit", "--pid", process, f"--fsize={_NO_BYTES if full else _ANY_BYTES}:"], check=True)

    def start(self, name: str) -> None:
        """Restart an ended process."""
        self.servers.run(name, self.servers.commands[name])

    def heal(self) -> None:
        """Make everything run again, and each node answer. Raises Stuck."""
        for name in tuple(self.paused):
            self.resume(name)
        for name in ("zookeeper", *self.bookies, *self.nodes):
            self._start_ended(name)
        self.wait("all bookies are registered", self._all_registered)
        for node in self.nodes:
            self.wait(f"{node} answers", partial(self._answers, node))

    def _start_ended(self, name: str) -> None:
        code = self.servers.processes[name].poll()
        if code is None:
            return
        if name in self.nodes and code not in (-signal.SIGKILL, _DISPLACED):
            self.ended.append(f"{name} ended with {code}")
        self.start(name)

    @property
    def bookies(self) -> tuple[str, ...]:
        return tuple(f"bookie-{number}" for number in range(BOOKIES))

    def _all_registered(self) -> bool:
        for bookie in self.bookies:
            self._start_ended(bookie)  # one whose last registration still exists does not start
        with suppress(KazooException):
            return set(self._retried("get_children", f"{LEDGERS_ROOT}/available")) >= set(self.bookies)
        return False

    def _answers(self, node: str) -> bool:
        self._start_ended(node)
        return _answer(urllib.request.Request(f"{self.urls[node]}/tablespaces"), 5)[0] == 200

    def wait(self, what: str, holds: Callable[[], bool], *, pause_seconds: float = _POLL_SECONDS) -> None:
        """Raises Stuck."""
        deadline = time.monotonic() + _READY_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise Stuck(f"not within {_READY_SECONDS:g} s: {what}")
            time.sleep(pause_seconds)

    def words(self, node: str) -> str:
        return (self.servers.folder / f"{node}.log").read_text(errors="replace")


@contextmanager
def running(plan: story.World, jars: Mapping[str, Path]) -> Iterator[World]:
    """A new cluster, whose SQL nodes boot at once; all of it ends with the block."""
    with servers() as processes:
        processes.jars, processes.tick_millis = jars, 1000
        processes.start_zookeeper()
        client = KazooClient(hosts=processes.zookeeper, timeout=20.0)
        client.start(timeout=60)
        try:
            world = World(processes, client, plan)
            _start(world)
            yield world
        finally:
            client.stop()
            client.close()


def _start(world: World) -> None:
    if world.plan.bookies_late:
        world.servers.start_bookies(BOOKIES, _BOOKIE, first=partial(_begin_nodes, world))
        world.wait("a SQL node makes a ledger", lambda: world.ledger_ids() > 0)
    else:
        world.servers.start_bookies(BOOKIES, _BOOKIE)
        _begin_nodes(world)


def _begin_nodes(world: World) -> None:
    more: dict[str, object] = {
        "server.tablemanager.writelocktimeout": 1,
        "server.tablemanager.readlocktimeout": 1,
        "server.zookeeper.session.timeout": 15000,
        "server.bookkeeper.ledgers.retention.period": world.plan.retention_millis or _KEPT_FOR_EVER,
        "server.checkpoint.period": (world.plan.retention_millis or _KEPT_FOR_EVER) // 2,
        "server.bookkeeper.ensemble.size": 3,
        "server.bookkeeper.write.quorum.size": 3,
        "server.bookkeeper.ack.quorum.size": 2,
    }
    for number in range(world.plan.nodes):
        node = f"node-{number}"
        world.addresses[node], world.urls[node] = world.servers.begin_sql_node(node, node, more)
    world.wait("the tablespace herd is there", lambda: "herd" in _tablespaces(world))


def _tablespaces(world: World) -> list[str]:
    with suppress(NoNodeError):
        found: list[str] = world.zookeeper.get_children(tablespaces_path(HERD_ROOT))
        return found
    return []


def is_promotable(replica: Mapping[str, Any]) -> bool:
    """Returns whether a node may be named as leader, by what it tells of its replica. It is the operator's rule (`_why_not_promotable`).

    A leader that stood still may not know yet that another node has led since. If it were named before it follows, it would show its last
    state until it writes.
    """
    return replica.get("role") == "follower" and bool(replica.get("ready")) and bool(replica.get("recoverable"))


def _answer(request: urllib.request.Request, seconds: float) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error, suppress(ValueError, HTTPException):
            return error.code, json.load(error)
        return error.code, None
    except (OSError, ValueError, HTTPException):  # the node ended in the middle of its answer
        return 0, None
