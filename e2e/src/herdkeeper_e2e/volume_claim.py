"""A volume of a scenario's own."""

from __future__ import annotations

from herdkeeper_e2e.kubectl import Object


def volume_claim(name: str) -> Object:
    """The manifest of a claim for as much as checkpoints of the scenarios need, of a kind that the test cluster has."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
