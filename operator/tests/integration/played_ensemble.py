"""ZooKeeper in memory: a tree of znodes behind the same protocol as the operator's sessions. Beside it, who finds it by address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from herdkeeper.certificates.access import Access
from herdkeeper.clients.zookeeper import (
    ANY_VERSION,
    NO_ACCESS,
    NOTHING_ELSE,
    ChangedMeanwhileError,
    EnsembleError,
    EnsembleSessions,
    MembershipChange,
    Znode,
    Znodes,
)
from herdkeeper.clients.zookeeper_member import Wake
from herdkeeper.codecs.zookeeper.membership import CONFIG_PATH, Membership, decode_membership
from herdkeeper.shared.names import ObjectKey


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


@dataclass
class PlayedEnsemble(Znodes):
    """The Znodes of one ensemble, in memory. `silent` makes every call fail; `written` is called after each change with what it was.

    Znodes were changed last when `changed_by_path` says so, others at `changed_at`.
    """

    znodes: dict[str, tuple[bytes, int]] = field(default_factory=lambda: {"/": (b"", 0)})
    silent: bool = False
    changed_at: float = 0.0
    changed_by_path: dict[str, float] = field(default_factory=dict)
    access: dict[str, Access] = field(default_factory=dict)
    written: Callable[[str], None] = lambda _: None

    def read(self, path: str, wake: Wake | None = None) -> tuple[bytes, int] | None:
        self._must_answer()
        return self.znodes.get(path)

    def read_changed(self, path: str, wake: Wake | None = None) -> Znode | None:
        found = self.read(path)
        return None if found is None else Znode(*found, *self._change(path))

    def children(self, path: str, wake: Wake | None = None) -> tuple[str, ...] | None:
        self._must_answer()
        if path not in self.znodes:
            return None
        return tuple(sorted(other.rpartition("/")[2] for other in self.znodes if other != "/" and _parent(other) == path))

    def read_many(self, paths: Sequence[str]) -> tuple[bytes | None, ...]:
        self._must_answer()
        return tuple(self.znodes[path][0] if path in self.znodes else None for path in paths)

    def changed_many(self, paths: Sequence[str]) -> tuple[Znode | None, ...]:
        self._must_answer()
        return tuple(Znode(*self.znodes[path], *self._change(path)) if path in self.znodes else None for path in paths)

    def _change(self, path: str) -> tuple[float, int]:
        """When a znode was changed, and the number of that change: no clock here was ever set."""
        changed_at = self.changed_by_path.get(path, self.changed_at)
        return changed_at, int(changed_at * 1000)

    def create_all(self, znodes: Iterable[tuple[str, bytes]], access: Mapping[str, Access] = NO_ACCESS) -> None:
        self._must_answer()
        self.access.update(access)
        after = dict(self.znodes)
        for path, data in znodes:
            if path in after:
                raise EnsembleError(f"{path} exists already")
            if _parent(path) not in after:
                raise EnsembleError(f"{path} has no parent")
            after[path] = (data, 0)
        self.znodes = after
        self.written("create_all")

    def create_own(self, path: str, data: bytes) -> None:
        self.create_all(((path, data),))

    def restrict(self, path: str, access: Access) -> None:
        self.ensure(path)
        self.access[path] = access

    def ensure(self, path: str) -> None:
        self._must_answer()
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts) + 1):
            self.znodes.setdefault("/" + "/".join(parts[:depth]), (b"", 0))
        self.written(f"ensure {path}")

    def compare_and_set(self, path: str, data: bytes, version: int) -> None:
        self._must_answer()
        if path not in self.znodes:
            raise EnsembleError(f"there is no {path}")
        if self.znodes[path][1] != version:
            raise ChangedMeanwhileError(f"{path} changed since it was read")
        self.znodes[path] = (data, version + 1)
        self.written(f"set {path}")

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self._must_answer()
        if version not in (ANY_VERSION, self.znodes.get(path, (b"", version))[1]):
            raise ChangedMeanwhileError(f"{path} changed since it was read")
        if self.children(path):
            raise EnsembleError(f"{path} is not empty")
        self.znodes.pop(path, None)
        self.written(f"delete {path}")

    def delete_if(self, path: str, version: int, unchanged: Mapping[str, int] = NOTHING_ELSE, absent: Sequence[str] = ()) -> None:
        self._must_answer()
        for other, read in {**unchanged, path: version}.items():
            if other not in self.znodes:
                raise EnsembleError(f"there is no {other}")
            if self.znodes[other][1] != read:
                raise ChangedMeanwhileError(f"{path} changed since it was read")
        if any(other in self.znodes for other in absent):
            raise ChangedMeanwhileError(f"{path} changed since it was read")
        self.delete(path, version)

    def delete_tree(self, path: str) -> None:
        """Znode by znode, the deepest first: a process may die between any two of them."""
        self._must_answer()
        for child in self.children(path) or ():
            self.delete_tree(f"{path}/{child}")
        if self.znodes.pop(path, None) is not None:
            self.written(f"delete {path}")

    def delete_together(self, paths: Sequence[str]) -> bool:
        self._must_answer()
        after = dict(self.znodes)
        for path in paths:
            if path not in after:
                raise EnsembleError(f"there is no {path}")
            if any(_parent(other) == path for other in after if other != "/"):
                return False
            del after[path]
        self.znodes = after
        self.written(f"delete {' and '.join(paths)}")
        return True

    def reconfigure(self, change: MembershipChange) -> None:
        """What a leader does. A version is that of the transaction."""
        self._must_answer()
        before = decode_membership(self.znodes[CONFIG_PATH][0])
        if before.version != change.version:
            raise ChangedMeanwhileError("the membership changed since it was read")
        joining = decode_membership("\n".join((*change.joining, "version=0")).encode()).servers if change.joining else ()
        gone = {*change.leaving, *(server.server_id for server in joining)}
        kept = [server for server in before.servers if server.server_id not in gone]
        self.has_membership(Membership(before.version + 1, (*kept, *joining)))
        self.written(f"reconfig {change}")

    def has_membership(self, membership: Membership) -> None:
        """The committed membership is this one."""
        self.put(CONFIG_PATH, f"{membership.file}version={membership.version:x}".encode())

    def put(self, path: str, data: bytes = b"") -> None:
        """What somebody else than the operator writes, with the parents that it needs."""
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts)):
            self.znodes.setdefault("/" + "/".join(parts[:depth]), (b"", 0))
        self.znodes[path] = (data, self.znodes[path][1] + 1 if path in self.znodes else 0)

    def _must_answer(self) -> None:
        if self.silent:
            raise EnsembleError("ZooKeeper does not answer")


@dataclass
class PlayedEnsembles(EnsembleSessions):
    """The EnsembleSessions of one ensemble, which is found at `address` only. `password` is the one that may change its membership,
    `identity` the Secret whose certificate it asks for; None: it speaks plain text. It speaks that at the address `plain`, too."""

    address: str
    ensemble: PlayedEnsemble = field(default_factory=PlayedEnsemble)
    password: str | None = None
    identity: ObjectKey | None = None
    plain: str | None = None

    def reconfigure(self, address: str, password: str, change: MembershipChange, identity: ObjectKey | None = None) -> None:
        """See EnsembleSessions. EnsembleError without the password that the members were started with."""
        if password != self.password:
            raise EnsembleError("ZooKeeper refused the password")
        self.at(address, identity).reconfigure(change)

    def at(self, address: str, identity: ObjectKey | None = None) -> PlayedEnsemble:
        """The ensemble. EnsembleError at another address, to who shows another certificate, and when it is silent."""
        if (address, identity) == (self.plain, None) and not self.ensemble.silent:
            return self.ensemble
        if identity != self.identity:
            raise EnsembleError(f"ZooKeeper at {address} asks for the certificate of {self.identity}, and was shown that of {identity}")
        if address != self.address or self.ensemble.silent:
            raise EnsembleError(f"ZooKeeper at {address} does not answer")
        return self.ensemble
