"""Where HerdDB keeps the heartbeat of one node for one tablespace: `<herd root>/replicas/<tablespace uuid>/<node id>`.

Source: herddb.cluster.ZookeeperMetadataStorageManager of HerdDB 0.29.0. The activator of the node writes it about once a second.
"""

from __future__ import annotations


def replicas_path(herd_root: str, tablespace_uuid: str) -> str:
    """Path whose children are the node ids that ever held the tablespace."""
    return f"{herd_root}/replicas/{tablespace_uuid}"
