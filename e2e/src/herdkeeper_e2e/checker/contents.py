"""The final content of the tables, as read from one leader. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Contents:
    """A complete scan of both tables after all faults. `rows` are (id, name of the writing operation), as often as the scan returned them;
    `registers` maps registers to values.
    """

    leader: str
    rows: tuple[tuple[int, str], ...]
    registers: Mapping[int, int]

    def to_lines(self) -> Iterable[str]:
        """Lines of JSON: the leader, each row, each register."""
        yield json.dumps({"leader": self.leader})
        yield from (json.dumps({"row": row, "operation": operation}) for row, operation in self.rows)
        yield from (json.dumps({"register": register, "value": value}) for register, value in self.registers.items())


def parse_contents(lines: Iterable[str]) -> Contents:
    """Parses the contents. Raises ValueError or KeyError for invalid lines."""
    records = [json.loads(line) for line in lines]
    return Contents(
        leader=str(records[0]["leader"]),
        rows=tuple((int(record["row"]), str(record["operation"])) for record in records if "row" in record),
        registers={int(record["register"]): int(record["value"]) for record in records if "register" in record},
    )
