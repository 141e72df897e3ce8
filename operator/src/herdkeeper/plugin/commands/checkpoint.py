"""`kubectl herdkeeper checkpoint`: a new Checkpoint of a tablespace."""

from __future__ import annotations

import datetime

from herdkeeper.plugin.change import Create, carry_out
from herdkeeper.plugin.command import Answer, Argument, Call, Command
from herdkeeper.plugin.kinds import CHECKPOINT, TABLESPACE
from herdkeeper.plugin.lookup import find
from herdkeeper.plugin.new_checkpoint import CLAIM, VERIFY, checkpoint_spec, past_moment, template_of, where
from herdkeeper.plugin.request import Awaited, awaited, timeout_seconds, waiting
from herdkeeper.plugin.runs import end_of, run_name


def run(call: Call) -> Answer:
    """Makes a Checkpoint; with `--wait` until it has ended."""
    timeout_seconds(call)
    now = datetime.datetime.now(datetime.UTC)
    name = call.given.tablespace
    find(call.cluster, TABLESPACE, name, "TABLESPACE")
    spec = checkpoint_spec(name, call.given, template_of(call.cluster, name))
    if call.given.at is not None:
        spec["target"] = {"timestamp": past_moment(call.given.at, now)}
    made = Create(CHECKPOINT, call.given.name or run_name(name, now), spec, f"a checkpoint of {name} is to be made, {where(spec)}")
    answer = carry_out(call, [made])
    if not call.given.wait or call.given.dry_run:
        return answer
    return awaited(call, answer, Awaited(CHECKPOINT, made.name, end_of))


COMMAND = Command(
    "checkpoint",
    "makes a Checkpoint of a tablespace: its rows as Parquet files, verified",
    run,
    (
        Argument("tablespace", "a Tablespace", kind=TABLESPACE),
        Argument("--at", "the moment that it holds, e.g. 2026-11-21T14:30:00+01:00; now when absent"),
        CLAIM,
        VERIFY,
        Argument("--name", "the Checkpoint's name; the tablespace's with the time when absent"),
        *waiting("3600"),
    ),
    description="What is not given is taken over from the tablespace's ScheduledCheckpoint, or else from its newest Checkpoint.",
    writes=True,
)
