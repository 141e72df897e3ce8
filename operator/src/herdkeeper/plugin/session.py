"""Creates a Kubernetes client from a kubeconfig, or from the pod's ServiceAccount. Imports that client."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import urllib3
import yaml
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import KubeConfigMerger

from herdkeeper.plugin.api_server import Access
from herdkeeper.plugin.cluster import ClusterError, ContextError

_UNUSABLE = (ConfigException, yaml.YAMLError, OSError, ValueError, LookupError, TypeError, AttributeError)
"""What the Kubernetes client, which checks little, raises for a file that is no kubeconfig."""
_ENTRY = re.compile(r"/\{.*\}", re.DOTALL)
"""That client names an entry by its content, which may be a token."""
OF_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""File with a pod's namespace, written by the kubelet."""


def open_session(access: Access) -> tuple[Any, str]:
    """Returns the client, and the context's namespace. Raises ClusterError, or ContextError without that context."""
    # the user has disabled verification in the kubeconfig, and kubectl does not warn either
    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    if access.kubeconfig is None and access.context is None and _in_pod():
        configuration = _waits_once()
        config.load_incluster_config(client_configuration=configuration)
        return client.ApiClient(configuration), OF_POD.read_text().strip()
    kubeconfig = access.kubeconfig or _of_kubectl()
    try:
        return _opened(kubeconfig, access.context)
    except _UNUSABLE as error:
        raise ClusterError(
            f"the kubeconfig {kubeconfig} can't be used: {_why(error)}. Look at it with `kubectl config view`, or name another one by "
            "--kubeconfig"
        ) from error


def _why(error: Exception) -> str:
    match error:
        case OSError():
            return str(error.strerror)
        case yaml.YAMLError():
            return "it is not YAML"
        case ConfigException():
            return _ENTRY.sub("", str(error))
        case KeyError():
            return f"an entry has no {error}"
        case _:
            return "it has other parts than a kubeconfig"


def _opened(kubeconfig: str, context_name: str | None) -> tuple[Any, str]:
    files = tuple(KubeConfigMerger(kubeconfig).config_files.values())
    contexts, users = (_named(files, kind) for kind in ("contexts", "users"))
    if context_name is not None and context_name not in contexts:
        raise ContextError(f"--context {context_name}: the kubeconfig has no such context; it has {', '.join(sorted(contexts)) or 'none'}")
    # of several files the first one's counts, as with kubectl; the Kubernetes client takes the last one's
    chosen = context_name or next((file["current-context"] for file in files if file.get("current-context")), None)
    if chosen not in contexts:
        why = f"there is no file {kubeconfig}" if not files else f"its current context is {chosen or 'not set'}"
        raise ClusterError(f"no cluster is configured: {why}. Name a kubeconfig with --kubeconfig or in the variable KUBECONFIG")
    context = contexts[chosen]["context"]
    user = (users.get(context.get("user")) or {}).get("user") or {}
    if acted_as := ", ".join(key for key in user if key.partition("-")[0] == "as"):
        raise ClusterError(f"the context {chosen} impersonates somebody ({acted_as}), which this plugin can't: name another context")
    return _client(kubeconfig, str(chosen), user), str(context.get("namespace") or "default")


def _client(kubeconfig: str, context_name: str, user: dict[str, Any]) -> Any:
    """Returns the client of a context. Where the user's command gives no credentials, the Kubernetes client would go on as anonymous."""
    made = config.new_client_from_config(kubeconfig, context_name, client_configuration=_waits_once())
    keys = made.configuration.api_key
    if user.get("exec") and not keys and not made.configuration.cert_file:
        raise ClusterError(f"the command `{user['exec'].get('command')}` of the context {context_name} gave no credentials")
    for name, key in keys.items():
        # editors end a tokenFile with a line's end, which kubectl leaves out, too
        keys[name] = key.strip()
        if not (key.strip().isascii() and key.strip().isprintable()):
            raise ClusterError(
                f"the token of the context {context_name} has characters that no token has: look at the user in the kubeconfig"
            )
    return made


def _waits_once() -> Any:
    """Returns settings of a client that tries again to connect, but waits for each answer once: urllib3 would wait four times."""
    configuration = client.Configuration()
    configuration.retries = urllib3.Retry(3, read=0)
    return configuration


def _named(files: Sequence[Any], kind: str) -> dict[str, Any]:
    """Returns the entries of a kind by name, those of the first file that has them."""
    return {entry["name"]: entry for file in reversed(files) for entry in reversed(file.get(kind) or [])}


def _of_kubectl() -> str:
    """Returns the paths of the kubeconfigs that kubectl reads."""
    return os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")


def _in_pod() -> bool:
    """Whether only a ServiceAccount is available: no kubeconfig is given or in kubectl's default place."""
    return OF_POD.is_file() and not any(Path(path).is_file() for path in _of_kubectl().split(os.pathsep) if path)
