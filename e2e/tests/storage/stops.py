"""How many times bookies and SQL nodes stop while clients write: what a scenario's audit is judged by."""

from __future__ import annotations

import time

from conftest import Stack
from under_load import seen_away

from herdkeeper_e2e.missing_copies import Stops
from herdkeeper_e2e.pod_watch import PodWatch
from herdkeeper_e2e.steered_process import SteeredProcess

WATCHED = "app.kubernetes.io/name in (bookie,herddb)"
SILENCE_SECONDS = 10.0
"""After which BookKeeper's client has replaced a bookie that does not answer (`addEntryTimeoutSec`, 5) for certain."""


class CountedStops:
    """From its making on. The API server tells of each time at which one was away."""

    def __init__(self, stack: Stack, *clients: SteeredProcess) -> None:
        self._watch = PodWatch(stack.kubectl, WATCHED)
        self._clients = clients
        self._began = time.monotonic()

    def end(self, silent_seconds: float = 0.0) -> Stops:
        """What was counted, printed; once the clients have stopped."""
        seconds, entries = time.monotonic() - self._began, sum(client.acknowledged for client in self._clients)
        return Stops(len(seen_away(self._watch)), silent_seconds, entries / seconds)
