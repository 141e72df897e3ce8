"""The address of a bookie: the znodes `available/<bookie id>` and `available/readonly/<bookie id>`.

They hold a BookieServiceInfoFormat: endpoints are field 6 with id 1, port 2, host 3. Bookies older than 4.11 write nothing; then the id
itself is `host:port`. Source: DataFormats.proto and ZKRegistrationClient of BookKeeper 4.18.0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.codecs.protobuf_wire import read_fields

_BOOKIE_ENDPOINT = "bookie"
_ENDPOINTS = 6
_HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class BookieAddress:
    """Host and port of a bookie's ledger protocol."""

    host: str
    port: int


def decode_bookie_address(bookie_id: str, data: bytes) -> BookieAddress:
    """Returns the endpoint `bookie` of a registration. Raises MalformedDataError naming the bookie if there is none, or its port is
    none."""
    addresses: dict[str, BookieAddress] = {}
    try:
        for field in read_fields(data):
            if field.number == _ENDPOINTS:
                name, address = _decode_endpoint(field.data())
                addresses[name] = address
    except MalformedDataError as error:
        raise MalformedDataError(f"registration of bookie {bookie_id}: {error}") from error
    host, colon, port = bookie_id.rpartition(":")
    if not addresses and colon and re.fullmatch("[0-9]{1,5}", port):
        addresses[_BOOKIE_ENDPOINT] = BookieAddress(host, int(port))
    if _BOOKIE_ENDPOINT not in addresses:
        raise MalformedDataError(
            f"registration of bookie {bookie_id}: no endpoint {_BOOKIE_ENDPOINT!r} among {sorted(addresses)}, and the id is no host:port"
        )
    found = addresses[_BOOKIE_ENDPOINT]
    if not 1 <= found.port <= _HIGHEST_PORT:
        raise MalformedDataError(f"registration of bookie {bookie_id}: {found.port} is no port")
    return found


def _decode_endpoint(message: bytes) -> tuple[str, BookieAddress]:
    name, host, port = "", "", 0
    for field in read_fields(message):
        if field.number == 1:
            name = field.text()
        elif field.number == 2:
            port = field.signed()
        elif field.number == 3:
            host = field.text()
    return name, BookieAddress(host, port)
