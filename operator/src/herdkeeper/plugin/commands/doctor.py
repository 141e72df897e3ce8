"""`kubectl herdkeeper doctor`: what is wrong, why, and what to do, with the last words of what does not serve."""

from __future__ import annotations

from collections.abc import Sequence

from herdkeeper.plugin.cluster import Cluster, ClusterError
from herdkeeper.plugin.command import FINE, WRONG, Answer, Argument, Call, Command
from herdkeeper.plugin.diagnosis import Finding, failing_pods, findings, newest_warnings, operator_findings
from herdkeeper.plugin.kinds import EVENT, OPERATOR, POD, RESOURCES
from herdkeeper.plugin.stack_tree import stacks
from herdkeeper.shared.objects import Json

LINES = "25"
"""Of the log of a pod that does not serve."""
OPERATOR_NAMESPACE = Argument("--operator-namespace", "where the operator is", default="herdkeeper-system")


def run(call: Call) -> Answer:
    """Looks at the stacks of the namespace, and at the operator."""
    found, document, text = diagnosis(call.cluster, call.given.operator_namespace)
    return Answer(text, document, WRONG if found else FINE)


def diagnosis(cluster: Cluster, operator_namespace: str) -> tuple[Sequence[Finding], Json, str]:
    """What is wrong, the same as a document, and as text."""
    resources = [item for kind in RESOURCES for item in cluster.list(kind)]
    pods = cluster.list(POD)
    found = [*_operator(cluster, operator_namespace), *findings(stacks(resources, pods))]
    logs = {pod: _last_lines(cluster, pod) for pod in failing_pods(pods)}
    warnings = _events(cluster) if found else []
    document = {
        "findings": [{"about": each.about, "sentence": each.sentence, "reason": each.reason, "do": each.do} for each in found],
        "logs": logs,
        "events": warnings,
    }
    if not found:
        return found, document, f"Nothing is wrong with the {len(resources)} resources in the namespace {cluster.namespace}."
    parts = [each.text for each in found]
    parts += [f"--- last lines of {pod}\n" + "\n".join(f"  {line}" for line in lines) for pod, lines in logs.items()]
    parts += ["--- newest events", *(f"  {line}" for line in warnings)] if warnings else []
    return found, document, "\n".join(parts)


def _operator(cluster: Cluster, namespace: str) -> list[Finding]:
    """What is wrong with the operator. That its namespace may not be read is no finding about it."""
    try:
        return list(operator_findings(cluster.in_namespace(namespace).list(OPERATOR), namespace))
    except ClusterError:
        return []


def _events(cluster: Cluster) -> list[str]:
    try:
        return newest_warnings(cluster.list(EVENT))
    except ClusterError as error:
        return [f"(no events: {error})"]


def _last_lines(cluster: Cluster, pod: str) -> list[str]:
    try:
        return list(cluster.lines(POD, pod, "log", [("tailLines", LINES)]))
    except ClusterError as error:
        return [f"(no log: {error})"]


COMMAND = Command(
    "doctor",
    "checks all stacks of the namespace and the operator: what is wrong, why, and what to do",
    run,
    (OPERATOR_NAMESPACE,),
    description="The nearest cause stands first: what everything else rests on. Behind it are the last log lines of pods that do not "
    "serve, and the newest events. The exit code is 1 when anything is wrong.",
)
