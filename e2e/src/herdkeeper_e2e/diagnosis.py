"""What explains a failure: conditions that do not hold, pods that do not serve, and the newest warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from herdkeeper_e2e.conditions import label, pod_problem
from herdkeeper_e2e.kubectl import Kubectl, KubectlError, Object

KINDS = (
    "zookeeperclusters,bookkeeperclusters,herddbclusters,tablespaces,checkpoints,scheduledcheckpoints,"
    "replicationaudits,scheduledreplicationaudits"
)
MOST_EVENTS = 15
MOST_LOG_LINES = 25


def explain(kubectl: Kubectl, operator_namespace: str) -> str:
    """The explanation as text; parts that can't be read say why instead."""
    parts = [
        _part("Conditions", lambda: list(condition_lines(kubectl.list(KINDS)))),
        _part("Pods that do not serve", lambda: list(pod_lines(kubectl.list("pods")))),
        _part(f"Their last {MOST_LOG_LINES} log lines", lambda: list(pod_logs(kubectl))),
        _part("Events", lambda: event_lines(kubectl.list("events"))),
        _part("Operator pods that do not serve", lambda: list(pod_lines(kubectl.in_namespace(operator_namespace).list("pods")))),
        _part(f"The operator's last {MOST_LOG_LINES} log lines", lambda: _operator_log(kubectl.in_namespace(operator_namespace))),
    ]
    return "\n".join(parts)


def condition_lines(items: Sequence[Object]) -> Iterator[str]:
    """A line for each condition of our resources that is not what one wishes, and for each job that failed."""
    for item in items:
        status = item.get("status", {})
        for entry in status.get("conditions", []):
            wished = "False" if entry["type"] == "Progressing" else "True"
            if entry["status"] != wished:
                yield f"{label(item)}: {entry['type']}={entry['status']} {entry['reason']}: {entry['message']}"
        if not status:
            yield f"{label(item)}: no status yet"
        if status.get("phase") == "Failed":
            yield f"{label(item)}: Failed: {status.get('message', '')}"


def pod_lines(pods: Sequence[Object]) -> Iterator[str]:
    """A line for each pod that does not serve, with how often its containers restarted."""
    for pod in pods:
        problem = pod_problem(pod)
        if problem is not None:
            restarts = sum(container.get("restartCount", 0) for container in pod.get("status", {}).get("containerStatuses", []))
            yield f"{pod['metadata']['name']} on {pod['spec'].get('nodeName', 'no node')}: {problem} ({restarts} restarts)"


def event_lines(events: Sequence[Object]) -> list[str]:
    """The newest events, warnings before others, oldest first."""
    warnings = [event for event in events if event.get("type") == "Warning"]
    chosen = sorted(warnings or events, key=_event_time)[-MOST_EVENTS:]
    return [
        f"{_event_time(event)} {event.get('type', '')} {event['involvedObject'].get('kind', '')}/{event['involvedObject'].get('name', '')} "
        f"{event.get('reason', '')}: {event.get('message', '')}"
        for event in chosen
    ]


def pod_logs(kubectl: Kubectl) -> Iterator[str]:
    """What the pods that do not serve printed last."""
    for pod in kubectl.list("pods"):
        if pod_problem(pod) is not None:
            name = pod["metadata"]["name"]
            text = kubectl.run("logs", name, "--all-containers", "--tail", str(MOST_LOG_LINES), "--ignore-errors")
            yield from (f"{name}: {line}" for line in text.splitlines())


def _event_time(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")


def _operator_log(kubectl: Kubectl) -> list[str]:
    text = kubectl.run("logs", "-l", "app.kubernetes.io/name=herdkeeper-operator", "--tail", str(MOST_LOG_LINES), "--prefix=false")
    return text.splitlines()


def _part(title: str, read: Callable[[], list[str]]) -> str:
    try:
        found = read()
    except KubectlError as error:
        found = [f"(can't be read: {error})"]
    return "\n".join([f"--- {title}", *(f"  {line}" for line in found)] if found else [f"--- {title}: none"])
