"""Which of the named namespaces the operator watches: those in which it has its rights.

Its Role in a namespace goes with that namespace, and does not come back with another one of the name. kopf ends after a watch was refused
for a minute, and the process with it, so that no namespace would have an operator. A namespace that refuses is therefore left out. The
process begins anew once that changes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from http import HTTPStatus

import structlog
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from herdkeeper.clients.kubernetes import LiveSource
from herdkeeper.process.watched_kinds import WATCHED_KINDS

LOOK_SECONDS = 300.0
"""For rights that come back. Where they go, the process ends by itself, and finds that at its next start."""
CHANGED_AFTER_LOOKS = 3
"""An API server that is upgraded may refuse for a moment."""

logger = structlog.get_logger()


@dataclass
class WatchedNamespaces:
    """The `named` namespaces, empty for all of them, and those `left_out` of the watched ones."""

    lister: LiveSource
    named: tuple[str, ...]
    left_out: frozenset[str]
    _changed: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def found(lister: LiveSource, named: tuple[str, ...]) -> WatchedNamespaces:
        """Returns them as they are now. If all refuse, none is left out. Raises ApiException and HTTPError without an answer."""
        named = tuple(dict.fromkeys(named))
        refusing = _refusing(lister, named)
        if refusing:
            logger.warning("the operator has no rights in namespaces that it is to watch", namespaces=sorted(refusing))
        return WatchedNamespaces(lister, named, frozenset() if len(refusing) == len(named) else refusing)

    @property
    def watched(self) -> tuple[str, ...]:
        """The namespaces to watch, empty for all."""
        return tuple(each for each in self.named if each not in self.left_out)

    def start(self) -> None:
        """Look again and again, from a thread, if there is more than one namespace."""
        if len(self.named) > 1:
            threading.Thread(target=self._run, name="watched-namespaces", daemon=True).start()

    def trouble(self) -> str | None:
        """Returns why the process must begin anew, or None."""
        changed = sorted(each for each, looks in self._changed.items() if looks >= CHANGED_AFTER_LOOKS)
        return f"the operator got, or lost, its rights in: {', '.join(changed)}" if changed else None

    def look(self) -> None:
        """Note what has changed since the begin. A look without an answer changes nothing."""
        try:
            refusing = _refusing(self.lister, self.named)
        except (ApiException, HTTPError) as error:
            logger.warning("whether the operator has its rights is not known", error=str(error)[:200])
            return
        changed = frozenset() if len(refusing) == len(self.named) else refusing ^ self.left_out
        self._changed = {each: self._changed.get(each, 0) + 1 for each in changed}

    def _run(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            self.look()


def _refusing(lister: LiveSource, namespaces: Collection[str]) -> frozenset[str]:
    return frozenset(each for each in namespaces if _refuses(lister, each))


def _refuses(lister: LiveSource, namespace: str) -> bool:
    kind = WATCHED_KINDS[0]
    try:
        lister.versions(kind.api_version, kind.kind, namespace, kind.selector)
    except ApiException as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return True
    return False
