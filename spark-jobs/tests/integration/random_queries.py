"""Random tables, queries and changes of rows, as HerdDB and SQLite both read them. All of it follows from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

Value = int | float | str | None

_TEXTS = ["", "a", "b", "ab", "B", "%", "a_b", "ä", "zz"]
_VALUES: dict[str, Sequence[int | float | str]] = {
    "int": [-2, -1, 0, 1, 2, 3, 3, 5, 2**31 - 1, -(2**31)],
    "long": [-2, -1, 0, 1, 2, 3, 10**12, 2**63 - 1, -(2**63)],
    "double": [-1.5, -1.0, 0.0, 0.5, 1.0, 2.25],
    "string": _TEXTS,
}
_SHAPES = (
    *("plain", "plain", "plain", "join", "join", "group", "group", "distinct", "limited", "contains", "exists", "union", "one_value"),
    *("joined_groups", "groups_of_a_join", "three", "own_value"),
)
_COMPUTED = ("number", "text", "condition")
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
_CONDITIONS = ("null", "like", "between", "in", "distinct", "number", "text", "compare", "compare", "compare")
_FORMS = (*["{}"] * 28, *["NOT ({})"] * 4, "({}) IS TRUE", "({}) IS NOT TRUE", "({}) IS FALSE", "({}) IS NOT FALSE")
_CHANGES = (
    "delete",
    "delete contained",
    "insert",
    "compute",
    "compute",
    "contained",
    "contained",
    "text",
    "int",
    "int",
    "string",
    "string",
)
_JOINS = ("{x}.a = {y}.b", "{x}.k = {y}.k", "{x}.s = {y}.s", "{x}.a = {y}.l", "{x}.a = {y}.a AND {x}.b = {y}.b", "{x}.a < {y}.b")
_OTHER_JOINS = ("{x}.a = {y}.b AND {x}.l > 0", "{x}.a = {y}.b AND {y}.s <> 'a'", "{x}.a IS NOT DISTINCT FROM {y}.b")


@dataclass(frozen=True)
class Statement:
    """One statement, as each of the two needs it."""

    text: str
    reference: str
    """SQLite's, in which NULLs come first unless something else is said."""
    parameters: list[Value]
    keys: tuple[int, ...] = ()
    """The columns of the result by which it is sorted, first ones first."""
    is_total: bool = False
    """Whether there is one right order, and a LIMIT has one right result."""


class RandomSql:
    """Draws rows and statements for the tables t and u. Their key is a number, or a text."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._parameters: list[Value] = []
        self.columns = {"k": self._random.choice(["int", "string"]), "a": "int", "b": "int", "l": "long", "s": "string", "d": "double"}
        """With their types."""

    def rows(self) -> list[list[Value]]:
        """Of one table: few, so that values come twice."""
        keys: list[Value] = [*range(-8, 8)] if self.columns["k"] == "int" else [*_TEXTS, "c", "ca", "d", "e"]
        kinds = list(self.columns.values())[1:]
        return [[key, *(self._value(kind) for kind in kinds)] for key in self._random.sample(keys, self._random.randint(0, 12))]

    def query(self) -> Statement:
        """A SELECT."""
        self._parameters = []
        statement: Statement = getattr(self, f"_{self._random.choice(_SHAPES)}")()
        return statement

    def change(self) -> Statement:
        """An UPDATE or DELETE of t, or an INSERT of rows of u."""
        self._parameters = []
        match self._random.choice(_CHANGES):
            case "delete":
                text = f"DELETE FROM t WHERE {self._condition([''])}"
            case "delete contained":
                text = f"DELETE FROM t WHERE {self._random.choice('ab')} IN (SELECT b FROM u{self._where([''])})"
            case "insert":
                new = self._random.choice(["k NOT IN (SELECT k FROM t)", "NOT EXISTS (SELECT 1 FROM t x WHERE x.k = u.k)"])
                text = f"INSERT INTO t SELECT * FROM u WHERE {new} AND {self._condition([''])}"
            case "compute":
                # what does not fit into the column is refused by HerdDB, and kept by SQLite
                text = f"UPDATE t SET a = a - b WHERE a BETWEEN -9 AND 9 AND b BETWEEN -9 AND 9 AND {self._condition([''])}"
            case "contained":
                text = f"UPDATE t SET b = {self._constant('int')} WHERE a IN (SELECT b FROM u{self._where([''])})"
            case "text":
                text = f"UPDATE t SET s = {self._text([''])} WHERE {self._condition([''])}"
            case kind:
                column = "s" if kind == "string" else self._random.choice(["a", "b"])
                text = f"UPDATE t SET {column} = {self._constant(kind)} WHERE {self._condition([''])}"
        return self._made(text)

    def _value(self, kind: str) -> Value:
        return None if self._random.random() < 0.2 else self._random.choice(_VALUES[kind])

    def _constant(self, kind: str) -> str:
        value = self._random.choice(_VALUES[kind])
        if self._random.random() < 0.4:
            self._parameters.append(value)
            return "?"
        return f"'{value}'" if isinstance(value, str) else repr(value)

    def _column(self, kind: str, tables: list[str]) -> str:
        table = self._random.choice(tables)
        name = self._random.choice([name for name, of in self.columns.items() if of == kind])
        return f"{table}.{name}" if table else name

    def _number(self, tables: list[str]) -> str:
        """Not too large for either of the two."""
        column, other = (self._column("int", tables) for _ in range(2))
        operator = self._random.choice("+-*")
        case = f"CASE WHEN {column} > 1 THEN {other} ELSE 0 END"
        return self._random.choice([column, f"({column} {operator} {other})", f"({column} {operator} 2)", case, f"COALESCE({column}, 7)"])

    def _condition(self, tables: list[str], depth: int = 0) -> str:
        if depth < 2 and self._random.random() < 0.3:
            parts = [self._condition(tables, depth + 1) for _ in range(2)]
            return f"({self._random.choice([' AND ', ' OR ']).join(parts)})"
        kind = self._random.choice(["int", "int", "long", "string", "double"])
        column, no = self._column(kind, tables), self._random.choice(["", "NOT "])
        operator = self._random.choice(_OPERATORS)
        match self._random.choice(_CONDITIONS if depth > 1 else (*_CONDITIONS, "contains", "contains", "exists")):
            case "null":
                text = f"{column} IS {no}NULL"
            case "like":
                text = f"{self._column('string', tables)} {no}LIKE '{self._random.choice(['a%', '%b', '_', '%', 'a_%'])}'"
            case "between":
                text = f"{column} {no}BETWEEN {self._constant(kind)} AND {self._constant(kind)}"
            case "in":
                text = f"{column} {no}IN ({', '.join(self._constant(kind) for _ in range(self._random.choice([1, 2, 3, 21])))})"
            case "contains":
                text = f"{column} {no}IN (SELECT {self._column(kind, [''])} FROM u{self._where([''], 2)})"
            case "exists":
                text = f"{no}EXISTS (SELECT 1 FROM u{self._where([''], 2)})"
            case "distinct":
                text = f"{column} IS {no}DISTINCT FROM {self._column(kind, tables)}"
            case "number" | "text" as computed:
                text = f"{self._value_of(computed, tables)} {operator} {self._column('int' if computed == 'number' else 'string', tables)}"
            case _:
                text = f"{column} {operator} {self._constant(kind)}"
        return self._random.choice(_FORMS).format(text)

    def _text(self, tables: list[str]) -> str:
        """Made of texts of several lengths."""
        column = self._column("string", tables)
        form = self._random.choice(["CASE", f"COALESCE({column}, 'none')", f"NULLIF({column}, 'a')"])
        if form != "CASE":
            return form
        first, second = self._condition(tables, 2), self._condition(tables, 2)
        return f"CASE WHEN {first} THEN 'yes' WHEN {second} THEN 'a' ELSE {self._random.choice([column, 'NULL', repr('no')])} END"

    def _where(self, tables: list[str], depth: int = 0) -> str:
        return f" WHERE {self._condition(tables, depth)}" if self._random.random() < 0.6 else ""

    def _chosen(self, tables: list[str]) -> list[str]:
        return [self._value_of(kind, tables) for kind in self._random.choices([*_VALUES, *_COMPUTED], k=self._random.randint(1, 4))]

    def _value_of(self, kind: str, tables: list[str]) -> str:
        match kind:
            case "number":
                return self._number(tables)
            case "text":
                return self._text(tables)
            case "condition":
                return f"({self._condition(tables, 2)})"
            case _:
                return self._column(kind, tables)

    def _made(self, text: str) -> Statement:
        return Statement(text, text, self._parameters)

    def _ordered(self, head: str, names: list[str], hidden: list[str], unique: list[str]) -> Statement:
        """With an ORDER BY of some columns of the result, and of some that it lacks."""
        keys: list[str] = []
        positions: list[int] = []
        for _ in range(self._random.randint(0, 3)):
            position = self._random.randrange(len(names) + len(hidden))
            if position < len(names):
                keys.append(self._random.choice([names[position], str(position + 1)]))
                positions += [position] if len(positions) == len(keys) - 1 else []
            else:
                keys.append(hidden[position - len(names)])
        is_total = bool(unique) and self._random.random() < 0.6
        keys += unique if is_total else []
        if not keys:
            return self._made(head)
        directions = [(self._random.choice(["", " DESC"]), self._random.choice(["", "", " NULLS FIRST", " NULLS LAST"])) for _ in keys]
        mine = ", ".join(key + direction + nulls for key, (direction, nulls) in zip(keys, directions, strict=True))
        theirs = ", ".join(key + direction + (nulls or " NULLS LAST") for key, (direction, nulls) in zip(keys, directions, strict=True))
        end = self._limit() if is_total else ""
        # parameters are in the order of the text
        return Statement(f"{head} ORDER BY {mine}{end}", f"{head} ORDER BY {theirs}{end}", self._parameters, tuple(positions), is_total)

    def _limit(self) -> str:
        rows, skipped = self._random.randint(0, 6), self._random.randint(0, 4)
        form = self._random.choice(["", " LIMIT {0}", " LIMIT ?", " LIMIT ? OFFSET {1}"])
        if "?" in form:
            self._parameters.append(rows)
        return form.format(rows, skipped)

    def _select(self, tables: list[str]) -> tuple[str, list[str]]:
        chosen = self._chosen(tables)
        names = [f"c{number}" for number in range(len(chosen))]
        return "SELECT " + ", ".join(f"{text} AS {name}" for text, name in zip(chosen, names, strict=True)), names

    def _plain(self) -> Statement:
        names = self._random.sample(list(self.columns), self._random.randint(1, 5))
        match self._random.randrange(3):
            case 0:
                head, names = "SELECT *", list(self.columns)
            case 1:
                head = "SELECT " + ", ".join(names)
            case _:
                head, names = self._select([""])
        return self._ordered(f"{head} FROM t{self._where([''])}", names, ["a", "s", "d", "l"], ["k"])

    def _join(self) -> Statement:
        head, names = self._select(["x", "y"])
        on = self._random.choice(_JOINS + _OTHER_JOINS).format(x="x", y="y")
        kind = self._random.choice(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        return self._ordered(f"{head} FROM t x {kind} u y ON {on}{self._where(['x', 'y'])}", names, ["x.a", "y.s"], ["x.k", "y.k"])

    def _group(self) -> Statement:
        by = self._random.sample(["a", "b", "s"], self._random.randint(0, 2))
        functions = ["COUNT(*)", "COUNT(a)", "COUNT(s)", "MIN(b)", "MAX(s)", "SUM(d)", "AVG(d)", "MAX(l)", "SUM(a)", "SUM(k)"]
        functions = functions if self.columns["k"] == "int" else functions[:-1]
        functions += [
            "SUM(CASE WHEN l > 0 THEN b END)",
            "COUNT(CASE WHEN a IS NULL THEN 1 END)",
            "MAX(CASE WHEN a > 1 THEN NULL ELSE s END)",
            "COUNT(DISTINCT a)",
        ]
        drawn = self._random.sample(functions, self._random.randint(1, 3))
        names = by + [f"c{number}" for number in range(len(drawn))]
        columns = by + [f"{function} AS c{number}" for number, function in enumerate(drawn)]
        head = f"SELECT {', '.join(columns)} FROM t{self._where([''])}"
        if not by:
            return self._made(head)
        having = self._random.choice(
            [
                "",
                "",
                f" HAVING COUNT(b) {self._random.choice('<>=')} 2",
                " HAVING MAX(a) IN (1, 3, 5)",
                " HAVING NOT (SUM(d) > 0 AND MIN(b) < 2)",
            ]
        )
        return self._ordered(f"{head} GROUP BY {', '.join(by)}{having}", names, [], by)

    def _distinct(self) -> Statement:
        names = self._random.sample(["a", "b", "s", "d"], self._random.randint(1, 3))
        return self._ordered(f"SELECT DISTINCT {', '.join(names)} FROM t{self._where([''])}", names, [], names)

    def _limited(self) -> Statement:
        """From the first rows of another query."""
        order = self._random.choice(["a", "s DESC", "d, l"])
        inner = f"SELECT * FROM t{self._where([''])} ORDER BY {order}, k LIMIT {self._random.randint(1, 6)}"
        nulls_last = inner.replace(f"ORDER BY {order}", f"ORDER BY {order.replace(',', ' NULLS LAST,')} NULLS LAST")
        outer = self._ordered("SELECT s, a, k FROM (INNER) z", ["s", "a", "k"], ["b"], ["k"])
        return Statement(
            outer.text.replace("INNER", inner), outer.reference.replace("INNER", nulls_last), outer.parameters, outer.keys, outer.is_total
        )

    def _contains(self) -> Statement:
        head, names = self._select([""])
        no = self._random.choice(["", "", "NOT "])
        return self._ordered(f"{head} FROM t WHERE a {no}IN (SELECT b FROM u{self._where([''])})", names, ["a"], ["k"])

    def _exists(self) -> Statement:
        head, names = self._select(["x"])
        no, on = self._random.choice(["", "NOT "]), self._random.choice(_JOINS[:4]).format(x="x", y="y")
        return self._ordered(f"{head} FROM t x WHERE {no}EXISTS (SELECT 1 FROM u y WHERE {on})", names, ["x.a"], ["x.k"])

    def _union(self) -> Statement:
        first, second = f"SELECT a, s FROM t{self._where([''])}", f"SELECT {self._number([''])}, s FROM u{self._where([''])}"
        return self._ordered(f"{first} UNION {self._random.choice(['', 'ALL '])}{second}", ["a", "s"], [], [])

    def _one_value(self) -> Statement:
        head, names = self._select([""])
        value = f"(SELECT {self._random.choice(['MIN(b)', 'MAX(a)', 'COUNT(s)'])} FROM u{self._where([''])})"
        return self._ordered(f"{head} FROM t WHERE a {self._random.choice(['<', '=', '>='])} {value}", names, ["b"], ["k"])

    def _joined_groups(self) -> Statement:
        """The groups of another query, beside the rows of a table."""
        by, join = self._random.choice("ab"), self._random.choice(["JOIN", "LEFT JOIN"])
        groups = f"SELECT {by} AS g, COUNT(*) AS n, MAX(s) AS m FROM u{self._where([''])} GROUP BY {by}"
        where = self._where(["x"])
        head = f"SELECT x.k, x.a, z.n, z.m FROM t x {join} ({groups}) z ON x.a = z.g{where}"
        return self._ordered(head, ["x.k", "x.a", "z.n", "z.m"], ["x.s"], ["x.k"])

    def _groups_of_a_join(self) -> Statement:
        by = self._random.choice(["x.a", "y.s", "x.s", "y.b"])
        functions = ["COUNT(*)", "COUNT(y.a)", "MAX(y.s)", "SUM(x.b)", "COUNT(DISTINCT y.a)", "MIN(x.d)"]
        drawn = self._random.sample(functions, self._random.randint(1, 3))
        on, join = self._random.choice(_JOINS[:4]).format(x="x", y="y"), self._random.choice(["JOIN", "LEFT JOIN"])
        names = ["g", *(f"c{number}" for number in range(len(drawn)))]
        chosen = ", ".join(f"{text} AS {name}" for text, name in zip([by, *drawn], names, strict=True))
        return self._ordered(f"SELECT {chosen} FROM t x {join} u y ON {on}{self._where(['x', 'y'])} GROUP BY {by}", names, [], ["g"])

    def _three(self) -> Statement:
        """Tables."""
        head, names = self._select(["x", "y", "z"])
        first, second = (self._random.choice(_JOINS[:4]) for _ in range(2))
        joins = [self._random.choice(["JOIN", "LEFT JOIN"]) for _ in range(2)]
        tables = f"t x {joins[0]} u y ON {first.format(x='x', y='y')} {joins[1]} t z ON {second.format(x='y', y='z')}"
        return self._ordered(f"{head} FROM {tables}{self._where(['x', 'y', 'z'])}", names, ["z.a"], ["x.k", "y.k", "z.k"])

    def _own_value(self) -> Statement:
        """Of each row: what another query has for it."""
        head, names = self._select(["x"])
        value = f"(SELECT {self._random.choice(['MIN(y.b)', 'MAX(y.a)', 'COUNT(y.s)'])} FROM u y WHERE y.a = x.a)"
        return self._ordered(f"{head} FROM t x WHERE x.b {self._random.choice(['<', '=', '>='])} {value}", names, ["x.s"], ["x.k"])
