# ruff: noqa: N818 - the names are PEP 249's, and OutcomeUnknown is herdkeeper.sql's
"""PEP 249's exceptions, and the mapping of errors to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from herdkeeper.sql import errors as sql


class Warning(Exception):
    """Part of PEP 249; never raised here."""


class Error(Exception):
    """Base of everything that this module raises."""


class InterfaceError(Error):
    """Invalid use of a connection or cursor: closed, or by two threads at once."""


class MadeElsewhere(InterfaceError):
    """Another process made the connection, and this one is its child."""


class DatabaseError(Error):
    """An error of the server without a more special type. The statement was not applied, with one exception: of an INSERT of several rows,
    or a change with a query in WHERE, the rows before the refused one were.
    """


class DataError(DatabaseError):
    """A value can't be stored, or has no equivalent in Python."""


class OperationalError(DatabaseError):
    """The server can't be reached, does not lead, refuses the login or has ended the transaction, or a lock timed out.

    Nothing of the statement, or of the open transaction, was applied. Repeat the statement, or after `rollback` the whole transaction.
    """


class OutcomeUnknown(OperationalError):
    """The statement (in autocommit) or the transaction (at COMMIT) may have been committed: its answer was lost.

    Do not repeat it blindly, even if your framework repeats after any OperationalError. First check whether its rows exist, or write it so
    that a second execution is harmless: with a primary key of your choice, an INSERT's IntegrityError shows that it was committed. That
    does not hold if the row may violate something else, for which the first one may have been refused.
    """


class IntegrityError(DatabaseError):
    """A primary key, a unique index, a foreign key or NOT NULL is violated."""


class InternalError(DatabaseError):
    """Part of PEP 249; never raised here."""


class ProgrammingError(DatabaseError):
    """The statement can't be parsed or names something that does not exist. Or a parameter is missing or has an unsupported type, or there
    are no rows to fetch.
    """


class NotSupportedError(DatabaseError):
    """HerdDB does not support it."""


_BY_WORDS: tuple[tuple[type[DatabaseError], tuple[str, ...]], ...] = (
    # these with the value, whose words don't count
    (ProgrammingError, ("has a bad type",)),
    (DataError, ("NumberFormatException", "cannot be converted to", "cannot be cast to", "uncomparable objects")),
    (IntegrityError, ("ForeignKeyViolationException", "Cannot have null value", "foreign key", "does not allow NULLs")),
    (DataError, ("RecordTooBigException", "too large for an int", "overflow")),
    (OperationalError, ("LockAcquireTimeout", "lock timeout", "timed out trying to acquire", "no such transaction")),
    (NotSupportedError, ("unsupported", "not supported", "not suppoer", "UnsupportedOperationException", "not impl")),
    (
        ProgrammingError,
        (
            "ParseException",
            "SqlParseException",
            "ValidationException",
            "CalciteContextException",
            "ValidatorException",
            "DoesNotExistException",
            "AlreadyExistsException",
            "unable to parse",
            "no such",
            "JDBC parameter",
        ),
    ),
)
"""Texts of HerdDB 0.29's errors, mostly names of its exceptions. The first match counts."""


def from_server(text: str) -> type[DatabaseError]:
    """Returns the exception for the text of an error answer."""
    return next((kind for kind, words in _BY_WORDS if any(word in text for word in words)), DatabaseError)


def of(error: sql.SqlError) -> DatabaseError:
    """Returns an error of the client as PEP 249's exception, with the same message."""
    match error:
        case sql.OutcomeUnknown():
            return OutcomeUnknown(str(error))
        case sql.DuplicateKey():
            return IntegrityError(str(error))
        case sql.NotLeader() | sql.TransactionEnded() | sql.ConnectionLost() | sql.LeaderNotFound() | sql.AuthenticationFailed():
            return OperationalError(str(error))
        case sql.ServerError():
            return from_server(error.text)(str(error))
        case _:
            return DatabaseError(str(error))


@contextmanager
def as_pep_249() -> Iterator[None]:
    """Errors of the client, and of invalid values, become PEP 249's."""
    try:
        yield
    except sql.SqlError as error:
        raise of(error) from error
    except TypeError as error:
        raise ProgrammingError(str(error)) from error
    except (ValueError, OverflowError) as error:
        raise DataError(str(error)) from error
