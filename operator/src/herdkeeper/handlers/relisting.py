"""Finds resources that no event told of: a watch may end without a word (nolar/kopf#1276), and then new resources would wait for ever.

Those that are known come back by their resync; this is only for the others.
"""

from __future__ import annotations

import threading
from typing import Protocol

import structlog
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from herdkeeper.api import KINDS
from herdkeeper.api.resource import Resource
from herdkeeper.domain.observed.objects import Json
from herdkeeper.handlers.queue import KeyQueue
from herdkeeper.reconcile import Key
from herdkeeper.settings import Settings

logger = structlog.get_logger()


class Lister(Protocol):
    """Lists our resources: observe.kubernetes.KubernetesReader, or what stands in for it in a test."""

    def documents(self, kind: type[Resource], namespace: str | None) -> tuple[Json, ...]:
        """The resources of one kind in a namespace, in all of them when None. Raises ApiException and urllib3's HTTPError."""


class Relisting:
    """Lists all kinds each `resync_seconds` and queues what the queue does not know."""

    def __init__(self, settings: Settings, lister: Lister, queue: KeyQueue[Key]) -> None:
        self._settings = settings
        self._lister = lister
        self._queue = queue
        self._stop = threading.Event()

    def start(self) -> None:
        """List from a thread."""
        threading.Thread(target=self._run, name="relisting", daemon=True).start()

    def stop(self) -> None:
        """List no more."""
        self._stop.set()

    def once(self) -> None:
        """List each kind once. A list that fails is tried again with the next round."""
        for kind in KINDS:
            for namespace in self._settings.watch_namespaces or (None,):
                try:
                    documents = self._lister.documents(kind, namespace)
                except (ApiException, HTTPError) as error:
                    logger.warning("resources can't be listed", kind=kind.KIND, namespace=namespace, error=str(error)[:200])
                    continue
                for document in documents:
                    key = Key(kind.KIND, document["metadata"]["namespace"], document["metadata"]["name"])
                    if key not in self._queue:
                        self._queue.add(key)

    def _run(self) -> None:
        while not self._stop.wait(self._settings.resync_seconds):
            self.once()
