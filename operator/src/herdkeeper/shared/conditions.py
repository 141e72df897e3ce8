"""What a resource's conditions say. Who writes them is planning/status.py."""

from __future__ import annotations

from herdkeeper.api.resource import Condition, Resource

READY = "Ready"
PROGRESSING = "Progressing"
CURRENT = "Current"
"""Of a ScheduledCheckpoint: False while its newest verified checkpoint is older than two periods of the schedule."""
RESTORE_DRILLED = "RestoreDrilled"
"""Of a ScheduledCheckpoint with spec.drill: True when the newest drill that ended restored what it should, False when it did not, or when
none succeeded for two periods."""
REPLICAS_VERIFIED = "ReplicasVerified"
"""Of a Tablespace: True when each follower was equal to the log when it was compared last, False when a replica was not."""
LOG_RELEASED = "LogReleased"
"""Of a Tablespace: False while ledgers past the retention are kept, since somebody needs them; not there otherwise."""
LOG_USED_IN_TIME = "LogUsedInTime"
"""Of a Tablespace with Checkpoints, an archive or pins of streams: False once three quarters of the log's retention are over for what one
of them still needs of it."""
LOG_ARCHIVED = "LogArchived"
"""Of a Tablespace with spec.log.archive: False while the archive lags behind, or can't go on."""
NODES_REACHABLE = "NodesReachable"
"""False while a pod hangs on a node that is down; not there otherwise."""
USERS_IN_FORCE = "UsersInForce"
"""Of a HerdDBCluster: True once every SQL node lets in whom the Secrets name, and nobody else."""
LOG_REPLAYABLE = "LogReplayable"
"""Of a Tablespace: False while a node can't apply an entry of its log, and nobody could lead after the leader; not there otherwise."""
FIELDS_READ = "FieldsRead"
"""False while the operator ignores fields of the spec, or can't read fields of the status, since its version is an older one than the
schema's or another one than the status'; not there otherwise."""
CONFIG_KNOWN = "ConfigKnown"
"""False while lines of spec.config have no effect; not there otherwise."""


def condition(resource: Resource, kind: str) -> Condition | None:
    """A condition of the resource's status, None when it is not there."""
    conditions: tuple[Condition, ...] = resource.status.conditions if resource.status is not None else ()
    return next((entry for entry in conditions if entry.type == kind), None)


def is_ready_resource(resource: Resource | None) -> bool:
    """Whether a resource is there, is Ready for its present generation, and is not being deleted."""
    if resource is None or resource.metadata.deletion_timestamp is not None:
        return False
    ready = condition(resource, READY)
    return ready is not None and ready.status == "True" and ready.observed_generation == resource.metadata.generation


def is_settled_resource(resource: Resource | None) -> bool:
    """Whether a resource is Ready, and nothing is done or waited for any more: no member is about to be restarted, to join or to leave."""
    if resource is None or not is_ready_resource(resource):
        return False
    progressing = condition(resource, PROGRESSING)
    return progressing is not None and progressing.status == "False"


def why_not_ready(resource: Resource) -> str:
    """The reason that a resource itself gives for not being Ready, as a sentence."""
    ready = condition(resource, READY)
    return f"{ready.reason}: {ready.message}" if ready is not None and ready.status != "True" else "it has not been reconciled yet"
