"""`kubectl herdkeeper audit`: a new ReplicationAudit of a BookKeeper cluster."""

from __future__ import annotations

import argparse
import datetime

from herdkeeper.plugin.change import Create, carry_out
from herdkeeper.plugin.command import Answer, Argument, Call, Command
from herdkeeper.plugin.kinds import AUDIT, BOOKKEEPER, SCHEDULED_AUDIT
from herdkeeper.plugin.lookup import find
from herdkeeper.plugin.request import Awaited, awaited, timeout_seconds, waiting
from herdkeeper.plugin.runs import end_of, run_name, templates
from herdkeeper.shared.objects import Json

TAKEN_OVER = ("destination", "job", "bytesPerSecondPerBookie")
"""Fields of an earlier audit. Not its window: who asks for an audit means now. Nor what it repaired, or which ledgers it chose."""


def run(call: Call) -> Answer:
    """Makes an audit; with `--wait` until it has ended. One with findings is not good."""
    timeout_seconds(call)
    name = call.given.bookkeeper
    find(call.cluster, BOOKKEEPER, name, "BOOKKEEPER")
    template = next(templates(call.cluster.list(SCHEDULED_AUDIT), call.cluster.list(AUDIT), "bookKeeperRef", name), {})
    spec = audit_spec(name, call.given, template)
    what = f"an audit of {name} is to be made ({spec['depth']}, {spec['repair']})"
    made = Create(AUDIT, call.given.name or run_name(name, datetime.datetime.now(datetime.UTC)), spec, what)
    answer = carry_out(call, [made])
    if not call.given.wait or call.given.dry_run:
        return answer
    return awaited(call, answer, Awaited(AUDIT, made.name, end_of))


def audit_spec(bookkeeper: str, given: argparse.Namespace, template: Json) -> Json:
    """The spec of a new audit of the whole cluster: how it runs is taken over."""
    claim = {"destination": {"persistentVolumeClaim": {"claimName": given.claim}}} if given.claim is not None else {}
    taken_over = {field: template[field] for field in TAKEN_OVER if field in template}
    return {**taken_over, "bookKeeperRef": {"name": bookkeeper}, "depth": given.depth, "repair": given.repair, **claim}


COMMAND = Command(
    "audit",
    "makes a ReplicationAudit of a BookKeeper cluster: whether every entry has its copies, undamaged",
    run,
    (
        Argument("bookkeeper", "a BookKeeperCluster", kind=BOOKKEEPER),
        Argument("--depth", "whether every copy is read, or a sample", choices=("Deep", "Light"), default="Deep"),
        Argument("--repair", "what becomes of findings", choices=("Report", "DryRun", "Repair"), default="Report"),
        Argument("--claim", "the PersistentVolumeClaim for findings and report; that of the schedule or newest audit when absent, if any"),
        Argument("--name", "the ReplicationAudit's name; the cluster's with the time when absent"),
        *waiting("3600"),
    ),
    description="Its resources and destination are taken over from the cluster's ScheduledReplicationAudit, or else from its newest "
    "ReplicationAudit; not its window and not its repair. With `--wait` the exit code is 1 when there are findings, too.",
    writes=True,
)
