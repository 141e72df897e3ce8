"""A client with statements that HerdDB often refuses, next to its own transactions: `python3 -m herdkeeper_e2e.checker.refusals tell`.

It makes its own tables, and runs an endless script of `make fuzz`: TRUNCATE, ALTER, CREATE and DROP next to open transactions, key
violations in the middle of a statement, locks. It works until a line `stop` or the end of standard input. A few times a second it prints,
as JSON, how many statements were acknowledged. At the end it writes the promises to a file. `refusals judge` compares them with the current
leader, and prints each contradiction as a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from herdkeeper.sql.connection import Connection
from herdkeeper.sql.errors import ConnectionLost, LeaderNotFound, NotLeader, SqlError
from herdkeeper.sql.leader import Patience
from herdkeeper_e2e.checker.stop_order import stop_order
from herdkeeper_e2e.fuzz.conversation import Conversation
from herdkeeper_e2e.fuzz.judgement import Contents, Promises, Violation
from herdkeeper_e2e.fuzz.story import Begin, End, Rest, Sql, Step, endless, prelude
from herdkeeper_e2e.session import Session, open_session

PATIENCE = Patience(deadline_seconds=2.0, call_seconds=2.0)
CALL_SECONDS = 30.0
"""Longer than any fault: a lost answer makes later results doubtful."""
JUDGE_PATIENCE = Patience(deadline_seconds=120.0, call_seconds=60.0)
PAUSE_SECONDS = 0.02
REPORT_SECONDS = 0.25
BOUNDED = frozenset({"p", "c", "n", "x0", "x1"})
"""Tables of few rows, which are read before and after each statement."""
TABLES = BOUNDED | {"a", "w"}


class StopError(Exception):
    """It was stopped while there was no leader."""


@dataclass
class Refusals(Conversation):
    """The script's tables are its own."""

    session: Session = field(kw_only=True)
    stop: threading.Event = field(kw_only=True)
    _reported: float = 0.0

    def tell(self, steps: Iterable[Step]) -> None:
        """Run steps until stopped. Raises SqlError unless it is due to a leader change: AuthenticationFailed."""
        with suppress(StopError):
            for step in steps:
                if self.stop.is_set():
                    break
                match step:
                    case Sql() | Begin() | End():
                        self.say(step)
                    case Rest(millis):
                        self.stop.wait(millis / 1000)
                    case _:
                        pass  # the nemesis handles the nodes
                self._report()
                self.stop.wait(PAUSE_SECONDS)
        self._leave()

    def connection(self) -> Connection:
        """Each new one is checked at once: its leader must have everything promised."""
        anew = self._connection is not None and self._connection.closed
        connection = super().connection()
        if anew:
            with suppress(SqlError):
                self.violations += self.promises.judge(_node(connection), _contents(connection))
        return connection

    def _connect(self) -> Connection:
        while not self.stop.is_set():
            with suppress(ConnectionLost, NotLeader, LeaderNotFound):
                connection = self.session.connect(PATIENCE)
                connection.timeout_seconds = CALL_SECONDS
                return connection
        raise StopError

    def _tables(self, connection: Connection) -> Iterable[str]:
        return BOUNDED & {*super()._tables(connection)}

    def _leave(self) -> None:
        with suppress(StopError):
            for slot in tuple(self._open):
                self.say(End(slot, commit=False))
        self.hang_up()
        self.forget("it was left open")

    def _report(self) -> None:
        if time.monotonic() - self._reported >= REPORT_SECONDS:
            self._reported = time.monotonic()
            print(json.dumps({"acknowledged": self.told["accepted"], **self.told}), flush=True)


def to_text(conversation: Conversation) -> str:
    """Returns promises, refusals and violations as JSON."""
    promises = conversation.promises
    found = {"kept": promises.kept, "broken": promises.broken, "violations": [str(each) for each in conversation.violations]}
    return json.dumps({**found, "told": conversation.told})


def judged(text: str, where: str, contents: Contents) -> Iterator[Violation]:
    """Yields what contradicts the promises of `to_text`."""
    found = json.loads(text)
    kept, broken = ({int(tag): str(of) for tag, of in found[name].items()} for name in ("kept", "broken"))
    return Promises(kept, broken).judge(where, contents)


def _node(connection: Connection) -> str:
    return connection.address.host.partition(".")[0]


def _contents(connection: Connection) -> Contents:
    there = {str(row["table_name"]) for row in connection.query("SELECT * FROM systables WHERE systemtable = 'false'")}
    return Contents.of({table: connection.query(f"SELECT * FROM {table}") for table in sorted(TABLES & there)})


def _judge(file: Path) -> None:
    with open_session() as session, session.connect(JUDGE_PATIENCE) as connection:
        for violation in judged(file.read_text(), _node(connection), _contents(connection)):
            print(json.dumps(str(violation)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tell", "judge"))
    parser.add_argument("--promises", type=Path, required=True, help="file for what was promised")
    parser.add_argument("--said", type=Path, help="file for what was said and answered, line by line")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.what == "judge":
        _judge(arguments.promises)
        return
    stop = stop_order()
    with open_session() as session, arguments.said.open("w", encoding="utf-8") as said:

        def note(line: str) -> None:
            said.write(f"{time.monotonic():.3f} {line}\n")
            said.flush()

        with session.connect(JUDGE_PATIENCE) as connection:
            for sql in prelude(0):
                connection.execute(sql)
        teller = Refusals("refusals", note, Promises(late=True), session=session, stop=stop)
        teller.tell(endless(arguments.seed))
        arguments.promises.write_text(to_text(teller))


if __name__ == "__main__":
    main()
