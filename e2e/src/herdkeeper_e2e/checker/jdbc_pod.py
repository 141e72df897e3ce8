"""A pod for the JDBC clients (e2e/jdbc), with a SQL node's image, which has HerdDB's jars.

Like any application (examples/client.yaml), it gets the database's address from the Tablespace's connection Secret.
"""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.planning.identities import java_identity
from herdkeeper_e2e import built_images
from herdkeeper_e2e.checker.workload_plan import Share
from herdkeeper_e2e.java_pod import JavaPod, JavaProgram
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.steered_process import SteeredProcess

PROGRAM = JavaProgram("e2e/jdbc", built_images.HERDDB, "/opt/herddb/lib")


@dataclass(frozen=True)
class JdbcPod:
    """The pod `name`, for the Tablespace with this connection Secret. `identity` is the Secret with the certificate that it shows to
    ZooKeeper."""

    kubectl: Kubectl
    name: str
    connection_secret: str
    identity: str | None = None

    def start(self) -> JdbcPod:
        """Build the program, create the pod and wait until it runs. Returns it."""
        self._pod().start()
        return self

    def work(self, share: Share, history: str) -> SteeredProcess:
        """Start the clients; their history is a file in the pod."""
        numbers = (share.first_client, share.adders, share.register, share.readers, round(share.pause_seconds * 1000))
        command = self._pod().command("io.herdkeeper.e2e.JdbcWorkload", history, *map(str, numbers))
        return SteeredProcess(self.kubectl, self.name, command)

    def _pod(self) -> JavaPod:
        identity = java_identity(self.identity, "JAVA_TOOL_OPTIONS")
        login = [{"secretRef": {"name": self.connection_secret}, "prefix": "HERDDB_"}]
        folders = {
            str(mount["mountPath"]): {"secret": volume["secret"]} for mount, volume in zip(identity.mounts, identity.volumes, strict=True)
        }
        return JavaPod(self.kubectl, self.name, PROGRAM, {"envFrom": login, "env": [*identity.variables]}, folders)
