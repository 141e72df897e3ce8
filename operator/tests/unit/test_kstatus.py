"""What kstatus makes of each state of each kind: Flux and other tools wait by it. The program is its own (e2e/kstatus)."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import pytest
from resource_states import KINDS, NOW, State, states, stored_document
from situations import with_metadata

from herdkeeper.planning.actions import Create, Plan, Wait
from herdkeeper.planning.status import Failed, status_document
from herdkeeper.planning.summary import Health, Summary
from herdkeeper.shared.reason import Bearing, Reason
from herdkeeper_e2e.kstatus import judged

STATES = tuple(states())


@cache
def judged_states() -> dict[int, str]:
    return dict(enumerate(judged(state.document for state in STATES)))


@pytest.mark.parametrize("number", range(len(STATES)), ids=[f"{state.kind}: {state.name}" for state in STATES])
def test_a_state_is_what_kstatus_takes_it_for(number: int):
    state: State = STATES[number]
    assert judged_states()[number] == state.verdict.kstatus, state.document["status"]


def test_every_kind_has_states_that_are_current_in_progress_failed_and_on_their_way_out():
    found = {(state.kind, state.verdict.kstatus) for state in STATES}
    assert found >= set(product(KINDS, ("Current", "InProgress", "Failed", "Terminating")))


def written(ready: Health, plan: Plan, failed: Failed | None = None) -> dict[str, Any]:
    resource = with_metadata(KINDS["Tablespace"].declared, generation=3)
    return stored_document(resource, status_document(resource, Summary(ready, {}), plan, failed, NOW))


def waiting(reason: Reason) -> Plan:
    return Plan(wait=Wait(reason, "it waits"))


WAITS = (
    Reason.CLAIM_LOST,
    Reason.PAUSED,
    Reason.PLANNED,
    Reason.SUSPENDED,
    Reason.WAITING_FOR_OTHERS,
    Reason.UNREADABLE,
    Reason.RECOVERING,
)
PLANS = (Plan(), Plan((Create({"kind": "Job", "metadata": {"name": "x"}}),)), *map(waiting, WAITS))


def conditions(document: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in document["status"]["conditions"]}


def test_whatever_the_reasons_are_kstatus_never_waits_for_what_needs_a_person_and_takes_only_what_serves_for_current():
    healths = [Health(status, reason, "why") for status, reason in product(("False", "Unknown"), Reason)]
    documents = [written(health, plan, failed) for health, plan, failed in product(healths, PLANS, (None, Failed("no")))]
    documents += [written(Health("True", Reason.READY, "serves"), plan, failed) for plan, failed in product(PLANS, (None, Failed("no")))]
    for document, verdict in zip(documents, judged(documents), strict=True):
        told = conditions(document)
        (ready, reason), stopped = told["Ready"], told["Progressing"][1] in ("Paused", "Planned")
        if ready == "True":
            assert verdict in (("Failed",) if stopped else ("Current", "InProgress")), told
        else:
            assert verdict == ("Failed" if Reason(reason).needs_person or stopped else "InProgress"), told


@pytest.mark.parametrize("reason", Reason)
def test_a_resource_that_serves_is_current_unless_its_reason_says_that_something_declared_is_not_carried_out(reason: Reason):
    told = conditions(written(Health("True", Reason.READY, "serves"), waiting(reason)))
    expected = {
        Bearing.NEEDS_PERSON: {"Stalled"},
        # stopped before it was looked at; a schedule that is suspended is as it declares
        Bearing.ASKED_FOR: set() if reason is Reason.SUSPENDED else {"Stalled"},
        Bearing.UNFINISHED: {"Reconciling"},
        Bearing.NONE: set(),
    }[reason.bearing]
    assert told.keys() - {"Ready", "Progressing"} == expected


def test_of_reconciling_and_stalled_at_most_one_is_there_and_it_is_true():
    for state in STATES:
        found = [entry["status"] for entry in state.document["status"].get("conditions", ()) if entry["type"] in ("Reconciling", "Stalled")]
        assert found in ([], ["True"]), state
