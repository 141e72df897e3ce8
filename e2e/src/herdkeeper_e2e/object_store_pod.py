"""A pod with a real S3 server: the jobs' image, with the server's program copied into the pod."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from herdkeeper_e2e import built_images
from herdkeeper_e2e.client_pod import copy_into
from herdkeeper_e2e.go_module import go_program
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.object_store import ENDPOINT, SERVING, Keys
from herdkeeper_e2e.object_store_process import SERVER
from herdkeeper_e2e.tools_pod import WORK, Database, ToolsPod

BUCKET = "backups"
_PORT = 9000


class NotServingError(RuntimeError):
    """The server ended, or printed something else. The message has it."""


@dataclass(frozen=True)
class ObjectStorePod:
    """A store that exists while it is served, with one bucket, initially empty, and one key pair."""

    tools: ToolsPod
    address: str
    keys: Keys

    @staticmethod
    @contextmanager
    def serving(kubectl: Kubectl, database: Database, keys: Keys, name: str = "object-store") -> Iterator[ObjectStorePod]:
        """Serve in a pod of this name within the block, then remove the pod. Raises NotServingError."""
        tools = ToolsPod(kubectl, name, database, image=built_images.SPARK).start()
        copy_into(kubectl, name, WORK, {"s3-server": go_program(SERVER, "linux").read_bytes()})
        # A folder of the pod's volume: a container's own file system may lack extended attributes, which hold the ETags.
        serve = ("--program", f"{WORK}/s3-server", "--folder", f"{WORK}/buckets", "--bucket", BUCKET, "--listen", f"0.0.0.0:{_PORT}")
        process = kubectl.start("exec", "-i", tools.name, "--", *_with(keys.variables), *tools.program("object_store", *serve))
        lines: list[str] = []
        try:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                if lines[-1] == SERVING:
                    break
            else:
                raise NotServingError(" | ".join(lines[-5:]))
            # Its further output is not read, and a full pipe would block it.
            threading.Thread(target=deque, args=(process.stdout, 0), daemon=True).start()
            pod = kubectl.get("pod", tools.name)
            if pod is None:
                raise NotServingError("its pod is gone")
            yield ObjectStorePod(tools, f"http://{pod['status']['podIP']}:{_PORT}", keys)
        finally:
            process.kill()
            kubectl.run("delete", "pod", tools.name, "--ignore-not-found")

    @property
    def variables(self) -> dict[str, str]:
        """Returns the variables for a program that uses the store."""
        return {**self.keys.variables, ENDPOINT: self.address}

    def names(self) -> set[str]:
        program = self.tools.program("object_store", "--list", BUCKET)
        return set(self.tools.kubectl.exec(self.tools.name, *_with(self.variables), *program).split())


def _with(variables: dict[str, str]) -> tuple[str, ...]:
    return ("env", *(f"{name}={value}" for name, value in variables.items()))
