"""The spec of a new Checkpoint, from the arguments and an earlier Checkpoint of the same tablespace."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Sequence

from herdkeeper.plugin.cluster import Cluster
from herdkeeper.plugin.command import Argument, BadInputError
from herdkeeper.plugin.kinds import CHECKPOINT, SCHEDULED_CHECKPOINT
from herdkeeper.plugin.runs import templates
from herdkeeper.shared.objects import Json
from herdkeeper.shared.time import moment_of, text_of

CLAIM = Argument("--claim", "the PersistentVolumeClaim for its files; by default that of the tablespace's schedule or newest Checkpoint")
VERIFY = Argument(
    "--verify",
    "Follower: compare its rows with a follower's; Reread: read its files again; by default as the schedule or newest Checkpoint",
    choices=("Follower", "Reread"),
)


def checkpoint_spec(tablespace: str, given: argparse.Namespace, template: Json | None) -> Json:
    """Returns the spec of a new Checkpoint of the present: the template's, overridden. Raises BadInputError without a destination."""
    destination = (template or {}).get("destination")
    if given.claim is not None:
        destination = {**_encryption(destination or {}), "persistentVolumeClaim": {"claimName": given.claim}}
    if destination is None:
        raise BadInputError(
            f"TABLESPACE {tablespace}: it has no Checkpoint or ScheduledCheckpoint with a destination; name an existing "
            "PersistentVolumeClaim with --claim"
        )
    kept = {field: value for field, value in (template or {}).items() if field != "target"}
    verify = {"verify": given.verify} if given.verify is not None else {}
    return {**kept, "tablespaceRef": {"name": tablespace}, "destination": destination, **verify}


def past_moment(written: str, now: datetime.datetime) -> str:
    """Returns the value of `--at`, to the millisecond, in the API's format. Raises BadInputError unless it is a past time."""
    moment = moment_of(written)
    if moment is None:
        raise BadInputError(f"--at {written}: give a time with an offset, e.g. {text_of(now - datetime.timedelta(hours=1))}")
    if moment > now:
        raise BadInputError(f"--at {written}: that is in the future; it is now {text_of(now)}")
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def where(spec: Json) -> str:
    """Returns the destination as text."""
    destination = spec["destination"]
    if "persistentVolumeClaim" in destination:
        return f"on the volume {destination['persistentVolumeClaim']['claimName']}"
    return f"at {(destination.get('objectStore') or {}).get('uri')}"


def template_of(cluster: Cluster, tablespace: str) -> Json | None:
    """Returns the spec of a tablespace's schedule, or else of its newest Checkpoint."""
    return next(templates(cluster.list(SCHEDULED_CHECKPOINT), cluster.list(CHECKPOINT), "tablespaceRef", tablespace), None)


def at_its_base(template: Json | None, cluster: Cluster, tablespace: Json, moment: str) -> Json | None:
    """Returns the template with the destination of the newest verified Checkpoint that holds nothing after a moment. The moment's
    Checkpoint looks for its base at its own place, and a schedule's may have changed since. What the template encrypts stays so,
    with the keys of that Checkpoint if it has some.
    """
    at, uuid = moment_of(moment), (tablespace.get("status") or {}).get("uuid")
    if template is None or at is None or uuid is None:
        return template
    own = template["destination"]
    found = [(_of_log(item, uuid), item["spec"]["destination"]) for item in cluster.list(CHECKPOINT)]
    bases = [(latest, _place(there) == _place(own), there) for latest, there in found if latest is not None and latest <= at]
    _, here, destination = max(bases, key=lambda base: base[:2], default=(at, True, own))
    return template if here else {**template, "destination": {**_encryption(own), **destination}}


def _encryption(destination: Json) -> Json:
    """Whoever encrypts at one place writes nothing in plain text at another one by accident."""
    return {field: value for field, value in destination.items() if field == "encryption"}


def _place(destination: Json) -> Sequence[str | None]:
    """What api.job.Destination.place identifies."""
    store = destination.get("objectStore")
    if store is None:
        return (str(destination["persistentVolumeClaim"]["claimName"]),)
    return (store["uri"], store.get("endpoint") or store.get("storageAccount"))


def _of_log(checkpoint: Json, uuid: str) -> datetime.datetime | None:
    """Returns the time after which a verified Checkpoint of this log holds nothing, or None."""
    status = checkpoint.get("status") or {}
    verified = status.get("phase") == "Succeeded" and status.get("verified") and "deletionTimestamp" not in checkpoint["metadata"]
    return moment_of(status.get("latestTimestamp")) if verified and f"/{uuid}/" in status.get("manifest", "") else None
