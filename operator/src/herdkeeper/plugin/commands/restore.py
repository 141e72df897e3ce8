"""`kubectl herdkeeper restore`: a new tablespace, as another one was at a moment."""

from __future__ import annotations

import argparse
import datetime

from herdkeeper.plugin.change import Change, Create, carry_out
from herdkeeper.plugin.command import Answer, Argument, BadInputError, Call, Command
from herdkeeper.plugin.kinds import CHECKPOINT, TABLESPACE
from herdkeeper.plugin.lookup import find
from herdkeeper.plugin.new_checkpoint import CLAIM, VERIFY, checkpoint_spec, past_moment, template_of
from herdkeeper.plugin.reasons import reason_of
from herdkeeper.plugin.request import Awaited, Outcome, awaited, timeout_seconds, waiting
from herdkeeper.plugin.runs import run_name
from herdkeeper.plugin.stack_tree import condition
from herdkeeper.shared.objects import Json


def run(call: Call) -> Answer:
    """Makes the Checkpoint of the moment and the Tablespace that waits for it; with `--wait` until that one is Ready."""
    timeout_seconds(call)
    given = call.given
    if (given.at is None) == (given.from_checkpoint is None):
        raise BadInputError("name one of --at TIME and --from-checkpoint CHECKPOINT: which moment shall it be?")
    tablespace = find(call.cluster, TABLESPACE, given.tablespace, "TABLESPACE")
    new = given.new
    if call.cluster.get(TABLESPACE, new) is not None:
        raise BadInputError(f"--as {new}: there is a Tablespace of that name; a restore never goes over one, so name another")
    if given.from_checkpoint is not None:
        find(call.cluster, CHECKPOINT, given.from_checkpoint, "--from-checkpoint")
    now = datetime.datetime.now(datetime.UTC)
    changes = restored(tablespace, given, template_of(call.cluster, given.tablespace), now)
    answer = carry_out(call, changes)
    if not given.wait or given.dry_run:
        return answer
    return awaited(call, answer, Awaited(TABLESPACE, new, end_of_restore))


def restored(tablespace: Json, given: argparse.Namespace, template: Json | None, now: datetime.datetime) -> list[Change]:
    """What is made, in its order. The new tablespace has the replicas of the old one; nothing else of it is taken over."""
    changes: list[Change] = []
    checkpoint = given.from_checkpoint
    if checkpoint is None:
        moment = past_moment(given.at, now)
        checkpoint = run_name(given.new, now)
        spec = {**checkpoint_spec(given.tablespace, given, template), "target": {"timestamp": moment}}
        changes.append(Create(CHECKPOINT, checkpoint, spec, f"a checkpoint of {given.tablespace} as it was at {moment} is to be made"))
    spec = {key: tablespace["spec"][key] for key in ("herdDBRef", "replicas") if key in tablespace["spec"]}
    spec["bootstrap"] = {"checkpoint": {"name": checkpoint}}
    return [*changes, Create(TABLESPACE, given.new, spec, f"the tablespace is to be made from the Checkpoint {checkpoint}")]


def end_of_restore(item: Json) -> Outcome | None:
    """How a restore ended; None while it goes on."""
    ready = condition(item, "Ready")
    if ready is None:
        return None
    if ready["status"] == "True":
        restore = (item.get("status") or {}).get("restore") or {}
        return Outcome(f"it is Ready; {restore.get('verified') or ready['message']}", good=True)
    reason = reason_of(ready["reason"])
    return Outcome(f"{ready['reason']}: {ready['message']}", good=False) if reason is not None and reason.needs_person else None


COMMAND = Command(
    "restore",
    "makes a new tablespace, as another one was at a moment; the other one goes on untouched",
    run,
    (
        Argument("tablespace", "the Tablespace that is restored from", kind=TABLESPACE),
        Argument("--at", "the moment, e.g. 2026-11-21T14:30:00+01:00; a Checkpoint of it is made first"),
        Argument("--from-checkpoint", "a Checkpoint that is there, instead of a moment", kind=CHECKPOINT),
        Argument("--as", "the name of the new Tablespace", field_name="new", required=True),
        CLAIM,
        VERIFY,
        *waiting("3600"),
    ),
    description="The new tablespace is Ready once every row was compared with the checkpoint.",
    writes=True,
)
