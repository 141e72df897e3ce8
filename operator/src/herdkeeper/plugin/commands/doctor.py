"""`kubectl herdkeeper doctor`: what is wrong, why, and what to do, with the last log lines of failing pods."""

from __future__ import annotations

import datetime

from herdkeeper.plugin.cluster import Cluster, ClusterError, ForbiddenError
from herdkeeper.plugin.command import FINE, WRONG, Answer, Argument, Call, Command, nothing_in, seen
from herdkeeper.plugin.diagnosis import Finding, failing_pods, findings, newest_warnings, notes, operator_findings
from herdkeeper.plugin.kinds import EVENT, OPERATOR, POD
from herdkeeper.plugin.stack_tree import stacks
from herdkeeper.shared.counted import counted
from herdkeeper.shared.objects import Json, not_ready_container

LINES = "25"
"""Log lines of a failing pod."""
OPERATOR_NAMESPACE = Argument("--operator-namespace", "the operator's namespace", default="herdkeeper-system")


def run(call: Call) -> Answer:
    """Check the stacks of the namespace, and the operator."""
    return diagnosis(call.cluster, call.given.operator_namespace)


def diagnosis(cluster: Cluster, operator_namespace: str) -> Answer:
    """Returns what is wrong with the operator and the stacks. What can't be read is not fine either."""
    now = datetime.datetime.now(datetime.UTC)
    there = seen(cluster)
    of_operator, unknown = wrong_with_operator(cluster, operator_namespace)
    found = [*of_operator, *findings(stacks(there.resources, there.pods, now))]
    logs = {str(pod["metadata"]["name"]): _last_lines(cluster, pod) for pod in failing_pods(there.pods, now)}
    warnings = _events(cluster) if found else []
    unread = [*there.unread, *([unknown] if unknown else [])]
    noted = list(notes(there.resources, found))
    document = {
        "findings": [{"about": each.about, "sentence": each.sentence, "reason": each.reason, "do": each.do} for each in found],
        "logs": logs,
        "events": warnings,
        **({"notes": noted} if noted else {}),
        **({"notChecked": " ".join(unread)} if unread else {}),
    }
    parts = [each.text for each in found]
    if not found:
        checked = f"Nothing is wrong with the {counted(len(there.resources), 'resource')} in the namespace {cluster.namespace}."
        parts.append(checked if there.resources else nothing_in(cluster.namespace))
    parts += [*noted, *unread]
    parts += [f"--- last lines of {pod}\n" + "\n".join(f"  {line}" for line in lines) for pod, lines in logs.items()]
    parts += ["--- newest events", *(f"  {line}" for line in warnings)] if warnings else []
    return Answer("\n".join(parts), document, WRONG if found or there.unread else FINE)


def wrong_with_operator(cluster: Cluster, namespace: str) -> tuple[list[Finding], str]:
    """Returns what is wrong with the operator, and why that is unknown. A lack of rights on its namespace is no finding."""
    try:
        return list(operator_findings(cluster.in_namespace(namespace).list(OPERATOR), namespace)), ""
    except ForbiddenError as error:
        return [], f"Whether the operator runs is unknown: {error}"
    except ClusterError as error:
        return [Finding("operator", f"its pods can't be read: {error}")], ""


def _events(cluster: Cluster) -> list[str]:
    try:
        return newest_warnings(cluster.list(EVENT))
    except ClusterError as error:
        return [f"(no events: {error})"]


def _last_lines(cluster: Cluster, pod: Json) -> list[str]:
    """Returns the last lines of the container that is not ready: while an init container fails, the next one has no log."""
    container = not_ready_container(pod).get("name")
    query = [("tailLines", LINES), *([("container", str(container))] if container else [])]
    try:
        return list(cluster.lines(POD, str(pod["metadata"]["name"]), "log", query))
    except ClusterError as error:
        return [f"(no log: {error})"]


COMMAND = Command(
    "doctor",
    "checks the operator and all stacks of the namespace: what is wrong, why, and what to do",
    run,
    (OPERATOR_NAMESPACE,),
    description="The most likely cause comes first: the resource on which the others depend. Then come what the operator does or waits "
    "for, the last log lines of pods that do not serve, and the newest events. The exit code is 1 if anything is wrong, or can't be read.",
)
