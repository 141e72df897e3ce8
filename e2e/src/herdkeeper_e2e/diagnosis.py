"""Explains a failure by `kubectl herdkeeper doctor` and the logs of the operator and the servers."""

from __future__ import annotations

from collections.abc import Callable

from herdkeeper.plugin.api_server import Access, ApiServer
from herdkeeper.plugin.cluster import ClusterError
from herdkeeper.plugin.commands.doctor import diagnosis
from herdkeeper_e2e.kubectl import SERVERS, Kubectl, KubectlError

MOST_LOG_LINES = 25


def explain(kubectl: Kubectl, operator_namespace: str) -> str:
    """Returns the explanation as text; unreadable parts are replaced by the error."""
    server = ApiServer(Access(kubectl.namespace, kubeconfig=kubectl.environment.get("KUBECONFIG")))
    parts = (
        _part("What is wrong", lambda: diagnosis(server, operator_namespace).text),
        _part(f"The operator's last {MOST_LOG_LINES} log lines", lambda: _operator_log(kubectl.in_namespace(operator_namespace))),
    )
    return "\n".join(parts)


def server_logs(kubectl: Kubectl) -> str:
    """Returns what the servers of a namespace logged, each line with its pod. A container that has not started is told of instead."""
    return _part("Servers", lambda: kubectl.run("logs", "-l", SERVERS, "--all-containers", "--prefix", "--tail=-1", "--ignore-errors"))


def _operator_log(kubectl: Kubectl) -> str:
    return kubectl.run("logs", "-l", "app.kubernetes.io/name=herdkeeper-operator", "--tail", str(MOST_LOG_LINES), "--prefix=false")


def _part(title: str, read: Callable[[], str]) -> str:
    try:
        found = read()
    except (ClusterError, KubectlError) as error:
        found = f"(can't be read: {error})"
    return f"--- {title}\n{found}"
