"""What a seed draws: a cluster, and a story of statements in several tablespaces with concurrent faults. Pure.

Each tablespace has its own kinds of statements, so that a violation of one does not hide others. Many statements are refused, even halfway;
that is their purpose. Each written row has its own tag in the column `v`, by which it is recognized at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import count
from random import Random

from herdkeeper.sql.frames import Value

STORIES_OF_A_WORLD = 10
"""Consecutive seeds whose stories share a cluster, which is new for the first of them."""
OUTSIDE = 0
"""The slot of statements outside of transactions."""
_SLOTS = (1, 2)
_TABLESPACES = 4
_ACTS = 3
_STEPS = 14
_KEYS = 8


class Refusal(Enum):
    """Kinds of refused statements that only some tablespaces have."""

    TRUNCATE = "TRUNCATE beside transactions"
    CONSTRAINT = "unique and foreign keys and NOT NULL, broken in the middle of a statement"
    DEFINITION = "CREATE, ALTER and DROP beside transactions"
    LOCK = "SELECT ... FOR UPDATE"


class Trouble(Enum):
    """What happens to one machine, or to all."""

    NOTHING = "nothing"
    KILL_NODE = "a SQL node is killed, and others lead"
    KILL_NODE_AND_WAIT = "a SQL node is killed, and leads again when it is back"
    PAUSE_LEADERS = "a SQL node stands still while others take its tablespaces over"
    PAUSE_NODE = "a SQL node stands still"
    POWER_CUT_OF_FOLLOWER = "a SQL node that leads nothing is killed, and comes back"
    FULL_DISK = "a SQL node that leads nothing can't write its disk for a moment, and is asked for checkpoints"
    KILL_BOOKIE = "a bookie is killed"
    LEAVE_BOOKIE = "a bookie ends in order, and the storage closes the ledgers that name it"
    CLOSE_UNDER_TRANSACTIONS = "the storage closes the ledgers of a bookie that ended, and transactions insert while the others stand still"
    PAUSE_BOOKIE = "a bookie stands still"
    RESTART_ZOOKEEPER = "ZooKeeper is killed, and comes back"
    LONG_ABSENCE = "a SQL node that leads nothing is away for longer than the log is kept"


@dataclass(frozen=True)
class Sql:
    """One statement. `tags`: of rows that it inserts or changes; `adds`: whether it inserts them; `spoils`: tables with rows that it may
    change or remove.
    """

    slot: int
    sql: str
    parameters: tuple[Value, ...] = ()
    table: str = ""
    tags: tuple[int, ...] = ()
    adds: bool = False
    spoils: tuple[str, ...] = ()

    @property
    def in_parts(self) -> bool:
        """Whether HerdDB executes it row by row, so that rows before a refused one stay."""
        return self.adds and len(self.tags) > 1

    @property
    def commits(self) -> bool:
        """Whether HerdDB first commits its transaction (docs/limits.md)."""
        return self.sql.startswith("ALTER TABLE")


@dataclass(frozen=True)
class Begin:
    slot: int


@dataclass(frozen=True)
class End:
    """The transaction of a slot ends, if there is one."""

    slot: int
    commit: bool


@dataclass(frozen=True)
class Move:
    """Another node is named as the leader, as the operator does it. `writers`: clients that insert rows meanwhile, from this tag on;
    without them, SQL must show the same before and after.
    """

    writers: int
    first_tag: int


@dataclass(frozen=True)
class Checkpoints:
    """The followers write so many local checkpoints in a row."""

    times: int


@dataclass(frozen=True)
class CloseLedger:
    """The leader closes its ledger, and opens another one."""


@dataclass(frozen=True)
class Rest:
    millis: int


Step = Sql | Begin | End | Move | Checkpoints | CloseLedger | Rest


@dataclass(frozen=True)
class Act:
    """The concurrent steps of the tablespaces' scripts, and the trouble of the machines meanwhile."""

    scripts: tuple[tuple[Step, ...], ...]
    trouble: Trouble
    after_millis: int
    lasts_millis: int
    victim: int
    """A number that chooses the victim."""


@dataclass(frozen=True)
class Birth:
    """How a story's tablespaces are created. `stop_at_ledger`: their first leader is frozen after so many ledgers, and another one boots
    all of them; None for one leader.
    """

    stop_at_ledger: int | None


@dataclass(frozen=True)
class World:
    """A cluster. `retention_millis`: the log's retention; None: forever, so that it can be folded from its beginning. `bookies_late`: its
    SQL nodes start before its bookies; then the tablespace `herd` mostly gets ledger 0.
    """

    nodes: int
    retention_millis: int | None
    bookies_late: bool


@dataclass(frozen=True)
class Story:
    """One story. `tells_default`: the last script is for the tablespace `herd`, which has the first ledger of the cluster."""

    seed: int
    world: World
    birth: Birth
    habits: tuple[frozenset[Refusal], ...]
    acts: tuple[Act, ...]
    tells_default: bool


TABLES = (
    "CREATE TABLE p (k int primary key, v int, u int)",
    "CREATE UNIQUE INDEX pu ON p (u)",
    "CREATE TABLE c (k int primary key, v int, r int, CONSTRAINT cp FOREIGN KEY (r) REFERENCES p (k){action})",
    "CREATE TABLE a (k long auto_increment, v int, PRIMARY KEY (k))",
    "CREATE TABLE n (k string primary key, v int, r string not null)",
    "CREATE TABLE w (k int primary key, v int)",
)
"""Initial tables of each tablespace. HerdDB generates the keys of `a`; `w` gets only inserts."""


def world_of(seed: int) -> World:
    """Returns the cluster for a seed's story."""
    number = seed // STORIES_OF_A_WORLD
    chance = Random(f"world {number}")
    nodes = chance.choice((2, 2, 2, 3))
    return World(nodes, 6000 if number % 2 else None, bookies_late=chance.random() < 0.7)


def draw(seed: int) -> Story:
    """Returns a seed's story. Deterministic."""
    chance = Random(f"story {seed}")
    first = seed % STORIES_OF_A_WORLD == 0
    world = world_of(seed)
    habits = tuple(frozenset(one for one in Refusal if chance.random() < 0.4) for _ in range(_TABLESPACES))
    scripts = [_Script(chance, habit) for habit in habits]
    troubles = _troubles(chance, world, first)
    birth = Birth(None if troubles[0] is Trouble.LONG_ABSENCE else chance.choice((None, chance.randint(1, _TABLESPACES))))
    acts = tuple(_act(chance, scripts, trouble) for trouble in troubles)
    return Story(seed, world, birth, habits, acts, tells_default=first)


def endless(seed: int) -> Iterator[Step]:
    """Yields an endless script, with all kinds of statements that HerdDB may refuse, and without leader changes."""
    return _Script(Random(f"endless {seed}"), frozenset(Refusal)).steps(None, quiet=True)


def prelude(number: int) -> Iterator[str]:
    """Yields the statements that create a story's tables, by the tablespace's number."""
    action = ("", " ON DELETE CASCADE", " ON DELETE SET NULL")[number % 3]
    return (statement.format(action=action) for statement in TABLES)


def _troubles(chance: Random, world: World, first: bool) -> list[Trouble]:
    usual: list[Trouble] = [trouble for trouble in Trouble if trouble is not Trouble.LONG_ABSENCE]
    drawn = [chance.choice(usual) for _ in range(_ACTS)]
    if first and world.retention_millis is not None:
        drawn[0] = Trouble.LONG_ABSENCE
    return drawn


def _act(chance: Random, scripts: list[_Script], trouble: Trouble) -> Act:
    steps = tuple(tuple(script.steps(_STEPS, quiet=trouble is not Trouble.NOTHING)) for script in scripts)
    return Act(steps, trouble, chance.randint(0, 400), chance.randint(100, 2500), chance.randint(0, 11))


class _Script:
    """Draws the steps of one tablespace by chance alone: it does not know what was refused."""

    def __init__(self, chance: Random, habit: frozenset[Refusal]) -> None:
        self._chance = chance
        self._tag = 0
        self._writes: list[Callable[[int], Sql]] = [self._insert, self._insert, self._append, self._automatic, self._update, self._delete]
        if Refusal.CONSTRAINT in habit:
            self._writes += [self._insert_several, self._update_several, self._delete_several]
        if Refusal.TRUNCATE in habit:
            self._writes += [self._truncate, self._truncate]
        if Refusal.DEFINITION in habit:
            self._writes += [self._define] * 3
        if Refusal.LOCK in habit:
            self._writes += [self._lock, self._lock]

    def steps(self, number: int | None, *, quiet: bool) -> Iterator[Step]:
        """Yields the steps of an act, endlessly if None; `quiet`: the leader moves only because of machines."""
        for _ in count() if number is None else range(number):
            yield self._step(quiet)

    def _step(self, quiet: bool) -> Step:
        slot = self._chance.choice(_SLOTS)
        makers: list[tuple[int, Callable[[], Step]]] = [
            (64, lambda: self._chance.choice(self._writes)(self._chance.choice((OUTSIDE, *_SLOTS)))),
            (10, lambda: Begin(slot)),
            (9, lambda: End(slot, commit=self._chance.random() < 0.7)),
            (0 if quiet else 4, self._move),
            (6, lambda: Checkpoints(self._chance.choice((1, 1, 20)))),
            (4, CloseLedger),
            (3, lambda: Rest(self._chance.choice((20, 300, 1500)))),
        ]
        (make,) = self._chance.choices([make for _, make in makers], [weight for weight, _ in makers])
        return make()

    def _move(self) -> Move:
        writers, first = self._chance.choice((0, 0, 4)), self._tag + 1
        self._tag += 1_000_000 if writers else 0
        return Move(writers, first)

    def _tags(self, number: int = 1) -> tuple[int, ...]:
        self._tag += number
        return tuple(range(self._tag - number + 1, self._tag + 1))

    def _key(self) -> int:
        return self._chance.randrange(_KEYS)

    def _insert(self, slot: int) -> Sql:
        tags = self._tags()
        match self._chance.choice("pcn"):
            case "p":
                unique = self._chance.choice((None, self._key(), 100 + tags[0]))
                return Sql(slot, "INSERT INTO p (k, v, u) VALUES (?, ?, ?)", (self._key(), *tags, unique), "p", tags, adds=True)
            case "c":
                parent = self._chance.choice((None, self._key()))
                return Sql(slot, "INSERT INTO c (k, v, r) VALUES (?, ?, ?)", (self._key(), *tags, parent), "c", tags, adds=True)
            case _:
                return Sql(slot, "INSERT INTO n (k, v, r) VALUES (?, ?, ?)", (str(self._key()), *tags, "r"), "n", tags, adds=True)

    def _append(self, slot: int) -> Sql:
        """Several rows that nothing refuses."""
        tags = self._tags(self._chance.choice((1, 1, 3)))
        values = ", ".join(["(?, ?)"] * len(tags))
        return Sql(slot, f"INSERT INTO w (k, v) VALUES {values}", tuple(tag for tag in tags for _ in "kv"), "w", tags, adds=True)

    def _automatic(self, slot: int) -> Sql:
        tags = self._tags()
        return Sql(slot, "INSERT INTO a (v) VALUES (?)", tags, "a", tags, adds=True)

    def _insert_several(self, slot: int) -> Sql:
        """One row may violate a constraint, after others that don't."""
        tags = self._tags(3)
        table, third = self._chance.choice((("p", "u"), ("c", "r"), ("n", "r")))
        parameters: list[Value] = []
        for tag in tags:
            key = self._key()
            last: Value = self._chance.choice((key, self._key(), None))
            parameters += [str(key), tag, None if last is None else str(last)] if table == "n" else [key, tag, last]
        sql = f"INSERT INTO {table} (k, v, {third}) VALUES (?, ?, ?), (?, ?, ?), (?, ?, ?)"
        return Sql(slot, sql, tuple(parameters), table, tags, adds=True)

    def _update(self, slot: int) -> Sql:
        tags = self._tags()
        table = self._chance.choice("pcn")
        key: Value = str(self._key()) if table == "n" else self._key()
        return Sql(slot, f"UPDATE {table} SET v = ? WHERE k = ?", (*tags, key), table, tags, spoils=(table,))

    def _update_several(self, slot: int) -> Sql:
        """All rows get the same unique value, parent or null: the second one may be refused."""
        tags = self._tags()
        table, third = self._chance.choice((("p", "u"), ("c", "r"), ("n", "r")))
        value: Value = self._chance.choice((None, self._key()))
        value = str(value) if table == "n" and value is not None else value
        return Sql(slot, f"UPDATE {table} SET v = ?, {third} = ?", (*tags, value), table, tags, spoils=(table,))

    def _delete(self, slot: int) -> Sql:
        table = self._chance.choice("pcna")
        key: Value = str(self._key()) if table == "n" else self._key()
        return Sql(slot, f"DELETE FROM {table} WHERE k = ?", (key,), table, spoils=_with_children(table))

    def _delete_several(self, slot: int) -> Sql:
        """Some of the parents have children."""
        return Sql(slot, "DELETE FROM p WHERE k >= ?", (self._key(),), "p", spoils=_with_children("p"))

    def _truncate(self, slot: int) -> Sql:
        table = self._chance.choice("pcnaw")
        slot = OUTSIDE if self._chance.random() < 0.9 else slot
        return Sql(slot, f"TRUNCATE TABLE {table}", (), table, spoils=_with_children(table))

    def _lock(self, slot: int) -> Sql:
        table = self._chance.choice("pcn")
        slot = self._chance.choice(_SLOTS) if slot == OUTSIDE else slot
        key: Value = str(self._key()) if table == "n" else self._key()
        return Sql(slot, f"SELECT * FROM {table} WHERE k = ? FOR UPDATE", (key,), table)

    def _define(self, slot: int) -> Sql:
        extra, number, table = f"x{self._chance.randrange(2)}", self._chance.randrange(3), self._chance.choice("pcn")
        sql, table = self._chance.choice(
            (
                (f"CREATE TABLE {extra} (k int primary key, v int)", extra),
                (f"CREATE TABLE {extra} (k int primary key, v int)", extra),
                (f"DROP TABLE {extra}", extra),
                (f"INSERT INTO {extra} (k, v) VALUES ({self._key()}, 0)", extra),
                (f"ALTER TABLE {table} ADD COLUMN e{number} int", table),
                (f"ALTER TABLE {table} DROP COLUMN e{number}", table),
                (f"CREATE INDEX i{number} ON {table} (v)", table),
                (f"CREATE UNIQUE INDEX i{number} ON {table} (v)", table),
                (f"DROP INDEX i{number}", ""),
            )
        )
        return Sql(slot, sql, (), table, spoils=(extra,))


def _with_children(table: str) -> tuple[str, ...]:
    return ("p", "c") if table == "p" else (table,)
