"""The znode of a node's heartbeat for a tablespace: `<herd root>/replicas/<tablespace uuid>/<node id>`.

Source: herddb.cluster.ZookeeperMetadataStorageManager of HerdDB 0.29.0. The node's activator writes it about once a second.
"""

from __future__ import annotations


def replicas_path(herd_root: str, tablespace_uuid: str) -> str:
    """Returns the path whose children are the ids of nodes that ever held the tablespace."""
    return f"{herd_root}/replicas/{tablespace_uuid}"
