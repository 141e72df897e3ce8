"""What is known of each replica's rows: equal to the log at an LSN, or different, as a verified Checkpoint found out.

Checkpoints come and go, so a Tablespace's status remembers the verdicts. HerdDB's own check is none: it can fail equal replicas.
A copy that differs is moved aside and made anew; an annotation of the Tablespace says up to which LSN verdicts were about the old copy.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.checkpoint import Lsn
from herdkeeper.api.tablespace import ReplicaStatus
from herdkeeper.domain import names
from herdkeeper.domain.observed.herddb import NodeTablespace, NodeView
from herdkeeper.domain.unknown import Unknown

_UNTIL, _PROVEN = " until ", " verified"
_LSN = "([0-9]{1,19}),([0-9]{1,19})"
_REBUILT = re.compile(f"{_LSN}(?:{_UNTIL}{_LSN})?({_PROVEN})?")


@dataclass(frozen=True)
class Verdict:
    """Of the replica on `node`, at `lsn` (ledger id, entry id). `different_tables` are those that differ, as far as they could be told;
    `equal` that none does. `at` is RFC 3339, `checkpoint` the name of the resource.
    `made_anew`: the copy was made anew since one differed before, and was never equal since.
    """

    node: str
    lsn: tuple[int, int]
    equal: bool
    different_tables: tuple[str, ...] = ()
    at: str | None = None
    checkpoint: str | None = None
    made_anew: bool = False

    @property
    def sentence(self) -> str:
        """What was found out, without the node."""
        where = f"at LSN {self.lsn[0]},{self.lsn[1]}" + (f" (Checkpoint {self.checkpoint})" if self.checkpoint else "")
        if self.equal:
            return f"was equal to the log {where}"
        return f"had other rows than the log {where} in {', '.join(self.different_tables) or 'tables that could not be told'}"


def _newest(found: Iterable[Verdict]) -> Mapping[str, Verdict]:
    """By node: the verdict at the highest LSN. Of two at the same LSN one that says different counts: it is the one that must not be
    missed.
    """
    newest: dict[str, Verdict] = {}
    for verdict in found:
        known = newest.get(verdict.node)
        if known is None or (verdict.lsn, not verdict.equal) > (known.lsn, not known.equal):
            newest[verdict.node] = verdict
    return newest


@dataclass(frozen=True)
class Rebuilt:
    """A node's copy was moved aside for what a Checkpoint found out at `lsn`; what is there since is another one. `until` is where the log
    ended then: another Checkpoint may have held the old copy anywhere up to there, and tell of it later. `proven`: the new copy was equal
    to the log once.
    """

    lsn: tuple[int, int]
    until: tuple[int, int]
    proven: bool = False

    @property
    def text(self) -> str:
        """As the annotation has it."""
        until = f"{_UNTIL}{self.until[0]},{self.until[1]}" if self.until > self.lsn else ""
        return f"{self.lsn[0]},{self.lsn[1]}{until}{_PROVEN if self.proven else ''}"

    def is_about(self, verdict: Verdict) -> bool:
        """Whether a verdict is about the new copy. The old one was not equal at `lsn`, so a new one may be, in a log that has not grown."""
        return verdict.lsn >= self.lsn if verdict.equal else verdict.lsn > self.until


def rebuilt(tablespace: Tablespace, node: str) -> Rebuilt | None:
    """What the Tablespace's annotation says of a node; None when it says nothing, or what can't be read: then it is made anew once more."""
    match = _REBUILT.fullmatch(tablespace.metadata.annotations.get(names.SET_ASIDE_PREFIX + node, ""))
    if match is None:
        return None
    lsn = int(match[1]), int(match[2])
    return Rebuilt(lsn, (int(match[3]), int(match[4])) if match[3] else lsn, bool(match[5]))


def verdicts_in_force(tablespace: Tablespace, uuid: str, checkpoints: Iterable[Checkpoint] = ()) -> Mapping[str, Verdict]:
    """By node: the newest verdict, out of what the Tablespace's status says and what its Checkpoints found out, about the copies that the
    tablespace with this uuid has now.
    """
    made = tablespace.status.uuid if tablespace.status is not None else None
    remembered = replicas_of(tablespace) if made in (None, uuid) else ()
    found = (*map(_remembered, remembered), *(_found_by(checkpoint, uuid) for checkpoint in checkpoints))
    return _newest(counted for verdict in filter(None, found) if (counted := _counted(tablespace, verdict)) is not None)


def _counted(tablespace: Tablespace, verdict: Verdict) -> Verdict | None:
    """None for one about a copy that was moved aside since."""
    before = rebuilt(tablespace, verdict.node)
    if before is None:
        return verdict
    if not before.is_about(verdict):
        return None
    return verdict if verdict.equal else replace(verdict, made_anew=not before.proven)


def judged(nodes: Mapping[str, NodeView | Unknown], uuid: str, verdicts: Mapping[str, Verdict]) -> dict[str, NodeView | Unknown]:
    """What nodes say of their tablespaces, and of the one with this uuid what Checkpoints found out. HerdDB's own check can fail equal
    copies: what it found is refuted by a Checkpoint that found the copy equal there, or later."""
    return {node: view if isinstance(view, Unknown) else _judged(view, uuid, verdicts.get(node)) for node, view in nodes.items()}


def _judged(view: NodeView, uuid: str, verdict: Verdict | None) -> NodeView:
    if verdict is None:
        return view
    if verdict.equal:
        return tuple(replace(copy, failed_checks=_not_refuted(copy, verdict)) if copy.uuid == uuid else copy for copy in view)
    return tuple(replace(copy, differs=verdict.sentence) if copy.uuid == uuid else copy for copy in view)


def _not_refuted(copy: NodeTablespace, equal: Verdict) -> tuple[str, ...]:
    refuted = {check.table for check in copy.checks if check.lsn is not None and check.lsn <= equal.lsn}
    return tuple(table for table in copy.failed_checks if table not in refuted)


def replicas_of(tablespace: Tablespace) -> tuple[ReplicaStatus, ...]:
    """What its status says of its replicas."""
    return tablespace.status.replicas if tablespace.status is not None else ()


def different(verdicts: Mapping[str, Verdict], nodes: Iterable[str]) -> Sequence[Verdict]:
    """Of these nodes, those that had other rows, by name."""
    return [verdicts[node] for node in sorted(nodes) if node in verdicts and not verdicts[node].equal]


def verdicts_on(verdicts: Mapping[str, Verdict], nodes: Collection[str]) -> Mapping[str, Verdict]:
    """Those about copies on these nodes. Of one that has left nothing can be read or moved aside before it comes back."""
    return {node: verdict for node, verdict in verdicts.items() if node in nodes}


def _remembered(replica: ReplicaStatus) -> Verdict | None:
    if replica.verified_lsn is None or replica.verdict not in ("Equal", "Different"):
        return None
    return Verdict(
        replica.node,
        _pair(replica.verified_lsn),
        replica.verdict == "Equal",
        replica.different_tables or (),
        replica.verified_at,
        replica.verified_by,
    )


def _found_by(checkpoint: Checkpoint, uuid: str) -> Verdict | None:
    found = checkpoint.status.comparison if checkpoint.status is not None else None
    if checkpoint.status is None or found is None or found.tablespace_uuid != uuid:
        return None
    at, name = checkpoint.status.completed_at, checkpoint.metadata.name
    return Verdict(found.node, _pair(found.lsn), found.result == "Equal", found.different_tables or (), at, name)


def _pair(lsn: Lsn) -> tuple[int, int]:
    return lsn.ledger_id, lsn.entry_id
