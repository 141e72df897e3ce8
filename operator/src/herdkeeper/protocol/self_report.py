"""What a SQL node says of itself each second on its stream (images/herddb, `GET /alive`): of its own way to ZooKeeper and to its bookies,
and on which tablespaces statements hang, and which users it lets in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PREFIX = b"alive "
BLOCKED_SECONDS = 60.0
"""A leader on which statements hang for longer is told of. Most long statements and checkpoints end before."""


@dataclass(frozen=True)
class ReportedUsers:
    """Which users a node lets in: the `revision` of the users file (None when the file names none), and why it has `refused` the one that
    it was given since, None when it has not."""

    revision: str | None
    refused: str | None = None


@dataclass(frozen=True)
class SelfReport:
    """`zookeeper_silent` is for how many seconds ZooKeeper has not answered the node, 0 while it does; `zookeeper_steady` since how many
    seconds it answers without a break, 0 while it does not.

    `unacknowledged` are the tablespaces that the node leads and whose bookies have acknowledged nothing, though entries wait for it, with
    the seconds (a second or more). `failed` are those whose log failed while it led them, until it leads or follows them again.
    `blocked_seconds` are those that it leads and where nobody who waits for the lock has got it, with the seconds; empty of an older node
    program.
    `users` is None of a node whose program is too old to take up others while it runs.
    """

    zookeeper_silent: float = 0.0
    zookeeper_steady: float = 0.0
    unacknowledged: Mapping[str, float] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    blocked_seconds: Mapping[str, float] = field(default_factory=dict)
    users: ReportedUsers | None = None

    @property
    def blocked(self) -> frozenset[str]:
        """The tablespaces on which statements hang for longer than BLOCKED_SECONDS."""
        return frozenset(name for name, seconds in self.blocked_seconds.items() if seconds > BLOCKED_SECONDS)

    def trouble(self) -> frozenset[str]:
        """What is wrong, without for how long: nothing when all is well."""
        zookeeper = {"ZooKeeper"} if self.zookeeper_silent > 0 else set()
        return frozenset(zookeeper | {f"waits: {name}" for name in self.unacknowledged} | {f"failed: {name}" for name in self.failed})


def decode_line(line: bytes) -> SelfReport | None:
    """What a line says, e.g. `alive {"zooKeeper":{"answers":true,"seconds":9.5},"unacknowledgedSeconds":{"app":2.5},"failed":[],
    "blockedSeconds":{"app":75},"users":{"revision":"0d1f","refused":null}}`.

    None when it says no more than that the process lives, as those of older node programs do.
    """
    if not line.startswith(PREFIX):
        return None
    try:
        said = json.loads(line.removeprefix(PREFIX))
        answers, seconds = bool(said["zooKeeper"]["answers"]), float(said["zooKeeper"]["seconds"])
        return SelfReport(
            zookeeper_silent=0.0 if answers else seconds,
            zookeeper_steady=seconds if answers else 0.0,
            unacknowledged={str(name): float(waited) for name, waited in said["unacknowledgedSeconds"].items()},
            failed=tuple(str(name) for name in said["failed"]),
            blocked_seconds={str(name): float(seconds) for name, seconds in said.get("blockedSeconds", {}).items()},
            users=_users(said.get("users")),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _users(said: Mapping[str, Any] | None) -> ReportedUsers | None:
    return None if said is None else ReportedUsers(said["revision"], said["refused"])
