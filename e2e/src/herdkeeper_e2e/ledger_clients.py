"""Clients of the bookies other than SQL nodes (e2e/clients), in their own pod: plain BookKeeper, and DistributedLog.

Each writes endlessly, follows its own writes with a reader that never fences, and reads everything back at its end:

    client = StripedClient(Place(stack.kubectl), "striped-while-draining")
    client.acknowledges(50)                    # they continue: waits for so many further entries
    client.order("mark a bookie drained")      # from here on the longest gap is measured, until the next mark
    …
    report = client.proof()                    # stops it, reads everything back with a fresh client
    assert report.violation is None, report
"""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper_e2e.client_report import ClientReport, parse_report
from herdkeeper_e2e.java_pod import JavaPod, JavaProgram
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.steered_process import SteeredProcess

PROGRAM = JavaProgram("e2e/clients", "herdkeeper/bookkeeper:0.1.0", "/opt/bookkeeper/lib")
RACKS = "/racks"
PAUSE_MILLISECONDS = 20
READ_BACK_SECONDS = 300.0


@dataclass(frozen=True)
class Place:
    """A client's bookies and location: the clients of a place share a pod."""

    kubectl: Kubectl
    cluster: str = "bk"
    """The BookKeeperCluster."""
    machine: str | None = None
    """The pod's machine; any if None."""

    def pod(self) -> JavaPod:
        """The pod of its clients, as it will be."""
        name = "-".join(part for part in ("clients-of", self.cluster, self.machine) if part is not None)
        racks = {"configMap": {"name": f"{self.cluster}-racks", "defaultMode": 0o555, "optional": True}}
        container = {"resources": {"requests": {"cpu": "50m", "memory": "384Mi"}}}
        return JavaPod(self.kubectl, name, PROGRAM, container, {RACKS: racks}, self.machine)

    def started(self) -> tuple[JavaPod, Bookies]:
        """The same pod, running, and its bookies."""
        bookies, pod = Bookies.of(self.kubectl, self.cluster), self.pod()
        pod.start()
        return pod, bookies


@dataclass(frozen=True)
class Bookies:
    """Location of a BookKeeperCluster's bookies, by its status."""

    name: str
    metadata_service_uri: str
    zookeeper: str
    ledgers_root: str

    @staticmethod
    def of(kubectl: Kubectl, name: str) -> Bookies:
        """Read the status. Raises KeyError if the cluster or its status does not exist."""
        found = kubectl.get("bookkeepercluster", name)
        if found is None:
            raise KeyError(f"there is no BookKeeperCluster {name}")
        status = found["status"]
        return Bookies(name, status["metadataServiceUri"], status["zooKeeperAddress"], status["ledgersRoot"])


@dataclass(frozen=True)
class Striping:
    """The ledgers of a StripedClient; each entry has two copies, both acknowledged."""

    ensemble_size: int = 4
    """Bookies per ledger; with fewer writable ones, writes stop. Surviving a loss takes one more."""
    entries: int = 500
    """Entries per ledger; at fifty entries a second, ten seconds."""


class LedgerClient(SteeredProcess):
    """A program of e2e/clients. `acknowledged` counts its entries; `mark TEXT` announces a fault; `proof` ends it."""

    def proof(self) -> ClientReport:
        """Stop it; returns its readers' report. Raises ProgramEndedError if it failed, and ReportError without a report."""
        self.stop(READ_BACK_SECONDS)
        return parse_report(self.last_line)


class StripedClient(LedgerClient):
    """Writes and reads ledgers with more bookies than copies of an entry. `name` is in their custom metadata (`component`).

    Like autorecovery, it gets the bookies' racks (the ConfigMap `-racks`).
    """

    def __init__(self, place: Place, name: str = "striped", striping: Striping = Striping()) -> None:
        pod, bookies = place.started()
        arguments = (bookies.metadata_service_uri, f"{RACKS}/rack.sh", name, striping.ensemble_size, striping.entries, PAUSE_MILLISECONDS)
        super().__init__(place.kubectl, pod.name, pod.command("io.herdkeeper.e2e.clients.StripedLedgers", *map(str, arguments)))


class DistributedLogClient(LedgerClient):
    """Writes and reads a new DistributedLog stream with its own quorums (E = Wq = 3, Aq = 2), whose log segments end after 64 KiB.

    The stream's namespace is `/<Kubernetes namespace>/streams-<name>` in ZooKeeper, next to the bookies' root: each name can be used once.
    """

    SEGMENT_BYTES = 64 << 10

    def __init__(self, place: Place, name: str = "stream") -> None:
        pod, bookies = place.started()
        namespace = f"/{place.kubectl.namespace}/streams-{name}"
        arguments = (bookies.zookeeper, bookies.ledgers_root, namespace, name, self.SEGMENT_BYTES, PAUSE_MILLISECONDS)
        super().__init__(place.kubectl, pod.name, pod.command("io.herdkeeper.e2e.clients.DistributedLogClient", *map(str, arguments)))
