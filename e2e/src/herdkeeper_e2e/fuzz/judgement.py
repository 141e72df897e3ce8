"""What a story must leave behind, and what violates it. Pure.

Rows are identified by tags. A statement's answer decides about its tags. Acknowledged ones must exist, unless a later statement may have
changed or removed the rows of their table. Refused ones, and those of transactions without an acknowledged COMMIT, must not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from herdkeeper.sql.frames import Value
from herdkeeper_e2e.fuzz.story import OUTSIDE, Sql

_SHOWN = 4


class Kind(StrEnum):
    LOST = "acknowledged rows are gone"
    UNDEAD = "what was refused or rolled back is there"
    CHANGED_BY_REFUSAL = "a refused statement changed what SQL shows"
    CHANGED_BY_MOVE = "the next leader shows other rows"
    COPY_DIFFERS = "a follower holds other rows than its leader"
    TWICE = "two rows have one value of a unique index"
    LOG_DIFFERS = "the log folds to other rows than SQL shows"
    GIVEN_TWICE = "a key of an auto-increment would be given again"
    NO_FOLLOWER = "a follower does not follow"
    NO_LEADER = "nobody leads"
    NO_ANSWER = "SQL does not answer"
    FENCED_WRITER = "a leader that was fenced opened another ledger"
    ENDED = "a node ended by itself"


@dataclass(frozen=True)
class Violation:
    """One violation, in a tablespace or in the whole cluster."""

    kind: Kind
    where: str
    explanation: str

    def __str__(self) -> str:
        return f"{self.where}: {self.kind.value}: {self.explanation}"


@dataclass(frozen=True)
class Contents:
    """A tablespace as SQL shows it outside of transactions: its tables' rows, as texts. `twice`: values of a unique index that several rows
    have."""

    tables: Mapping[str, Counter[str]]
    tags: frozenset[int]
    twice: frozenset[str] = frozenset()

    @classmethod
    def of(cls, tables: Mapping[str, Iterable[Mapping[str, Value]]]) -> Contents:
        """Returns the contents of each table's rows, as a SELECT returns them."""
        rows = {name: [dict(row) for row in found] for name, found in tables.items()}
        tags = frozenset(int(str(row["v"])) for found in rows.values() for row in found if row.get("v") is not None)
        unique = Counter(str(row["u"]) for row in rows.get("p", ()) if row.get("u") is not None)
        twice = frozenset(value for value, number in unique.items() if number > 1)
        return cls({name: Counter(repr(sorted(row.items())) for row in found) for name, found in rows.items()}, tags, twice)


def differences(expected: Mapping[str, Counter[str]], found: Mapping[str, Counter[str]]) -> str:
    """Returns tables and rows in which two contents differ; empty if none."""
    words = []
    for table in sorted(expected.keys() | found.keys()):
        if table not in found or table not in expected:
            words.append(f"table {table} is {'missing' if table not in found else 'there besides'}")
            continue
        missing, more = expected[table] - found[table], found[table] - expected[table]
        if missing:
            words.append(f"{table} lacks {missing.total()} of {expected[table].total()} rows, {_shown(missing)}")
        if more:
            words.append(f"{table} has {more.total()} besides, {_shown(more)}")
    return "; ".join(words)


def _shown(rows: Iterable[object]) -> str:
    shown = sorted(map(str, rows))
    return ", ".join(shown[:_SHOWN]) + (" …" if len(shown) > _SHOWN else "")


@dataclass
class Promises:
    """What the clients of a tablespace were promised. `kept`: tags that must exist, with their tables; `broken`: tags that must not."""

    kept: dict[int, str] = field(default_factory=dict)
    broken: dict[int, str] = field(default_factory=dict)
    pending: dict[int, dict[int, str]] = field(default_factory=dict)
    """By slot: tags of the statements accepted in its open transaction."""
    half_committed: dict[int, str] = field(default_factory=dict)
    """Tags of the transaction of the last ALTER: HerdDB commits it first, whatever the result of the ALTER."""
    keys: set[int] = field(default_factory=set)
    """Keys given to acknowledged rows of the table `a`."""
    late: bool = False
    """Whether a statement with a lost answer may take effect after later ones: a leader that was frozen continues it."""
    doubtful: set[str] = field(default_factory=set)
    """Tables whose rows such a statement may still change or remove: nothing is known about rows added to them."""
    touched: dict[int, set[str]] = field(default_factory=dict)
    """By slot: tables whose rows its open transaction may change or remove."""

    def begin(self, slot: int) -> None:
        self.pending[slot] = {}
        self.touched[slot] = set()

    def moved(self) -> None:
        """Another node leads. It has fenced the previous one, whose statements no longer take effect."""
        self.doubtful.clear()

    def sent(self, statement: Sql) -> None:
        """Its tables may have changed from now on."""
        if statement.slot != OUTSIDE:
            self.touched[statement.slot].update(statement.spoils)
            if statement.commits:
                self.half_committed, self.pending[statement.slot] = self.pending[statement.slot], {}
        for known in (self.kept, *self.pending.values()):
            for tag in [tag for tag, table in known.items() if table in statement.spoils]:
                del known[tag]

    def accepted(self, statement: Sql) -> None:
        """The server answered with a number of rows."""
        if statement.slot != OUTSIDE and statement.commits:
            self._keep(self.half_committed)
        if not statement.adds or statement.table in self.doubtful:
            return
        where = self.kept if statement.slot == OUTSIDE else self.pending[statement.slot]
        where.update(dict.fromkeys(statement.tags, statement.table))

    def refused(self, statement: Sql, why: str) -> None:
        """The server answered with an error: nothing was applied, except rows of an INSERT before the bad one."""
        if not statement.in_parts:
            self.broken.update(dict.fromkeys(statement.tags, f"{statement.sql} was refused ({why[:120]})"))

    def unanswered(self, statement: Sql) -> None:
        """The answer to a statement outside of transactions was lost."""
        if self.late:
            self.doubtful.update(statement.spoils)

    def committed(self, slot: int) -> None:
        """The COMMIT was acknowledged."""
        self._keep(self.pending.pop(slot, {}))

    def _keep(self, tags: Mapping[int, str]) -> None:
        self.kept.update({tag: table for tag, table in tags.items() if table not in self.doubtful})

    def undone(self, slot: int, why: str) -> None:
        """The transaction was rolled back, or its leader was lost before a COMMIT was sent."""
        self.broken.update(dict.fromkeys(self.pending.pop(slot, {}), why))

    def unknown(self, slot: int) -> None:
        """The answer to its COMMIT was lost."""
        self.pending.pop(slot, None)
        if self.late:
            self.doubtful.update(self.touched.get(slot, ()))

    def judge(self, where: str, contents: Contents) -> Iterator[Violation]:
        lost = {tag: table for tag, table in self.kept.items() if tag not in contents.tags}
        if lost:
            of = ", ".join(f"{number} of {table}" for table, number in Counter(lost.values()).items())
            yield Violation(Kind.LOST, where, f"{len(lost)} rows ({of}), tags {_shown(lost)}")
        undead = [(tag, why) for tag, why in self.broken.items() if tag in contents.tags]
        if undead:
            yield Violation(Kind.UNDEAD, where, f"{len(undead)} tags, of them {undead[0][0]}: {undead[0][1]}")
        if contents.twice:
            yield Violation(Kind.TWICE, where, f"{_shown(contents.twice)} in p")


_FENCED = re.compile(r"this server was fenced for tablespace (\S+) ")
_OPENED = re.compile(r"Tablespace (\S+) \((\S+)\), opened new ledger:(\S+),")
_NOT_LISTED = re.compile(
    r"tablespace (\S+): an entry was not written, so no ledger follows it|of tablespace (\S+) was changed by another process"
)
_LEADS = re.compile(r"startAsLeader \S+ tablespace (\S+)")


def fenced_writers(node: str, words: Iterable[str]) -> Iterator[Violation]:
    """Yields, from a node's log, leaders that continued after another one had fenced them. HerdDB says that it has opened a ledger
    before it lists it, and only a listed one is part of the log.
    """
    fenced: set[str] = set()
    opened: dict[str, Violation] = {}
    for line in words:
        if found := _FENCED.search(line):
            fenced.add(found[1])
        elif found := _LEADS.search(line):
            fenced.discard(found[1])
        elif found := _NOT_LISTED.search(line):
            opened.pop(found[1] or found[2], None)
        elif (found := _OPENED.search(line)) and found[1] in fenced:
            if (before := opened.get(found[2])) is not None:
                yield before
            opened[found[2]] = Violation(Kind.FENCED_WRITER, found[1], f"{node} opened and listed ledger {found[3]}")
    yield from opened.values()
