"""Whether servers are being disrupted, judged by their objects: a status may be older than the last action."""

from __future__ import annotations

from herdkeeper.shared.objects import Objects, pod_trouble

ON_DELETE = "OnDelete"
"""Update strategy under which a pod changes only after the operator deletes it."""


def why_disrupted(objects: Objects) -> str | None:
    """Returns which server of a resource does not serve or is about to restart, or None. Unwanted pods don't count."""
    for item in objects.of_kind("StatefulSet"):
        name = item["metadata"]["name"]
        pods = [f"{name}-{number}" for number in range(item["spec"]["replicas"])]
        for pod in pods:
            if not objects.pod_ready(pod):
                return f"{pod} is not Ready ({pod_trouble(objects.get('Pod', pod))})"
        strategy = item["spec"].get("updateStrategy", {}).get("type")
        if pods and strategy != ON_DELETE and not objects.rolled_out(name):
            return f"{name} is being restarted"
    return None
