"""The API server as commands see it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

from herdkeeper.plugin.kinds import Kind
from herdkeeper.shared.objects import Json

Query: TypeAlias = list[tuple[str, str]]


class ClusterError(Exception):
    """The API server refused something, or can't be reached. The message has the request and the answer."""


class ForbiddenError(ClusterError):
    """The caller has no right to it, so asking again is of no use."""


class NoAnswerError(ClusterError):
    """The API server can't be reached, or can't answer now: it may later. Whether it has done what was asked for is unknown."""


class ConflictError(ClusterError):
    """The object is not the one, or no longer as, the request says. Nothing was written."""


class ContextError(Exception):
    """The kubeconfig lacks this context. The message lists its contexts."""


class Cluster(Protocol):
    """Requests to the API server, in one namespace. Each raises ClusterError, and the first one also ContextError."""

    @property
    def namespace(self) -> str:
        """The current namespace."""

    def in_namespace(self, namespace: str) -> Cluster:
        """Returns the same API server with another namespace."""

    def get(self, kind: Kind, name: str) -> Json | None:
        """Returns an object, or None."""

    def list(self, kind: Kind) -> tuple[Json, ...]:
        """Returns the objects of a kind, sorted by name."""

    def patch(self, kind: Kind, name: str, body: Json, *, dry_run: bool) -> Json:
        """Send a merge patch; with `dry_run` only have it validated. Raises ConflictError for another resourceVersion than it has."""

    def create(self, kind: Kind, document: Json, *, dry_run: bool) -> Json:
        """Create an object, or with `dry_run` validate it."""

    def delete(self, kind: Kind, name: str, uid: str | None = None, *, dry_run: bool = False) -> None:
        """Delete an object, which may be gone already. Raises ConflictError if it has another uid than the given one."""

    def lines(self, kind: Kind, name: str, subresource: str, query: Query) -> Iterator[str]:
        """Yields the lines of a streamed text, e.g. of a log."""

    def execute(self, pod: str, container: str, script: str) -> str:
        """Run a shell script in a container, and return what it writes. Raises ForbiddenError if the caller may not."""

    def forward(self, pod: str, port: int) -> AbstractContextManager[int]:
        """Forward a local port to a pod's port. Raises ForbiddenError if the caller may not."""
