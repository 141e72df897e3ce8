"""The order that foreign keys ask of tables. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from herdkeeper.formats.herddb_table import TableDefinition
from herdkeeper_jobs.checkpoint.errors import InvariantViolated


class ReferencesInCircleError(ValueError):
    """Tables refer to each other in a circle, or one to itself: no order of rows keeps all of their foreign keys."""


def parents_first(tables: Iterable[TableDefinition]) -> TopologicalSorter[str]:
    """The tables' uuids, to be had with those that a table refers to before it.

    Raises:
        ReferencesInCircleError: there is no such order; names the tables.
        InvariantViolated: one refers to a table that is not among them.
    """
    known = {table.uuid: table for table in tables}
    graph: dict[str, set[str]] = {}
    for uuid, table in known.items():
        graph[uuid] = {key.parent_uuid for key in table.foreign_keys}
        if missing := graph[uuid] - known.keys():
            raise InvariantViolated(f"table {table.name!r} refers to a table with uuid {min(missing)}, which the checkpoint does not have")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " -> ".join(known[uuid].name for uuid in error.args[1])
        raise ReferencesInCircleError(f"tables refer to each other in a circle by foreign keys ({circle})") from error
    return TopologicalSorter(graph)
