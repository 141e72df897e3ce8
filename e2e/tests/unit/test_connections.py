"""Whether a client is connected to a server's port, as Linux tells it."""

from __future__ import annotations

import pytest

from herdkeeper_e2e.connections import is_connected

TABLES = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0700F40A:1F90 0500F40A:C350 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0
   1: 0700F40A:0C6D 0600F40A:C351 06 00000000:00000000 00:00000000 00000000     0        0 1 1 0
  sl  local_address                         remote_address                        st tx_queue rx_queue
   0: 00000000000000000000000000000000:0C6D 00000000000000000000000000000000:0000 0A 00000000:00000000
   1: 0000000000000000FFFF00000700F40A:0C6D 0000000000000000FFFF00000901F40A:A3C2 01 00000000:00000000
"""


@pytest.mark.parametrize(
    ("port", "client", "connected"),
    [
        (3181, "10.244.1.9", True),
        (8080, "10.244.0.5", True),
        (3181, "10.244.0.5", False),  # to another port
        (3181, "10.244.0.6", False),  # its connection waits for its end
        (8080, "10.244.1.9", False),
    ],
)
def test_a_client_is_connected_while_its_connection_is_established(port: int, client: str, connected: bool):
    assert is_connected(TABLES, port, client) is connected
