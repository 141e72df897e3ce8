"""The one real ZooKeeper for the player, whose loop waits for no answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError


class Znodes:
    """A session with the real ZooKeeper, past the proxies."""

    def __init__(self, address: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._client = KazooClient(hosts=address, timeout=60.0)
        self._client.start(timeout=60)

    async def read(self, path: str, changed: Callable[[], None] | None = None) -> bytes | None:
        """The data, None where there is no znode. `changed` is called once when it is another one."""
        watch = None if changed is None else lambda _: self._loop.call_soon_threadsafe(changed)
        try:
            return bytes((await asyncio.to_thread(self._client.get, path, watch))[0])
        except NoNodeError:
            return None

    async def create(self, path: str, data: bytes = b"") -> bool:
        """A znode with its parents; False when it is there already."""
        try:
            await asyncio.to_thread(self._client.create, path, data, makepath=True)
        except NodeExistsError:
            return False
        return True

    async def put(self, path: str, data: bytes) -> None:
        """Write a znode, whether it is there or not."""
        if not await self.create(path, data):
            await asyncio.to_thread(self._client.set, path, data)

    async def delete(self, path: str) -> None:
        await asyncio.to_thread(self._client.delete, path)

    def touch(self, path: str) -> None:
        """Write a znode anew and wait for nothing."""
        self._client.set_async(path, b"")
