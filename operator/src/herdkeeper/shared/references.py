"""References between kinds: which kind refers to which, by which field of its spec.

Kinds are plain names here: the kubectl plugin reads this table, too, and imports no models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REFERENCES: Mapping[str, tuple[str, str]] = {
    "BookKeeperCluster": ("zooKeeperRef", "ZooKeeperCluster"),
    "HerdDBCluster": ("bookKeeperRef", "BookKeeperCluster"),
    "Tablespace": ("herdDBRef", "HerdDBCluster"),
    "Checkpoint": ("tablespaceRef", "Tablespace"),
    "ReplicationAudit": ("bookKeeperRef", "BookKeeperCluster"),
}
"""Kind -> the referring field of its spec, and the kind referred to."""


def referred_name(kind: str, spec: Mapping[str, Any]) -> str | None:
    """Returns the name that a stored spec of this kind refers to, or None."""
    entry = REFERENCES.get(kind)
    name = (spec.get(entry[0]) or {}).get("name") if entry else None
    return None if name is None else str(name)
