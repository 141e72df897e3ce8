"""cert-manager beside a cluster: its controllers as a plain process with the cluster's kubeconfig, built from their Go module
(e2e/cert-manager).

Its webhook, which is a program of its own, does not run: the CRDs alone check what is applied.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

from herdkeeper_e2e.go_module import go_program, module_folder
from herdkeeper_e2e.kubectl import Kubectl, Object

API_VERSION = "cert-manager.io/v1"
HOME = "cert-manager"
"""The namespace with the Secrets of ClusterIssuers."""
RENEWAL: list[Object] = [
    {
        "op": "add",
        "path": "/status/conditions/-",
        "value": {"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "a test asks for it"},
    }
]
"""A JSON patch of a Certificate's status: what `cmctl renew` writes."""
_COMMENT = "#   "
_END_SECONDS = 30


def definitions() -> Path:
    """Returns the folder with the CRDs, in the version that e2e/cert-manager/go.mod pins; fetched if missing."""
    return module_folder("cert-manager", "github.com/cert-manager/cert-manager") / "deploy/crds"


def in_comments(example: Path) -> list[Object]:
    """Returns the manifests that an example shows in its comments, indented."""
    lines = [line.removeprefix(_COMMENT) for line in example.read_text().splitlines() if line.startswith(_COMMENT)]
    return list(yaml.safe_load_all("\n".join(lines)))


def company() -> list[Object]:
    """Returns the ClusterIssuer `company` of the examples, and what makes its root, in the namespace HOME."""
    root = {
        "secretName": "company",
        "commonName": "company root",
        "isCA": True,
        "duration": "87600h",
        "privateKey": {"algorithm": "ECDSA", "size": 384},
        "issuerRef": {"kind": "ClusterIssuer", "name": "itself"},
    }
    return [
        {"apiVersion": API_VERSION, "kind": "ClusterIssuer", "metadata": {"name": "itself"}, "spec": {"selfSigned": {}}},
        {"apiVersion": API_VERSION, "kind": "Certificate", "metadata": {"name": "company"}, "spec": root},
        {"apiVersion": API_VERSION, "kind": "ClusterIssuer", "metadata": {"name": "company"}, "spec": {"ca": {"secretName": "company"}}},
    ]


@contextmanager
def controllers(environment: Mapping[str, str], log: Path) -> Iterator[None]:
    """cert-manager's controllers on the cluster of KUBECONFIG, which must have the CRDs. The program is built if missing, which takes
    some minutes. RuntimeError if it ends before the block does."""
    program = str(go_program("cert-manager"))
    with log.open("wb") as output:
        process = subprocess.Popen([program, "-v=2"], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=dict(environment))
    try:
        yield
        if process.poll() is not None:
            raise RuntimeError(f"cert-manager ended with {process.returncode}: {log.read_text()[-2000:]}")
    finally:
        process.terminate()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def running(kubectl: Kubectl, log: Path) -> Iterator[None]:
    """The same with its CRDs and the ClusterIssuer `company`. All of it goes with the block, and with the CRDs every Certificate."""
    home = kubectl.in_namespace(HOME)
    crds = ("-f", str(definitions()))
    with ExitStack() as in_the_end:  # one goes even if the other does not
        in_the_end.callback(kubectl.run, "delete", "--ignore-not-found", "namespace", HOME)
        in_the_end.callback(kubectl.run, "delete", "--ignore-not-found", *crds)
        kubectl.run("apply", "--server-side", *crds)
        kubectl.run("wait", "--for=condition=Established", *crds)
        home.apply(f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {HOME}\n")
        with controllers(kubectl.environment, log):
            home.apply_all(company())
            yield
