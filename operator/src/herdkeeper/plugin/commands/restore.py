"""`kubectl herdkeeper restore`: a new tablespace with the content of another one at a moment."""

from __future__ import annotations

import argparse
import datetime

from herdkeeper.plugin.change import Change, Create, carry_out
from herdkeeper.plugin.command import Answer, Argument, BadInputError, Call, Command, find
from herdkeeper.plugin.kinds import CHECKPOINT, TABLESPACE
from herdkeeper.plugin.new_checkpoint import CLAIM, VERIFY, at_its_base, checkpoint_spec, past_moment, template_of
from herdkeeper.plugin.reasons import reason_of
from herdkeeper.plugin.request import Awaited, Outcome, awaited, message_of, timeout_seconds, waiting
from herdkeeper.plugin.runs import run_name
from herdkeeper.plugin.stack_tree import condition
from herdkeeper.shared.objects import Json


def run(call: Call) -> Answer:
    """Create the moment's Checkpoint and a Tablespace that waits for it; with `--wait`, wait until that is Ready."""
    timeout_seconds(call)
    given = call.given
    if (given.at is None) == (given.from_checkpoint is None):
        raise BadInputError("name the moment with one of --at TIME and --from-checkpoint CHECKPOINT")
    tablespace = find(call.cluster, TABLESPACE, given.tablespace, "TABLESPACE")
    new = given.new
    if call.cluster.get(TABLESPACE, new) is not None:
        raise BadInputError(f"--as {new}: a Tablespace of that name exists, and a restore never replaces one; use another name")
    if given.from_checkpoint is not None:
        _check_checkpoint(find(call.cluster, CHECKPOINT, given.from_checkpoint, "--from-checkpoint"), given.tablespace)
    now = datetime.datetime.now(datetime.UTC)
    template = template_of(call.cluster, given.tablespace)
    if given.at is not None:
        template = at_its_base(template, call.cluster, tablespace, past_moment(given.at, now))
    changes = restored(tablespace, given, template, now)
    answer = carry_out(call, changes)
    return awaited(call, answer, Awaited(TABLESPACE, new, end_of_restore))


def _check_checkpoint(checkpoint: Json, tablespace: str) -> None:
    """Raises BadInputError for a Checkpoint of another tablespace, and for one from which nothing can ever be restored."""
    name, of = checkpoint["metadata"]["name"], checkpoint["spec"]["tablespaceRef"]["name"]
    if of != tablespace:
        raise BadInputError(f"--from-checkpoint {name}: it is a Checkpoint of {of}, not of {tablespace}; name {of} instead")
    if (checkpoint.get("status") or {}).get("phase") == "Failed":
        raise BadInputError(f"--from-checkpoint {name}: it failed ({message_of(checkpoint)}); name one that succeeded")


def restored(tablespace: Json, given: argparse.Namespace, template: Json | None, now: datetime.datetime) -> list[Change]:
    """Returns what to create, in order. The new tablespace has the old one's number of replicas, and none of its other settings."""
    changes: list[Change] = []
    checkpoint = given.from_checkpoint
    if checkpoint is None:
        moment = past_moment(given.at, now)
        checkpoint = run_name(given.new, now)
        spec = {**checkpoint_spec(given.tablespace, given, template), "target": {"timestamp": moment}}
        changes.append(Create(CHECKPOINT, checkpoint, spec, f"a checkpoint of {given.tablespace} as of {moment} was requested"))
    spec = {key: tablespace["spec"][key] for key in ("herdDBRef", "replicas") if key in tablespace["spec"]}
    spec["bootstrap"] = {"checkpoint": {"name": checkpoint}}
    return [*changes, Create(TABLESPACE, given.new, spec, f"the tablespace will be created from the Checkpoint {checkpoint}")]


def end_of_restore(item: Json) -> Outcome | None:
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
    "creates a new tablespace with the content of another one at a moment; the other one is untouched",
    run,
    (
        Argument("tablespace", "the Tablespace to restore", kind=TABLESPACE),
        Argument("--at", "the moment, e.g. 2026-11-21T14:30:00+01:00; a Checkpoint of it is made first"),
        Argument("--from-checkpoint", "an existing Checkpoint, instead of a moment", kind=CHECKPOINT),
        Argument("--as", "the name of the new Tablespace", field_name="new", required=True),
        CLAIM,
        VERIFY,
        *waiting("3600"),
    ),
    description="The new tablespace is Ready once every row was compared with the checkpoint. Without --claim the Checkpoint of a moment "
    "is made where the newest verified one before it lies.",
    writes=True,
)
