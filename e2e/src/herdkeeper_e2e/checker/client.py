"""One client: runs its operations on the current leader, and reconnects at once after a failure."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from herdkeeper.sql.connection import Connection
from herdkeeper.sql.errors import ConnectionLost, LeaderNotFound, NotLeader, OutcomeUnknown, SqlError
from herdkeeper.sql.leader import Patience
from herdkeeper_e2e.checker.operation import Operation, Outcome
from herdkeeper_e2e.checker.recorder import Recorder
from herdkeeper_e2e.checker.work import RolledBackError, Work
from herdkeeper_e2e.session import LeaderConnection

PATIENCE = Patience(deadline_seconds=2.0, call_seconds=2.0)
"""Short, so that a connection to a dead node or an old leader ends soon. The client itself retries forever."""


@dataclass
class Client:
    """A thread's loop. `pause_seconds` between operations keeps the clients' share of the machine small."""

    process: str
    work: Work
    connection: LeaderConnection
    recorder: Recorder
    pause_seconds: float = 0.0

    def run(self, stop: threading.Event) -> None:
        """Work until stopped. Only an error unrelated to leader changes ends it: AuthenticationFailed."""
        number = 0
        while not stop.is_set():
            if (connection := self._connected()) is not None:
                begun = self.recorder.begin(self.process, number, self.work.content(number))
                self.recorder.end(self._attempt(connection, begun))
                number += 1
            stop.wait(self.pause_seconds)
        self.connection.close()

    def _connected(self) -> Connection | None:
        try:
            return self.connection.get()
        except (ConnectionLost, NotLeader, LeaderNotFound):
            return None

    def _attempt(self, connection: Connection, begun: Operation) -> Operation:
        """Returns the operation with its outcome. If SqlError says that it was not applied, it has failed, and the checks rely on that."""
        known = replace(begun, leader=connection.address.host.partition(".")[0])
        try:
            return replace(self.work.carry_out(connection, known), outcome=Outcome.OK)
        except RolledBackError as error:
            return replace(known, outcome=Outcome.FAIL, error=str(error))
        except OutcomeUnknown as error:
            self.connection.close()
            return replace(known, outcome=Outcome.UNKNOWN, error=str(error))
        except SqlError as error:
            self.connection.close()
            return replace(known, outcome=Outcome.FAIL, error=f"{type(error).__name__}: {error}")
