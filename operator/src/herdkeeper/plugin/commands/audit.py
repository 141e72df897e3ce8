"""`kubectl herdkeeper audit`: a new ReplicationAudit of a BookKeeper cluster."""

from __future__ import annotations

import argparse
import datetime

from herdkeeper.plugin.change import Create, carry_out
from herdkeeper.plugin.command import Answer, Argument, Call, Command, find
from herdkeeper.plugin.kinds import AUDIT, BOOKKEEPER, SCHEDULED_AUDIT
from herdkeeper.plugin.request import Awaited, awaited, timeout_seconds, waiting
from herdkeeper.plugin.runs import end_of, run_name, templates
from herdkeeper.shared.objects import Json

TAKEN_OVER = ("destination", "job", "bytesPerSecondPerBookie")
"""Fields taken from an earlier audit. Not its window, since a requested audit runs now; nor its repair and its choice of ledgers."""


def run(call: Call) -> Answer:
    """Create an audit; with `--wait`, wait until it has ended. Findings are not a success."""
    timeout_seconds(call)
    name = call.given.bookkeeper
    find(call.cluster, BOOKKEEPER, name, "BOOKKEEPER")
    template = next(templates(call.cluster.list(SCHEDULED_AUDIT), call.cluster.list(AUDIT), "bookKeeperRef", name), {})
    spec = audit_spec(name, call.given, template)
    what = f"an audit of {name} was requested ({spec['depth']}, {spec['repair']})"
    made = Create(AUDIT, call.given.name or run_name(name, datetime.datetime.now(datetime.UTC)), spec, what)
    answer = carry_out(call, [made])
    return awaited(call, answer, Awaited(AUDIT, made.name, end_of))


def audit_spec(bookkeeper: str, given: argparse.Namespace, template: Json) -> Json:
    """Returns the spec of a new audit of the whole cluster, with the template's settings."""
    claim = {"destination": {"persistentVolumeClaim": {"claimName": given.claim}}} if given.claim is not None else {}
    taken_over = {field: template[field] for field in TAKEN_OVER if field in template}
    return {**taken_over, "bookKeeperRef": {"name": bookkeeper}, "depth": given.depth, "repair": given.repair, **claim}


COMMAND = Command(
    "audit",
    "creates a ReplicationAudit of a BookKeeper cluster: it checks that every entry has all its copies, undamaged",
    run,
    (
        Argument("bookkeeper", "a BookKeeperCluster", kind=BOOKKEEPER),
        Argument("--depth", "whether to read every copy, or a sample", choices=("Deep", "Light"), default="Deep"),
        Argument("--repair", "what happens with findings", choices=("Report", "DryRun", "Repair"), default="Report"),
        Argument("--claim", "the PersistentVolumeClaim for findings and report; by default that of the schedule or newest audit, if any"),
        Argument("--name", "the ReplicationAudit's name; by default the cluster's name with the time"),
        *waiting("3600"),
    ),
    description="Resources and destination default to those of the cluster's ScheduledReplicationAudit, or else of its newest "
    "ReplicationAudit; window and repair do not. With `--wait`, the exit code is 1 if there are findings, too.",
    writes=True,
)
