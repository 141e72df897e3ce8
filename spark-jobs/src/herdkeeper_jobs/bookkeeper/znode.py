"""Writes a znode of which nobody knows whether it is there."""

from __future__ import annotations

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError


def put_znode(client: KazooClient, path: str, data: bytes) -> None:
    """Sets a znode; where there is none it is made, and those above it. Raises NodeExistsError when somebody else made it just now, and
    whatever else kazoo raises."""
    try:
        client.set(path, data)
    except NoNodeError:
        client.ensure_path(path.rpartition("/")[0])
        client.create(path, data)
