"""While a writer writes, three moments of its tablespace are made into checkpoints by executors as pods: a position of the log, a time, and
now. The leader is killed meanwhile, and another one is asked to lead, each while a job runs, by the times of its pod. A tablespace that is
made from each has what the writer's own history says of that moment."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from conftest import Stack, say
from own_tablespace import OwnTablespace, rows_in
from runs import rows_of_tables, with_executors

from herdkeeper_e2e.history import judge, wrong_between
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.spans import Span, why_not_within
from herdkeeper_e2e.writer_process import WriterProcess

TABLE = "written"
ROWS = 100
EXECUTORS = 2
MOMENTS = ("position", "time", "now")


@pytest.fixture(scope="module")
def own(request: pytest.FixtureRequest, stack: Stack) -> OwnTablespace:
    return OwnTablespace.made(request, stack, "moments")


def marks_of(moment: str) -> tuple[str, str]:
    """The writer's history has them before and after the moment."""
    return f"before {moment}", f"after {moment}"


def moments_of(own: OwnTablespace, writer: WriterProcess) -> tuple[Object, Object]:
    """A position of the log and a time, as targets, each with rows before it, and marks close around it."""
    (before, after), (before_the_time, after_the_time) = marks_of("position"), marks_of("time")
    writer.marked(before)
    position = own.log_position()
    writer.marked(after)
    writer.acknowledges(ROWS)
    writer.marked(before_the_time)
    # the leader's clock is this one: all machines of the test cluster are containers of one
    time = datetime.now(UTC)
    writer.marked(after_the_time)
    return {"lsn": position}, {"timestamp": time.isoformat()}


def require_meanwhile(stack: Stack, fault: str, at: datetime, driver: Object) -> None:
    """A fault began while a pod of a Checkpoint's job ran, which has ended now."""
    name = driver["metadata"]["name"]
    (container,) = stack.sql.get("pod", name)["status"]["containerStatuses"]
    job = Span(name, *(datetime.fromisoformat(container["state"]["terminated"][moment]) for moment in ("startedAt", "finishedAt")))
    say(f"{fault} at {at}; {job.what} from {job.begin} to {job.end}")
    wrong = why_not_within(Span(fault, at, at), job)
    assert wrong is None, wrong


def test_three_moments_of_a_log_that_goes_on_are_made_anew_as_the_writer_remembers_them(stack: Stack, own: OwnTablespace) -> None:
    writer = WriterProcess(own.tools, TABLE).acknowledges(ROWS)
    position, time = moments_of(own, writer)
    writer.acknowledges(ROWS)

    before, after = marks_of("now")
    writer.marked(before)
    own.declare_checkpoint("now", job=with_executors(EXECUTORS))
    own.wait_for_executors("now", EXECUTORS)
    driver, leader, killed_at = own.driver_of("now"), own.get()["status"]["leader"], datetime.now(UTC)
    stack.sql.delete(leader, "--grace-period=0", "--force")
    statuses = {"now": own.status_of("now")}
    require_meanwhile(stack, f"the end of {leader}", killed_at, driver)
    writer.marked(after)
    writer.acknowledges(ROWS)

    own.wait_until_ready()
    own.declare_checkpoint("position", target=position, job=with_executors(EXECUTORS))
    own.wait_for_executors("position", EXECUTORS)
    driver, asked_at = own.driver_of("position"), datetime.now(UTC)
    own.switch_over()
    statuses["position"] = own.status_of("position")
    require_meanwhile(stack, "the switchover", asked_at, driver)
    writer.acknowledges(ROWS)

    own.wait_until_ready()
    statuses["time"] = own.checkpoint("time", target=time, job=with_executors(EXECUTORS))
    writer.acknowledges(ROWS)
    writer.stop()

    assert statuses["position"]["lsn"] == position["lsn"]
    assert statuses["now"]["verified"].startswith("compared with follower")
    assert all("compared there with follower" in statuses[moment]["verified"] for moment in ("position", "time"))
    events, live = writer.events(), rows_in(own.tools, TABLE)
    verdict = judge(events, live)
    say(f"{verdict.acknowledged} rows acknowledged, {verdict.unknown} answers lost")
    assert verdict.violation is None
    for moment in MOMENTS:
        rows = own.rows_made_anew(f"{moment}-anew", TABLE, checkpoint={"name": moment})
        say(f"{moment}: {len(rows)} rows")
        assert rows_of_tables(statuses[moment])[TABLE] == len(rows)
        assert wrong_between(events, marks_of(moment), rows) is None, moment
        assert set(rows) <= set(live), moment
    stack.wait_until_ready()
