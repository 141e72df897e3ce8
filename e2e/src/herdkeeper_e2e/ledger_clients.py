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

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from herdkeeper.certificates.settings import bookkeeper_lines, zookeeper_client_options
from herdkeeper.shared.names import BookKeeperNames, ObjectKey, secure_ensemble
from herdkeeper_e2e import built_images
from herdkeeper_e2e.client_report import ClientReport, parse_report
from herdkeeper_e2e.java_pod import JavaPod, JavaProgram
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.steered_process import SteeredProcess
from herdkeeper_e2e.tools_pod import IDENTITY, OPERATOR_IDENTITY

PROGRAM = JavaProgram("e2e/clients", built_images.BOOKKEEPER, "/opt/bookkeeper/lib")
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

    def pod(self, secrets: Mapping[str, str] = MappingProxyType({})) -> JavaPod:
        """The pod of its clients, as it will be. `secrets` are those to mount, by folder."""
        name = "-".join(part for part in ("clients-of", self.cluster, self.machine) if part is not None)
        racks = {"configMap": {"name": f"{self.cluster}-racks", "defaultMode": 0o555, "optional": True}}
        container = {"resources": {"requests": {"cpu": "50m", "memory": "384Mi"}}}
        identities: dict[str, Object] = {
            folder: {"secret": {"secretName": secret, "defaultMode": 0o440}} for folder, secret in secrets.items()
        }
        return JavaPod(self.kubectl, name, PROGRAM, container, {RACKS: racks, **identities}, self.machine)

    def started(self) -> tuple[JavaPod, Bookies]:
        """The same pod, running, and its bookies."""
        bookies = Bookies.of(self.kubectl, self.cluster)
        pod = self.pod(bookies.secrets)
        pod.start()
        return pod, bookies


@dataclass(frozen=True)
class Bookies:
    """Location of a BookKeeperCluster's bookies, by its status. `secrets` are those with the certificates for them and for their ensemble,
    by folder; none where servers ask for none. Readers may write no ledger, so a client presents the bookies' own.
    """

    name: str
    metadata_service_uri: str
    zookeeper: str
    ledgers_root: str
    secrets: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(kubectl: Kubectl, name: str) -> Bookies:
        """Read the status. Raises KeyError if the cluster or its status does not exist."""
        status = kubectl.existing("bookkeepercluster", name)["status"]
        address = str(status["zooKeeperAddress"])
        ensemble = secure_ensemble(address, kubectl.namespace)
        identity = BookKeeperNames(ObjectKey(kubectl.namespace, name)).identity_secret
        secrets = {} if ensemble is None else {IDENTITY: identity, OPERATOR_IDENTITY: ensemble.operator_secret}
        return Bookies(name, status["metadataServiceUri"], address, status["ledgersRoot"], secrets)

    def options(self, folder: str) -> tuple[str, ...]:
        """Returns the options of a JVM that presents the bookies' certificate to bookies, and the one in `folder` to ZooKeeper."""
        if not self.secrets:
            return ()
        lines = {"org.apache.bookkeeper.conf.readsystemproperties": "true", **bookkeeper_lines(IDENTITY)}
        return (*zookeeper_client_options(folder), *(f"-D{key}={value}" for key, value in lines.items()))


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
        command = pod.command("io.herdkeeper.e2e.clients.StripedLedgers", *map(str, arguments), options=bookies.options(IDENTITY))
        super().__init__(place.kubectl, pod.name, command)


class DistributedLogClient(LedgerClient):
    """Writes and reads a new DistributedLog stream with its own quorums (E = Wq = 3, Aq = 2). Its log segments end after 64 KiB.

    The stream's namespace is `/<Kubernetes namespace>/streams-<name>` in ZooKeeper, next to the bookies' root: each name can be used once.
    With certificates nobody but the operator may create it, so this client shows ZooKeeper the operator's certificate.
    """

    SEGMENT_BYTES = 64 << 10

    def __init__(self, place: Place, name: str = "stream") -> None:
        pod, bookies = place.started()
        namespace = f"/{place.kubectl.namespace}/streams-{name}"
        arguments = (bookies.zookeeper, bookies.ledgers_root, namespace, name, self.SEGMENT_BYTES, PAUSE_MILLISECONDS)
        options = bookies.options(OPERATOR_IDENTITY)
        command = pod.command("io.herdkeeper.e2e.clients.DistributedLogClient", *map(str, arguments), options=options)
        super().__init__(place.kubectl, pod.name, command)
