"""A real control plane of two processes, etcd and kube-apiserver, for tests and the fleet benchmark: no kubelet, so pods are objects only.

Tokens stand in for certificates: one of an administrator, and one of the operator's ServiceAccount, which has only the RBAC rules that a
test gives it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient

from herdkeeper_e2e.free_ports import free_ports
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

REPOSITORY = Path(__file__).resolve().parents[3]
CHART = REPOSITORY / "charts" / "herdkeeper"
BINARIES = ("etcd", "kube-apiserver")
HOME = "herdkeeper-system"
"""The operator's own namespace."""
OPERATOR_USER = "system:serviceaccount:herdkeeper-system:herdkeeper"
LOGGED_DRIVER = "system:serviceaccount:drivers-rights:flights-1-checkpoint"
"""The Spark driver whose requests are logged, too: that of one test."""
AUDIT_POLICY = REPOSITORY / "e2e" / "kind" / "audit-policy.yaml"
"""It logs the requests of these two, and of nobody else."""
START_SECONDS = 400  # seconds on an idle machine; a busy one has taken minutes
FEW_OBJECTS = (
    "--watch-cache=false",  # a list that waits for the cache takes twice as long as one from etcd, and no test has many objects
    "--enable-priority-and-fairness=false",
)
"""Flags of the API server for tests."""
FEW_COLLECTIONS = {"GOGC": "400"}
"""Environment of both processes: at Go's own 100, each fifth second of their CPU is garbage collection."""


@dataclass
class Server:
    """One of the two processes: how it is started, and where it says what it does."""

    command: list[str]
    log: Path
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        """Start it, for the first time or again."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(self.command, stdout=output, stderr=subprocess.STDOUT, env={**FEW_COLLECTIONS, **os.environ})

    def kill(self) -> None:
        """End it at once: a graceful end takes seconds."""
        self.process.kill()
        self.process.wait()


@dataclass(frozen=True)
class ControlPlane:
    """A running control plane: its address (`https://127.0.0.1:port`), the folder of its state, logs and kubeconfigs, its processes."""

    address: str
    folder: Path
    etcd: Server
    api_server: Server

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of an administrator."""
        return self.folder / "admin.kubeconfig"

    @property
    def operator_kubeconfig(self) -> Path:
        """Kubeconfig of the operator's ServiceAccount, `herdkeeper` in the namespace `herdkeeper-system`: it may do nothing until bound to
        a role."""
        return self.folder / "operator.kubeconfig"

    @property
    def audit_log(self) -> Path:
        """What the operator asked for, one event a line."""
        return self.folder / "audit.jsonl"

    def api_client(self, *, token: str = "admin-token") -> client.ApiClient:
        configuration = client.Configuration()
        configuration.host = self.address
        configuration.verify_ssl = False
        configuration.api_key = {"authorization": f"Bearer {token}"}
        return client.ApiClient(configuration)

    def dynamic_client(self, *, token: str = "admin-token") -> DynamicClient:
        """A client for any kind that the API server knows now. Make it after the CRDs are established."""
        return DynamicClient(self.api_client(token=token), cache_file=str(self.folder / f"discovery-{token}-{time.monotonic_ns()}.json"))


def binaries() -> dict[str, Path]:
    """Paths of etcd and kube-apiserver. FileNotFoundError, with the fix, when one is missing.

    They come from the folder HERDKEEPER_CONTROL_PLANE_BIN where that is set, else from the cluster's own build (e2e/kind/binaries.sh:
    minutes when its cache is
    cold, nothing after), else, off Linux, from PATH.
    """
    folder = os.environ.get("HERDKEEPER_CONTROL_PLANE_BIN")
    if folder is None and platform.system() == "Linux":
        built = subprocess.run([str(REPOSITORY / "e2e/kind/binaries.sh"), *BINARIES], check=True, stdout=subprocess.PIPE, text=True)
        folder = built.stdout.strip()
    found = {name: Path(shutil.which(name, path=folder) or "") for name in BINARIES}
    missing = [name for name, path in found.items() if not path.is_file()]
    if missing:
        raise FileNotFoundError(
            f"{' and '.join(missing)}: not in {folder or 'PATH'}; name the folder that has them in HERDKEEPER_CONTROL_PLANE_BIN"
        )
    return found


@cache
def helm() -> Path:
    """Path of Helm: from HERDKEEPER_CONTROL_PLANE_BIN where it is there, else from the cluster's tools (e2e/kind/tools.sh), which find or
    build it."""
    found = shutil.which("helm", path=os.environ.get("HERDKEEPER_CONTROL_PLANE_BIN", "/nonexistent"))
    if found is None:
        tools = subprocess.run([str(REPOSITORY / "e2e/kind/tools.sh")], check=True, stdout=subprocess.PIPE, text=True)
        found = str(Path(tools.stdout.strip()) / "helm")
    return Path(found)


@contextmanager
def running(folder: Path, flags: Sequence[str] = FEW_OBJECTS) -> Iterator[ControlPlane]:
    """A control plane with its state in `folder` and these flags of its API server, stopped at the end. RuntimeError with the log's end
    when it does not become ready."""
    paths = binaries()
    etcd_port, peer_port, api_port = free_ports(3)
    _write_identities(folder, api_port)
    etcd = Server(_etcd_command(paths["etcd"], folder, (etcd_port, peer_port)), folder / "etcd.log")
    api_command = _apiserver_command(paths["kube-apiserver"], folder, (etcd_port, api_port))
    api_server = Server([*api_command, *flags], folder / "kube-apiserver.log")
    started: list[Server] = []
    try:
        for server in (etcd, api_server):
            server.start()
            started.append(server)
        plane = ControlPlane(f"https://127.0.0.1:{api_port}", folder, etcd, api_server)
        wait_until_ready(plane)
        yield plane
    finally:
        for server in reversed(started):
            server.kill()


def apply_crds(plane: ControlPlane, folder: Path, files: str = "*.yaml") -> None:
    """Create the CRDs in files of a folder, and wait until they are served. RuntimeError, with the conditions, when one is not accepted."""
    with plane.api_client() as api:
        extensions = client.ApiextensionsV1Api(api)
        names = []
        for path in sorted(folder.glob(files)):
            document = yaml.load(path.read_text(), yaml.CSafeLoader)
            extensions.create_custom_resource_definition(document)
            names.append(document["metadata"]["name"])
        for name in names:
            wait_for(f"the establishment of {name}", partial(_is_established, extensions, name), Limit(START_SECONDS, 0.05))


def rendered(*settings: str, flag: str = "--set") -> list[dict[str, Any]]:
    """The objects of the chart, as a release named herdkeeper, with settings as `flag` takes them.

    A setting that values.schema.json refuses raises CalledProcessError.
    """
    arguments = [argument for setting in settings for argument in (flag, setting)]
    return [document for text in _template(*arguments).split("\n---\n") if (document := json.loads(_as_json(text)))]


@cache
def _as_json(document: str) -> str:
    """Most of a chart's documents are the same with other settings, and JSON is read a hundred times as fast as YAML."""
    return json.dumps(yaml.load(document, yaml.CSafeLoader))


@cache
def _template(*arguments: str) -> str:
    command = [str(helm()), "template", "herdkeeper", str(CHART), "--namespace", HOME, "--kube-version", "v1.34.0", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def apply_rules(plane: ControlPlane, objects: list[dict[str, Any]]) -> None:
    """Apply the roles and bindings among these objects, and wait until the API server lets the operator do what they allow."""
    dynamic = plane.dynamic_client()
    rules = [document for document in objects if document["kind"] in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")]
    for document in rules:
        resource = dynamic.resources.get(api_version=document["apiVersion"], kind=document["kind"])
        namespace = document["metadata"].get("namespace")
        resource.server_side_apply(body=document, name=document["metadata"]["name"], namespace=namespace, field_manager="helm")
    roles = {role_key(each["kind"], each["metadata"]): each["rules"][0] for each in rules if "rules" in each}
    for binding in (each for each in rules if "roleRef" in each):
        namespace = binding["metadata"].get("namespace")
        first = roles[role_key(binding["roleRef"]["kind"], {**binding["roleRef"], "namespace": namespace})]
        wait_for(binding["metadata"]["name"], partial(_allowed, plane, first, namespace), Limit(60, 0.05))


def role_key(kind: str, metadata: dict[str, Any]) -> tuple[str, str, str | None]:
    """What names a role, in the chart and in the bindings beside it."""
    return kind, metadata["name"], metadata.get("namespace") if kind == "Role" else None


def _allowed(plane: ControlPlane, rule: dict[str, Any], namespace: str | None) -> bool | Pending:
    """Whether the operator may do the first thing that a rule allows. The API server's authorizer learns of a rule from a watch."""
    plural, _, subresource = rule["resources"][0].partition("/")
    attributes = {"verb": rule["verbs"][0], "group": rule["apiGroups"][0], "resource": plural, "subresource": subresource}
    with plane.api_client(token="operator-token") as api:
        body = {"spec": {"resourceAttributes": {**attributes, "namespace": namespace}}}
        review = client.AuthorizationV1Api(api).create_self_subject_access_review(body)
    return bool(review.status.allowed) or Pending(f"not allowed yet: {attributes}")


def make_namespace(plane: ControlPlane, name: str, labels: dict[str, str] | None = None) -> str:
    """A namespace, which may be there already; its name."""
    with plane.api_client() as api:
        try:
            client.CoreV1Api(api).create_namespace({"metadata": {"name": name, "labels": labels or {}}})
        except ApiException as error:
            if error.status != 409:
                raise
    return name


def _write_identities(folder: Path, api_port: int) -> None:
    (folder / "tokens.csv").write_text(
        'admin-token,admin,admin,"system:masters"\n'
        f'operator-token,{OPERATOR_USER},operator,"system:serviceaccounts,system:serviceaccounts:herdkeeper-system"\n'
    )
    subprocess.run(["openssl", "genrsa", "-out", str(folder / "service-account.key"), "2048"], check=True, capture_output=True)
    for name in ("admin", "operator"):
        kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"https://127.0.0.1:{api_port}", "insecure-skip-tls-verify": True}}],
            "users": [{"name": name, "user": {"token": f"{name}-token"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name, "namespace": "default"}}],
        }
        (folder / f"{name}.kubeconfig").write_text(yaml.safe_dump(kubeconfig))


def _etcd_command(binary: Path, folder: Path, ports: tuple[int, int]) -> list[str]:
    client_url, peer_url = (f"http://127.0.0.1:{port}" for port in ports)
    return [
        str(binary),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client_url}",
        f"--advertise-client-urls={client_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--unsafe-no-fsync",  # a test's state is worth nothing
        "--log-level=error",
    ]


def _apiserver_command(binary: Path, folder: Path, ports: tuple[int, int]) -> list[str]:
    etcd_port, api_port = ports
    return [
        str(binary),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        f"--secure-port={api_port}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={folder / 'certs'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        f"--service-account-key-file={folder / 'service-account.key'}",
        f"--service-account-signing-key-file={folder / 'service-account.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--disable-admission-plugins=ServiceAccount",  # nobody makes the default ServiceAccount that it wants in every namespace
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",  # as OpenShift has it
        "--allow-privileged=true",  # as kubeadm has it
        "--profiling=false",
        f"--audit-policy-file={AUDIT_POLICY}",
        f"--audit-log-path={folder / 'audit.jsonl'}",
        "--audit-log-maxsize=100000",  # one file, in MB
    ]


def wait_until_ready(plane: ControlPlane) -> None:
    """Until the API server serves. RuntimeError with the log's end when it does not, or when one of the two processes has ended."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    request = urllib.request.Request(f"{plane.address}/readyz", headers={"Authorization": "Bearer admin-token"})
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        dead = [server for server in (plane.etcd, plane.api_server) if server.process.poll() is not None]
        if dead:
            raise RuntimeError(f"{dead[0].command} ended with {dead[0].process.returncode}: {_log_ends(plane.folder)}")
        try:
            with urllib.request.urlopen(request, timeout=5, context=context) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.1)  # between polls of the condition
    raise RuntimeError(f"the control plane was not ready within {START_SECONDS} s: {_log_ends(plane.folder)}")


def _is_established(extensions: client.ApiextensionsV1Api, name: str) -> bool | Pending:
    conditions = extensions.read_custom_resource_definition(name).status.conditions or []
    established = any(condition.type == "Established" and condition.status == "True" for condition in conditions)
    return established or Pending("; ".join(f"{condition.type}={condition.status} {condition.message}" for condition in conditions))


def _log_ends(folder: Path) -> str:
    return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in sorted(folder.glob("*.log")))
