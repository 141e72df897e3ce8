"""A pod with an S3 server in it: the image of the jobs, and moto with what it needs, copied into the pod.

moto is a test's library: no image of the project has it. The packages are those of requirements.lock, for the Python of the images.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.object_store import PORT
from herdkeeper_e2e.tools_pod import Database, ToolsPod

PACKAGES = ("moto[s3]", "flask", "flask-cors")
PYTHON_OF_THE_IMAGES = "3.11"


class NotServingError(RuntimeError):
    """The server ended, or said something else; the message has it."""


@dataclass(frozen=True)
class ObjectStorePod:
    """A store that is there while it is served, and is empty at first."""

    tools: ToolsPod
    address: str

    @staticmethod
    @contextmanager
    def serving(kubectl: Kubectl, database: Database, name: str = "object-store") -> Iterator[ObjectStorePod]:
        """Serves in a pod of this name until the end of the block, and removes the pod. Raises NotServingError."""
        tools = ToolsPod(kubectl, name, database, image="herdkeeper/spark:0.1.0")
        tools.start()
        with TemporaryDirectory() as folder:
            _stage(Path(folder))
            tools.copy(Path(folder), ".")
        process = kubectl.start("exec", "-i", tools.name, "--", *tools.program("object_store"))
        lines: list[str] = []
        try:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                if lines[-1] == "serving":
                    break
            else:
                raise NotServingError(" | ".join(lines[-5:]))
            # What it says from now on is read by nobody, and a full pipe would stop it.
            threading.Thread(target=deque, args=(process.stdout, 0), daemon=True).start()
            pod = kubectl.get("pod", tools.name)
            if pod is None:
                raise NotServingError("its pod is gone")
            yield ObjectStorePod(tools, f"http://{pod['status']['podIP']}:{PORT}")
        finally:
            process.kill()
            kubectl.run("delete", "pod", tools.name, "--ignore-not-found")

    def keys(self) -> set[str]:
        """What is in the bucket."""
        return set(self.tools.run("object_store", "--list").split())


def _stage(folder: Path) -> None:
    """The packages, without the descriptions of all services but the one that is served."""
    command = [
        *(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", str(folder)),
        *("--python-version", PYTHON_OF_THE_IMAGES, "--only-binary=:all:", "-c", str(REPOSITORY / "requirements.lock"), *PACKAGES),
    ]
    subprocess.run(command, check=True)
    for service in (folder / "botocore" / "data").iterdir():
        if service.is_dir() and service.name != "s3":
            shutil.rmtree(service)
