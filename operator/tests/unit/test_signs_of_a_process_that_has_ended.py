"""What Kubernetes says of a pod whose process has ended, or never began."""

from __future__ import annotations

import pytest

from herdkeeper.shared.objects import why_gone


def pod(phase: str, *states: dict[str, object], **status: object):
    found: dict[str, object] = {"phase": phase, **status}
    if states:
        found["containerStatuses"] = [{"state": state} for state in states]
    return {"metadata": {"name": "db-herddb-0"}, "status": found}


@pytest.mark.parametrize(
    ("situation", "seen", "why"),
    [
        ("there is none", None, "its pod is gone"),
        ("evicted", pod("Failed", reason="Evicted"), "its pod has ended (Evicted)"),
        ("over", pod("Succeeded"), "its pod has ended (Succeeded)"),
        ("no node takes it, or its volume is not there", pod("Pending"), "its pod is waiting for a node or a volume"),
        (
            "its image comes",
            pod("Pending", {"waiting": {"reason": "ContainerCreating"}}),
            "its container is not running (ContainerCreating)",
        ),
        ("it crashed", pod("Running", {"terminated": {"reason": "Error", "exitCode": 1}}), "its container has ended (Error, exit code 1)"),
        ("it runs", pod("Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}}), None),
        ("nothing is told of its containers", pod("Running"), None),
        ("nothing is told at all", {"metadata": {"name": "db-herddb-0"}}, None),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_a_process_is_gone_where_kubernetes_says_that_it_does_not_run(situation, seen, why):
    assert why_gone(seen) == why, situation
