"""Audits come at the times of a schedule without anybody's doing, one at a time."""

from __future__ import annotations

from conftest import Stack, say

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

NAME = "bk-weekly"


def audits(stack: Stack) -> list[Object]:
    return stack.kubectl.list("replicationaudits", f"herdkeeper.io/owner-name={NAME}")


def test_two_audits_of_a_schedule_run_one_after_the_other_and_find_nothing(stack: Stack) -> None:
    kubectl = stack.kubectl
    kubectl.apply(REPOSITORY / "examples/scheduled-audit.yaml")
    kubectl.want("scheduledreplicationaudit", NAME, schedule="* * * * *")

    def both_ended() -> list[Object] | Pending:
        found = audits(stack)
        running = [each["metadata"]["name"] for each in found if each.get("status", {}).get("phase") not in ("Succeeded", "Failed")]
        assert len(running) <= 1, f"side by side: {running}"
        ended = [each for each in found if each["metadata"]["name"] not in running]
        return ended[:2] if len(ended) >= 2 else Pending(f"{len(ended)} ended; {', '.join(running) or 'none'} runs")

    ended = wait_for("two audits", both_ended, Limit(900, 1), say)
    assert [(each["status"]["phase"], each["status"]["findingsTotal"]) for each in ended] == [("Succeeded", 0)] * 2
    assert all(each["status"]["replicas"] == 3 * each["status"]["entries"] for each in ended)
    kubectl.run("delete", "scheduledreplicationaudit", NAME)
    wait_for("the end of its audits", lambda: not audits(stack) or Pending(f"{len(audits(stack))} left"), Limit(300, 1), say)
