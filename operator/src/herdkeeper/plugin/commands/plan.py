"""`kubectl herdkeeper plan`: shows what the operator would do after a change.

The change and the annotation `herdkeeper.io/plan` are written together, so the operator never sees one without the other. They are reverted
together, too: a killed command leaves nothing executed. Each write names the version that was read: what others change stays.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from types import FrameType

from herdkeeper.plugin.cluster import ClusterError, ConflictError, NoAnswerError
from herdkeeper.plugin.command import FINE, WRONG, Answer, Argument, BadInputError, Call, Command
from herdkeeper.plugin.kinds import ZOOKEEPER, Kind
from herdkeeper.plugin.manifests import read, resources_of
from herdkeeper.plugin.merge_patch import asked_for, back_to
from herdkeeper.plugin.request import LOOK_SECONDS, Outcome, timeout_seconds, wait_until
from herdkeeper.plugin.screen import Screen
from herdkeeper.plugin.signals import TO_END, ending_like_ctrl_c, handled
from herdkeeper.plugin.stack_tree import condition
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json, annotation
from herdkeeper.shared.paused import stops
from herdkeeper.shared.quorum import SAFE_SIZE

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation in which `kubectl apply` keeps what it applied."""
_DENIED = re.compile("denied (the )?request")
"""In the API server's words of an admission policy or a webhook; a missing right to create has others."""
MOST_REVERTS = 60
"""How often a revert begins anew, at most once a second: somebody may write at that moment, or the API server is away."""
REVERT_SECONDS = 60.0


def run(call: Call) -> Answer:
    """Show the plan of each resource of the file, one after the other."""
    seconds = timeout_seconds(call)
    declared = list(resources_of(read(call.given.filename), call.given.filename))
    _require_namespace(call, declared)
    for kind, item in declared:
        name = str(item["metadata"]["name"])
        live = call.cluster.get(kind, name)
        if live is None:
            call.cluster.create(kind, item, dry_run=True)
        else:
            changed = call.cluster.patch(kind, name, shown_change(item, live), dry_run=True)
            _require_way_back(call, kind, live, changed)
    plans = [_plan(call, kind, item, seconds) for kind, item in declared]
    found = all(plan["shown"] for plan in plans)
    return Answer("\n".join(line for plan in plans for line in plan_lines(plan)), {"plans": plans}, FINE if found else WRONG)


def _require_namespace(call: Call, declared: Iterable[tuple[Kind, Json]]) -> None:
    """Raises BadInputError for a resource of another namespace: this one may have another resource of that name."""
    for kind, item in declared:
        namespace = item["metadata"].get("namespace")
        if namespace not in (None, call.cluster.namespace):
            raise BadInputError(
                f"--filename {call.given.filename}: the {kind.name} {item['metadata']['name']} is in the namespace {namespace}, but this "
                f"shows plans of {call.cluster.namespace}; add --namespace {namespace}"
            )


def _require_way_back(call: Call, kind: Kind, live: Json, changed: Json) -> None:
    """Raises BadInputError for a change that can't be reverted: it would stay."""
    field_name = one_way(live["spec"], changed["spec"]) if kind is ZOOKEEPER else None
    if field_name is not None:
        raise BadInputError(
            f"--filename {call.given.filename}: this change of {field_name} of the {kind.name} {live['metadata']['name']} can't be "
            f"reverted, so it is not shown; to see its plan before it is carried out, apply it with {names.PLAN_ANNOTATION}=true"
        )
    if changed["spec"] == live["spec"]:
        return
    earlier = {key: live["metadata"].get(key) for key in ("name", "labels", "annotations")}
    try:
        # policies judge it before the API server sees that it exists
        call.cluster.create(kind, {**live, "metadata": earlier, "status": None}, dry_run=True)
    except ClusterError as error:
        if _DENIED.search(str(error)):  # else it exists, or the user may not create it
            raise BadInputError(
                f"--filename {call.given.filename}: a change of the {kind.name} {earlier['name']} could not be reverted with your rights, "
                f"so it is not shown: {error}"
            ) from error


def one_way(before: Json, after: Json) -> str | None:
    """Returns the changed field of a ZooKeeperCluster's spec that the API server's rules don't let change back, or None."""
    if (before.get("security") or {}).get("mode") != (after.get("security") or {}).get("mode"):
        return "spec.security.mode"
    alone = before.get("replicas", SAFE_SIZE) < SAFE_SIZE and not before.get("allowSingleMember")
    return "spec.replicas" if alone and after.get("replicas", SAFE_SIZE) >= SAFE_SIZE else None


def _plan(call: Call, kind: Kind, item: Json, seconds: int) -> Json:
    """Change the resource, read its plan, and revert the change."""
    name = str(item["metadata"]["name"])
    label = f"{kind.name}/{name}"
    live = call.cluster.get(kind, name)
    if live is None:
        return {"resource": label, "shown": True, "steps": ["it is new: everything would be created"], "blockers": []}
    if stops(annotation(live, names.PLAN_ANNOTATION)):
        raise BadInputError(
            f"{label} shows a plan already (the annotation {names.PLAN_ANNOTATION}): wait until that is over. If it lasts, look at its "
            "spec and `status.plan`: `resume` carries that out"
        )
    plan: Json = {}
    to_undo: tuple[Json, Json | None] | None = (live, None)
    # else the change would stay, and no lost leader of that resource would be replaced
    with ending_like_ctrl_c():
        try:
            changed = call.cluster.patch(kind, name, shown_change(item, live), dry_run=False)
            to_undo = (live, changed)
            generation = int(changed["metadata"]["generation"])

            def look(now: Json) -> Outcome | None:
                plan.clear()
                plan.update((now.get("status") or {}).get("plan") or {})
                return plan_told(now, generation)

            outcome = wait_until(call, kind, name, look, seconds)
        except ConflictError as error:
            to_undo = None
            raise ClusterError(f"{label} was changed by somebody else at this moment: nothing was written, so call it again") from error
        finally:
            if to_undo is not None:
                with handled(_told_to_wait, (signal.SIGINT, *TO_END)):
                    _undo(call, kind, *to_undo)
    blockers = [*(plan.get("blockers") or []), *([] if outcome.good else [outcome.sentence])]
    return {"resource": label, "shown": outcome.good, "steps": plan.get("steps") or [], "blockers": blockers}


def _told_to_wait(_number: int, _frame: FrameType | None) -> None:
    Screen(sys.stderr).write("the change is being reverted; wait for it")


def shown_change(item: Json, live: Json) -> Json:
    """Returns the change, with the annotation that shows the plan instead of executing it, as one patch."""
    before = json.loads(annotation(live, LAST_APPLIED) or "{}").get("spec") or {}
    return _body(live, "true", asked_for(item.get("spec") or {}, before))


def _body(read: Json, shown: str | None, spec: Json) -> Json:
    """A patch of what was read, and of nothing else."""
    version = read["metadata"].get("resourceVersion")
    return {"metadata": {"annotations": {names.PLAN_ANNOTATION: shown}, "resourceVersion": version}, "spec": spec}


def _undo(call: Call, kind: Kind, earlier: Json, changed: Json | None) -> None:
    """Revert change and annotation. If that fails, the message has the command: until then the operator does nothing.

    `changed` is the resource with the change, None if that is unknown: it is there then if the annotation is.
    """
    name = str(earlier["metadata"]["name"])
    end = time.monotonic() + REVERT_SECONDS
    try:
        for left in reversed(range(MOST_REVERTS)):
            try:
                present = call.cluster.get(kind, name)
                if present is None or present["metadata"].get("uid") != earlier["metadata"].get("uid"):
                    return
                if changed is None and not stops(annotation(present, names.PLAN_ANNOTATION)):
                    return
                spec = back_to(earlier["spec"], (changed or present)["spec"], present["spec"])
                call.cluster.patch(kind, name, _body(present, None, spec), dry_run=False)
                return
            except (ConflictError, NoAnswerError):
                if not left or time.monotonic() >= end:
                    raise
                call.pause(LOOK_SECONDS)
    except ClusterError as error:
        raise ClusterError(
            f"{kind.name}/{name} still has the change, and the operator only shows its plan: revert the change, then `resume "
            f"{kind.name}/{name}` ({error})"
        ) from error


def plan_told(item: Json, generation: int) -> Outcome | None:
    """Returns the outcome once the status is about this generation: its plan, or why there is none."""
    ready = condition(item, "Ready")
    if ready is None or ready.get("observedGeneration", 0) < generation:
        return None
    if (item.get("status") or {}).get("plan") is not None:
        return Outcome("its plan is shown", good=True)
    return Outcome(f"{ready['reason']}: {ready['message']}", good=False) if ready["reason"] == "InvalidSpec" else None


def plan_lines(plan: Json) -> Iterator[str]:
    yield str(plan["resource"])
    yield from (f"  {number}. {step}" for number, step in enumerate(plan["steps"], start=1))
    if not plan["steps"] and plan["shown"]:
        yield "  no changes"
    yield from (f"  waits for: {blocker}" for blocker in plan["blockers"])


COMMAND = Command(
    "plan",
    "shows what the operator would do after a change",
    run,
    (
        Argument("--filename", "a file with the changed resources, or - for standard input", short="-f", required=True),
        Argument("--timeout", "seconds to wait for each plan", default="60"),
    ),
    description="First the API server validates the whole file; unknown fields are refused, as by `kubectl apply`. Then each resource is "
    f"changed together with the annotation `{names.PLAN_ANNOTATION}`, its plan is read, and both are reverted in one write. During these "
    "seconds the operator changes nothing of that resource. A new resource is only validated. A change that can't be reverted is refused.",
)
