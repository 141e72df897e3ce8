"""The player's process: `python -m herdkeeper_e2e.fleet.player API_SERVER ZOOKEEPER`. It takes orders, one a line, and answers each.

`kill NAMESPACE POD`, `revive NAMESPACE POD`: of a pod's process. `silence NAMESPACE…`, `speak NAMESPACE…`: of the ensemble's members, for
the operator alone: SQL nodes and bookies go on. Any other order asks for nothing but the answer.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys

import aiohttp

from herdkeeper_e2e.fleet.api_client import ApiClient
from herdkeeper_e2e.fleet.played_kubernetes import PlayedKubernetes
from herdkeeper_e2e.fleet.znodes import Znodes

TOKEN = "admin-token"


async def play(address: str, zookeeper: str) -> None:
    """Until the process is ended."""
    connector = aiohttp.TCPConnector(limit=32, ssl=False)
    async with aiohttp.ClientSession(connector=connector, headers={"Authorization": f"Bearer {TOKEN}"}) as session:
        cluster = PlayedKubernetes(ApiClient(session, address), Znodes(zookeeper), zookeeper)
        async with asyncio.TaskGroup() as group:
            group.create_task(cluster.run())
            group.create_task(_take_orders(cluster))


async def _take_orders(cluster: PlayedKubernetes) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        order, *arguments = line.decode().split()
        match order:
            case "kill":
                await cluster.kill(*arguments)
            case "revive":
                await cluster.revive(*arguments)
            case "silence":
                for namespace in arguments:
                    cluster.stack(namespace).silence()
            case "speak":
                for namespace in arguments:
                    cluster.stack(namespace).speak()
        print("done", flush=True)
    os._exit(0)  # who gave the orders is gone


if __name__ == "__main__":
    gc.disable()  # in a collection of what 250 stacks hold, no played server answers
    asyncio.run(play(*sys.argv[1:]))
