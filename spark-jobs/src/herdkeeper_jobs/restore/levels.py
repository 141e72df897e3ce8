"""Orders tables by their foreign keys. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from herdkeeper_jobs.restore.source import SourceTable


@dataclass(frozen=True, slots=True)
class Level:
    """Tables that can be filled once the earlier levels are full.

    `independent`: tables that can be filled independently, their rows in any order. `circles`: tables that refer to each other, or one that
    refers to itself; their rows need an order (`circle`).
    """

    independent: tuple[SourceTable, ...]
    circles: tuple[tuple[SourceTable, ...], ...]

    @property
    def tables(self) -> tuple[SourceTable, ...]:
        return self.independent + tuple(table for circle in self.circles for table in circle)


def levels(tables: Sequence[SourceTable]) -> tuple[Level, ...]:
    """Orders tables so that foreign keys hold while rows are loaded: parents are in an earlier level than their children."""
    group_of = {table.definition.uuid: table.definition.uuid for table in tables}
    while True:
        sorter = TopologicalSorter(_parents(tables, group_of))
        try:
            sorter.prepare()
        except CycleError as error:
            circle = set(error.args[1])
            group_of = {uuid: min(circle) if group in circle else group for uuid, group in group_of.items()}
        else:
            break
    found = []
    while sorter.is_active():
        ready = sorter.get_ready()
        found.append(_level([_members(tables, group_of, group) for group in ready]))
        sorter.done(*ready)
    return tuple(found)


def _parents(tables: Sequence[SourceTable], group_of: dict[str, str]) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {group: set() for group in group_of.values()}
    for table in tables:
        group = group_of[table.definition.uuid]
        graph[group] |= {group_of[key.parent_uuid] for key in table.definition.foreign_keys} - {group}
    return graph


def _members(tables: Sequence[SourceTable], group_of: dict[str, str], group: str) -> tuple[SourceTable, ...]:
    return tuple(sorted((table for table in tables if group_of[table.definition.uuid] == group), key=lambda table: table.name))


def _level(groups: Sequence[tuple[SourceTable, ...]]) -> Level:
    in_order = sorted(groups, key=lambda group: group[0].name)
    return Level(
        tuple(group[0] for group in in_order if not _is_circle(group)),
        tuple(group for group in in_order if _is_circle(group)),
    )


def _is_circle(group: tuple[SourceTable, ...]) -> bool:
    own = {table.definition.uuid for table in group}
    return any(key.parent_uuid in own for table in group for key in table.definition.foreign_keys)
