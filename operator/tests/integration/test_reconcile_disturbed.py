"""The API server refuses, fails, answers nobody, answers late or out of date at one call: what is there in the end is what an undisturbed
operator makes, and nothing was deleted that it would not have deleted.

A run tells one story, and disturbs one call on each way to a standstill. A run that has the undisturbed run's picture again at the end of a
scene is as good as undisturbed for the next one. Which calls, and of which stories, changes from day to day, and TURN=5 tells again those
of one. EVERY_CALL=1 (`make integration-disturbed`) disturbs each call of each story.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from kubernetes.client import ApiClient, ApiException
from kubernetes.dynamic import DynamicClient
from stage import Json, written
from test_reconcile_killed import (
    STORIES,
    Over,
    Run,
    picture,
    without_random,
)
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import HTTPError, ReadTimeoutError

from herdkeeper.clients.kubernetes_writer import RefusedError
from herdkeeper.engine.result import Outcome, Result
from herdkeeper_e2e.control_plane import ControlPlane

Call = Callable[[], Any]
EVERY_CALL = os.environ.get("EVERY_CALL") == "1"
TURN = int(os.environ["TURN"])
POOL = HTTPConnectionPool("kubernetes")
"""Named by errors only: it never connects."""


@dataclass
class Disturbance:
    """What becomes of the calls of a run. `kind` is one of KINDS; on each way to a standstill the `at`th call that it applies to is
    disturbed, none at 0. `applied` counts these calls, `hit` is the method of the one that was disturbed in the present look. `removed` is
    what was deleted, `late` what was sent and is yet to be done, `answers` what was read."""

    kind: str = ""
    at: int = 0
    applied: int = 0
    hit: str = ""
    removed: set[str] = field(default_factory=set)
    late: list[Call] = field(default_factory=list)
    answers: dict[str, list[Any]] = field(default_factory=dict)

    def call(self, method: str, path: str, query: str, forward: Call) -> Any:
        """One call of the operator; `forward` sends it to the API server."""
        while self.late:
            self._ignoring(self.late.pop())
        if path.endswith("/events") or "/events/" in path:
            return forward()
        if method == "DELETE":
            self.removed.add(path)
        if self.kind and KINDS[self.kind](method):
            self.applied += 1
            if self.applied == self.at:
                self.hit = method
                return self._disturbed(path + query, forward)
        answer = forward()
        if method == "GET":
            self.answers.setdefault(path + query, []).append(answer)
        return answer

    def _disturbed(self, what: str, forward: Call) -> Any:
        match self.kind:
            case "its answer is lost":
                forward()
                raise ReadTimeoutError(POOL, what, "its answer is lost")
            case "it is done later":
                self.late.append(forward)
                raise ReadTimeoutError(POOL, what, "it is done later")
            case "an older answer":
                return self.answers[what][-1] if what in self.answers else forward()
            case status:
                refused = ApiException(status=int(status), reason="disturbed")
                refused.body = json.dumps({"kind": "Status", "message": "disturbed", "code": int(status)})
                raise refused

    @staticmethod
    def _ignoring(forward: Call) -> None:
        """Whoever sent it does not hear what became of it."""
        with suppress(ApiException):
            forward()


def _any(_: str) -> bool:
    return True


def _reads(method: str) -> bool:
    return method == "GET"


def _writes(method: str) -> bool:
    return method != "GET"


KINDS: dict[str, Callable[[str], bool]] = {
    "409": _writes,
    "422": _writes,
    "429": _any,
    "500": _any,
    "410": _reads,
    "its answer is lost": _writes,
    "it is done later": _writes,
    "an older answer": _reads,
}


class DisturbedApi(ApiClient):  # type: ignore[misc]  # kubernetes has no types
    """A client whose calls go through the disturbance of the present run."""

    disturbance = Disturbance()

    def call_api(self, resource_path: str, method: str, *arguments: Any, **named: Any) -> Any:
        """See ApiClient."""
        query = json.dumps(arguments[1] if len(arguments) > 1 else named.get("query_params"), default=str)
        send = super().call_api
        return self.disturbance.call(method, resource_path, query, lambda: send(resource_path, method, *arguments, **named))


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane) -> DynamicClient:
    """The operator's client."""
    plain = control_plane.api_client()
    return DynamicClient(DisturbedApi(plain.configuration), cache_file=str(control_plane.folder / "discovery-disturbed.json"))


class DisturbedRun(Run):
    """A story on a namespace of its own, in which the operator goes on after each failure as its workers do.

    `most` has for each scene the most calls on one way to a standstill. `counted` is that of a run in which none was disturbed: a run is
    over when no later scene has as many.
    """

    def __init__(self, dynamic: DynamicClient, operator: DynamicClient, disturbance: Disturbance, counted: Sequence[int] = ()) -> None:
        super().__init__(dynamic)
        self.stage.operator = operator
        self._api: DisturbedApi = operator.client
        self.disturbance = disturbance
        self.counted = counted
        self.ended: list[Json] = []
        self.most: list[int] = []
        self._applied = 0

    def settle(self, kind: str, name: str, now: datetime.datetime | None = None) -> None:
        """Reconcile until nothing is written any more and nothing fails."""
        self._settle(kind, name, now)
        self._scene_ended()

    def _scene_ended(self) -> None:
        self.ended.append(picture(self.stage))
        self.most.append(self._applied)
        self._applied = 0
        later = self.counted[len(self.most) :]
        if later and max(later) < self.disturbance.at:
            raise Over

    def _settle(self, kind: str, name: str, now: datetime.datetime | None = None) -> None:
        def settled() -> bool:
            before, self.disturbance.hit = written(), ""
            result = self._reconcile(kind, name, now)
            # A look at what is not so is not the last one: a watch tells of it. Nobody tells of a write that was not done but who sent it.
            hit, asks = self.disturbance.hit, result.outcome is Outcome.FAILED or result.requeue_after_seconds is not None
            return written() == before and not self.disturbance.late and not (hit == "GET" or (hit and asks))

        self._until(settled, f"{kind} {name} is settled")

    def delete(self, kind: str, name: str) -> None:
        """Delete a resource, and reconcile until it is gone."""
        self.stage.delete(kind, name)

        def gone() -> bool:
            self.stage.let_claims_go()
            return self._reconcile(kind, name, None).outcome is Outcome.GONE

        self._until(gone, f"{kind} {name} is gone")
        self._scene_ended()

    def one_scene(self, kind: str, name: str, part: Callable[[Callable[[], None]], None]) -> None:
        """See Run."""
        part(lambda: self._settle(kind, name))
        self._scene_ended()

    def _reconcile(self, kind: str, name: str, now: datetime.datetime | None) -> Result:
        return self.stage.reconcile(kind, name) if now is None else self.stage.reconcile_at(now, kind, name)

    def _until(self, ended: Callable[[], bool], what: str) -> None:
        self._api.disturbance = self.disturbance
        self.disturbance.applied = 0
        try:
            for _ in range(40):
                with suppress(HTTPError, ApiException, RefusedError):
                    if ended():
                        return
        finally:
            self._api.disturbance = Disturbance()
            self._applied = max(self._applied, self.disturbance.applied)
        raise AssertionError(f"it is not true after 40 reconciles that {what}")

    @property
    def removed(self) -> set[str]:
        """What was deleted, and the orders to nodes that move data aside."""
        orders = {order for order in self.stage.nodes.orders if "set-aside" in order}
        return {without_random(each.replace(self.stage.namespace, "namespace")) for each in self.disturbance.removed | orders}


@pytest.fixture(scope="module")
def undisturbed(dynamic: DynamicClient, operator: DynamicClient) -> Callable[[Callable[[Run], None]], DisturbedRun]:
    """The same stories without a disturbance, each told once."""
    told: dict[Callable[[Run], None], DisturbedRun] = {}

    def tell(story: Callable[[Run], None]) -> DisturbedRun:
        if story not in told:
            told[story] = DisturbedRun(dynamic, operator, Disturbance())
            story(told[story])
        return told[story]

    return tell


def calls(most: Sequence[int], number: int) -> set[int]:
    """Which calls are disturbed, of the most in each scene: the last scene's last one, which tells how it ended, and one by turn."""
    return set(range(1, max(most) + 1)) if EVERY_CALL else {most[-1], 1 + (7 * TURN + number) % max(most)}


CASES = [
    (number, kind, story)
    for number, kind in enumerate(KINDS)
    for story, _ in (STORIES if EVERY_CALL else [STORIES[(TURN + number) % len(STORIES)]])
]


@pytest.mark.parametrize(("number", "kind", "story"), CASES, ids=[f"{kind}-{story.__name__}" for _, kind, story in CASES])
def test_whichever_call_is_disturbed_the_end_is_the_same_and_nothing_else_is_deleted(
    dynamic: DynamicClient,
    operator: DynamicClient,
    undisturbed: Callable[[Callable[[Run], None]], DisturbedRun],
    number: int,
    kind: str,
    story: Callable[[Run], None],
) -> None:
    clean = undisturbed(story)
    undisturbed_calls = DisturbedRun(dynamic, operator, Disturbance(kind))
    story(undisturbed_calls)
    counted = undisturbed_calls.most
    for call in sorted(calls(counted, number)):
        run = DisturbedRun(dynamic, operator, Disturbance(kind, call), counted)
        with suppress(Over):
            story(run)
        what = f"{story.__name__}, call {call} of {counted}: {kind} (TURN={TURN})"
        assert all(applied >= call for applied, most in zip(run.most, counted, strict=False) if most >= call), f"{what}: {run.most}"
        assert run.ended == clean.ended[: len(run.ended)], what
        assert run.removed <= clean.removed, what
