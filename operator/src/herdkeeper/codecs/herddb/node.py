"""HerdDB's record of a SQL node, `<herd root>/nodes/<node id>`: its address for clients.

UTF node id, i32 flags (0), UTF host, i32 port, i32 TLS (1 = yes). A persistent znode: a dead node's record stays. Source:
herddb.model.NodeMetadata of HerdDB 0.29.0.
"""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.codecs.java_data import JavaDataReader, JavaDataWriter


@dataclass(frozen=True)
class NodeRecord:
    """A SQL node and its advertised address."""

    node_id: str
    host: str
    port: int
    tls: bool = False


def nodes_path(herd_root: str) -> str:
    """Path whose children are the ids of all nodes that ever started."""
    return f"{herd_root}/nodes"


def node_path(herd_root: str, node_id: str) -> str:
    return f"{nodes_path(herd_root)}/{node_id}"


def decode_node(data: bytes) -> NodeRecord:
    """Decode the record in a znode. Raises MalformedDataError for truncated bytes."""
    reader = JavaDataReader(data)
    node_id = reader.utf()
    reader.i32()  # "flags for future implementations", which HerdDB ignores, too
    return NodeRecord(node_id, reader.utf(), reader.i32(), reader.i32() == 1)


def encode_node(record: NodeRecord) -> bytes:
    return JavaDataWriter().utf(record.node_id).i32(0).utf(record.host).i32(record.port).i32(int(record.tls)).to_bytes()
