"""What goes wrong with requests to the API server."""

from __future__ import annotations


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
