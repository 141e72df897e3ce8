"""Creates a Kubernetes client from a kubeconfig, or from the pod's ServiceAccount. Imports that client."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import urllib3
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException

from herdkeeper.plugin.api_server import Access
from herdkeeper.plugin.cluster import ClusterError, ContextError

OF_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""File with a pod's namespace, written by the kubelet."""


def open_session(access: Access) -> tuple[Any, str]:
    """Returns the client, and the context's namespace.

    Raises ClusterError without a readable kubeconfig, and ContextError without that context.
    """
    # the user has disabled verification in the kubeconfig, and kubectl does not warn either
    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    if access.kubeconfig is None and access.context is None and _in_pod():
        configuration = client.Configuration()
        config.load_incluster_config(client_configuration=configuration)
        return client.ApiClient(configuration), OF_POD.read_text().strip()
    try:
        contexts, active = config.list_kube_config_contexts(access.kubeconfig)
    except ConfigException as error:
        raise ClusterError(
            f"no cluster is configured: {str(error).rstrip('.')}. Name a kubeconfig with --kubeconfig or in the variable KUBECONFIG"
        ) from error
    by_name = {context["name"]: context for context in contexts}
    if access.context is not None and access.context not in by_name:
        raise ContextError(f"--context {access.context}: the kubeconfig has no such context; it has {', '.join(sorted(by_name))}")
    chosen = by_name[access.context] if access.context is not None else active
    try:
        api = config.new_client_from_config(access.kubeconfig, chosen["name"])
    except ConfigException as error:
        raise ClusterError(f"the context {chosen['name']} can't be used: {error}") from error
    return api, str(chosen["context"].get("namespace") or "default")


def _in_pod() -> bool:
    """Whether only a ServiceAccount is available: no kubeconfig is given or in kubectl's default place."""
    kubeconfig = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    return OF_POD.is_file() and not any(Path(path).is_file() for path in kubeconfig.split(os.pathsep) if path)
