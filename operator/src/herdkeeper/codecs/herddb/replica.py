"""HerdDB's heartbeat of one node for one tablespace, `<herd root>/replicas/<tablespace uuid>/<node id>`.

i32 flags (0), UTF tablespace uuid, UTF node id, i64 time of the heartbeat in milliseconds, i32 mode.
Source: herddb.model.TableSpaceReplicaState of HerdDB 0.29.0. Written about once a second by the node's activator; failover
compares the leader's time with the reader's own clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from herdkeeper.codecs.java_data import JavaDataReader, JavaDataWriter, MalformedDataError


class ReplicaMode(IntEnum):
    """What the node is for the tablespace."""

    LEADER = 1
    FOLLOWER = 2
    STOPPED = 3


@dataclass(frozen=True)
class ReplicaState:
    """One heartbeat."""

    tablespace_uuid: str
    node_id: str
    timestamp_millis: int
    mode: ReplicaMode


def replicas_path(herd_root: str, tablespace_uuid: str) -> str:
    """Path whose children are the node ids that ever held the tablespace."""
    return f"{herd_root}/replicas/{tablespace_uuid}"


def decode_replica(data: bytes) -> ReplicaState:
    """The heartbeat in a znode.

    Raises:
        MalformedDataError: an unknown mode, or bytes that end too early.
    """
    reader = JavaDataReader(data)
    reader.i32()  # "for future implementations"; HerdDB ignores it too
    uuid, node_id, timestamp_millis, mode = reader.utf(), reader.utf(), reader.i64(), reader.i32()
    try:
        return ReplicaState(uuid, node_id, timestamp_millis, ReplicaMode(mode))
    except ValueError as error:
        raise MalformedDataError(f"mode {mode} of node {node_id!r}: expected 1 (leader), 2 (follower) or 3 (stopped)") from error


def encode_replica(state: ReplicaState) -> bytes:
    """The bytes that HerdDB reads."""
    writer = JavaDataWriter().i32(0).utf(state.tablespace_uuid).utf(state.node_id)
    return writer.i64(state.timestamp_millis).i32(state.mode).to_bytes()
