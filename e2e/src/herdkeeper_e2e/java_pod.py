"""A pod for Java clients: a server's image has most of their jars, the rest is built here and copied into the pod."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from herdkeeper_e2e.client_pod import client_pod, packed, start_pod
from herdkeeper_e2e.cluster import REPOSITORY, run
from herdkeeper_e2e.kubectl import Kubectl, Object

PROGRAMS = "/programs"


@dataclass(frozen=True)
class JavaProgram:
    """A Maven module whose `mvn package` leaves in target/ all jars that the image lacks."""

    module: str
    """The module's folder, such as `e2e/jdbc`."""
    image: str
    libraries: str
    """The folder of the image's own jars."""

    def build(self, folder: Path, environment: Mapping[str, str]) -> None:
        """Put the jars into the folder. Raises CommandError."""
        steps = (
            f"cp -r /src/{self.module} /tmp/module",
            "cd /tmp/module",
            "rm -rf target",
            "mvn -B -C -q -DskipTests package",
            "cp target/*.jar /out/",
        )
        builder = str(REPOSITORY / "e2e/images/builder.sh")
        run([builder, str(folder), "bash", "-ec", " && ".join(steps)], environment, lambda _: None)


@dataclass(frozen=True)
class JavaPod:
    """The pod `name` for a program. `container` are further fields of its container (e.g. `envFrom`).

    `folders` are volumes by mount path.
    """

    kubectl: Kubectl
    name: str
    program: JavaProgram
    container: Object = field(default_factory=dict)
    folders: Mapping[str, Object] = field(default_factory=dict)
    machine: str | None = None
    """Its machine; any if None."""

    def start(self) -> None:
        """Build the program, create the pod unless it exists, wait until it runs, and copy the jars into it."""
        jars = _jars_of(self.program, tuple(sorted(self.kubectl.environment.items())))
        start_pod(self.kubectl, self.manifest())
        self.kubectl.exec(self.name, "tar", "-xf", "-", "--no-same-owner", "-C", PROGRAMS, stdin=jars)

    def command(self, main_class: str, *arguments: str, options: Sequence[str] = ()) -> tuple[str, ...]:
        """The command line of a class with a main method, inside the pod. `options` are further ones of the JVM."""
        classes = f"{self.program.libraries}/*:{PROGRAMS}/*"
        return ("java", "-XX:+UseSerialGC", "-Xmx128m", *options, "-cp", classes, main_class, *arguments)

    def manifest(self) -> Object:
        """Returns the pod: it fits a JVM with a heap of 128 MiB, and has no memory limit."""
        volumes: Mapping[str, Object] = {PROGRAMS: {"emptyDir": {}}, "/tmp": {"emptyDir": {}}, **self.folders}
        names = {path: path.strip("/").replace("/", "-") for path in volumes}
        container = {
            "name": self.name,
            "image": self.program.image,
            "command": ["sleep", "infinity"],
            "resources": {"requests": {"cpu": "50m", "memory": "256Mi"}},
            "volumeMounts": [{"name": names[path], "mountPath": path} for path in volumes],
            **self.container,
        }
        return client_pod(self.name, container, [{"name": names[path], **volume} for path, volume in volumes.items()], self.machine)


@cache
def _jars_of(program: JavaProgram, environment: tuple[tuple[str, str], ...]) -> bytes:
    """Returns a tar archive of the program's build, which happens once per process."""
    with tempfile.TemporaryDirectory() as name:
        program.build(Path(name), dict(environment))
        return packed({jar.name: jar.read_bytes() for jar in sorted(Path(name).glob("*.jar"))})
