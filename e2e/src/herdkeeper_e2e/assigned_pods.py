"""Pods that the operator declares, as containers of the machine's engine: run as OpenShift's restricted-v2 runs them, without Kubernetes.

A pod gets a user that no image knows, group 0, and a further group that owns its volumes. Names of pods are host names of one network.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from herdkeeper.shared.quantity import bytes_of
from herdkeeper_e2e.platform_images import EMULATED, in_engine
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

Json = dict[str, Any]

USER = GROUP = 1_000_680_000
"""As of a namespace of OpenShift."""
START = Limit(3600 if EMULATED else 240, 1)
ENDED = "exited"


@dataclass
class AssignedPods:
    """Made by `assigned_pods`. `made` are the ConfigMaps and Secrets that pods mount, by name."""

    folder: Path
    network: str
    made: dict[str, Json] = field(default_factory=dict)
    containers: list[str] = field(default_factory=list)

    def make(self, objects: Iterable[Json]) -> None:
        """Remember what pods may mount."""
        self.made |= {item["metadata"]["name"]: item for item in objects if item["kind"] in ("ConfigMap", "Secret")}

    def start(self, name: str, spec: Json, domain: str = "") -> str:
        """Start the pod's only container; returns its id. `domain` is what follows its name in host names."""
        (container,) = spec["containers"]
        security, own = spec["securityContext"], container["securityContext"]
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & {*security, *own}, "the platform's to assign"
        assert own["capabilities"] == {"drop": ["ALL"]}
        command = [
            *("run", "--detach", "--hostname", name, "--network", self.network),
            *(("--network-alias", f"{name}.{domain}") if domain else ()),
            *("--user", f"{USER}:0", "--group-add", str(GROUP)),
            *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
            *("--memory", str(bytes_of(container["resources"]["limits"]["memory"]))),
            *(f"--env={key}={value}" for key, value in self._environment(name, container).items()),
            *self._mounts(name, spec["volumes"], container["volumeMounts"]),
            in_engine(container["image"]),
            *(argument.replace("$(POD_NAME)", name) for argument in container.get("args", ())),
        ]
        started = _docker(*command)
        self.containers.append(started)
        return started

    def wait(self, started: str, spec: Json) -> None:
        """Wait until its readiness probe succeeds. Raises if it ends first, with its log."""
        (container,) = spec["containers"]

        def ready() -> bool | Pending:
            if _docker("inspect", "--format", "{{.State.Status}}", started) == ENDED:
                raise AssertionError(f"{container['name']} ended:\n{self.log(started)}")
            return self._is_ready(started, container["readinessProbe"]) or Pending(self.log(started).rpartition("\n")[2])

        wait_for(f"{container['name']} to be ready", ready, START)

    def end_of(self, started: str) -> int:
        """Returns the exit code, once it has ended."""
        return int(_docker("wait", started, seconds=START.seconds))

    def address(self, started: str) -> str:
        return _docker("inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", started)

    def log(self, started: str) -> str:
        found = subprocess.run(
            ("docker", "logs", "--tail", "40", started), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
        )
        return found.stdout.strip()

    def _is_ready(self, started: str, probe: Json) -> bool:
        if "exec" in probe:
            return subprocess.run(("docker", "exec", started, *probe["exec"]["command"]), capture_output=True, check=False).returncode == 0
        asked = probe["httpGet"]
        with suppress(OSError), urllib.request.urlopen(f"http://{self.address(started)}:{asked['port']}{asked['path']}", timeout=5):
            return True
        return False

    def _environment(self, name: str, container: Json) -> dict[str, str]:
        fields = {"metadata.name": name, "metadata.namespace": "demo", "status.podIP": name}
        return {
            entry["name"]: str(entry["value"]) if "value" in entry else fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
            for entry in container.get("env", ())
        }

    def _mounts(self, name: str, volumes: Iterable[Json], mounts: Iterable[Json]) -> Iterator[str]:
        at = {mount["name"]: mount["mountPath"] for mount in mounts}
        for volume in volumes:
            path = at[volume["name"]]
            if "emptyDir" in volume:
                yield from ("--tmpfs", f"{path}:exec,mode=1777")
            else:
                yield from ("--volume", f"{self._folder(name, volume)}:{path}")
        termination = self.folder / f"{name}-termination-log"
        termination.touch()
        termination.chmod(0o666)
        yield from ("--volume", f"{termination}:/dev/termination-log")

    def _folder(self, name: str, volume: Json) -> Path:
        """A volume, as a kubelet makes it for the group: claims may be written, files of ConfigMaps and Secrets only be read."""
        folder = self.folder / f"{name}-{volume['name']}"
        folder.mkdir()
        shutil.chown(folder, group=GROUP)
        folder.chmod(0o2770)
        if "persistentVolumeClaim" not in volume:
            source = volume.get("configMap") or volume["secret"]
            for key, text in self._files(source).items():
                (folder / key).write_text(text)
                shutil.chown(folder / key, group=GROUP)
                (folder / key).chmod(source.get("defaultMode", 0o644) | 0o040)
        return folder

    def _files(self, source: Json) -> Mapping[str, str]:
        found = self.made.get(source.get("name") or source["secretName"], {})
        files = {**found.get("data", {}), **found.get("stringData", {})}
        if found.get("kind") == "Secret":
            files = {key: base64.b64decode(text).decode() if key in found.get("data", {}) else text for key, text in files.items()}
        wanted = {item["key"]: item["path"] for item in source.get("items", ())} or {key: key for key in files}
        return {path: files[key] for key, path in wanted.items()}


@contextmanager
def assigned_pods(folder: Path, network: str) -> Iterator[AssignedPods]:
    """Pods in a network of their own. Both end with the block, and what the pods wrote goes."""
    _docker("network", "create", network)
    pods = AssignedPods(folder, network)
    try:
        yield pods
    finally:
        for started in reversed(pods.containers):
            _docker("rm", "--force", "--volumes", started)
        _docker("network", "rm", network)


def _docker(*arguments: str, seconds: float = 120) -> str:
    return subprocess.run(("docker", *arguments), check=True, stdout=subprocess.PIPE, text=True, timeout=seconds).stdout.strip()
