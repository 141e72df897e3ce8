"""What a reconcile can look at."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.observe.ensembles import EnsembleDirectory
from herdkeeper.observe.http import JsonReader
from herdkeeper.observe.kubernetes import KubernetesReader


@dataclass(frozen=True)
class World:
    """Kubernetes, ZooKeeper by address, the servers' admin ports."""

    kubernetes: KubernetesReader
    ensembles: EnsembleDirectory
    http: JsonReader
