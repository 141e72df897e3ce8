"""The API server, as commands see it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

from herdkeeper.plugin.kinds import Kind
from herdkeeper.shared.objects import Json

Query: TypeAlias = list[tuple[str, str]]


class ClusterError(Exception):
    """The API server refused something, or can't be reached. The message says what was asked, and what it answered."""


class ForbiddenError(ClusterError):
    """The caller has no right to it, so asking again is of no use."""


class ContextError(Exception):
    """The kubeconfig has no such context; the message names those that it has."""


class Cluster(Protocol):
    """Requests to the API server, in one namespace. Each raises ClusterError, and at the first one ContextError."""

    @property
    def namespace(self) -> str:
        """The namespace that is looked at."""

    def in_namespace(self, namespace: str) -> Cluster:
        """The same API server, another namespace."""

    def get(self, kind: Kind, name: str) -> Json | None:
        """An object; None when there is none."""

    def list(self, kind: Kind) -> tuple[Json, ...]:
        """The objects of a kind, in the order of their names."""

    def patch(self, kind: Kind, name: str, body: Json, *, dry_run: bool) -> Json:
        """A merge patch of one object. With `dry_run` the API server only checks it."""

    def create(self, kind: Kind, document: Json, *, dry_run: bool) -> Json:
        """Makes an object, or with `dry_run` has it checked."""

    def delete(self, kind: Kind, name: str) -> None:
        """Deletes an object; it may be gone already."""

    def lines(self, kind: Kind, name: str, subresource: str, query: Query) -> Iterator[str]:
        """The lines of a text that the API server streams, e.g. of a log."""

    def forward(self, pod: str, port: int) -> AbstractContextManager[int]:
        """A port of this machine behind which a pod's port answers. ForbiddenError where the caller may not do that."""
