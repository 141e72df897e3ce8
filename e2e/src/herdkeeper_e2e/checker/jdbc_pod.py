"""A pod for the JDBC clients (e2e/jdbc): the image of a SQL node has HerdDB's jars, a ConfigMap brings the driver and the program.

Where the database is says the Tablespace's connection Secret, as to any application (examples/client.yaml).
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from herdkeeper_e2e.checker.workload_plan import Share
from herdkeeper_e2e.client_pod import client_pod, start_pod
from herdkeeper_e2e.cluster import REPOSITORY, run
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.steered_process import SteeredProcess

IMAGE = "herdkeeper/herddb:0.1.0"
PROGRAMS = "/programs"
_BUILD = "cp -r /src/e2e/jdbc /tmp/module && cd /tmp/module && rm -rf target && mvn -B -q -DskipTests package && cp target/*.jar /out/"


@dataclass(frozen=True)
class JdbcPod:
    """The pod `name`, for the Tablespace with this connection Secret."""

    kubectl: Kubectl
    name: str
    connection_secret: str

    def start(self) -> None:
        """Builds the program, ships it, makes the pod and waits until it runs."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            builder = str(REPOSITORY / "e2e/images/builder.sh")
            run([builder, str(folder), "bash", "-ec", _BUILD], self.kubectl.environment, lambda _: None)
            jars = [f"--from-file={path}" for path in sorted(folder.glob("*.jar"))]
            manifest = self.kubectl.run("create", "configmap", self.name, *jars, "--dry-run=client", "-o", "json")
        # the server's own apply: the other one notes all that it applied in an annotation, for which the jars are too large
        self.kubectl.run("apply", "--server-side", "-f", "-", stdin=manifest.encode())
        start_pod(self.kubectl, self._manifest())

    def work(self, share: Share, history: str) -> SteeredProcess:
        """Starts the clients; their history goes to a file of the pod."""
        numbers = (share.first_client, share.adders, share.register, share.readers, round(share.pause_seconds * 1000))
        program = ("java", "-XX:+UseSerialGC", "-Xmx128m", "-cp", f"/opt/herddb/lib/*:{PROGRAMS}/*", "io.herdkeeper.e2e.JdbcWorkload")
        return SteeredProcess(self.kubectl, self.name, [*program, history, *map(str, numbers)])

    def _manifest(self) -> Object:
        container = {
            "name": "jdbc",
            "image": IMAGE,
            "command": ["sleep", "infinity"],
            "envFrom": [{"secretRef": {"name": self.connection_secret}, "prefix": "HERDDB_"}],
            "volumeMounts": [{"name": "programs", "mountPath": PROGRAMS}, {"name": "tmp", "mountPath": "/tmp"}],
        }
        return client_pod(self.name, container, [{"name": "programs", "configMap": {"name": self.name}}, {"name": "tmp", "emptyDir": {}}])
