"""A pod inside the cluster for programs that use SQL or read checkpoints: only there do the servers' names and addresses resolve.

Its image has Python with the project's packages. The programs of herdkeeper_e2e and the data are copied into it, so that a change needs no
new image.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from herdkeeper.shared.names import IDENTITY_VARIABLE, BookKeeperNames, ObjectKey, secure_ensemble
from herdkeeper.sql.connection import Credentials
from herdkeeper_e2e import built_images
from herdkeeper_e2e.client_pod import client_pod, copy_into, start_pod
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.session import HERD_ROOT, NEXT_PASSWORD, PASSWORD, TABLESPACE, USERNAME, ZOOKEEPER
from herdkeeper_e2e.steered_process import SteeredProcess

WORK = "/work"
CHECKPOINTS = "/checkpoints"
IDENTITY, OPERATOR_IDENTITY = "/identity", "/operator-identity"
"""Folders of a pod's own certificate and of the operator's, on a stack whose servers ask for one."""
SOURCES = Path(__file__).parent


@dataclass(frozen=True)
class Database:
    """Location of a tablespace, by the statuses of its resources. `identity` is the Secret with a certificate for reading its log.
    `operator_identity` is the one that opens all znodes of the ensemble. Both are None if servers ask for none.
    """

    zookeeper: str
    herd_root: str
    tablespace: str
    credentials_secret: str
    identity: str | None = None
    operator_identity: str | None = None

    @staticmethod
    def of(kubectl: Kubectl, herddb: str, bookkeeper: str, tablespace: str) -> Database:
        """Read the statuses; the resources must be Ready. Raises KeyError otherwise."""
        database = kubectl.existing("herddbcluster", herddb)
        address = str(kubectl.existing("bookkeepercluster", bookkeeper)["status"]["zooKeeperAddress"])
        ensemble = secure_ensemble(address, kubectl.namespace)
        readers = BookKeeperNames(ObjectKey(kubectl.namespace, bookkeeper)).readers_secret
        return Database(
            zookeeper=address,
            herd_root=database["status"]["herdRoot"],
            tablespace=kubectl.existing("tablespace", tablespace)["status"]["tablespaceName"],
            credentials_secret=database["status"]["credentialsSecret"],
            identity=None if ensemble is None else readers,
            operator_identity=None if ensemble is None else ensemble.operator_secret,
        )


@dataclass(frozen=True)
class ToolsPod:
    """A pod. With `claim`, the volume of checkpoints is mounted; programs only read it.

    It runs on the machine `machine`, if given. Its clients use the password from the credentials Secret at its creation, and
    `next_password` if that is refused.
    """

    kubectl: Kubectl
    name: str
    database: Database
    image: str = built_images.OPERATOR
    claim: str | None = None
    machine: str | None = None
    next_password: str | None = None
    login: Credentials | None = None
    """User of its programs; None: the administrator as of the pod's creation."""
    presents_operator: bool = False
    """Whether its programs present the operator's certificate instead of a reader's."""

    def as_operator(self) -> ToolsPod:
        """Returns the same pod for programs that read or change any znode, as the operator may."""
        return replace(self, presents_operator=True)

    def as_user(self, username: str, password: str) -> ToolsPod:
        """Returns the same pod with another user for its programs."""
        return replace(self, login=Credentials(username, password))

    def start(self) -> ToolsPod:
        """Create the pod unless it exists, wait until it runs, and copy the programs into it. Returns it."""
        start_pod(self.kubectl, self.manifest())
        self.copy(SOURCES, SOURCES.name)
        return self

    @contextmanager
    def for_a_while(self) -> Iterator[ToolsPod]:
        """The same pod, which runs as long as the block lasts."""
        try:
            yield self.start()
        finally:
            self.kubectl.run("delete", "pod", self.name, "--ignore-not-found")

    def copy(self, folder: Path, target: str) -> None:
        """Copies the files of a folder, and of those in it, into `/work/<target>`."""
        files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".pyc")
        copy_into(self.kubectl, self.name, WORK, {f"{target}/{path.relative_to(folder)}": path.read_bytes() for path in files})

    def program(self, module: str, *arguments: str) -> tuple[str, ...]:
        """The command line of a program of herdkeeper_e2e inside the pod."""
        return (*self._python(), "-m", f"herdkeeper_e2e.{module}", *arguments)

    def run(self, module: str, *arguments: str, timeout_seconds: float = 900.0) -> str:
        """Run a program to its end; returns its standard output. Raises KubectlError."""
        return self.kubectl.exec(self.name, *self.program(module, *arguments), timeout_seconds=timeout_seconds)

    def steered(self, module: str, *arguments: str) -> SteeredProcess:
        """Start a program that goes on until it is stopped."""
        return SteeredProcess(self.kubectl, self.name, self.program(module, *arguments))

    def script(self, source: str, *arguments: str) -> str:
        """Run Python code to its end; returns its standard output. Raises KubectlError."""
        return self.kubectl.exec(self.name, *self._python(), "-c", source, *arguments)

    def znodes(self) -> list[str]:
        """Returns the paths of all znodes of the ensemble, without ZooKeeper's own."""
        found: list[str] = self.as_operator().fact("znodes")
        return found

    def fact(self, name: str, *arguments: str) -> Any:
        """Returns one of `herdkeeper_e2e.facts`. Raises KubectlError."""
        return json.loads(self.run("facts", name, *arguments))

    def follow(self, module: str, *arguments: str, say: Callable[[str], None]) -> None:
        """Run a program until its standard input ends, and pass its lines on. Raises RuntimeError if it fails."""
        process = self.kubectl.start("exec", "-i", self.name, "--", *self.program(module, *arguments))
        last = ""
        for line in process.stdout or ():
            last = line.rstrip()
            say(last)
        if process.wait() != 0:
            raise RuntimeError(f"{module} failed: {last}")

    def query(self, sql: str) -> list[Object]:
        """Returns the rows of a SELECT on the tablespace's leader."""
        return [json.loads(line) for line in self.run("query", "--json", sql).splitlines() if line.startswith("{")]

    def rows(self, table: str) -> list[str]:
        """Returns all rows of a table as JSON, sorted."""
        return sorted(json.dumps(row, sort_keys=True) for row in self.query(f"SELECT * FROM {table}"))

    def _python(self) -> tuple[str, ...]:
        variables: dict[str, str] = {}
        if self.login is not None:
            variables |= {USERNAME: self.login.username, PASSWORD: self.login.password}
        if self.presents_operator and self.database.operator_identity is not None:
            variables[IDENTITY_VARIABLE] = OPERATOR_IDENTITY
        return (*(("env", *(f"{name}={value}" for name, value in variables.items())) if variables else ()), "python3")

    def manifest(self) -> Object:
        def secret(key: str) -> Object:
            return {"valueFrom": {"secretKeyRef": {"name": self.database.credentials_secret, "key": key}}}

        values = {ZOOKEEPER: self.database.zookeeper, HERD_ROOT: self.database.herd_root, TABLESPACE: self.database.tablespace}
        environment = [
            *({"name": name, "value": value} for name, value in values.items()),
            {"name": USERNAME, **secret("username")},
            {"name": PASSWORD, **secret("password")},
            *([{"name": NEXT_PASSWORD, "value": self.next_password}] if self.next_password else []),
            {"name": "PYTHONPATH", "value": f"{WORK}:/opt/app:/opt/site"},
        ]
        mounts = [{"name": "work", "mountPath": WORK}, {"name": "tmp", "mountPath": "/tmp"}]
        volumes: list[Object] = [{"name": "work", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
        if self.database.identity is not None:
            environment.append({"name": IDENTITY_VARIABLE, "value": IDENTITY})
        for folder, secret_name in ((IDENTITY, self.database.identity), (OPERATOR_IDENTITY, self.database.operator_identity)):
            if secret_name is not None:
                name = folder.removeprefix("/")
                mounts.append({"name": name, "mountPath": folder})
                volumes.append({"name": name, "secret": {"secretName": secret_name, "defaultMode": 0o440}})
        if self.claim is not None:
            mounts.append({"name": "checkpoints", "mountPath": CHECKPOINTS})
            volumes.append({"name": "checkpoints", "persistentVolumeClaim": {"claimName": self.claim}})
        container = {
            "name": "tools",
            "image": self.image,
            "command": ["python3", "-c", "import signal; signal.signal(signal.SIGTERM, signal.default_int_handler); signal.pause()"],
            "env": environment,
            "volumeMounts": mounts,
        }
        return client_pod(self.name, container, volumes, self.machine)
