"""`kubectl herdkeeper checkpoint`: a new Checkpoint of a tablespace."""

from __future__ import annotations

import datetime

from herdkeeper.plugin.change import Create, carry_out
from herdkeeper.plugin.command import Answer, Argument, Call, Command, find
from herdkeeper.plugin.kinds import CHECKPOINT, TABLESPACE
from herdkeeper.plugin.new_checkpoint import CLAIM, VERIFY, at_its_base, checkpoint_spec, past_moment, template_of, where
from herdkeeper.plugin.request import Awaited, awaited, timeout_seconds, waiting
from herdkeeper.plugin.runs import end_of, run_name


def run(call: Call) -> Answer:
    """Create a Checkpoint; with `--wait`, wait until it has ended."""
    timeout_seconds(call)
    now = datetime.datetime.now(datetime.UTC)
    name = call.given.tablespace
    tablespace = find(call.cluster, TABLESPACE, name, "TABLESPACE")
    template, target = template_of(call.cluster, name), {}
    if call.given.at is not None:
        moment = past_moment(call.given.at, now)
        template, target = at_its_base(template, call.cluster, tablespace, moment), {"target": {"timestamp": moment}}
    spec = {**checkpoint_spec(name, call.given, template), **target}
    made = Create(CHECKPOINT, call.given.name or run_name(name, now), spec, f"a checkpoint of {name} was requested, {where(spec)}")
    answer = carry_out(call, [made])
    return awaited(call, answer, Awaited(CHECKPOINT, made.name, end_of))


COMMAND = Command(
    "checkpoint",
    "creates a Checkpoint of a tablespace: its rows as Parquet files, verified",
    run,
    (
        Argument("tablespace", "a Tablespace", kind=TABLESPACE),
        Argument("--at", "the moment that it holds, e.g. 2026-11-21T14:30:00+01:00; by default now"),
        CLAIM,
        VERIFY,
        Argument("--name", "the Checkpoint's name; by default the tablespace's name with the time"),
        *waiting("3600"),
    ),
    description="Other settings default to those of the tablespace's ScheduledCheckpoint, or else of its newest Checkpoint. Without "
    "--claim the Checkpoint of a moment is made where the newest verified one before it lies.",
    writes=True,
)
