"""Flux beside a cluster: its controllers as plain processes with the cluster's kubeconfig, built from their Go modules (e2e/flux)."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from herdkeeper_e2e.conditions import condition
from herdkeeper_e2e.free_ports import free_port
from herdkeeper_e2e.go_module import go_program, module_folder
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

CONTROLLERS = ("source-controller", "kustomize-controller", "helm-controller")
NAMESPACE = "flux-system"
FAILED = "HealthCheckFailed"
"""Flux's reason if a resource is Failed by kstatus, or not Current in time."""
FAILED_RELEASE = ("InstallFailed", "UpgradeFailed")
"""Flux's reasons if Helm refuses a chart, or the release's objects are not Current in time."""
_REQUEST = "reconcile.fluxcd.io/requestedAt"
_OWN = "helmreleases,kustomizations,gitrepositories"


class HealthCheckError(AssertionError):
    """Flux gave up waiting. The message is Flux's."""


def definitions(controller: str) -> Path:
    """Returns the folder with a controller's CRDs, in the version that e2e/flux/go.mod pins; fetched if missing."""
    return module_folder("flux", f"github.com/fluxcd/{controller}") / "config/crd/bases"


@dataclass(frozen=True)
class Flux:
    """Running controllers. `kubectl` is in Flux's namespace."""

    kubectl: Kubectl

    def fetch(self, repository: str) -> None:
        """Have a GitRepository fetched now, instead of at its interval."""
        self._request("gitrepository", repository)

    def kustomization(self, name: str) -> Object:
        """Returns an existing Kustomization."""
        return self.kubectl.existing("kustomization", name)

    def helm_release(self, name: str) -> Object:
        """Returns an existing HelmRelease."""
        return self.kubectl.existing("helmrelease", name)

    def reconcile(self, name: str, limit: Limit) -> None:
        """Have a Kustomization applied again, as at its interval, and wait until it is Ready. Raises HealthCheckError."""
        request = self._request("kustomization", name)
        wait_for(f"the Kustomization {name}", lambda: handled(self.kustomization(name), request, ready), limit)

    def reconcile_release(self, name: str, limit: Limit) -> None:
        """The same of a HelmRelease."""
        request = self._request("helmrelease", name)
        wait_for(f"the HelmRelease {name}", lambda: handled(self.helm_release(name), request, released), limit)

    def _request(self, kind: str, name: str) -> str:
        request = str(uuid.uuid4())
        self.kubectl.run("annotate", kind, name, f"{_REQUEST}={request}", "--overwrite")
        return request


def ready(kustomization: Object, commit: str = "") -> bool | Pending:
    """Returns whether a Kustomization is Ready, at a commit if one is given. Raises HealthCheckError once Flux gave up at it."""
    name = kustomization["metadata"]["name"]
    told = condition(kustomization, "Ready")
    if told is None:
        return Pending(f"{name} is new")
    status = kustomization["status"]
    if told["status"] == "True":
        applied = status.get("lastAppliedRevision", "")  # which Flux writes after the condition
        return True if applied.endswith(commit) else Pending(f"{name} has {applied}")
    if told["reason"] == FAILED and status["lastAttemptedRevision"].endswith(commit):
        raise HealthCheckError(told["message"])
    return Pending(f"{name}: {told['reason']}: {told['message']}")


def released(release: Object, commit: str = "") -> bool | Pending:
    """Returns whether a HelmRelease is Ready, with a commit's chart if one is given. Raises HealthCheckError once Flux gave up at it."""
    name, status, told = release["metadata"]["name"], release.get("status", {}), condition(release, "Ready")
    if told is None or status["observedGeneration"] != release["metadata"]["generation"]:
        return Pending(f"{name} is new")
    version = status.get("history", [{}])[0].get("chartVersion", "")
    # source-controller gives a chart's version the first digits of the commit
    if told["status"] == "True" and version.endswith(commit[:12]):
        return True
    # the message of a failure names the chart: until another one is tried, it is that of the commit before
    if told["reason"] in FAILED_RELEASE and commit[:12] in told["message"]:
        raise HealthCheckError(told["message"])
    return Pending(f"{name} {version}: {told['reason']}: {told['message']}")


def handled(item: Object, request: str, done: Callable[[Object], bool | Pending]) -> bool | Pending:
    """Returns whether a request was handled, and what came of it is done."""
    if item.get("status", {}).get("lastHandledReconcileAt") != request:
        return Pending(f"{item['metadata']['name']} is not reconciled yet")
    return done(item)


@contextmanager
def running(kubectl: Kubectl, folder: Path) -> Iterator[Flux]:
    """Flux's controllers, for all namespaces of the cluster. In the end, also after a failure, its resources go,
    which prunes what they applied, and its CRDs.

    Artifacts and logs lie in `folder`. The programs are built if missing, which takes a quarter of an hour.
    """
    flux = Flux(kubectl.in_namespace(NAMESPACE))
    programs = {name: str(go_program(name)) for name in CONTROLLERS}
    crds = [word for name in CONTROLLERS for word in ("-f", str(definitions(name)))]
    kubectl.run("apply", "--server-side", *crds)
    kubectl.run("wait", "--for=condition=Established", *crds)
    flux.kubectl.apply(f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {NAMESPACE}\n")
    artifacts = folder / "artifacts"
    artifacts.mkdir()
    address = f"127.0.0.1:{free_port()}"
    options = {
        "source-controller": [f"--storage-path={artifacts}", f"--storage-addr={address}", f"--storage-adv-addr={address}"],
        "kustomize-controller": ["--requeue-dependency=2s"],
        "helm-controller": ["--requeue-dependency=2s"],
    }
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for name in CONTROLLERS:
            with (folder / f"{name}.log").open("wb") as log:
                command = [programs[name], "--metrics-addr=0", "--health-addr=0", *options[name]]
                processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(kubectl.environment)))
        _clear(flux)  # what a killed run left
        yield flux
    finally:
        try:
            _clear(flux)  # it has the controllers' finalizers, so it goes only while they run
            kubectl.run("delete", *crds)
            kubectl.run("delete", "namespace", NAMESPACE)
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()


def _clear(flux: Flux) -> None:
    flux.kubectl.run("delete", _OWN, "--all", timeout_seconds=300)
