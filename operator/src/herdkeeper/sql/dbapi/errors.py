# ruff: noqa: N818 - the names are PEP 249's, and OutcomeUnknown is herdkeeper.sql's
"""The exceptions of PEP 249, and which of them an error of the client or the server is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from herdkeeper.sql import errors as sql


class Warning(Exception):
    """Part of PEP 249; never raised here."""


class Error(Exception):
    """Base of all that this module raises."""


class InterfaceError(Error):
    """The connection or the cursor is used in a way that can't be: closed, or by two threads at once."""


class DatabaseError(Error):
    """The server answered with an error that is none of the more special ones. The statement was not applied."""


class DataError(DatabaseError):
    """A value can't be stored, or can't be expressed in Python."""


class OperationalError(DatabaseError):
    """The server can't be reached, does not lead, refuses the login, or a lock was not had in time. Nothing of the statement, or of the
    transaction that was open, was applied: it may be repeated, a transaction as a whole and after `rollback`."""


class OutcomeUnknown(OperationalError):
    """The statement (in autocommit) or the transaction (at COMMIT) may or may not have been committed: its answer was lost.

    Do not repeat it blindly, also where your framework repeats after any OperationalError. Look first whether its rows are there, or
    write it so that a second time does no harm: after an INSERT under a primary key that you chose, IntegrityError says that it was
    committed.
    """


class IntegrityError(DatabaseError):
    """A primary key, a unique index, a foreign key or NOT NULL refuses it."""


class InternalError(DatabaseError):
    """Part of PEP 249; never raised here."""


class ProgrammingError(DatabaseError):
    """The statement can't be parsed or names what is not there, a parameter is missing or of a type that HerdDB does not have, or rows
    are fetched where there are none."""


class NotSupportedError(DatabaseError):
    """HerdDB does not have it."""


_BY_WORDS: tuple[tuple[type[DatabaseError], tuple[str, ...]], ...] = (
    (IntegrityError, ("ForeignKeyViolationException", "Cannot have null value", "foreign key", "does not allow NULLs")),
    (DataError, ("RecordTooBigException",)),
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
            "bad type",
            "JDBC parameter",
        ),
    ),
)
"""What HerdDB 0.29 writes into the text of an error: names of its exceptions mostly. The first that fits counts."""


def from_server(text: str) -> type[DatabaseError]:
    """The exception that the text of an error answer stands for."""
    return next((kind for kind, words in _BY_WORDS if any(word in text for word in words)), DatabaseError)


def of(error: sql.SqlError) -> DatabaseError:
    """An error of the client as PEP 249's exception, with the same message."""
    match error:
        case sql.OutcomeUnknown():
            return OutcomeUnknown(str(error))
        case sql.DuplicateKey():
            return IntegrityError(str(error))
        case sql.NotLeader() | sql.ConnectionLost() | sql.LeaderNotFound() | sql.AuthenticationFailed():
            return OperationalError(str(error))
        case sql.ServerError():
            return from_server(error.text)(str(error))
        case _:
            return DatabaseError(str(error))


@contextmanager
def as_pep_249() -> Iterator[None]:
    """Errors of the client, and of values that can't be sent or read, become PEP 249's."""
    try:
        yield
    except sql.SqlError as error:
        raise of(error) from error
    except TypeError as error:
        raise ProgrammingError(str(error)) from error
    except (ValueError, OverflowError) as error:
        raise DataError(str(error)) from error
