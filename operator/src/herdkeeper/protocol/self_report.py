"""What a SQL node reports each second on its stream (images/herddb, `GET /alive`).

It tells of its connections to ZooKeeper and bookies, of tablespaces with hanging statements, and of the users that it accepts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

PREFIX = b"alive "
BLOCKED_SECONDS = 60.0
"""Statements that hang on a leader for longer are reported. Most long statements and checkpoints end before."""


@dataclass(frozen=True)
class ReportedUsers:
    """The users file that a node has loaded, by its `revision` (None if it has none). `refused`: why a newer one was not, or None."""

    revision: str | None
    refused: str | None = None


@dataclass(frozen=True)
class SelfReport:
    """`zookeeper_silent` is for how many seconds ZooKeeper has not answered the node, else 0. `zookeeper_steady` is for how many it has
    answered without a break, else 0.

    `unacknowledged` are tablespaces that the node leads and whose bookies acknowledge nothing although entries wait, with the seconds (at
    least one). `failed` are those whose log failed under its leadership, until it leads or follows them again. `blocked_seconds` are those
    that it leads and whose lock no waiter has got, with the seconds; empty from older node programs. `users` is None from programs too old
    to reload users.
    """

    zookeeper_silent: float = 0.0
    zookeeper_steady: float = 0.0
    unacknowledged: Mapping[str, float] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    blocked_seconds: Mapping[str, float] = field(default_factory=dict)
    users: ReportedUsers | None = None

    @property
    def blocked(self) -> frozenset[str]:
        """The tablespaces with statements that hang for longer than BLOCKED_SECONDS."""
        return frozenset(name for name, seconds in self.blocked_seconds.items() if seconds > BLOCKED_SECONDS)

    def trouble(self) -> frozenset[str]:
        """The problems, without durations; empty if there are none."""
        zookeeper = {"ZooKeeper"} if self.zookeeper_silent > 0 else set()
        return frozenset(zookeeper | {f"waits: {name}" for name in self.unacknowledged} | {f"failed: {name}" for name in self.failed})


MOST_NAMES = 3000
"""In a report. The last one of each node is kept, and a pod of anybody's may be taken for a node."""


def decode_line(line: bytes) -> SelfReport | None:
    """Decode a line, e.g. `alive {"zooKeeper":{"answers":true,"seconds":9.5},"unacknowledgedSeconds":{"app":2.5},"failed":[],
    "blockedSeconds":{"app":75},"users":{"revision":"0d1f","refused":null}}`.

    None if it only shows that the process lives, as from older node programs.
    """
    if not line.startswith(PREFIX):
        return None
    try:
        said = json.loads(line.removeprefix(PREFIX))
        users = said.get("users")
        if sum(map(len, (said["unacknowledgedSeconds"], said["failed"], said.get("blockedSeconds", {})))) > MOST_NAMES:
            return None
        answers, seconds = bool(said["zooKeeper"]["answers"]), float(said["zooKeeper"]["seconds"])
        return SelfReport(
            zookeeper_silent=0.0 if answers else seconds,
            zookeeper_steady=seconds if answers else 0.0,
            unacknowledged={str(name): float(waited) for name, waited in said["unacknowledgedSeconds"].items()},
            failed=tuple(str(name) for name in said["failed"]),
            blocked_seconds={str(name): float(seconds) for name, seconds in said.get("blockedSeconds", {}).items()},
            users=None if users is None else ReportedUsers(users["revision"], users["refused"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
