"""Whether a ZooKeeper ensemble has lost its quorum for good, and what a way back loses. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.codecs.zookeeper.membership import Membership, decode_membership, file_name, version_of
from herdkeeper.shared import names
from herdkeeper.shared.quorum import majority
from herdkeeper.shared.unknown import Unknown

LOOK = """export LC_ALL=C
files=$(ls /data/store/version-2 2>&1) || case "$files" in *": No such file or directory") files= ;; *) echo "$files" >&2; exit 1 ;; esac
for file in $files; do case "$file" in snapshot.* | log.*) echo "file $file" ;; esac; done
echo "epoch $(cat /data/store/version-2/currentEpoch 2>/dev/null)"
for file in /data/conf/zoo.cfg.dynamic.* /config/zoo.cfg.dynamic.*; do
  [ ! -s "$file" ] || { echo "membership ${file##*/}"; cat "$file" || exit 1; echo; }
done
echo end"""
"""Shows what a member's volume holds, and the memberships that it may start from: its own before the operator's, as at its start. Fails
where a folder is there and can't be read: that is no empty volume."""

_ELECTION = re.compile(r"New election\. My id = +\d+, proposed zxid=0x([0-9a-f]+)")
_NONE = 1 << 63
"""The transaction of a member without one, and above. Java's negative numbers, in hexadecimal."""


@dataclass(frozen=True)
class Held:
    """A member's data: the epoch, its last transaction as it told when it began to look for a leader, and its newest membership."""

    epoch: int
    zxid: int | Unknown
    membership: Membership

    @property
    def said(self) -> str:
        last = self.zxid.why if isinstance(self.zxid, Unknown) else f"last transaction 0x{self.zxid:x}"
        return f"epoch {self.epoch}, {last}"


@dataclass(frozen=True)
class Lost:
    """A member without data."""

    why: str


@dataclass(frozen=True)
class Member:
    """A member of the ensemble, its pod and what its volume holds."""

    pod: str
    volume: Held | Lost | Unknown
    uid: str = ""
    ready: bool = False

    @property
    def said(self) -> str:
        """What its volume holds, as a phrase."""
        return self.volume.said if isinstance(self.volume, Held) else self.volume.why


class State(Enum):
    """What became of a quorum."""

    SERVES = "Serves"
    STARTS_AGAIN = "StartsAgain"
    UNKNOWN = "Unknown"
    LOST = "Lost"
    NOTHING_LEFT = "NothingLeft"


@dataclass(frozen=True)
class Diagnosis:
    """What was found out about the voters of the newest membership. Only with the state LOST a member's data may be accepted: `best`."""

    state: State
    sentence: str
    voters: tuple[Member, ...]
    newest: Membership | None = None
    best: Member | None = None


def volume_of(shown: str, log: Iterable[str]) -> Held | Lost | Unknown:
    """Returns what a volume holds, from what LOOK shows and the lines that the member's process has logged."""
    words = [line.partition(" ") for line in shown.splitlines()]
    if not words or words[-1][0] != "end":
        return Unknown("its volume could not be read to the end")
    files = [name for word, _, name in words if word == "file"]
    if not files:
        return Lost("its volume is empty")
    epoch = next((value for word, _, value in words if word == "epoch"), "")
    if not any(name.startswith("snapshot.") for name in files) or not epoch.isdecimal():
        return Unknown("its volume lacks a snapshot, or the current epoch")
    try:
        membership = _newest_membership(shown)
    except MalformedDataError as error:
        return Unknown(str(error))
    return Unknown("its volume has no membership") if membership is None else Held(int(epoch), _last_transaction(log), membership)


def diagnose(examined: Mapping[int, Member]) -> Diagnosis:
    """Returns what became of the quorum: of the voters in the newest membership that a volume holds. What is unknown of a member blocks."""
    held = {number: member for number, member in examined.items() if isinstance(member.volume, Held)}
    memberships = [member.volume.membership for member in held.values() if isinstance(member.volume, Held)]
    newest = max(memberships, key=lambda membership: membership.version, default=None)
    if newest is None:
        return _without_data(tuple(examined.values()))
    voters = tuple(examined.get(server_id - 1) or _absent(server_id - 1) for server_id in sorted(newest.voters))
    others = tuple(member for number, member in examined.items() if number + 1 not in newest.voters)
    if serving := [member.pod for member in voters if member.ready]:
        return Diagnosis(State.SERVES, f"nothing is lost: {', '.join(serving)} serve", voters)
    return _of_those_that_serve_not(voters, others, newest)


def _of_those_that_serve_not(voters: tuple[Member, ...], others: tuple[Member, ...], newest: Membership) -> Diagnosis:
    with_data = [member for member in voters if isinstance(member.volume, Held)]
    counted = f"the volumes of {len(with_data)} of {len(voters)} voters hold data, and {majority(len(voters))} are needed"
    if len(with_data) >= majority(len(voters)):
        return Diagnosis(State.STARTS_AGAIN, f"{counted}: the quorum serves again once their pods run", voters)
    # a volume that can't be read may have a newer membership, with other voters
    if unknown := [f"{member.pod}: {member.said}" for member in (*voters, *others) if isinstance(member.volume, Unknown)]:
        return Diagnosis(State.UNKNOWN, f"{counted}, but it is not known what the others hold ({'; '.join(unknown)})", voters)
    ranked = [(member.volume.epoch, member.volume.zxid, member) for member in with_data if isinstance(member.volume, Held)]
    if not ranked:
        return _without_data(voters)
    known = [(epoch, zxid, member) for epoch, zxid, member in ranked if isinstance(zxid, int)]
    if len(ranked) > 1 and len(known) < len(ranked):
        return Diagnosis(State.UNKNOWN, f"{counted}. Which of them has the newest data is not known", voters)
    # as an election ranks them
    best = max(known, key=lambda each: each[:2])[2] if known else ranked[0][2]
    return Diagnosis(State.LOST, f"{counted}: the quorum is lost for good", voters, newest, best)


def alone(member: Member, newest: Membership) -> str:
    """Returns the commands that give a member a membership of itself alone, unless its data has changed since it was read."""
    server_id = int(member.pod.rpartition("-")[2]) + 1
    (line,) = [server.line for server in newest.servers if server.server_id == server_id]
    file = file_name(newest.version + 1)
    epoch = member.volume.epoch if isinstance(member.volume, Held) else ""
    return (
        f'set -eu; cd /data/conf; [ "$(cat /data/store/version-2/currentEpoch)" = "{epoch}" ]; [ ! -e {file} ]\n'
        f"echo {shlex.quote(line)} >alone; sync alone; mv alone {file}"
    )


def loses(member: Member) -> str:
    """Returns what is lost if a member's data is accepted, as a sentence."""
    held = member.volume
    after = f" after 0x{held.zxid:x}" if isinstance(held, Held) and isinstance(held.zxid, int) else ""
    return (
        f"What only the other members had{after} is lost: their last changes, and ledgers that these made, with the rows in them. How many "
        "these are, nobody can tell any more. Bookies delete such ledgers."
    )


def _absent(number: int) -> Member:
    """A voter that has neither pod nor claim. One that a person added runs elsewhere."""
    there = number < names.ZOOKEEPER_MOST_MEMBERS
    return Member(f"member {number}", Lost("it has neither pod nor claim") if there else Unknown("it is no pod of this cluster"))


def _without_data(members: tuple[Member, ...]) -> Diagnosis:
    unknown = [f"{member.pod}: {member.said}" for member in members if isinstance(member.volume, Unknown)]
    if unknown or not members:
        return Diagnosis(State.UNKNOWN, f"no volume can be read ({'; '.join(unknown) or 'there are neither pods nor claims'})", members)
    return Diagnosis(State.NOTHING_LEFT, "no volume holds data: only snapshots can bring the metadata back", members)


def _newest_membership(shown: str) -> Membership | None:
    """Returns the newest membership of an output of LOOK. The first file of a version counts. Raises MalformedDataError."""
    texts: dict[int, str] = {}
    for part in shown.split("\nmembership ")[1:]:
        name, _, text = part.partition("\n")
        version = version_of(name)
        if version is not None:
            texts.setdefault(version, "\n".join(line for line in text.splitlines() if line.startswith("server.")))
    newest = max(texts, default=None)
    return None if newest is None else decode_membership(f"{texts[newest]}\nversion={newest:x}\n".encode())


def _last_transaction(log: Iterable[str]) -> int | Unknown:
    """Returns the last transaction that a member told at its newest election."""
    found = [int(match[1], 16) for line in log if (match := _ELECTION.search(line))]
    if not found or found[-1] >= _NONE:
        return Unknown("its log does not tell its last transaction: delete the pod, and its new log will")
    return found[-1]
