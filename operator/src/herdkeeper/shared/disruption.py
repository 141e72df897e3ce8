"""Whether servers are being disrupted, by their own objects: a status may be older than the last action."""

from __future__ import annotations

from herdkeeper.shared.objects import Objects, pod_trouble

ON_DELETE = "OnDelete"
"""The update strategy under which nothing happens to a pod before the operator deletes it."""


def why_disrupted(objects: Objects) -> str | None:
    """Which server of one resource does not serve, or is about to be restarted; None when all serve and stay. Pods that nobody wants any
    more don't count."""
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
