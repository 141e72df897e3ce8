"""Fields of the four servers' kinds get another valid value on a running stack under a writer, and their old one back (the idea of Acto).

The stack settles with the value and no pod of an older template, or a condition says why not, or the API server refuses it by field. Put
back, it settles again, with the pod templates of before. No pod is replaced whose template is the same, never two servers are away at once,
none restarts by itself, the operator fails at nothing, and no acknowledged row is lost. A run takes a tenth of the fields; TURN=5 takes
those of one day, FIELDS="tls" those whose names have this part.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from conftest import Stack, say
from under_load import SETTLED, is_settled, lost_nothing, one_at_a_time, seen_away, settled, uids

from herdkeeper.shared.names import REVISION_LABEL
from herdkeeper_e2e.cluster import OPERATOR_NAMESPACE
from herdkeeper_e2e.conditions import pod_problem
from herdkeeper_e2e.fields_of_crds import Leaf, leaves
from herdkeeper_e2e.kubectl import SERVERS, KubectlError, Object
from herdkeeper_e2e.pod_watch import PodWatch
from herdkeeper_e2e.sql_stack import OPERATOR
from herdkeeper_e2e.waiting import Limit, Pending, WaitError, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

NAMES = {"ZooKeeperCluster": "zk", "BookKeeperCluster": "bk", "HerdDBCluster": "db", "Tablespace": "flights"}
SHARE = 10
ROWS = 10
STUCK_SECONDS = 60
"""What a condition says for so long is the answer to a value that can't be in force."""
EXCLUDED = {
    "BookKeeperCluster (drain|bookies)": "another bookie comes with a number of its own: test_storage_1",
    r"ZooKeeperCluster security\.mode": "a stack does not leave its certificates; it moves to them in test_secure_3",
    r"Tablespace bootstrap\..*": "none of it can change, which test_every_field_and_back.py shows",
}
"""Fields that are not changed here, and why."""


def chosen() -> list[Leaf]:
    """By name, else by turn."""
    all_of_them = [leaf for kind in NAMES for leaf in leaves(kind) if not any(re.fullmatch(name, str(leaf)) for name in EXCLUDED)]
    if part := os.environ.get("FIELDS"):
        return [leaf for leaf in all_of_them if part in str(leaf)]
    turn = int(os.environ.get("TURN") or datetime.now(UTC).date().toordinal())
    return all_of_them[turn % SHARE :: SHARE]


@dataclass(frozen=True)
class Running:
    """The stack and its writer."""

    stack: Stack
    writer: WriterProcess

    def refusal(self, leaf: Leaf, spec: Object) -> str | None:
        """What the API server says of this spec, as by `kubectl replace`; None when it stores it."""
        patch = json.dumps([{"op": "replace", "path": "/spec", "value": spec}])
        try:
            self.stack.kubectl.run("patch", leaf.kind, NAMES[leaf.kind], "--type", "json", "-p", patch)
        except KubectlError as error:
            return error.said.strip()
        return None

    def spec(self, leaf: Leaf) -> Object:
        """As it is stored."""
        found: Object = self.stack.sql.get(leaf.kind, NAMES[leaf.kind])["spec"]
        return found

    def templates(self) -> dict[str, str]:
        """The pod template of each StatefulSet."""
        return {item["metadata"]["name"]: json.dumps(item["spec"]["template"]) for item in self.stack.kubectl.list("statefulsets")}

    def outdated(self) -> list[str]:
        """The pods that were not made from the present template."""
        sets = {item["metadata"]["name"]: item["status"]["updateRevision"] for item in self.stack.kubectl.list("statefulsets")}
        made_from = {pod["metadata"]["name"]: pod["metadata"]["labels"][REVISION_LABEL] for pod in self.stack.kubectl.list("pods", SERVERS)}
        return sorted(pod for pod, revision in made_from.items() if sets.get(pod.rpartition("-")[0], revision) != revision)

    def answer(self) -> str | None:
        """What a condition says for a while instead of that all is settled; None when all is."""
        last = None
        while True:
            try:
                wait_for("the stack to be settled", lambda: is_settled(self.stack), Limit(STUCK_SECONDS, 2), say)
            except WaitError:
                pending = is_settled(self.stack)
                if isinstance(pending, Pending) and pending.reason == last:
                    return last
                last = pending.reason if isinstance(pending, Pending) else None
            else:
                return None


@pytest.fixture(scope="module")
def running(stack: Stack) -> Iterator[Running]:
    """Ready, with a writer that goes on until the end and has lost nothing then."""
    settled(stack)
    writer = WriterProcess(stack.tools, "written_while_fields_change", "--pause-seconds", "0.05").acknowledges(ROWS)
    yield Running(stack, writer)
    lost_nothing(writer)


@pytest.fixture(autouse=True)
def steady(running: Running) -> Iterator[None]:
    """Never two servers are away at once, none restarts by itself, and the operator fails at nothing."""
    kubectl, watch = running.stack.kubectl, PodWatch(running.stack.kubectl, SERVERS)
    restarts = _restarts(running)
    log = kubectl.in_namespace(OPERATOR_NAMESPACE)
    known = len(log.run("logs", "--selector", OPERATOR, "--tail=-1").splitlines())
    yield
    away, present = seen_away(watch), _restarts(running)
    one_at_a_time([absence for absence in away if absence.pod in present])  # a member that left is not away
    assert {pod: number for pod, number in present.items() if number > restarts.get(pod, 0)} == {}
    new = log.run("logs", "--selector", OPERATOR, "--tail=-1").splitlines()[known:]
    assert [line for line in new if "Traceback" in line or '"reconcile failed"' in line] == []


def _restarts(running: Running) -> dict[str, int]:
    pods = running.stack.kubectl.list("pods", SERVERS)
    return {pod["metadata"]["name"]: sum(each["restartCount"] for each in pod["status"].get("containerStatuses", [])) for pod in pods}


def needless(before: tuple[Mapping[str, str], Mapping[str, str]], after: tuple[Mapping[str, str], Mapping[str, str]]) -> list[str]:
    """Pods that were replaced though their template is the same; each argument has templates and uids. One that is gone has left."""
    same = {name for name, template in after[0].items() if before[0].get(name) == template}
    return sorted(pod for pod, uid in before[1].items() if pod.rpartition("-")[0] in same and after[1].get(pod, uid) != uid)


@pytest.mark.parametrize("leaf", chosen(), ids=str)
def test_a_changed_field_is_in_force_or_told_and_put_back_it_leaves_nothing(running: Running, leaf: Leaf) -> None:
    stack, spec = running.stack, running.spec(leaf)
    before = (running.templates(), uids(stack))
    refused = running.refusal(leaf, leaf.changed(spec))
    if refused is not None:
        say(f"{leaf}: refused: {refused}")
        assert f"spec.{leaf.path.split('.')[0].removesuffix('[]')}" in refused
        return
    told = running.answer()
    changed = (running.templates(), uids(stack))
    say(f"{leaf}: {'in force' if told is None else told}")
    assert needless(before, changed) == []
    assert told is not None or running.outdated() == []
    if told is not None:
        problems = [pod["metadata"]["name"] for pod in stack.kubectl.list("pods", SERVERS) if pod_problem(pod) is not None]
        assert len(problems) <= 1, problems
    running.writer.acknowledges(ROWS)

    assert running.refusal(leaf, spec) is None
    wait_for("the stack to be as before", lambda: as_before(running, before[0]), SETTLED, say)
    assert needless(changed, (running.templates(), uids(stack))) == []
    running.writer.acknowledges(ROWS)


def as_before(running: Running, templates: Mapping[str, str]) -> bool | Pending:
    """Whether all is settled, with these pod templates."""
    if isinstance(unsettled := is_settled(running.stack), Pending):
        return unsettled
    now = running.templates()
    return True if now == templates else Pending(f"other templates: {', '.join(name for name in now if now[name] != templates.get(name))}")
