"""The spec of a new Checkpoint: what was given, and what an earlier one of the same tablespace had."""

from __future__ import annotations

import argparse
import datetime

from herdkeeper.plugin.cluster import Cluster
from herdkeeper.plugin.command import Argument, BadInputError
from herdkeeper.plugin.kinds import CHECKPOINT, SCHEDULED_CHECKPOINT
from herdkeeper.plugin.runs import templates
from herdkeeper.shared.objects import Json
from herdkeeper.shared.time import moment_of, text_of

CLAIM = Argument(
    "--claim", "the PersistentVolumeClaim for its files; where the tablespace's schedule or newest Checkpoint has them when absent"
)
VERIFY = Argument(
    "--verify",
    "Follower: its rows are compared with a follower's; Reread: its files are read again; as the schedule or newest Checkpoint when absent",
    choices=("Follower", "Reread"),
)


def checkpoint_spec(tablespace: str, given: argparse.Namespace, template: Json | None) -> Json:
    """The spec of a new Checkpoint: that of the template, with what was given, and of now.

    Raises:
        BadInputError: neither says where its files go.
    """
    destination = {"persistentVolumeClaim": {"claimName": given.claim}} if given.claim is not None else (template or {}).get("destination")
    if destination is None:
        raise BadInputError(
            f"TABLESPACE {tablespace}: no Checkpoint and no ScheduledCheckpoint of it says where files go; name a volume with --claim"
        )
    kept = {field: value for field, value in (template or {}).items() if field != "target"}
    verify = {"verify": given.verify} if given.verify is not None else {}
    return {**kept, "tablespaceRef": {"name": tablespace}, "destination": destination, **verify}


def past_moment(written: str, now: datetime.datetime) -> str:
    """The value of `--at`, to the millisecond, as the API takes it. BadInputError for what is no time, or none of the past."""
    moment = moment_of(written)
    if moment is None:
        raise BadInputError(f"--at {written}: give a time with an offset, e.g. {text_of(now - datetime.timedelta(hours=1))}")
    if moment > now:
        raise BadInputError(f"--at {written}: that is yet to come; it is {text_of(now)}")
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def where(spec: Json) -> str:
    """Where files go, for people."""
    destination = spec["destination"]
    if "persistentVolumeClaim" in destination:
        return f"on the volume {destination['persistentVolumeClaim']['claimName']}"
    return f"at {(destination.get('objectStore') or {}).get('uri')}"


def template_of(cluster: Cluster, tablespace: str) -> Json | None:
    """The spec of the schedule, or else of the newest Checkpoint, of a tablespace."""
    return next(templates(cluster.list(SCHEDULED_CHECKPOINT), cluster.list(CHECKPOINT), "tablespaceRef", tablespace), None)
