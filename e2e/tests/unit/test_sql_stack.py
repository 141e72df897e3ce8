"""For how long the database has stood as it does."""

from datetime import UTC, datetime

from herdkeeper_e2e.sql_stack import youngest_process

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)


def pod(*states: dict[str, dict[str, str]]) -> dict[str, object]:
    return {"status": {"containerStatuses": [{"state": state} for state in states]}}


def since(time: str) -> dict[str, dict[str, str]]:
    return {"running": {"startedAt": f"2026-05-01T{time}Z"}}


def test_processes_are_as_old_as_the_youngest_of_them() -> None:
    assert youngest_process([pod(since("11:00:00")), pod(since("11:59:20"), since("11:58:00"))], NOW) == 40


def test_a_container_that_waits_to_be_started_anew_has_not_run_at_all() -> None:
    assert youngest_process([pod(since("11:00:00")), pod({"waiting": {}})], NOW) == 0


def test_neither_has_a_pod_that_no_machine_has_yet() -> None:
    assert youngest_process([pod(since("11:00:00")), {"status": {}}], NOW) == 0
