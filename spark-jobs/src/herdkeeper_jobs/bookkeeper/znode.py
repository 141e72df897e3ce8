"""Writes a znode that may be missing."""

from __future__ import annotations

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError


def put_znode(client: KazooClient, path: str, data: bytes) -> None:
    """Sets a znode, or creates it with its parents. Raises NodeExistsError if somebody else created it meanwhile, and other errors of
    kazoo."""
    try:
        client.set(path, data)
    except NoNodeError:
        client.ensure_path(path.rpartition("/")[0])
        client.create(path, data)
