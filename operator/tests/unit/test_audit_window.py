"""A ReplicationAudit with a window: its Job runs while the window is open, and one that paused goes on when it opens again."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest
import yaml
from situations import EXAMPLES, bookkeeper_serving, objects, with_metadata, with_spec, with_status

from herdkeeper.api.job import ClaimDestination, VolumeDestination
from herdkeeper.api.replication_audit import LedgerFilter, LedgerRange, Window
from herdkeeper.jobs.audit.state import AuditRun
from herdkeeper.jobs.plan import plan_audit
from herdkeeper.jobs.schedule.state import run_of
from herdkeeper.jobs.status import summarize_audit
from herdkeeper.jobs.validate import audit_refusals
from herdkeeper.planning.actions import Apply, Delete
from herdkeeper.protocol.audit_finding import Finding, FindingKind, Severity
from herdkeeper.protocol.job_summary import AuditSummary, JobOutcome
from herdkeeper.shared.reason import Reason
from herdkeeper_e2e.defaulting import stored

HOUR = datetime.timedelta(hours=1)
NIGHT = Window.model_validate({"from": "22:00", "to": "05:00", "timeZone": "Europe/Rome"})
OPENS = datetime.datetime(2026, 6, 1, 20, tzinfo=datetime.UTC)
CLOSES = OPENS + 7 * HOUR
AUDIT = with_spec(
    next(stored(each, "demo") for each in yaml.safe_load_all((EXAMPLES / "audit.yaml").read_text()) if each["kind"] == "ReplicationAudit"),
    window=NIGHT,
    destination=VolumeDestination(persistent_volume_claim=ClaimDestination(claim_name="audits")),
)
JOB = f"{AUDIT.metadata.name}-audit"
FOUND = Finding(FindingKind.MISSING, Severity.CRITICAL, 3, 5, 6, "b1")
PAUSED = AuditSummary("r", JobOutcome.PAUSED, "paused; so far 3 ledgers", ledgers=3, critical=1, findings=(FOUND,))


def seen(now: datetime.datetime, *parts) -> AuditRun:
    return AuditRun(AUDIT, objects(*parts), bookkeeper_serving(), now)


def job(ended: datetime.datetime | None, condition: str = "Complete"):
    status = {"conditions": [{"type": condition, "status": "True", "reason": "r", "message": "m"}]} if ended else {}
    completed = {"completionTime": ended.strftime("%Y-%m-%dT%H:%M:%SZ")} if ended and condition == "Complete" else {}
    arguments = ["herdkeeper_jobs.audit.cli", "--read-until", CLOSES.strftime("%Y-%m-%dT%H:%M:%SZ")]
    spec = {"template": {"spec": {"containers": [{"name": "driver", "args": arguments}]}}}
    metadata = {"name": JOB, "uid": "job-1", "ownerReferences": [{"uid": AUDIT.metadata.uid}]}
    return {("Job", JOB): {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec, "status": {**status, **completed}}}


def driver(said: str | None):
    state = {"terminated": {"exitCode": 0, **({"message": said} if said else {})}}
    metadata = {"name": "p", "creationTimestamp": "2026-06-01T20:00:00Z", "labels": {"batch.kubernetes.io/job-name": JOB}}
    status = {"phase": "Succeeded", "containerStatuses": [{"name": "driver", "state": state}]}
    return {("Pod", "p"): {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}}


def made(plan):
    (applied,) = [action.manifest for action in plan.actions if isinstance(action, Apply)]
    return applied


def test_a_job_is_made_while_the_window_is_open_and_its_deadline_counts_from_the_end_of_that():
    plan = plan_audit(seen(OPENS + HOUR), "spark:1")
    arguments = made(plan)["spec"]["template"]["spec"]["containers"][0]["args"]
    assert arguments[arguments.index("--read-until") + 1] == "2026-06-02T03:00:00Z"
    assert made(plan)["spec"]["activeDeadlineSeconds"] == 6 * 3600 + AUDIT.spec.job.deadline_seconds


@pytest.mark.parametrize("now", [OPENS - HOUR, CLOSES, CLOSES + HOUR], ids=["before", "at its end", "after"])
def test_no_job_is_made_while_the_window_is_closed_and_it_is_looked_again_when_it_opens(now):
    plan = plan_audit(seen(now), "spark:1")
    opens = OPENS if now < OPENS else OPENS + 24 * HOUR
    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.reason is Reason.WAITING_FOR_WINDOW
    assert plan.wait.message == f"it reads only from 22:00 to 05:00 (Europe/Rome); it starts at {opens:%Y-%m-%dT%H:%M:%SZ}"
    assert plan.requeue_after_seconds == (opens - now).total_seconds()


@pytest.mark.parametrize("said", [PAUSED.to_json(), None], ids=["paused", "its words are lost"])
def test_the_job_of_a_run_that_may_have_paused_goes_when_the_window_opens_again(said):
    ended = job(CLOSES + datetime.timedelta(minutes=1))
    before = plan_audit(seen(CLOSES + 2 * HOUR, ended, driver(said)), "spark:1")
    assert (before.actions, before.requeue_after_seconds) == ((), 15 * 3600)
    after = plan_audit(seen(OPENS + 24 * HOUR, ended, driver(said)), "spark:1")
    assert after.actions == (Delete("batch/v1", "Job", JOB, "job-1", Reason.RUN_GOES_ON),)
    again = plan_audit(replace(seen(OPENS + 24 * HOUR), audit=with_status(AUDIT, phase="Paused")), "spark:1")
    assert made(again)["metadata"]["name"] == JOB


def test_a_job_that_is_being_deleted_is_not_deleted_again():
    ended = job(CLOSES)
    ended["Job", JOB]["metadata"]["deletionTimestamp"] = "2026-06-02T20:00:00Z"
    assert plan_audit(seen(OPENS + 24 * HOUR, ended, driver(None)), "spark:1").actions == ()


def test_a_run_that_pauses_by_a_clock_that_is_early_does_not_go_on_in_the_same_window():
    ended = job(CLOSES - datetime.timedelta(seconds=2))
    assert plan_audit(seen(CLOSES - datetime.timedelta(seconds=1), ended, driver(PAUSED.to_json())), "spark:1").actions == ()


def test_a_run_that_paused_while_a_clock_was_ahead_goes_on_when_the_window_opens_next():
    year = datetime.timedelta(days=365)
    paused = job(CLOSES + year)
    paused["Job", JOB]["spec"]["template"]["spec"]["containers"][0]["args"][-1] = (CLOSES + year).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = seen(CLOSES + HOUR, paused, driver(PAUSED.to_json()))
    assert summarize_audit(found).fields["resumesAt"] == "2026-06-02T20:00:00Z"
    assert plan_audit(found, "spark:1").actions == ()
    (again,) = plan_audit(replace(found, now=OPENS + 24 * HOUR), "spark:1").actions
    assert isinstance(again, Delete)


def with_hours(opens: str, closes: str):
    """The audit, with another window."""
    return with_spec(AUDIT, window=Window.model_validate({"from": opens, "to": closes, "timeZone": "UTC"}))


@pytest.mark.parametrize("closes", ["03:01", "09:00", "23:59"])
def test_a_paused_run_whose_hours_are_changed_so_that_they_are_open_goes_on_at_once(closes: str):
    second = datetime.timedelta(seconds=1)
    state = (CLOSES + 40 * second, job(CLOSES + 30 * second), driver(PAUSED.to_json()))
    plan = plan_audit(replace(seen(*state), audit=with_hours("02:00", closes)), "spark:1")
    assert plan.actions == (Delete("batch/v1", "Job", JOB, "job-1", Reason.RUN_GOES_ON),)


def test_a_paused_run_whose_hours_are_changed_goes_on_when_the_new_ones_begin_and_says_so():
    state = (CLOSES + HOUR, job(CLOSES + datetime.timedelta(minutes=1)), driver(PAUSED.to_json()))
    changed = with_hours("04:30", "05:30")
    assert summarize_audit(replace(seen(*state), audit=changed)).fields["resumesAt"] == "2026-06-02T04:30:00Z"
    plan = plan_audit(replace(seen(*state), audit=changed), "spark:1")
    assert (plan.actions, plan.requeue_after_seconds) == ((), 1800)


@pytest.mark.parametrize(("opens", "closes"), [("02:00", "03:00"), ("02:00", "02:30"), ("20:00", "03:00")])
def test_hours_that_are_changed_and_are_not_open_wait_for_the_next_time(opens: str, closes: str):
    ended = job(CLOSES - datetime.timedelta(seconds=2))
    summary = summarize_audit(replace(seen(CLOSES, ended, driver(PAUSED.to_json())), audit=with_hours(opens, closes)))
    assert summary.fields["resumesAt"] == ("2026-06-03T02:00:00Z" if opens == "02:00" else "2026-06-02T20:00:00Z")


def test_hours_that_are_over_when_they_are_declared_start_nothing_and_take_nothing_away():
    state = (CLOSES + 8 * HOUR, job(CLOSES), driver(PAUSED.to_json()))
    missed = with_hours("04:00", "09:00")
    assert summarize_audit(replace(seen(*state), audit=missed)).fields["resumesAt"] == "2026-06-03T04:00:00Z"
    assert plan_audit(replace(seen(*state), audit=missed), "spark:1").actions == ()


def test_the_job_of_a_run_whose_words_may_still_come_stays_though_its_new_hours_are_open():
    running = driver(None)
    running[("Pod", "p")]["status"] = {"phase": "Running", "containerStatuses": [{"name": "driver", "state": {"running": {}}}]}
    state = (CLOSES - HOUR, job(CLOSES - HOUR), running)
    longer = with_hours("22:00", "07:00")
    assert plan_audit(replace(seen(*state), audit=longer), "spark:1").actions == ()
    assert summarize_audit(replace(seen(*state), audit=longer)).fields["phase"] == "Running"


def test_a_job_that_runs_ends_when_it_was_told_though_the_hours_were_changed():
    plan = plan_audit(replace(seen(CLOSES - HOUR, job(None), driver(None)), audit=with_hours("00:00", "01:00")), "spark:1")
    assert (plan.actions, plan.requeue_after_seconds) == ((), None)


@pytest.mark.parametrize(
    "state",
    [
        (job(None), driver(None)),
        (job(CLOSES, "Failed"), driver(PAUSED.to_json())),
        (job(CLOSES), driver(replace(PAUSED, outcome=JobOutcome.SUCCEEDED).to_json())),
        (job(CLOSES), driver(replace(PAUSED, outcome=JobOutcome.ALREADY_DONE).to_json())),
        (job(CLOSES), driver("rubbish")),
    ],
    ids=["it runs", "it failed", "it is done", "it was done before", "its words are no summary"],
)
def test_any_other_job_is_left_alone(state):
    plan = plan_audit(seen(OPENS + 24 * HOUR, *state), "spark:1")
    assert (plan.actions, plan.requeue_after_seconds) == ((), None)


def test_a_paused_run_tells_what_it_has_found_so_far_and_when_it_goes_on():
    summary = summarize_audit(seen(CLOSES + HOUR, job(CLOSES), driver(PAUSED.to_json())))
    assert (summary.health.status, summary.health.reason) == ("False", Reason.WAITING_FOR_WINDOW)
    assert summary.health.message == "paused; so far 3 ledgers; it resumes at 2026-06-02T20:00:00Z"
    told = {name: summary.fields[name] for name in ("phase", "resumesAt", "ledgers", "findingsTotal", "job")}
    assert told == {"phase": "Paused", "resumesAt": "2026-06-02T20:00:00Z", "ledgers": 3, "findingsTotal": 1, "job": JOB}
    assert "completedAt" not in summary.fields


def test_a_paused_run_whose_words_are_lost_is_paused_and_not_a_success():
    summary = summarize_audit(seen(CLOSES + HOUR, job(CLOSES), driver(None)))
    assert (summary.fields["phase"], summary.health.message) == ("Paused", "paused; it resumes at 2026-06-02T20:00:00Z")


def test_a_run_whose_words_are_no_summary_is_over_and_no_success():
    summary = summarize_audit(seen(CLOSES + HOUR, job(CLOSES), driver("rubbish")))
    assert (summary.fields["phase"], summary.health.status, summary.health.reason) == ("Failed", "Unknown", Reason.RESULT_UNKNOWN)
    assert summary.health.message.startswith("its result is unknown, as is whether it was done or paused: ")


def test_a_run_that_is_over_stays_so_though_its_job_says_that_it_paused():
    over = with_status(AUDIT, phase="Succeeded", message="done")
    assert summarize_audit(replace(seen(CLOSES, job(CLOSES), driver(PAUSED.to_json())), audit=over)).fields["phase"] == "Succeeded"


def test_a_paused_run_holds_up_its_schedule():
    created = with_metadata(AUDIT, creation_timestamp="2026-06-01T20:00:00Z")
    assert run_of(with_status(created, phase="Paused")).active
    assert not run_of(with_status(created, phase="Succeeded")).active


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_hours_that_mean_nothing_change_nothing_of_a_run_that_is_over(phase: str):
    assert audit_refusals(with_status(with_spec(AUDIT, window=NIGHT.model_copy(update={"time_zone": "Rome"})), phase=phase)) == ()


def test_a_time_zone_that_there_is_not_is_refused():
    refused = audit_refusals(with_spec(AUDIT, window=NIGHT.model_copy(update={"time_zone": "Rome"})))
    assert [each.sentence for each in refused] == [
        "spec.window.timeZone is 'Rome': this time zone does not exist; use a name of the IANA database, e.g. UTC or Europe/Vienna"
    ]
    assert audit_refusals(AUDIT) == ()


@pytest.mark.parametrize(
    ("opens", "closes", "short"),
    [("22:00", "22:29", True), ("22:00", "22:30", False), ("23:50", "00:19", True), ("23:50", "00:20", False), ("22:00", "21:59", False)],
)
def test_a_window_of_less_than_half_an_hour_is_refused(opens: str, closes: str, short: bool):
    refused = audit_refusals(with_spec(AUDIT, window=Window.model_validate({"from": opens, "to": closes})))
    told = (
        f"spec.window is {opens} to {closes} (UTC): a run whose Job starts in it can read little or nothing in less than 30 minutes; "
        "let it close at least 30 minutes after it opens, or remove it"
    )
    assert [each.sentence for each in refused] == ([told] if short else [])


@pytest.mark.parametrize(
    ("changes", "chosen"),
    [
        ({}, False),
        ({"filter": LedgerFilter()}, False),
        ({"ledgers": (7,)}, True),
        ({"filter": LedgerFilter(ledger_ranges=(LedgerRange(first=1, last=2),))}, True),
    ],
    ids=["all", "an empty filter", "ids", "a filter"],
)
def test_an_audit_of_chosen_ledgers_is_not_about_the_cluster(changes, chosen):
    assert with_spec(AUDIT, **changes).spec.chooses_ledgers is chosen
