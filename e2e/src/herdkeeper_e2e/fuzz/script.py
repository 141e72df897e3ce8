"""The script of one tablespace in a story: its statements, moves of its leader, and the judgement of its copies."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, assert_never

from kazoo.exceptions import KazooException

from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper.codecs.herddb.table import TableDefinition
from herdkeeper.sql.connection import Connection
from herdkeeper.sql.errors import SqlError
from herdkeeper.sql.frames import Value
from herdkeeper_e2e.folded_log import folded_log
from herdkeeper_e2e.fuzz.conversation import Conversation
from herdkeeper_e2e.fuzz.judgement import Contents, Kind, differences
from herdkeeper_e2e.fuzz.story import OUTSIDE, Begin, Checkpoints, CloseLedger, End, Move, Rest, Sql, Step, prelude
from herdkeeper_e2e.fuzz.world import CALL_SECONDS, Stuck, World
from herdkeeper_e2e.server_processes import HERD_ROOT, LEDGERS_ROOT
from herdkeeper_jobs.bookkeeper.metadata import open_catalog

_WRITING_MILLIS = 250
_PAUSE_SECONDS = 0.2
_MADE_SECONDS = 60
_CHECKPOINTS_SECONDS = 3
_SLOT = 3
"""That of the troubles' own transactions."""
_FOLLOWS_SECONDS = 90
"""A node waits for 30 s before it replays an entry that it could not apply twice, such as for a full disk."""
_CHECK = "check?maxStopMillis=20"


@dataclass
class Script(Conversation):
    """One tablespace of a story, for one thread at a time."""

    world: World = field(kw_only=True)
    _further: Iterator[int] = field(default_factory=lambda: count(2**29))
    """Tags beyond all that a story draws."""

    def begin(self, number: int) -> None:
        """Create the tables; failure is a violation."""
        try:
            for sql in prelude(number):
                self._make(sql)
        except Stuck as error:
            self.found(Kind.NO_LEADER, str(error))

    def _make(self, sql: str) -> None:
        """Retry until it exists."""
        deadline = time.monotonic() + _MADE_SECONDS
        while time.monotonic() < deadline:
            try:
                self.connection().execute(sql)
                return
            except SqlError as error:
                if "AlreadyExists" in str(error):
                    return
                self.note(f"{self.name}: {sql} -> {error}")
                self.hang_up()
        raise Stuck(f"{sql} is not done within {_MADE_SECONDS} s")

    def tell(self, steps: tuple[Step, ...]) -> None:
        """Run the steps of an act, with a full check in the middle; an error that stops the script is a violation."""
        try:
            for number, step in enumerate(steps):
                if number == len(steps) // 2:
                    self.note(f"{self.name}: {_CHECK} -> {self._order_leader(_CHECK)}")
                self._step(step)
        except Stuck as error:
            self.found(Kind.NO_LEADER, str(error))
        except KazooException as error:
            self.note(f"{self.name}: ZooKeeper: {error!r}")

    def _step(self, step: Step) -> None:
        match step:
            case Sql() | Begin() | End():
                self.say(step)
            case Move():
                self._move(step)
            case Checkpoints(times):
                end = time.monotonic() + _CHECKPOINTS_SECONDS
                for _ in range(times):
                    if time.monotonic() < end:
                        self.checkpoint()
            case CloseLedger():
                self.note(f"{self.name}: close-ledger -> {self._order_leader('close-ledger')}")
            case Rest(millis):
                time.sleep(millis / 1000)
            case _:
                assert_never(step)

    def _connect(self) -> Connection:
        return self.world.connect(self.name)

    def _follow_leader(self) -> None:
        if self._connection is not None and self._connection.address != self.world.addresses[self.leader]:
            self._connection.close()

    # leaders and followers

    def _move(self, step: Move) -> None:
        before = None if step.writers else self.contents(self.connection())
        after = self.world.successor(self.name)
        if after is None:
            return
        self.note(f"{self.name}: {after} shall lead{f', beside {step.writers} writers' if step.writers else ''}")
        with _writers(self, step):
            self.world.name_leader(self.name, after)
            self.hang_up()
            connection = self.connection()
        found = None if before is None else self.contents(connection)
        if before is not None and found is not None and (words := differences(before.tables, found.tables)):
            self.found(Kind.CHANGED_BY_MOVE, f"at {self.leader}: {words}")

    @property
    def leader(self) -> str:
        return self.world.record(self.name).leader

    def checkpoint(self) -> None:
        """Of each follower."""
        for node in self.world.others(self.leader):
            if self.world.runs(node):
                status, answer = self.world.order(node, f"tablespaces/{self.name}/checkpoint", seconds=CALL_SECONDS)
                self.note(f"{self.name}: checkpoint at {node} -> {status} {answer}")

    def follows(self, node: str) -> bool:
        """Returns whether a node applies the leader's log now."""
        return self._told(node).get("role") == "follower"

    def begin_table(self) -> None:
        """Create one more in a transaction, with a row. A follower needs its disk for the COMMIT."""
        self._follow_leader()
        self.say(Begin(_SLOT))
        tag = next(self._further)
        self.say(Sql(_SLOT, f"CREATE TABLE f{tag} (k int primary key, v int)"))
        self.say(Sql(_SLOT, f"INSERT INTO f{tag} (k, v) VALUES (?, ?)", (tag, tag), f"f{tag}", (tag,), adds=True))

    def make_table(self) -> None:
        """Create one more. A follower needs its disk for this."""
        self._follow_leader()
        self.say(Sql(OUTSIDE, f"CREATE TABLE f{next(self._further)} (k int primary key, v int)"))

    def insert_in_transaction(self) -> None:
        """Insert one more row, in a transaction that may be open already: HerdDB does not wait for the bookies."""
        self._follow_leader()
        self.say(Begin(_SLOT))
        if _SLOT in self._open:
            self.insert(_SLOT)

    def commit(self) -> None:
        """Commit the transaction of `begin_table` or `insert_in_transaction`, if its leader is still there."""
        self.say(End(_SLOT, commit=True))

    def end_ledger(self) -> None:
        """Insert one more row, and close its ledger."""
        self._follow_leader()
        self.insert()
        self._order_leader("close-ledger")

    def insert(self, slot: int = OUTSIDE) -> None:
        """Insert one more row."""
        tag = next(self._further)
        self.say(Sql(slot, "INSERT INTO w (k, v) VALUES (?, ?)", (tag, tag), "w", (tag,), adds=True))

    def _order_leader(self, order: str) -> tuple[int, Any]:
        leader = self.leader
        return self.world.order(leader, f"tablespaces/{self.name}/{order}") if self.world.runs(leader) else (0, "it is not running")

    # the end

    def judge(self) -> None:
        """Compare the promises with the leader, its followers, the log, and each node as a leader."""
        try:
            self._judge()
        except Stuck as error:
            self.found(Kind.NO_LEADER, str(error))
        except KazooException as error:
            self.note(f"{self.name}: ZooKeeper: {error!r}")

    def _judge(self) -> None:
        contents = self._contents_at_leader()
        if contents is None:
            self.found(Kind.NO_ANSWER, "its rows can't be read")
            return
        self.violations += self.promises.judge(f"{self.name} at {self.leader}", contents)
        self._compare_copies(contents)
        self._judge_checks()
        for node in self.world.others(self.leader):
            if not self._can_lead(node):
                self.found(Kind.NO_FOLLOWER, f"{node} can't lead: {self.world.tablespaces(node).get(self.name)}")
                continue
            self.forget("its transaction was left open")
            self.world.name_leader(self.name, node)
            self.hang_up()
            found = self._contents_at_leader()
            if found is None:
                self.found(Kind.NO_ANSWER, f"its rows can't be read at {node}")
                continue
            self.violations += self.promises.judge(f"{self.name} at {node}", found)
            if words := differences(contents.tables, found.tables):
                self.found(Kind.CHANGED_BY_MOVE, f"at {node}: {words}")
        self._judge_next_key()

    def _contents_at_leader(self) -> Contents | None:
        """Returns None if no leader answers in time. One that was killed or demoted, or whose ledger others have closed, needs a moment."""
        contents: Contents | None = None

        def are_read() -> bool:
            nonlocal contents
            contents = self.contents(self.connection())
            if contents is None:
                self.hang_up()
            return contents is not None

        with suppress(Stuck):
            self.world.wait("its rows are read", are_read)
        return contents

    def _can_lead(self, node: str) -> bool:
        """Wait for a replica that is being rebuilt."""
        with suppress(Stuck):
            self.world.wait("", lambda: self.world.may_lead(node, self.name))
            return True
        return False

    def _judge_next_key(self) -> None:
        tag = next(self._further)
        connection = self.connection()
        with suppress(SqlError):
            connection.execute("INSERT INTO a (v) VALUES (?)", (tag,))
            given = {int(str(row["k"])) for row in connection.query("SELECT k FROM a WHERE v = ?", (tag,))}
            if given & self.promises.keys:
                self.found(Kind.GIVEN_TWICE, f"{given} at {self.leader}")

    def _compare_copies(self, contents: Contents) -> None:
        closed: Any = None

        def is_closed() -> bool:
            """A leader whose ledger others have closed notices it by this order, refuses it, and boots again."""
            nonlocal closed
            status, closed = self._order_leader("close-ledger")
            return status == 200

        try:
            self.world.wait("its ledger is closed", is_closed)
        except Stuck:
            self.found(Kind.NO_ANSWER, f"its ledger can't be closed: {closed}")
            return
        digests = {node: self._digest(node, (closed["closed"], closed["lastEntry"])) for node in self.world.others(self.leader)}
        if self.world.plan.retention_millis is not None:
            return
        try:
            with open_catalog(self.world.servers.zookeeper, LEDGERS_ROOT) as catalog:
                folded = folded_log(catalog, HERD_ROOT, self.name, self.world.servers.folder)
        except Exception as error:  # the fold raises many kinds of errors
            self.found(Kind.LOG_DIFFERS, f"it can't be folded: {type(error).__name__}: {error}")
            return
        in_log = Contents.of({table.name: _named(table, rows) for table, rows in zip(folded.timeline.tables, folded.rows, strict=True)})
        if words := differences(contents.tables, in_log.tables):
            self.found(Kind.LOG_DIFFERS, words)
        expected = {table.name: digest for table, digest in zip(folded.timeline.tables, folded.digests, strict=True)}
        for node, found in digests.items():
            wrong = [name for name in expected.keys() | (found or {}).keys() if found is not None and expected.get(name) != found.get(name)]
            if wrong:
                self.found(Kind.COPY_DIFFERS, f"{node} differs from the log in {sorted(wrong)}")

    def _judge_checks(self) -> None:
        """Check the nodes' results of the story's full checks, and the followers' results of one more. A follower that boots skips the
        entries of a check that is over, so the story's own one, which may still run, does not count.
        """
        check: dict[str, Any] = {}

        def started() -> bool:
            _, answer = self._order_leader(_CHECK)
            return isinstance(answer, dict) and answer.get("started") is True

        def ended() -> bool:
            nonlocal check
            check = self._told(self.leader).get("fullCheck") or {}
            return check.get("endedAtMillis") is not None

        self.world.wait(f"a full check of {self.name} at {self.leader} starts behind the story's", started)
        self.world.wait(f"the full check of {self.name} at {self.leader} ends", ended)
        for node in self.world.others(self.leader):
            with suppress(Stuck):
                self.world.wait("", partial(self._passed, node, check))
                continue
            self.found(Kind.NO_FOLLOWER, f"{node} does not pass {check}: {self._told(node).get('checks')}")
        for node in self.world.nodes:
            failed = {table: verdict for table, verdict in self._told(node).get("checks", {}).items() if not verdict["pass"]}
            if failed:
                self.found(Kind.COPY_DIFFERS, f"{node} failed a full check: {failed}")

    def _passed(self, node: str, check: dict[str, Any]) -> bool:
        verdicts = self._told(node).get("checks", {})
        at = {table: (verdict["position"]["ledgerId"], verdict["position"]["entryId"]) for table, verdict in verdicts.items()}
        after = (check["after"]["ledgerId"], check["after"]["entryId"])
        return check["error"] is None and all(table in at and at[table] > after for table in check["tables"])

    def _told(self, node: str) -> dict[str, Any]:
        """Returns a node's view of the tablespace."""
        return dict(self.world.tablespaces(node).get(self.name, {}))

    def _digest(self, node: str, end: tuple[int, int]) -> dict[str, RowDigest] | None:
        """Returns digests of a follower's tables at the end of the leader's last ledger. None, and a violation, if it does
        not get there.
        """
        query = f"ledger={end[0]}&entry={end[1]}&timeoutSeconds=5"
        deadline = time.monotonic() + _FOLLOWS_SECONDS
        while time.monotonic() < deadline:
            status, answer = self.world.order(node, f"tablespaces/{self.name}/digest?{query}")
            if status == 200:
                return {name: RowDigest.parse(one["rows"], one["digest"]) for name, one in answer["tables"].items()}
            here = self.world.tablespaces(node).get(self.name, {})
            applied = here.get("applied")
            if applied is not None and (applied["ledgerId"], applied["entryId"]) > end:
                return None  # somebody has written meanwhile
            time.sleep(_PAUSE_SECONDS)
        self.found(Kind.NO_FOLLOWER, f"{node} is at {applied}, the log at {end}; its last error: {here.get('lastError')}")
        return None


def _named(table: TableDefinition, rows: Iterable[tuple[Any, ...]]) -> list[dict[str, Value]]:
    return [dict(zip((column.name for column in table.columns), row, strict=True)) for row in rows]


@contextmanager
def _writers(script: Script, move: Move) -> Iterator[None]:
    """Clients that insert their own rows before, during and after the block; their answers are kept."""
    over, told, lock = threading.Event(), 0, threading.Lock()

    def write(number: int) -> None:
        nonlocal told
        tag = move.first_tag + number
        while not over.is_set():
            with suppress(Stuck, SqlError, KazooException), script.world.connect(script.name, seconds=5) as connection:
                while not over.is_set():
                    statement = Sql(OUTSIDE, "INSERT INTO w (k, v) VALUES (?, ?)", (tag, tag), "w", (tag,), adds=True)
                    tag += move.writers
                    connection.execute(statement.sql, statement.parameters)
                    with lock:
                        script.promises.accepted(statement)
                        told += 1

    threads = [threading.Thread(target=write, args=(number,), daemon=True) for number in range(move.writers)]
    for thread in threads:
        thread.start()
    if threads:
        time.sleep(_WRITING_MILLIS / 1000)
    try:
        yield
        if threads:
            time.sleep(_WRITING_MILLIS / 1000)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    script.note(f"{script.name}: {told} rows of its writers were acknowledged")
