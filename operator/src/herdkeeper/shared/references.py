"""References between kinds: which kind refers to which, by which field of its spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from herdkeeper.api import BookKeeperCluster, Checkpoint, HerdDBCluster, ReplicationAudit, Tablespace, ZooKeeperCluster

REFERENCES: Mapping[str, tuple[str, str]] = {
    BookKeeperCluster.KIND: ("zooKeeperRef", ZooKeeperCluster.KIND),
    HerdDBCluster.KIND: ("bookKeeperRef", BookKeeperCluster.KIND),
    Tablespace.KIND: ("herdDBRef", HerdDBCluster.KIND),
    Checkpoint.KIND: ("tablespaceRef", Tablespace.KIND),
    ReplicationAudit.KIND: ("bookKeeperRef", BookKeeperCluster.KIND),
}
"""Kind -> the referring field of its spec, and the kind referred to."""


def referred_name(kind: str, spec: Mapping[str, Any]) -> str | None:
    """Returns the name that a stored spec of this kind refers to, or None."""
    entry = REFERENCES.get(kind)
    name = (spec.get(entry[0]) or {}).get("name") if entry else None
    return None if name is None else str(name)
