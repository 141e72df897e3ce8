"""Deletes or damages entries on a bookie's disk: faults that a replication audit must find (e2e/faults/README.md).

The operator is paused, the bookie is stopped by its StatefulSet, and a pod with its claims runs the tool.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from herdkeeper_e2e import built_images
from herdkeeper_e2e.client_pod import client_pod
from herdkeeper_e2e.cluster import REPOSITORY, run
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

IMAGE = built_images.BOOKKEEPER
CONFIG_MAP = "drop-entries"
PATIENCE = Limit(300)


@dataclass(frozen=True)
class Loss:
    """Entries `first`..`last` of a ledger on the bookie with this number: deleted, or damaged."""

    cluster: str
    number: int
    ledger: int
    first: int
    last: int
    damaged: bool = False

    @property
    def bookie(self) -> str:
        """Its StatefulSet."""
        return f"{self.cluster}-bookie-{self.number}"

    @property
    def command(self) -> str:
        """Returns the shell command that causes it, next to the bookie's volumes."""
        arguments = f"/ledgers/ledgers /journal/journal {self.ledger} {self.first} {self.last}"
        return f"java -cp '/opt/bookkeeper/lib/*:/faults' DropEntries {arguments}{' damage' if self.damaged else ''}"


def drop_entries(kubectl: Kubectl, loss: Loss, *more: Loss) -> None:
    """Cause the losses on one bookie, and wait until it serves again. Raises WaitError or KubectlError, and ValueError for
    several bookies.
    """
    if {each.bookie for each in more} - {loss.bookie}:
        raise ValueError(f"losses of {loss.bookie} and of others: make those of each bookie for themselves")
    _ship_tool(kubectl)
    # then the operator restarts the bookie: its StatefulSet differs from its intent; a paused resource would also outlive its namespace
    with kubectl.paused("bookkeepercluster", loss.cluster):
        kubectl.run("scale", "statefulset", loss.bookie, "--replicas=0")
        wait_for(f"the end of {loss.bookie}-0", lambda: kubectl.gone("pod", f"{loss.bookie}-0"), PATIENCE)
        kubectl.apply(_pod((loss, *more)))
        wait_for("the end of drop-entries", lambda: _succeeded(kubectl), PATIENCE)
        kubectl.run("delete", "pod", CONFIG_MAP)


def _ship_tool(kubectl: Kubectl) -> None:
    """Compile the tool in the builder and put its class into a ConfigMap."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _copy_jar(kubectl.environment, folder)
        command = ["bash", "-c", "javac --release 17 -cp '/out/*' -d /out /src/e2e/faults/DropEntries.java"]
        run([str(REPOSITORY / "e2e/images/builder.sh"), str(folder), *command], kubectl.environment, lambda _: None)
        classes = [f"--from-file={path}" for path in sorted(folder.glob("*.class"))]
        manifest = kubectl.run("create", "configmap", CONFIG_MAP, *classes, "--dry-run=client", "-o", "json")
    kubectl.apply(manifest)


def _copy_jar(environment: Mapping[str, str], folder: Path) -> None:
    """Copy RocksDB's jar out of the image, to compile the tool against it."""
    listing = run(["docker", "run", "--rm", "--entrypoint", "ls", IMAGE, "/opt/bookkeeper/lib"], environment, lambda _: None)
    jar = next(line for line in listing.splitlines() if line.startswith("rocksdbjni"))
    container = run(["docker", "create", IMAGE], environment, lambda _: None).strip()
    try:
        run(["docker", "cp", f"{container}:/opt/bookkeeper/lib/{jar}", str(folder)], environment, lambda _: None)
    finally:
        run(["docker", "rm", container], environment, lambda _: None)


def _succeeded(kubectl: Kubectl) -> bool | Pending:
    pod = kubectl.get("pod", CONFIG_MAP)
    phase = (pod or {}).get("status", {}).get("phase", "absent")
    if phase == "Failed":
        raise RuntimeError(f"drop-entries failed: {kubectl.run('logs', CONFIG_MAP)}")
    return True if phase == "Succeeded" else Pending(f"its pod is {phase}")


def _pod(losses: Sequence[Loss]) -> Object:
    bookie = losses[0].bookie
    claims = [{"name": name, "persistentVolumeClaim": {"claimName": f"{bookie}-{name}"}} for name in ("journal", "ledgers")]
    container = {
        "name": "tool",
        "image": IMAGE,
        "command": ["sh", "-ec", "\n".join(loss.command for loss in losses)],
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in ("journal", "ledgers", "faults", "tmp")],
    }
    volumes: list[Object] = [*claims, {"name": "faults", "configMap": {"name": CONFIG_MAP}}, {"name": "tmp", "emptyDir": {}}]
    pod = client_pod(CONFIG_MAP, container, volumes)
    return {**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}}
