"""A real bookie whose registration fails when it starts, as when ZooKeeper's answer to it is lost: it must not stay as it is."""

from __future__ import annotations

import pytest

from herdkeeper_e2e.free_ports import free_port
from herdkeeper_e2e.server_processes import GUARDED_HTTP, LEDGERS_ROOT, servers

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
BOOKIE = "bookie-0"
REGISTRATION = f"{LEDGERS_ROOT}/available/{BOOKIE}"
PATIENCE_SECONDS = 240
EXIT_CODE = 4
"""BookKeeper's ExitCode.ZK_REG_FAIL."""


def test_a_bookie_that_can_not_register_ends_and_the_next_start_registers_it() -> None:
    with servers() as running:
        running.start_zookeeper()
        running.start_bookies(1, {**GUARDED_HTTP, "httpServerPort": free_port()})
        with running.client() as other:
            registered, _ = other.get(REGISTRATION)
            running.stop_bookie(BOOKIE)
            other.create(REGISTRATION, registered, ephemeral=True)  # a session that is not the bookie's, and does not end
            started = running.run(BOOKIE, running.commands[BOOKIE])
            assert started.wait(PATIENCE_SECONDS) == EXIT_CODE, "it is the program's own end: that of BookKeeper is missing at times"
        with running.client() as client:
            running.start_again(BOOKIE, lambda: client.exists(REGISTRATION) is not None)
