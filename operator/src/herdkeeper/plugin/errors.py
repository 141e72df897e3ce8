"""What requests to the API server raise."""


class ClusterError(Exception):
    """The API server refused something, or can't be reached. The message has the request and the answer."""


class ForbiddenError(ClusterError):
    """The caller has no right to it, so asking again is of no use."""


class ConflictError(ClusterError):
    """The object is not the one, or no longer as, the request says. Nothing was written."""


class ContextError(Exception):
    """The kubeconfig lacks this context. The message lists its contexts."""
