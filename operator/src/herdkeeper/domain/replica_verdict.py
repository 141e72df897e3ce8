"""What is known of each replica's rows: equal to the log at an LSN, or different, as a verified Checkpoint found out.

Checkpoints come and go, so a Tablespace's status remembers the verdicts. HerdDB's own check is none: it can fail equal replicas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.checkpoint import Lsn
from herdkeeper.api.tablespace import ReplicaStatus


@dataclass(frozen=True)
class Verdict:
    """Of the replica on `node`, at `lsn` (ledger id, entry id). `different_tables` are those that differ, as far as they could be told;
    `equal` that none does. `at` is RFC 3339, `checkpoint` the name of the resource.
    """

    node: str
    lsn: tuple[int, int]
    equal: bool
    different_tables: tuple[str, ...] = ()
    at: str | None = None
    checkpoint: str | None = None

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
