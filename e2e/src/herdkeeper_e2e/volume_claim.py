"""A scenario's own volume."""

from __future__ import annotations

from herdkeeper_e2e.kubectl import Object


def volume_claim(name: str) -> Object:
    """Returns the manifest of a claim that is large enough for the scenarios' checkpoints."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
