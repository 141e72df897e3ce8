"""A history as lines of JSON: each operation has a line when it begins (`invoke`) and one when it ends (`ok`, `fail`, `unknown`). Pure.

Several clients write one file each or share one; Python and Java write the same lines:

    {"at": 12.5, "process": "python-0", "number": 3, "phase": "invoke", "kind": "add", "rows": [3000, 3001]}
    {"at": 12.7, "process": "python-0", "number": 3, "phase": "ok", "kind": "add", "leader": "db-herddb-0"}

`kind` is add (`rows`), write (`register`, `value`), read (`values` at its end: an object from register to value) or fault (`name`). The end
of a read or write may have the leader's `ledger`.
An operation without an end is unknown: its client may have died.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from herdkeeper_e2e.checker.operation import Add, Content, Fault, Operation, Outcome, Read, Write

INVOKE = "invoke"


class HistoryError(ValueError):
    """Lines are not a history. The message names the line, or the contradictory operation."""


def begin_line(process: str, number: int, at: float, content: Content) -> str:
    """Returns the line of an operation's begin, without the line end."""
    return json.dumps({**_head(process, number, at, INVOKE), **_content_fields(content)})


def end_line(operation: Operation) -> str:
    """Returns the line of an operation's end. Raises ValueError if it has none."""
    if operation.ended is None:
        raise ValueError(f"{operation.name} has not ended")
    record = _head(operation.process, operation.number, operation.ended, operation.outcome.value) | {"kind": _kind(operation.content)}
    if isinstance(operation.content, Read):
        record |= _content_fields(operation.content)
    known = {} if operation.ledger is None else {"ledger": operation.ledger}
    return json.dumps(record | known | {"leader": operation.leader, "error": operation.error})


def parse_history(lines: Iterable[str]) -> list[Operation]:
    """Returns the operations of one or more files, in the order of their begins.

    Raises HistoryError for an invalid line, an operation that begins twice, or ends before or without a begin, or a process whose times go
    back.
    """
    begun: dict[tuple[str, int], Operation] = {}
    latest: dict[str, float] = {}
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            key, at, phase = (str(record["process"]), int(record["number"])), float(record["at"]), str(record["phase"])
            if at < latest.get(key[0], at):
                raise HistoryError(f"line {number}: the times of {key[0]} go back from {latest[key[0]]} to {at}")
            latest[key[0]] = at
            begun[key] = _begun(key, at, record, begun) if phase == INVOKE else _ended(key, at, record, begun)
        except HistoryError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise HistoryError(f"line {number} is none of a history: {line[:200]!r} ({type(error).__name__}: {error})") from error
    return sorted(begun.values(), key=lambda operation: operation.begun)


def _begun(key: tuple[str, int], at: float, record: Mapping[str, Any], known: Mapping[tuple[str, int], Operation]) -> Operation:
    if key in known:
        raise HistoryError(f"{known[key].name} begins twice")
    return Operation(*key, _parse_content(record), at, None, Outcome.UNKNOWN)


def _ended(key: tuple[str, int], at: float, record: Mapping[str, Any], known: Mapping[tuple[str, int], Operation]) -> Operation:
    found = known.get(key)
    if found is None or found.ended is not None:
        raise HistoryError(f"{key[0]}/{key[1]} ends {'twice' if found else 'without having begun'}")
    content = _parse_content(record) if isinstance(found.content, Read) else found.content
    leader, error, ledger = str(record.get("leader", "")), str(record.get("error", "")), record.get("ledger")
    return Operation(*key, content, found.begun, at, Outcome(record["phase"]), leader, error, None if ledger is None else int(ledger))


def _head(process: str, number: int, at: float, phase: str) -> dict[str, object]:
    return {"at": round(at, 6), "process": process, "number": number, "phase": phase}


def _kind(content: Content) -> str:
    return type(content).__name__.lower()


def _content_fields(content: Content) -> dict[str, object]:
    kind: dict[str, object] = {"kind": _kind(content)}
    match content:
        case Add(rows):
            return kind | {"rows": list(rows)}
        case Write(register, value):
            return kind | {"register": register, "value": value}
        case Read(values):
            return kind | {"values": {str(register): value for register, value in values.items()}}
        case Fault(name):
            return kind | {"name": name}
        case _:
            assert_never(content)


def _parse_content(record: Mapping[str, Any]) -> Content:
    match record["kind"]:
        case "add":
            return Add(tuple(int(row) for row in record["rows"]))
        case "write":
            return Write(int(record["register"]), int(record["value"]))
        case "read":
            return Read({int(register): int(value) for register, value in record.get("values", {}).items()})
        case "fault":
            return Fault(str(record["name"]))
        case other:
            raise ValueError(f"kind is {other!r}: one of add, write, read, fault")
