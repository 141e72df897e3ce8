"""What Kubernetes says of a pod whose process has ended, or never began."""

from __future__ import annotations

import pytest

from herdkeeper.shared.objects import why_gone


def pod(phase: str, *states: dict[str, object], **status: object):
    found: dict[str, object] = {"phase": phase, **status}
    if states:
        found["containerStatuses"] = [{"state": state} for state in states]
    return {"metadata": {"name": "db-herddb-0"}, "status": found}


RUNNING, ENDED = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, {"terminated": {"reason": "Error", "exitCode": 1}}


def beside_a_proxy(server: dict[str, object], proxy: dict[str, object]):
    return pod("Running", containerStatuses=[{"name": "a-proxy", "state": proxy}, {"name": "herddb", "state": server}])


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
        ("it crashed", pod("Running", ENDED), "its container has ended (Error, exit code 1)"),
        ("it crashed beside a proxy of somebody's", beside_a_proxy(ENDED, RUNNING), "its container has ended (Error, exit code 1)"),
        ("the proxy crashed, and it runs", beside_a_proxy(RUNNING, ENDED), None),
        ("the proxy never starts, and it runs", beside_a_proxy(RUNNING, {"waiting": {"reason": "CrashLoopBackOff"}}), None),
        ("it runs", pod("Running", RUNNING), None),
        ("nothing is told of its containers", pod("Running"), None),
        ("nothing is told at all", {"metadata": {"name": "db-herddb-0"}}, None),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_a_process_is_gone_where_kubernetes_says_that_it_does_not_run(situation, seen, why):
    assert why_gone(seen) == why, situation
