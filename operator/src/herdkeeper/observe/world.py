"""What a reconcile can look at."""

from __future__ import annotations

from dataclasses import dataclass, field

from herdkeeper.observe.ensembles import EnsembleDirectory
from herdkeeper.observe.http import JsonReader
from herdkeeper.observe.kubernetes import KubernetesReader
from herdkeeper.observe.signs_of_life import SignsOfLife


@dataclass(frozen=True)
class World:
    """Kubernetes, ZooKeeper by address, the servers' admin ports, and when SQL nodes were heard last."""

    kubernetes: KubernetesReader
    ensembles: EnsembleDirectory
    http: JsonReader
    signs_of_life: SignsOfLife = field(default_factory=SignsOfLife)
