"""An unrelated pod, and the ports that it can open."""

from __future__ import annotations

import json
from dataclasses import dataclass

from herdkeeper.planning.network_access import ENTRANCES
from herdkeeper_e2e import built_images
from herdkeeper_e2e.client_pod import CLIENT_LABELS, client_pod, start_stranger
from herdkeeper_e2e.kubectl import Kubectl, Object

PORTS = sorted({port for entrance in ENTRANCES for port in entrance.ports})
_OPEN = """
import concurrent.futures, json, socket, sys
def opens(target):
    try:
        socket.create_connection(target, 3).close()
        return True
    except OSError:
        return False
targets = [tuple(each) for each in json.load(sys.stdin)]
with concurrent.futures.ThreadPoolExecutor(len(targets)) as pool:
    print(json.dumps([target for target, opened in zip(targets, pool.map(opens, targets)) if opened]))
"""


@dataclass(frozen=True)
class Port:
    """A port of a pod of the database. `component` is the pod's."""

    component: str
    pod: str
    number: int


@dataclass(frozen=True)
class Stranger:
    """A pod with labels of its own choice, perhaps in another namespace."""

    kubectl: Kubectl
    name: str
    labels: dict[str, str]

    def start(self) -> None:
        """Create it, and wait until it runs."""
        manifest = client_pod(self.name, {"name": "stranger", "image": built_images.OPERATOR, "command": ["sleep", "infinity"]}, volumes=[])
        for label in CLIENT_LABELS:
            del manifest["metadata"]["labels"][label]
        manifest["metadata"]["labels"] = manifest["metadata"]["labels"] | self.labels
        start_stranger(self.kubectl, manifest)

    def opens(self, pods: list[Object]) -> set[Port]:
        """Returns the ports of these pods that it can connect to, of all that any server has."""
        ports = {
            (pod["status"]["podIP"], port): Port(pod["metadata"]["labels"]["app.kubernetes.io/name"], pod["metadata"]["name"], port)
            for pod in pods
            for port in PORTS
        }
        answer = self.kubectl.exec(self.name, "python3", "-c", _OPEN, stdin=json.dumps(list(ports)).encode())
        return {ports[(address, port)] for address, port in json.loads(answer)}
