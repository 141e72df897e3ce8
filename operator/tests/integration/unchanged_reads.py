"""What the operator reads of the API server in tests is asked for again only after a write to such an object.

Nobody but the tests' own process writes to the objects of a Stage: there is no controller, and no operator beside it. All clients of the
process send their requests through one class, where writes are counted. So an answer is as fresh as that of another request would be.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from kubernetes.client.rest import RESTClientObject
from kubernetes.dynamic import DynamicClient

from herdkeeper.clients.kubernetes import LiveSource
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Json

ALL = ""
"""Instead of an object's name: the whole collection."""
WRITES: Counter[tuple[str, str]] = Counter()
"""How many writes have begun or ended in this process: to an object or the collection (a creation, too), by plural and name."""
KIND_WRITES: Counter[str] = Counter()
"""The same, of all objects of a plural together."""


def written_to(path: str) -> tuple[str, str]:
    """Plural and name of what a request's path is about. Objects of one name in two namespaces, or API groups, are taken for one."""
    root, *place = path.strip("/").split("/")
    place = place[1:] if root == "api" else place[2:]
    place = place[2:] if place[:1] == ["namespaces"] and len(place) > 2 else place
    plural, name = (*place, ALL, ALL)[:2]
    return plural, name


def _count(plural: str, name: str) -> None:
    WRITES[plural, name] += 1
    KIND_WRITES[plural] += 1


@contextmanager
def counted_writes() -> Iterator[None]:
    """Within it, WRITES counts."""
    send = RESTClientObject.request

    def counting(self: RESTClientObject, method: str, url: str, *arguments: Any, **named: Any) -> Any:
        if method == "GET":
            return send(self, method, url, *arguments, **named)
        place = written_to(urlsplit(url).path)
        _count(*place)
        try:
            return send(self, method, url, *arguments, **named)
        finally:
            _count(*place)

    with patch.object(RESTClientObject, "request", counting):
        yield


class UnchangedReads:
    """A Source. Each answer is a copy: no reader can change what another one reads."""

    def __init__(self, client: DynamicClient) -> None:
        self._client = client
        self._live = LiveSource(client)
        self._answers: dict[tuple[Any, ...], tuple[int, str]] = {}

    def get(self, api_version: str, kind: str, key: ObjectKey) -> Json | None:
        """See Source."""
        plural = self._plural(api_version, kind)
        writes = WRITES[plural, key.name] + WRITES[plural, ALL]
        found: Json | None = self._read((plural, key), writes, lambda: self._live.get(api_version, kind, key))
        return found

    def get_recent(self, api_version: str, kind: str, key: ObjectKey) -> Json | None:
        """See Source."""
        return self.get(api_version, kind, key)

    def select(self, api_version: str, kind: str, namespace: str | None, labels: Mapping[str, str]) -> list[Json]:
        """See Source."""
        plural = self._plural(api_version, kind)
        writes = KIND_WRITES[plural]
        asked = (plural, namespace, *sorted(labels.items()))
        found: list[Json] = self._read(asked, writes, lambda: self._live.select(api_version, kind, namespace, labels))
        return found

    def _plural(self, api_version: str, kind: str) -> str:
        return str(self._client.resources.get(api_version=api_version, kind=kind).name)

    def _read(self, asked: tuple[Any, ...], writes: int, read: Callable[[], Any]) -> Any:
        if (known := self._answers.get(asked)) is None or known[0] != writes:
            known = self._answers[asked] = (writes, json.dumps(read()))
        return json.loads(known[1])
