"""HerdDB's users file.

Lines `user,password,admin` without escapes: no value has a comma, a line end or spaces around it. The role is always `admin`, the only one
of HerdDB. Lines that begin with `#` are comments for HerdDB; two of them hold data of herdkeeper. `# revision R` names the whole file (the
node program reports it, images/herddb); `# secret NAME` above a user is its Secret. Source: herddb.file.FileBasedUserManager of HerdDB
0.29.0.
"""

from __future__ import annotations

import hashlib
import hmac
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

ROLE = "admin"
REVISION, SECRET = "# revision ", "# secret "
REVISION_LENGTH = 16
COMMENT = "#"
FIT_FOR_ADMINISTRATOR = "use one line without commas and spaces around it; a username does not begin with #"
FIT = "use one line without commas, control characters and spaces around it; a username does not begin with #"


@dataclass(frozen=True)
class SqlUser:
    """A user who may log in. `secret` is its Secret, None for the administrator."""

    username: str
    password: str = field(repr=False)
    secret: str | None = None


def invalid_part(username: str, password: str) -> str | None:
    """Returns what is invalid for a user besides the administrator: `username`, `password` or None. A client must be able to send it."""
    if username.startswith(COMMENT) or not _is_fit(username):
        return "username"
    return None if _is_fit(password) else "password"


def invalid_part_of_administrator(username: str, password: str) -> str | None:
    """Returns what the file can't hold: `username`, `password` or None. Laxer: administrators existed before other users."""
    if username.startswith(COMMENT) or not _can_be_held(username):
        return "username"
    return None if _can_be_held(password) else "password"


def _can_be_held(value: str) -> bool:
    return value != "" and value == value.strip() and not set(value) & set(",\r\n")


def _is_fit(value: str) -> bool:
    """The replacement character stands for bytes that are no UTF-8. A control character would end the line, or a login's message."""
    return value != "" and value == value.strip() and not any(_breaks(character) for character in value)


def _breaks(character: str) -> bool:
    return character in (",", "\ufffd") or unicodedata.category(character) == "Cc"


def encode_users(users: Iterable[SqlUser], key: str) -> str:
    """Returns the file. Without the `key` its public revision tells no password. Raises ValueError for what the file can't hold."""
    content = "".join(map(_lines, users))
    revision = hmac.new(key.encode(), content.encode(), hashlib.sha256).hexdigest()[:REVISION_LENGTH]
    return f"{REVISION}{revision}\n{content}"


def _lines(user: SqlUser) -> str:
    if (part := _invalid_part(user)) is not None:
        raise ValueError(f"{part} can't stand in HerdDB's users file: {FIT_FOR_ADMINISTRATOR if user.secret is None else FIT}")
    return f"{SECRET}{user.secret}\n{_line(user)}" if user.secret is not None else _line(user)


def _invalid_part(user: SqlUser) -> str | None:
    return (
        invalid_part_of_administrator(user.username, user.password) if user.secret is None else invalid_part(user.username, user.password)
    )


def _line(user: SqlUser) -> str:
    return f"{user.username},{user.password},{ROLE}\n"


def decode_users(text: str) -> tuple[SqlUser, ...]:
    """Returns the users of a file. Other lines are ignored, as by HerdDB."""
    return tuple(_users(text))


def _users(text: str) -> Iterator[SqlUser]:
    secret: str | None = None
    for line in text.split("\n"):
        if line.startswith(SECRET):
            secret = line.removeprefix(SECRET).strip()
            continue
        parts = line.split(",")
        if len(parts) == 3 and parts[2] == ROLE and _invalid_part(user := SqlUser(parts[0], parts[1], secret)) is None:
            yield user
        secret = None


def revision_of(text: str) -> str | None:
    found = (line.removeprefix(REVISION).strip() for line in text.split("\n") if line.startswith(REVISION))
    return next(found, None)
