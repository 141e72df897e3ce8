"""The API server for the player: requests that are tried until they are answered, and watches that go on after it was away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp

Json = dict[str, Any]
MERGE_PATCH = "application/merge-patch+json"
AGAIN_SECONDS = 0.5
LONGEST_LINE = 1 << 22
Seen = Callable[[str, Json], None]
"""Hears an object of a watch with the type of its event; what a list shows counts as ADDED."""


@dataclass(frozen=True)
class ApiClient:
    """An administrator's client."""

    session: aiohttp.ClientSession
    address: str

    async def call(self, method: str, path: str, body: Json | None = None) -> Json | None:
        """The answer; None when it was refused, since somebody else was quicker or the object is gone. RuntimeError for any other error."""
        content = MERGE_PATCH if method == "PATCH" else "application/json"
        while True:
            try:
                data = None if body is None else json.dumps(body)
                async with self.session.request(method, self.address + path, data=data, headers={"Content-Type": content}) as answer:
                    if answer.status < 300:
                        return dict(json.loads(await answer.read()))
                    if answer.status in (404, 409, 422):
                        return None
                    if answer.status not in (429, 500, 502, 503, 504):
                        raise RuntimeError(f"{method} {path} answered {answer.status}: {await answer.text()}")
            except (aiohttp.ClientError, OSError, TimeoutError):
                pass  # it is away for a moment
            await asyncio.sleep(AGAIN_SECONDS)

    async def follow(self, path: str, selector: str, seen: Seen) -> None:
        """Watch a kind for ever, with a new list whenever the watch ends."""
        known: dict[str, Json] = {}
        while True:
            listed = await self.call("GET", f"{path}?labelSelector={selector}") or {}
            found = {item["metadata"]["uid"]: item for item in listed.get("items") or []}
            for uid in known.keys() - found.keys():
                seen("DELETED", known.pop(uid))
            for uid, item in found.items():
                known[uid] = item
                seen("ADDED", item)
            try:
                await self._watch(f"{path}?labelSelector={selector}", listed["metadata"]["resourceVersion"], known, seen)
            except (aiohttp.ClientError, OSError, TimeoutError, KeyError):
                await asyncio.sleep(AGAIN_SECONDS)

    async def _watch(self, path: str, version: str, known: dict[str, Json], seen: Seen) -> None:
        url = f"{self.address}{path}&watch=true&allowWatchBookmarks=true&resourceVersion={version}"
        async with self.session.get(url, timeout=aiohttp.ClientTimeout(total=None), read_bufsize=LONGEST_LINE) as answer:
            answer.raise_for_status()
            async for line in answer.content:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                if event["type"] == "BOOKMARK":
                    continue
                item = event["object"]
                if event["type"] == "DELETED":
                    known.pop(item["metadata"]["uid"], None)
                else:
                    known[item["metadata"]["uid"]] = item
                seen(event["type"], item)
