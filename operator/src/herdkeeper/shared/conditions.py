"""Reads a resource's conditions. planning/status.py writes them."""

from __future__ import annotations

from collections.abc import Callable

from herdkeeper.api.resource import Condition, Resource
from herdkeeper.shared.reason import Reason

READY = "Ready"
PROGRESSING = "Progressing"
RECONCILING = "Reconciling"
"""True while the declared state is not reached yet and nobody is needed; otherwise absent. See planning/status.py."""
STALLED = "Stalled"
"""True while a person must act before the declared state can be reached; otherwise absent. See planning/status.py."""
CURRENT = "Current"
"""ScheduledCheckpoint: False if its newest verified checkpoint is older than two periods of the schedule."""
RESTORE_DRILLED = "RestoreDrilled"
"""ScheduledCheckpoint with spec.drill: True if the last finished drill restored everything. False if not, or if none did in two periods."""
REPLICAS_VERIFIED = "ReplicasVerified"
"""Tablespace: True if each follower equalled the log in its last comparison, False if a replica did not."""
LOG_RELEASED = "LogReleased"
"""Tablespace: False while ledgers are kept past their retention because they are needed; otherwise absent."""
LOG_USED_IN_TIME = "LogUsedInTime"
"""Tablespace with Checkpoints, an archive or pins of streams: False once three quarters of the retention are over for log that one of them
still needs."""
LOG_ARCHIVED = "LogArchived"
"""Tablespace with spec.log.archive: False while the archive lags, or can't continue."""
NODES_REACHABLE = "NodesReachable"
"""False while a pod hangs on a node that is down; otherwise absent."""
ENCRYPTED = "Encrypted"
"""ZooKeeperCluster: False while its members accept plain text. BookKeeperCluster, HerdDBCluster with certificates: False while its
servers do, at the SQL port. Otherwise absent."""
AUTHORITIES_ROLLED = "AuthoritiesRolled"
"""ZooKeeperCluster with certificates: False while another authority takes over; otherwise absent."""
USERS_IN_FORCE = "UsersInForce"
"""HerdDBCluster: True once every SQL node accepts the users that the Secrets name, and no others."""
LOG_REPLAYABLE = "LogReplayable"
"""Tablespace: False while a node can't apply an entry of the log and no other node could lead; otherwise absent."""
FIELDS_READ = "FieldsRead"
"""False while the operator ignores spec fields, or can't read status fields, of another version; otherwise absent."""
CONFIG_KNOWN = "ConfigKnown"
"""False while lines of spec.config have no effect; otherwise absent."""


def condition(resource: Resource, kind: str) -> Condition | None:
    conditions: tuple[Condition, ...] = resource.status.conditions if resource.status is not None else ()
    return next((entry for entry in conditions if entry.type == kind), None)


def is_ready_resource(resource: Resource | None) -> bool:
    """Returns whether a resource exists, is Ready for its current generation, and is not being deleted."""
    return _is_current(resource, lambda ready: ready.status == "True")


def _is_current(resource: Resource | None, holds: Callable[[Condition], bool]) -> bool:
    """Returns whether something holds of the condition Ready of a resource that is not being deleted, for its current generation."""
    if resource is None or resource.metadata.deletion_timestamp is not None:
        return False
    ready = condition(resource, READY)
    return ready is not None and holds(ready) and ready.observed_generation == resource.metadata.generation


SERVES_AS_MADE = (Reason.BOOKIES_MISSING, Reason.AUTORECOVERY_DISABLED)
"""Bookies that a quota refuses, and autorecovery that somebody disabled for a maintenance: all bookies that are made serve."""


def is_refused(resource: Resource) -> bool:
    """Returns whether its spec is refused. Its status then has what was observed before."""
    ready = condition(resource, READY)
    return ready is not None and ready.reason == Reason.INVALID_SPEC


def serves_as_made(resource: Resource | None) -> bool:
    """Returns whether a resource is Ready, or what it lacks may last for ever, while all of its servers that are made serve."""
    return _is_current(resource, lambda ready: ready.status == "True" or ready.reason in SERVES_AS_MADE)


def is_settled_resource(resource: Resource | None) -> bool:
    """Returns whether a resource is Ready and nothing is in progress: no member is about to restart, join or leave."""
    if resource is None or not is_ready_resource(resource):
        return False
    progressing = condition(resource, PROGRESSING)
    return progressing is not None and progressing.status == "False"


def why_not_ready(resource: Resource) -> str:
    """Returns, as a sentence, the reason that a resource gives for not being Ready."""
    ready = condition(resource, READY)
    return f"{ready.reason}: {ready.message}" if ready is not None and ready.status != "True" else "it has not been reconciled yet"
