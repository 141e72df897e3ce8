"""Watches pods from outside the cluster, so that no change is missed."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from urllib.parse import quote

from herdkeeper_e2e.disruptions import Sight, sight
from herdkeeper_e2e.kubectl import Kubectl

LONGEST_SECONDS = 3600


class PodWatch:
    """Collects the events of the pods with a label selector until stopped."""

    def __init__(self, kubectl: Kubectl, selector: str) -> None:
        path = f"/api/v1/namespaces/{kubectl.namespace}/pods?watch=1&timeoutSeconds={LONGEST_SECONDS}&labelSelector={quote(selector)}"
        self._process: subprocess.Popen[str] = kubectl.start("get", "--raw", path)
        self._sights: list[Sight] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def sights(self) -> list[Sight]:
        """Returns the events so far, in order."""
        return list(self._sights)

    def stop(self) -> list[Sight]:
        """Returns all events. Raises RuntimeError if the API server ended the watch before: some may be missing."""
        ended = self._process.poll()
        self._process.terminate()
        self._process.wait(timeout=30)
        self._listener.join(timeout=30)
        if ended is not None:
            raise RuntimeError(f"the watch on pods ended by itself, with code {ended}")
        return self.sights()

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            if line.startswith("{"):
                self._sights.append(sight(time.monotonic(), json.loads(line)))
