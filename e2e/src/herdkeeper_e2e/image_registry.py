"""An image registry in a container, for tests. Engine and Helm use it at 127.0.0.1, the nodes of a kind cluster over kind's network."""

from __future__ import annotations

import json
import os
import secrets
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from herdkeeper_e2e.cluster import REPOSITORY, run
from herdkeeper_e2e.free_ports import free_port
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

BASE = "herdkeeper/debian:local"
NETWORK = "kind"
"""kind's network for its nodes."""
_HOSTS = "/etc/containerd/certs.d"
"""Where a node's containerd looks up how to reach a registry (e2e/kind/cluster.yaml)."""


@dataclass(frozen=True)
class ImageRegistry:
    """A running registry. `address` is `127.0.0.1:port`, the prefix of its images, also in the cluster."""

    container: str
    address: str

    @staticmethod
    def start(say: Callable[[str], None]) -> ImageRegistry:
        """Start an empty registry on a free port. It is built if missing, which takes a minute or two."""
        program = _output([str(REPOSITORY / "e2e/bootstrap/go-program.sh"), "registry", "linux"], say).strip()
        _output([str(REPOSITORY / "e2e/images/base.sh")], say)
        name = f"herdkeeper-registry-{secrets.token_hex(4)}"
        mounts = [f"{program}:/usr/local/bin/registry:ro", f"{REPOSITORY / 'e2e/registry/config.yml'}:/etc/registry.yml:ro"]
        # named, since the engine would choose another free port when the container joins another network
        address = f"127.0.0.1:{free_port()}"
        command = ["docker", "run", "--detach", "--name", name, "--publish", f"{address}:5000", "--env", "OTEL_TRACES_EXPORTER=none"]
        command += [word for mount in mounts for word in ("--volume", mount)]
        _output([*command, BASE, "registry", "serve", "/etc/registry.yml"], say)
        registry = ImageRegistry(name, address)
        wait_for("the registry", registry._answers, Limit(60, 0.2))
        return registry

    def push(self, image: str, name: str, say: Callable[[str], None]) -> str:
        """Push an image of the engine under another name; returns the full name with its digest. The engine forgets that name."""
        pushed = f"{self.address}/{name}"
        _output(["docker", "tag", image, pushed], say)
        _output(["docker", "push", "--quiet", pushed], say)
        digests: list[str] = json.loads(_output(["docker", "image", "inspect", "--format", "{{json .RepoDigests}}", pushed], say))
        _output(["docker", "image", "rm", pushed], say)
        repository = pushed.rpartition(":")[0]
        return next(digest for digest in digests if digest.startswith(f"{repository}@"))

    def serve(self, nodes: Sequence[str], say: Callable[[str], None]) -> None:
        """Let the nodes of a kind cluster pull by this machine's address."""
        _output(["docker", "network", "connect", NETWORK, self.container], say)
        file = f"{_HOSTS}/{self.address}/hosts.toml"
        # as a host, since containerd 1.6 asks 127.0.0.1 itself if the file has only a `server`
        told = f'[host."http://{self.container}:5000"]\n'
        for node in nodes:
            _output(["docker", "exec", node, "sh", "-c", f"mkdir -p {Path(file).parent} && printf %s '{told}' > {file}"], say)

    def pulled(self) -> frozenset[str]:
        """Returns repositories whose manifests a node's containerd has requested."""
        lines = _output(["docker", "logs", self.container], _silent).splitlines()
        asked = (line.partition('"GET /v2/')[2] for line in lines if "containerd/" in line)
        return frozenset(each.partition("/manifests/")[0] for each in asked if "/manifests/" in each)

    def remove(self) -> None:
        """Remove it with all its images, and make the engine forget its names."""
        _output(["docker", "rm", "--force", "--volumes", self.container], _silent)
        listed = _output(["docker", "image", "ls", "--digests", "--format", "{{.Repository}} {{.Tag}} {{.Digest}}"], _silent).splitlines()
        for repository, tag, digest in (line.split() for line in listed if line.startswith(f"{self.address}/")):
            name = f"{repository}@{digest}" if tag == "<none>" else f"{repository}:{tag}"
            _output(["docker", "image", "rm", name], _silent)

    def _answers(self) -> bool | Pending:
        try:
            with urllib.request.urlopen(f"http://{self.address}/v2/", timeout=5):
                return True
        except (OSError, urllib.error.URLError) as error:
            return Pending(str(error))


def _silent(_line: str) -> None:
    pass


def _output(command: Sequence[str], say: Callable[[str], None]) -> str:
    return run(command, os.environ, say)
