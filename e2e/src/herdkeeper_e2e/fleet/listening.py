"""Ports of played pods: HTTP and HerdDB's SQL."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from herdkeeper.codecs.java_data import JavaDataReader
from herdkeeper.sql import frames
from herdkeeper.sql.frames import MessageType

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass
class Listening:
    """The ports of one process. Who connects while it does not listen is refused, as by any machine."""

    address: str
    servers: list[asyncio.Server] = field(default_factory=list)
    connections: set[asyncio.BaseTransport] = field(default_factory=set)

    async def speak(self, port: int, handler: Handler) -> None:
        """Listen on a port with a handler of streams."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections.add(writer.transport)
            try:
                await handler(reader, writer)
            except (OSError, asyncio.IncompleteReadError):
                pass  # the other end went
            finally:
                self.connections.discard(writer.transport)
                writer.close()

        self.servers.append(await asyncio.start_server(serve, self.address, port, backlog=16))

    async def listen(self, port: int, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Listen on a port with a protocol, which keeps `connections` itself."""
        self.servers.append(await asyncio.get_running_loop().create_server(protocol, self.address, port, backlog=16))

    def end(self) -> None:
        """The process is gone, and its connections with it."""
        for server in self.servers:
            server.close()
        for connection in list(self.connections):
            connection.abort()  # type: ignore[attr-defined]
        self.servers.clear()


Answer = Callable[[str, str], Awaitable[Any]]
"""From method and path to a document."""


def http(answer: Answer, stream: Callable[[asyncio.StreamWriter], None] | None = None) -> Handler:
    """JSON by HTTP; `stream` gets the connections that ask for `/alive`, in HTTP/1.0: without chunks."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        last = False
        while not last:
            head = await reader.readuntil(b"\r\n\r\n")
            method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
            if length := _LENGTH.search(head):
                await reader.readexactly(int(length[1]))
            if path == "/alive" and stream is not None:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n")
                stream(writer)
                await reader.read()  # until the other end goes
                return
            document = json.dumps(await answer(method, path)).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(document) + document)
            await writer.drain()
            last = b"connection: close" in head.lower()

    return serve


def sql(execute: Callable[[str], Awaitable[None]]) -> Handler:
    """HerdDB's protocol, as far as statements in autocommit need it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            (size,) = frames.LENGTH.unpack(await reader.readexactly(frames.LENGTH.size))
            message = frames.decode_payload(await reader.readexactly(size))
            kind, body = MessageType.SASL_RESPONSE, b""
            if message.type == MessageType.EXECUTE_STATEMENT:
                fields = JavaDataReader(message.body)
                fields.raw(17)  # flags, transaction, prepared statement
                frames.decode_text(fields)
                await execute(frames.decode_text(fields))
                kind, body = MessageType.EXECUTE_STATEMENT_RESULT, (1).to_bytes(8, "big") + bytes(8)
            payload = frames.HEADER.pack(frames.VERSION, frames.RESPONSE_FLAG, kind, message.id) + body
            writer.write(frames.LENGTH.pack(len(payload)) + payload)

    return serve
