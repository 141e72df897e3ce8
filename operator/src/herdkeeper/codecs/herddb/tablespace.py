"""HerdDB's record of a tablespace, `<herd root>/tableSpaces/<name in lower case>`: its leader and its replicas.

VLong version (1), VLong flags (0), UTF uuid, UTF name, UTF leader, VInt expected replicas, VInt n, n x UTF replica, VLong maximum
inactivity of the leader in milliseconds. Source: herddb.model.TableSpace of HerdDB 0.29.0. HerdDB and the operator write it by
compare-and-set on the znode's version.
"""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.codecs.java_data import JavaDataReader, JavaDataWriter, MalformedDataError

DEFAULT_TABLESPACE = "herd"
"""HerdDB's own tablespace, which no resource declares."""


@dataclass(frozen=True)
class TablespaceRecord:
    """One tablespace. Nodes are given by their node ids. HerdDB keeps the replicas as a set; their order means nothing."""

    uuid: str
    name: str
    leader: str
    replicas: tuple[str, ...]
    expected_replica_count: int
    max_leader_inactivity_millis: int
    """After so long without a heartbeat of the leader, another replica takes over; 0 = never."""


def tablespaces_path(herd_root: str) -> str:
    return f"{herd_root}/tableSpaces"


def tablespace_path(herd_root: str, name: str) -> str:
    return f"{tablespaces_path(herd_root)}/{name.lower()}"


def replicas_path(herd_root: str, uuid: str) -> str:
    """Returns the path whose children are the ids of nodes that ever held the tablespace."""
    return f"{herd_root}/replicas/{uuid}"


def heartbeat_path(herd_root: str, uuid: str, node: str) -> str:
    """Returns the path of a node's heartbeat for its replica, which it rewrites each second.

    Source: ZookeeperMetadataStorageManager.updateTableSpaceReplicaState of HerdDB 0.29.0.
    """
    return f"{replicas_path(herd_root, uuid)}/{node}"


def decode_tablespace(data: bytes) -> TablespaceRecord:
    """Decode the record in a znode. Raises MalformedDataError for another version, unknown flags, or truncated or surplus bytes."""
    reader = JavaDataReader(data)
    version, flags = reader.v_long(), reader.v_long()
    if (version, flags) != (1, 0):
        raise MalformedDataError(f"tablespace record of version {version} with flags {flags}: only version 1 with flags 0 is known")
    uuid, name, leader = reader.utf(), reader.utf(), reader.utf()
    expected_replica_count = reader.v_int()
    replicas = tuple(reader.utf() for _ in range(reader.v_int()))
    record = TablespaceRecord(uuid, name, leader, replicas, expected_replica_count, reader.v_long())
    if not reader.at_end():
        raise MalformedDataError(f"tablespace record {name!r}: {reader.remaining} bytes after its end")
    return record


def encode_tablespace(record: TablespaceRecord) -> bytes:
    writer = JavaDataWriter().v_long(1).v_long(0).utf(record.uuid).utf(record.name).utf(record.leader)
    writer.v_int(record.expected_replica_count).v_int(len(record.replicas))
    for replica in record.replicas:
        writer.utf(replica)
    return writer.v_long(record.max_leader_inactivity_millis).to_bytes()
