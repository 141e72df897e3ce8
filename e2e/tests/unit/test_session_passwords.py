"""Who knows two passwords is let in with the one that the server takes."""

from collections.abc import Callable
from typing import cast

import pytest

from herdkeeper.sql.connection import Connection, Credentials
from herdkeeper.sql.errors import AuthenticationFailed
from herdkeeper.sql.leader import Patience
from herdkeeper.sql.zookeeper_leader import LeaderFinder
from herdkeeper_e2e import session
from herdkeeper_e2e.session import Session

FIRST, NEXT = Credentials("admin", "first"), Credentials("admin", "next")
FINDER = cast(LeaderFinder, None)
LET_IN = cast(Connection, object())


def server_that_takes(taken: Credentials, tried: list[str]) -> Callable[[object, str, Credentials, Patience], Connection]:
    def connect(_finder: object, _tablespace: str, credentials: Credentials, _patience: Patience) -> Connection:
        tried.append(credentials.password)
        if credentials != taken:
            raise AuthenticationFailed("refused")
        return LET_IN

    return connect


@pytest.mark.parametrize(("taken", "expected"), [(FIRST, ["first"]), (NEXT, ["first", "next"])])
def test_the_next_password_is_tried_only_where_the_first_is_refused(
    monkeypatch: pytest.MonkeyPatch, taken: Credentials, expected: list[str]
) -> None:
    tried: list[str] = []
    monkeypatch.setattr(session, "leader_connection", server_that_takes(taken, tried))

    assert Session(FINDER, "flights", FIRST, NEXT).connect(Patience()) is LET_IN
    assert tried == expected


def test_who_knows_one_password_is_told_that_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "leader_connection", server_that_takes(NEXT, []))

    with pytest.raises(AuthenticationFailed, match="refused"):
        Session(FINDER, "flights", FIRST).connect(Patience())
