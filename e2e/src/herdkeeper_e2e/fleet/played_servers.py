"""Fakes of the servers in a stack's pods: ZooKeeper members, bookies, autorecovery and SQL nodes, as far as the operator uses them.

They write the znodes of the real ones, but no ledgers, since there are no rows. SQL nodes send heartbeats each HEARTBEAT_SECONDS instead of
each second: heartbeats matter only for a silent node, and the writes would take a core.
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from herdkeeper.api.bookkeeper_cluster import AutoRecovery
from herdkeeper.codecs.bookkeeper.cookie import Cookie, cookie_path, encode_cookie
from herdkeeper.codecs.bookkeeper.underreplication import recovery_delay_path
from herdkeeper.codecs.herddb.node import NodeRecord, encode_node, node_path
from herdkeeper.codecs.herddb.tablespace import (
    DEFAULT_TABLESPACE,
    TablespaceRecord,
    decode_tablespace,
    encode_tablespace,
    heartbeat_path,
    tablespace_path,
)
from herdkeeper.codecs.zookeeper.membership import Membership, Role, Server
from herdkeeper.shared import names
from herdkeeper.shared.names import BookKeeperNames, HerdDBNames, ObjectKey, ZooKeeperNames
from herdkeeper_e2e.fleet.addresses import address_of
from herdkeeper_e2e.fleet.listening import Listening, http, sql
from herdkeeper_e2e.fleet.znodes import Znodes
from herdkeeper_e2e.fleet.zookeeper_proxy import Member, ZooKeeperProxy

HEARTBEAT_SECONDS = 5
BOOT_SECONDS = 0.3
"""Until a SQL node has the role that a record gives it: the median of leader changes without other work."""
FOUNDED_AS = 0x100000000
LSN = {"ledgerId": 7, "entryId": 9}
_CREATE = re.compile(r"CREATE TABLESPACE '([^']+)',(.*)")
_OPTION = re.compile(r"'(\w+):([^']*)'")


@dataclass
class Stack:
    """What the servers of a namespace share. `zookeeper` is the real one's address."""

    namespace: str
    zookeeper: str
    znodes: Znodes
    records: dict[str, TablespaceRecord] = field(default_factory=dict)
    settled_at: dict[tuple[str, str], float] = field(default_factory=dict)
    """By tablespace and node: when the node has its role, by the loop's clock."""
    running: dict[str, Played] = field(default_factory=dict)
    """The processes, by pod."""
    speaks: asyncio.Event = field(default_factory=asyncio.Event)
    following: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.zk = ZooKeeperNames(ObjectKey(self.namespace, "zk"))
        self.bk = BookKeeperNames(ObjectKey(self.namespace, "bk"))
        self.db = HerdDBNames(ObjectKey(self.namespace, "db"))

    def role_of(self, name: str, node: str) -> str | None:
        """What a record makes of a node; None: nothing."""
        record = self.records.get(name)
        if record is None or node not in record.replicas:
            return None
        return "leader" if record.leader == node else "follower"

    async def add_tablespace(self, record: TablespaceRecord) -> None:
        """A tablespace is made, and its record followed from then on."""
        if await self.znodes.create(tablespace_path(self.db.herd_root, record.name), encode_tablespace(record)):
            self.following.append(asyncio.create_task(self._follow(record.name)))

    def silence(self) -> None:
        """The members of the ensemble say nothing any more."""
        self.speaks.clear()

    def speak(self) -> None:
        """They do again."""
        self.speaks.set()
        for process in self.running.values():
            if isinstance(process, ZooKeeperMember):
                process.member.pass_on()

    def boot(self, name: str, node: str) -> None:
        """A node begins to take a role."""
        self.settled_at[name, node] = asyncio.get_running_loop().time() + BOOT_SECONDS

    async def _follow(self, name: str) -> None:
        while True:
            changed = asyncio.Event()
            data = await self.znodes.read(tablespace_path(self.db.herd_root, name), changed.set)
            if data is not None:
                roles = {node: self.role_of(name, node) for node in self.running}
                self.records[name] = decode_tablespace(data)
                for node, role in roles.items():
                    if self.role_of(name, node) != role:
                        self.boot(name, node)
                for node in self.records[name].replicas:
                    await self.znodes.create(heartbeat_path(self.db.herd_root, self.records[name].uuid, node))
            await changed.wait()


@dataclass
class Played:
    """A process in a pod. Nothing is listened on before `start`."""

    stack: Stack
    pod: dict[str, Any]
    listening: Listening = field(init=False)

    def __post_init__(self) -> None:
        self.listening = Listening(address_of(self.stack.namespace, self.name))

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])

    async def start(self) -> None:
        await self.begin()
        self.stack.running[self.name] = self

    async def stop(self) -> None:
        """End in order."""
        self.die()
        await self.leave()

    def die(self) -> None:
        """End at once."""
        self.listening.end()
        self.stack.running.pop(self.name, None)

    async def begin(self) -> None:
        """What a kind of server does first."""

    async def leave(self) -> None:
        """What goes with its session in ZooKeeper."""


class ZooKeeperMember(Played):
    """Serves once its pod runs; the highest number leads."""

    async def begin(self) -> None:
        named = self.stack.zk
        ports = f"{names.ZOOKEEPER_QUORUM_PORT}:{names.ZOOKEEPER_ELECTION_PORT}"
        servers = (Server(number + 1, f"{named.host(number)}:{ports}", Role.PARTICIPANT, "2181") for number in range(3))
        text = f"{Membership(FOUNDED_AS, tuple(servers)).file}version={FOUNDED_AS:x}"
        member = Member(self.listening, self.stack.zookeeper, text.encode(), self.stack.speaks)
        self.member = member
        await self.listening.listen(names.ZOOKEEPER_CLIENT_PORT, lambda: ZooKeeperProxy(member))
        await self.listening.speak(names.ZOOKEEPER_ADMIN_PORT, http(self._said))

    async def _said(self, _method: str, _path: str) -> Any:
        await self.stack.speaks.wait()
        leader = max((pod for pod in self.stack.running if pod.startswith(self.stack.zk.stateful_set)), default=self.name)
        state = "leader" if leader == self.name else "follower"
        return {"server_stats": {"server_state": state, "last_processed_zxid": FOUNDED_AS + 1}}


class Bookie(Played):
    """Registers itself, with a cookie when it starts for the first time."""

    @property
    def bookie_id(self) -> str:
        """As its process is told."""
        environment = self.pod["spec"]["containers"][0]["env"]
        return next(str(entry["value"]) for entry in environment if entry["name"] == "BOOKIE_ID")

    async def begin(self) -> None:
        root = self.stack.bk.ledgers_root
        instance = await self.stack.znodes.read(f"{root}/INSTANCEID") or b""
        cookie = Cookie(self.bookie_id, "/journal/journal", ("/ledgers/ledgers",), instance.decode())
        await self.stack.znodes.create(cookie_path(root, self.bookie_id), encode_cookie(cookie))
        await self.listening.speak(names.BOOKIE_ADMIN_PORT, http(self._said))
        await self.stack.znodes.create(f"{root}/available/{self.bookie_id}")

    async def leave(self) -> None:
        await self.stack.znodes.delete(f"{self.stack.bk.ledgers_root}/available/{self.bookie_id}")

    async def _said(self, _method: str, _path: str) -> Any:
        return {"readOnly": False}


class AutoRecoveryDaemon(Played):
    """The first one is the auditor, and whoever is there when that goes."""

    async def begin(self) -> None:
        """Vote, and be elected if nobody is."""
        delay = str(AutoRecovery.model_fields["lost_bookie_recovery_delay_seconds"].default).encode()
        await self.stack.znodes.create(recovery_delay_path(self.stack.bk.ledgers_root), delay)
        await self.stack.znodes.create(f"{self._election}/V_{self.name}")
        if not await self.stack.znodes.read(self._election):
            await self._elect(self.name)

    async def leave(self) -> None:
        await self.stack.znodes.delete(f"{self._election}/V_{self.name}")
        others = [pod for pod, process in self.stack.running.items() if isinstance(process, AutoRecoveryDaemon)]
        if self.name.encode() in (await self.stack.znodes.read(self._election) or b""):
            await self._elect(others[0] if others else "")

    @property
    def _election(self) -> str:
        return f"{self.stack.bk.ledgers_root}/underreplication/auditorelection"

    async def _elect(self, pod: str) -> None:
        await self.stack.znodes.put(self._election, f'bookieId: "{pod}"'.encode() if pod else b"")


class SqlNode(Played):
    """Takes the roles that the records give it. `users` is the revision of the users file that is mounted."""

    users: str | None = None

    async def begin(self) -> None:
        """Its record, HerdDB's own tablespace where it is the first node, and its ports."""
        root, znodes = self.stack.db.herd_root, self.stack.znodes
        record = NodeRecord(self.name, self.stack.db.host_of(self.name), names.HERDDB_SQL_PORT)
        await znodes.put(node_path(root, self.name), encode_node(record))
        await self.stack.add_tablespace(TablespaceRecord(uuid.uuid4().hex, DEFAULT_TABLESPACE, self.name, (self.name,), 1, 0))
        for name in self.stack.records:
            self.stack.boot(name, self.name)
        self.began = asyncio.get_running_loop().time()
        self.streams: set[asyncio.StreamWriter] = set()
        await self.listening.speak(names.HERDDB_HTTP_PORT, http(self._said, self.streams.add))
        await self.listening.speak(names.HERDDB_SQL_PORT, sql(self._execute))

    def tick(self, second: int) -> None:
        """What happens once a second."""
        seconds = round(asyncio.get_running_loop().time() - self.began, 1)
        users = {"revision": self.users, "refused": None}
        said = {"zooKeeper": {"answers": True, "seconds": seconds}, "unacknowledgedSeconds": {}, "failed": [], "users": users}
        line = f"alive {json.dumps(said)}\n".encode()
        self.streams.difference_update([stream for stream in self.streams if stream.is_closing()])
        for stream in self.streams:
            stream.write(line)
        if (second + zlib.crc32(self.listening.address.encode())) % HEARTBEAT_SECONDS == 0:
            for record in self.stack.records.values():
                if self.name in record.replicas:
                    self.stack.znodes.touch(heartbeat_path(self.stack.db.herd_root, record.uuid, self.name))

    async def _said(self, method: str, _path: str) -> Any:
        if method == "POST":
            return {}
        roles = {name: self.stack.role_of(name, self.name) for name in self.stack.records}
        return [self._copy(name, role) for name, role in roles.items() if role is not None]

    def _copy(self, name: str, role: str) -> dict[str, Any]:
        record = self.stack.records[name]
        settled = asyncio.get_running_loop().time() >= self.stack.settled_at.get((name, self.name), 0.0)
        lsn = LSN if settled else None
        return {
            "name": name,
            "uuid": record.uuid,
            "role": role if settled else "booting",
            "ready": settled,
            "applied": lsn,
            "checkpoint": LSN,
            "recoverable": True,
            "barred": False,
            "barredUntil": None,
            "counts": {"exact": True, "position": LSN, "tables": {}} if settled else None,
            "fullCheck": None,
        }

    async def _execute(self, statement: str) -> None:
        found = _CREATE.fullmatch(statement)
        if found is None:
            raise ValueError(f"a statement that nobody plays: {statement}")
        options: defaultdict[str, list[str]] = defaultdict(list)
        for key, value in _OPTION.findall(found[2]):
            options[key].append(value)
        record = TablespaceRecord(
            uuid.uuid4().hex,
            found[1],
            options["leader"][0],
            tuple(options["replica"]),
            int(options["expectedreplicacount"][0]),
            int(options["maxleaderinactivitytime"][0]),
        )
        await self.stack.add_tablespace(record)


KINDS: dict[str, type[Played]] = {
    names.ZOOKEEPER_COMPONENT: ZooKeeperMember,
    names.BOOKIE_COMPONENT: Bookie,
    names.AUTORECOVERY_COMPONENT: AutoRecoveryDaemon,
    names.HERDDB_COMPONENT: SqlNode,
}
"""What runs in a pod, by its component."""
