"""What a reconcile reads from."""

from __future__ import annotations

from dataclasses import dataclass, field

from herdkeeper.clients.departed import Departed
from herdkeeper.clients.http import JsonReader
from herdkeeper.clients.kept_answers import KeptAnswers
from herdkeeper.clients.kubernetes import KubernetesReader
from herdkeeper.clients.signs_of_life import SignsOfLife
from herdkeeper.clients.zookeeper import EnsembleDirectory
from herdkeeper.clients.zookeeper_member import Wake


@dataclass(frozen=True)
class World:
    """Kubernetes, ZooKeeper by address, the servers' admin ports, the SQL nodes' last reports, cached ledger scans, and deleted resources
    whose data is still there. `wake` requeues the resource that is being reconciled."""

    kubernetes: KubernetesReader
    ensembles: EnsembleDirectory
    http: JsonReader
    signs_of_life: SignsOfLife = field(default_factory=SignsOfLife)
    scans: KeptAnswers = field(default_factory=KeptAnswers)
    departed: Departed = field(default_factory=Departed)
    wake: Wake | None = None
