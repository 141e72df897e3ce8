"""A client of Kubernetes from a kubeconfig, or from the ServiceAccount of the pod that the plugin runs in. Imports that client."""

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
"""Where the kubelet writes the namespace of a pod."""


def open_session(access: Access) -> tuple[Any, str]:
    """The client, and the namespace of the context.

    Raises:
        ClusterError: there is no kubeconfig that can be read.
        ContextError: it has no context of that name.
    """
    # who skips the verification has said so in the kubeconfig; kubectl does not repeat it either
    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    if access.kubeconfig is None and access.context is None and _in_pod():
        configuration = client.Configuration()
        config.load_incluster_config(client_configuration=configuration)
        return client.ApiClient(configuration), OF_POD.read_text().strip()
    try:
        contexts, active = config.list_kube_config_contexts(access.kubeconfig)
    except ConfigException as error:
        raise ClusterError(f"no cluster to talk to: {error}. Name a kubeconfig with --kubeconfig or in the variable KUBECONFIG") from error
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
    """Whether a ServiceAccount is all there is: no kubeconfig was named or lies where kubectl looks for it."""
    kubeconfig = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    return OF_POD.is_file() and not any(Path(path).is_file() for path in kubeconfig.split(os.pathsep) if path)
