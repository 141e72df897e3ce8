# ruff: noqa: N818 - the names say what happened; "OutcomeUnknownError" would call a success an error
"""Errors of SQL on a HerdDB node, one type per different reaction of the caller.

`ConnectionLost` and `NotLeader` may be repeated on the current leader: nothing was applied. `OutcomeUnknown` must not be repeated blindly:
the write may be durable. `DuplicateKey` after an `OutcomeUnknown` shows that it is, where no unique index has such a row.
"""

from __future__ import annotations


class SqlError(Exception):
    """Base of all errors of this client."""


class ConnectionLost(SqlError, ConnectionError):
    """The connection failed or broke, and the statement was certainly not applied."""


class NoAnswer(ConnectionLost):
    """A read, or a change that only a COMMIT makes durable, got no answer in time. The connection is closed; a retry may be as slow."""


class OutcomeUnknown(SqlError):
    """The answer to a write was lost, or the server failed while logging it: it is not known whether it was applied."""


class AuthenticationFailed(SqlError):
    """The server refused the user name or the password."""


class ServerError(SqlError):
    """The server answered with an error; the statement was not applied. Of an INSERT of several rows, or a change with a query in WHERE,
    the rows before the refused one were.

    `text` is the whole answer (often a Java stack trace); the exception's message is its first line.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text.partition("\n")[0][:500] or "the server sent an error without a text")
        self.text = text


class NotLeader(ServerError):
    """The node does not lead the tablespace: look the leader up again."""


class TransactionEnded(ServerError):
    """The leader has no such open transaction: nothing was applied, not even by an ALTER TABLE or a COMMIT."""


class DuplicateKey(ServerError):
    """A row with this primary key (or unique index key) exists."""


class LeaderNotFound(SqlError):
    """No node that leads the tablespace could be reached before the deadline; the cause is the last attempt's error."""
