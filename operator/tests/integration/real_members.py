"""The members of a ZooKeeperCluster as real processes on this machine, started by the image's own entry point. No containers.

What StatefulSet's controller and kubelet do is played, in turns: a pod object for each number, a process for each pod, a folder for each
volume claim, Ready as the image's own readiness probe says. All members share one machine, so each has ports of its own; names and ports
are translated on the way to the processes, and back.
"""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stage import CLAIM, Stage

from herdkeeper.clients.http import JsonReader
from herdkeeper.clients.identities import read_identity
from herdkeeper.clients.kubernetes import KubernetesReader, LiveSource
from herdkeeper.clients.zookeeper import EnsembleSessions, MembershipChange, Znodes
from herdkeeper.clients.zookeeper_member import Wake
from herdkeeper.codecs.zookeeper.membership import CONFIG_PATH
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey, ZooKeeperNames
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.build import CLIENTS_MOUNT, MEMBERS_MOUNT
from herdkeeper_e2e.control_plane import REPOSITORY
from herdkeeper_e2e.free_ports import free_ports
from herdkeeper_e2e.server_processes import jars_of

IMAGE = REPOSITORY / "images/zookeeper"
MOST = 5
JVM_OPTIONS = "-Xmx96m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
RESOLVING = "-Dsun.net.inetaddr.negative.ttl=1 -Dsun.net.inetaddr.ttl=1"
_SERVER = re.compile(r"server\.(\d+)=[^;\s]+:(participant|observer);(\S+)")
LOOPBACK = f"{names.LOOPBACK}:{names.ZOOKEEPER_LOOPBACK_PORT}"


def home(folder: Path) -> Path:
    """The image's /opt/zookeeper, with its jars."""
    made = folder / "home"
    made.mkdir()
    (made / "lib").symlink_to(jars := jars_of("zookeeper"))
    (made / "classes.jsa").symlink_to(jars.parent / "classes.jsa")
    (made / "conf").symlink_to(IMAGE / "conf")
    return made


def start_member(host: str, folders: tuple[Path, Path, Path], log: Path, **variables: str) -> subprocess.Popen[bytes]:
    """The image's entry point as a process. `folders`: the image's, that of the configuration, and the volume. It does not wait for its own
    name, which leads to no pod.
    """
    home, config, volume = map(str, folders)
    environment = {
        "PATH": os.environ["PATH"],
        "HOSTNAME": host,
        "ZOOKEEPER_HOME": home,
        "ZOOKEEPER_CONFIG": config,
        "ZOOKEEPER_DATA": volume,
        "ZOOKEEPER_NAME_SECONDS": "0",
        "JVM_OPTIONS": JVM_OPTIONS,
        **variables,
    }
    with log.open("ab") as output:
        return subprocess.Popen([str(IMAGE / "entrypoint.sh")], env=environment, stdout=output, stderr=subprocess.STDOUT)


@dataclass(frozen=True)
class Ports:
    """Where a member listens on 127.0.0.1: `secure` for clients with certificates, `loopback` for its own probes once it refuses others."""

    client: int
    quorum: int
    election: int
    admin: int
    secure: int = 0
    loopback: int = 0


@dataclass
class RealMembers:
    """The members of the ZooKeeperCluster `name`, and the operator's ways to them: EnsembleSessions and a JsonReader.

    With `dies_after_change` the operator ends right after each change of the membership. Where there is a file `hosts`, members know each
    other by name, and a name has the address that the file gives it, if any.
    """

    stage: Stage
    name: str
    folder: Path
    ports: tuple[Ports, ...] = field(default_factory=lambda: tuple(Ports(*free_ports(6)) for _ in range(MOST)))
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    changes: list[MembershipChange] = field(default_factory=list)
    hosts: Path | None = None
    dies_after_change: bool = False

    def __post_init__(self) -> None:
        self._home = home(self.folder)
        kubernetes = KubernetesReader(LiveSource(self.stage.dynamic), self.stage.images)
        self._sessions = EnsembleSessions(lambda secret: read_identity(kubernetes, secret))
        self._uids: dict[int, str] = {}

    @property
    def named(self) -> ZooKeeperNames:
        return ZooKeeperNames(ObjectKey(self.stage.namespace, self.name))

    # the operator's ways

    def at(self, address: str, identity: ObjectKey | None = None) -> Znodes:
        """See EnsembleSessions."""
        return _Translated(self, self._sessions.at(self.local_address(address), identity))  # type: ignore[return-value]

    def reconfigure(self, address: str, password: str, change: MembershipChange, identity: ObjectKey | None = None) -> None:
        """See EnsembleSessions."""
        joining = tuple(self.to_process(line) for line in change.joining)
        local = MembershipChange(joining, change.leaving, change.version)
        self._sessions.reconfigure(self.local_address(address), password, local, identity)
        self.changes.append(change)
        if self.dies_after_change:
            raise OperatorDied(f"after {change}")

    def get(self, url: str) -> Any | Unknown:
        """See JsonReader."""
        number = next(number for number in range(MOST) if f"//{self.named.host(number)}:" in url)
        return JsonReader().get(re.sub(r"//[^/]+/", f"//127.0.0.1:{self.ports[number].admin}/", url))

    def local_address(self, address: str) -> str:
        """Where clients of this machine find the members that a connection string names."""
        numbers = [number for number in range(MOST) if f"{self.named.host(number)}:" in address]
        if f":{names.ZOOKEEPER_SECURE_PORT}" in address:
            return ",".join(f"localhost:{self.ports[number].secure}" for number in numbers)
        return ",".join(f"127.0.0.1:{self.ports[number].client}" for number in numbers)

    def to_process(self, text: str) -> str:
        """Servers with the ports of this machine."""

        def server(found: re.Match[str]) -> str:
            ports = self.ports[int(found[1]) - 1]
            host = "127.0.0.1" if self.hosts is None else f"member-{found[1]}.test"
            client = ports.loopback if found[3] == LOOPBACK else ports.client
            return f"server.{found[1]}={host}:{ports.quorum}:{ports.election}:{found[2]};127.0.0.1:{client}"

        return _SERVER.sub(server, text)

    def from_process(self, text: str) -> str:
        """Servers with the names and ports of the cluster, as ZooKeeper writes them."""

        def server(found: re.Match[str]) -> str:
            closed = found[3] == f"127.0.0.1:{self.ports[int(found[1]) - 1].loopback}"
            client = LOOPBACK if closed else "0.0.0.0:2181"
            return f"server.{found[1]}={self.named.host(int(found[1]) - 1)}:2888:3888:{found[2]};{client}"

        return _SERVER.sub(server, text)

    # what Kubernetes would do

    def turn(self) -> None:
        """Pods as the StatefulSet wants them, processes as the pods want them, and who is Ready."""
        wanted = int(self.stage.found("StatefulSet", self.named.stateful_set)["spec"]["replicas"])
        for number in range(MOST):
            pod = self.stage.live("Pod", self.named.pod(number))
            if pod is None or pod["metadata"]["uid"] != self._uids.get(number):
                self.stop(number)
            if number >= wanted and pod is not None:
                self.stage.delete("Pod", self.named.pod(number))
            if number < wanted:
                self._run(number)
        self.stage.let_claims_go()

    def _run(self, number: int) -> None:
        """Kubelet's part: the process of a pod, started again when it ended."""
        if number not in self.processes or self.processes[number].poll() is not None:
            self.start(number)
        self.stage.serve(self.named.stateful_set, number)
        self._uids[number] = self.stage.found("Pod", self.named.pod(number))["metadata"]["uid"]
        if not self.serves(number):
            self.stage.stop_serving(self.named.pod(number))

    def serves(self, number: int) -> bool:
        """What the image's readiness probe says, at the ports that the present template names."""
        probe = self._container()["readinessProbe"]["exec"]["command"]
        there = " ".join(probe) if len(probe) <= 2 else probe[-1]
        here = there.replace("/opt/zookeeper/serving.sh", f"{IMAGE}/serving.sh {self.ports[number].client}")
        here = here.replace(f"{self.ports[number].client} {names.ZOOKEEPER_LOOPBACK_PORT}", str(self.ports[number].loopback))
        return subprocess.run(["/bin/sh", "-c", here], capture_output=True, check=False).returncode == 0

    def _container(self) -> Any:
        return self.stage.found("StatefulSet", self.named.stateful_set)["spec"]["template"]["spec"]["containers"][0]

    def start(self, number: int) -> None:
        """A member on the volume of its claim, with what is mounted now."""
        config, data = self.folder / f"config-{number}", self.volume(number)
        config.mkdir(exist_ok=True)
        data.mkdir(exist_ok=True)
        for old in config.iterdir():
            old.unlink()
        for name, text in self.stage.found("ConfigMap", self.named.config_map)["data"].items():
            local = self._mounted(self.to_process(text), number).replace("/data/", f"{data}/")
            for there, here in (
                ("admin.serverPort=8080", f"admin.serverPort={self.ports[number].admin}"),
                (f"secureClientPort={names.ZOOKEEPER_SECURE_PORT}", f"secureClientPort={self.ports[number].secure}"),
                ("initLimit=30", "initLimit=10"),
            ):
                local = local.replace(there, here)
            (config / name).write_text(local)
        digest = self.folder / "super-digest"
        digest.write_bytes(base64.b64decode(self.stage.found("Secret", self.named.reconfig_secret)["data"]["super-digest"]))
        options = JVM_OPTIONS if self.hosts is None else f"{JVM_OPTIONS} {RESOLVING} -Djdk.net.hosts.file={self.hosts}"
        variables = {"ZOOKEEPER_SUPER_DIGEST": str(digest), "JVM_OPTIONS": options}
        for told in self._container()["env"]:
            if told["name"] == "READ_AT_START":
                variables["READ_AT_START"] = self._mounted(told["value"], number)
        self.processes[number] = start_member(self.named.pod(number), (self._home, config, data), self.log(number), **variables)

    def _mounted(self, text: str, number: int) -> str:
        """A text with the folders of this machine, where a member's certificates are as they are now."""
        for mount, secret in ((CLIENTS_MOUNT, self.named.clients_secret), (MEMBERS_MOUNT, self.named.members_secret)):
            if mount in text:
                folder = self.folder / f"{secret}-{number}"
                folder.mkdir(exist_ok=True)
                for key, value in self.stage.found("Secret", secret)["data"].items():
                    (folder / key).write_bytes(base64.b64decode(value))
                text = text.replace(mount, str(folder))
        return text

    def volume(self, number: int) -> Path:
        """The folder of a member's claim: another claim of the same name is another, empty folder."""
        return self.folder / f"volume-{self.stage.found(CLAIM, self.named.claim(number))['metadata']['uid']}"

    def execute(self, number: int, script: str) -> str:
        """What a command in a member's container shows."""
        local = script.replace("/data", str(self.volume(number))).replace("/config", str(self.folder / f"config-{number}"))
        return subprocess.run(["sh", "-c", local], check=True, capture_output=True, text=True).stdout

    def log(self, number: int) -> Path:
        """What a member's processes printed."""
        return self.folder / f"member-{number}.log"

    def stop(self, number: int, how: signal.Signals = signal.SIGTERM) -> None:
        """End a member's process."""
        process = self.processes.pop(number, None)
        if process is not None:
            process.send_signal(how)
            process.wait(60)

    def stop_all(self) -> None:
        """End all of it."""
        self._sessions.stop()
        for number in tuple(self.processes):
            self.stop(number, signal.SIGKILL)


class OperatorDied(BaseException):
    """The operator's process is gone, right after a change."""


@dataclass(frozen=True)
class _Translated:
    """Znodes of an ensemble whose membership is read with the cluster's names."""

    members: RealMembers
    znodes: Znodes

    def read(self, path: str, wake: Wake | None = None) -> tuple[bytes, int] | None:
        found = self.znodes.read(path, wake)
        if found is None or path != CONFIG_PATH:
            return found
        return self.members.from_process(found[0].decode()).encode(), found[1]
