"""What is known of each replica's rows: equal to the log at an LSN, or different, as a verified Checkpoint found out.

Checkpoints come and go, so a Tablespace's status remembers the verdicts. HerdDB's own check is none: it can fail equal replicas.
A copy that differs is moved aside and made anew; an annotation of the Tablespace says up to which LSN verdicts were about the old copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.checkpoint import Lsn
from herdkeeper.api.tablespace import ReplicaStatus
from herdkeeper.domain import names
from herdkeeper.domain.observed.herddb import NodeView
from herdkeeper.domain.unknown import Unknown

_PROVEN = " verified"
_REBUILT = re.compile(rf"([0-9]{{1,19}}),([0-9]{{1,19}})({_PROVEN})?")


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


def newest_verdicts(uuid: str, remembered: Iterable[ReplicaStatus], checkpoints: Iterable[Checkpoint]) -> Mapping[str, Verdict]:
    """By node: the verdict at the highest LSN, out of what the Tablespace's status says and what its Checkpoints found out about the
    tablespace with this uuid. Of two at the same LSN one that says different counts: it is the one that must not be missed.
    """
    found = (*filter(None, map(_remembered, remembered)), *filter(None, (_found_by(checkpoint, uuid) for checkpoint in checkpoints)))
    newest: dict[str, Verdict] = {}
    for verdict in found:
        known = newest.get(verdict.node)
        if known is None or (verdict.lsn, not verdict.equal) > (known.lsn, not known.equal):
            newest[verdict.node] = verdict
    return newest


@dataclass(frozen=True)
class Rebuilt:
    """A node's copy was moved aside for what a Checkpoint found out at `lsn`; what is there since is another one. `proven`: that one was
    equal to the log once."""

    lsn: tuple[int, int]
    proven: bool = False

    @property
    def text(self) -> str:
        """As the annotation has it."""
        return f"{self.lsn[0]},{self.lsn[1]}{_PROVEN if self.proven else ''}"


def rebuilt(tablespace: Tablespace, node: str) -> Rebuilt | None:
    """What the Tablespace's annotation says of a node; None when it says nothing, or what can't be read: then it is made anew once more."""
    match = _REBUILT.fullmatch(tablespace.metadata.annotations.get(names.SET_ASIDE_PREFIX + node, ""))
    return Rebuilt((int(match[1]), int(match[2])), bool(match[3])) if match else None


def verdicts_in_force(tablespace: Tablespace, uuid: str, checkpoints: Iterable[Checkpoint] = ()) -> Mapping[str, Verdict]:
    """By node: the newest verdict, unless it says different of a copy that was moved aside since."""
    in_force: dict[str, Verdict] = {}
    for node, verdict in newest_verdicts(uuid, replicas_of(tablespace), checkpoints).items():
        before = rebuilt(tablespace, node)
        if verdict.equal or before is None:
            in_force[node] = verdict
        elif verdict.lsn > before.lsn:
            in_force[node] = replace(verdict, made_anew=not before.proven)
    return in_force


def judged(nodes: Mapping[str, NodeView | Unknown], name: str, verdicts: Mapping[str, Verdict]) -> dict[str, NodeView | Unknown]:
    """What nodes say of their tablespaces, and of the one with this name what Checkpoints found out."""
    return {node: view if isinstance(view, Unknown) else _judged(view, name, verdicts.get(node)) for node, view in nodes.items()}


def _judged(view: NodeView, name: str, verdict: Verdict | None) -> NodeView:
    if verdict is None or verdict.equal:
        return view
    return tuple(replace(copy, differs=verdict.sentence) if copy.name == name else copy for copy in view)


def replicas_of(tablespace: Tablespace) -> tuple[ReplicaStatus, ...]:
    """What its status says of its replicas."""
    return tablespace.status.replicas if tablespace.status is not None else ()


def different(verdicts: Mapping[str, Verdict], nodes: Iterable[str]) -> Sequence[Verdict]:
    """Of these nodes, those that had other rows, by name."""
    return [verdicts[node] for node in sorted(nodes) if node in verdicts and not verdicts[node].equal]


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
