"""Sessions with ensembles: one that does not answer holds up nobody who asks another one, nor does a member that falls silent."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest
from kazoo.exceptions import BadVersionError, NoAuthError, NodeExistsError, NoNodeError, RolledBackError, RuntimeInconsistency
from kazoo.handlers.threading import KazooTimeoutError

from herdkeeper.clients import zookeeper as module
from herdkeeper.clients import zookeeper_member as member_session
from herdkeeper.clients.zookeeper import (
    CONNECT_SECONDS,
    FIRST_MEMBER_SECONDS,
    ChangedMeanwhileError,
    EnsembleError,
    EnsembleSessions,
    MembershipChange,
    Znodes,
)
from herdkeeper.clients.zookeeper_member import ANSWER_SECONDS, LONGEST_ANSWER_SECONDS, NOBODY, MemberSession
from herdkeeper.shared.names import ObjectKey

PATIENCE_SECONDS = 60.0
"""Of the test, for what takes no time."""


class Session:
    """Stands for MemberSession: `begun` are all of them, `silent` the members that don't connect."""

    begun: list[Session]
    silent: set[str]

    def __init__(self, member, connected, credentials=NOBODY, patience_seconds=ANSWER_SECONDS):
        self.member, self.patience_seconds, self._tell = member, patience_seconds, connected
        self.credentials = credentials
        self.client = self.refused = None
        self.usable = member not in self.silent
        self.ended = False
        self.begun.append(self)

    def connect(self):
        self.usable = True
        self._tell()

    def next_patience_seconds(self):
        return 7.0

    def end(self):
        self.ended = True
        return threading.Thread()


@pytest.fixture
def sessions(monkeypatch):
    Session.begun, Session.silent = [], set()
    monkeypatch.setattr(module, "MemberSession", Session)
    return Session


@pytest.fixture
def hurried(monkeypatch):
    """Nobody waits long for a connection."""
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.2)


def open_members(sessions):
    return [session.member for session in sessions.begun if not session.ended]


def test_the_first_contact_is_with_one_member_where_it_answers(sessions):
    EnsembleSessions().at("a:1,b:1,c:1")
    assert len(sessions.begun) == 1


def test_all_others_are_tried_at_once_where_the_first_member_does_not_answer(sessions, waited, monkeypatch):
    monkeypatch.setattr(module.random, "sample", lambda members, _: list(members))
    sessions.silent = {"a:1", "c:1"}
    EnsembleSessions().at("a:1,b:1,c:1")
    assert [session.member for session in sessions.begun] == ["a:1", "b:1", "c:1"]
    assert open_members(sessions) == ["b:1"]
    assert waited() == FIRST_MEMBER_SECONDS


def test_a_session_is_shared_as_long_as_it_is_of_use(sessions):
    found = EnsembleSessions()
    found.at("a:1")
    found.at("a:1")
    assert len(sessions.begun) == 1


def test_sessions_are_shared_by_those_alone_who_show_the_same_certificate(sessions):
    found = EnsembleSessions(lambda secret: secret)
    mine, theirs = ObjectKey("demo", "zk-zookeeper-operator"), ObjectKey("elsewhere", "zk-zookeeper-operator")
    for identity in (None, mine, theirs, mine):
        found.at("a:1", identity)
    shown = [session.credentials.identity for session in sessions.begun]
    assert [None if each is None else each() for each in shown] == [None, mine, theirs]


def test_a_session_that_failed_is_ended_and_all_members_are_tried_anew_with_its_patience(sessions):
    found = EnsembleSessions()
    found.at("a:1,b:1")
    sessions.begun[0].usable = False
    sessions.silent = {"a:1"}
    found.at("a:1,b:1")
    assert open_members(sessions) == ["b:1"]
    assert sessions.begun[0].ended
    assert sessions.begun[-1].patience_seconds == 7.0


@pytest.fixture
def waited(monkeypatch):
    """The seconds that were waited for connections, by a clock of the test: nothing happens meanwhile."""
    seconds = [1000.0]

    class Condition(threading.Condition):
        def wait_for(self, predicate, timeout=None):
            if not predicate():
                seconds[0] += max(0.0, timeout)
            return predicate()

    monkeypatch.setattr(module, "threading", SimpleNamespace(Condition=Condition, Lock=threading.Lock))
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    return lambda: seconds[0] - 1000.0


def test_a_silent_ensemble_is_waited_for_once_and_holds_up_nobody_who_asks_another_one(sessions, waited):
    sessions.silent = {"a:1"}
    found = EnsembleSessions()
    for _ in range(20):
        with pytest.raises(EnsembleError, match="ZooKeeper at a:1 did not answer"):
            found.at("a:1")
        assert waited() == CONNECT_SECONDS
    assert len(sessions.begun) == 1
    found.at("b:1")
    assert waited() == CONNECT_SECONDS
    assert open_members(sessions) == ["a:1", "b:1"]


def test_an_ensemble_that_answers_again_is_found_by_whoever_comes_next(sessions, hurried):
    sessions.silent = {"a:1"}
    found = EnsembleSessions()
    with pytest.raises(EnsembleError):
        found.at("a:1")
    sessions.begun[0].connect()
    found.at("a:1")
    assert len(sessions.begun) == 1


def test_who_waits_goes_on_with_the_moment_in_which_a_member_answers(sessions, monkeypatch):
    monkeypatch.setattr(module, "CONNECT_SECONDS", 100 * PATIENCE_SECONDS)
    sessions.silent = {"a:1", "b:1"}
    found = EnsembleSessions()
    waiting = threading.Thread(target=found.at, args=("a:1,b:1",), daemon=True)
    waiting.start()
    while len(sessions.begun) < 2:
        time.sleep(0.01)
    sessions.begun[1].connect()
    waiting.join(PATIENCE_SECONDS)
    assert not waiting.is_alive()
    assert open_members(sessions) == [sessions.begun[1].member]


def test_the_sessions_of_an_ensemble_that_nobody_asks_for_any_more_are_ended(sessions, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    found = EnsembleSessions()
    found.at("gone:1")
    found.at("a:1")
    for _ in range(3):
        now[0] += module.FORGOTTEN_SECONDS / 2
        found.at("a:1")
    assert open_members(sessions) == ["a:1"]


def test_a_path_behind_the_members_is_that_of_each_one():
    assert module.members_of("a:1,b:2/root/x") == ("a:1/root/x", "b:2/root/x")
    assert module.members_of("a:1") == ("a:1",)


class Client:
    """Stands for KazooClient, which is told that it is connected."""

    def __init__(self, **_):
        pass

    def add_listener(self, listener):
        self.listener = listener

    def start_async(self):
        self.listener(member_session.KazooState.CONNECTED)


class Request:
    """A request that is answered after some seconds by the clock of the test."""

    def __init__(self, clock, seconds):
        self.clock, self.seconds = clock, seconds

    def get(self, timeout):
        self.clock[0] += min(timeout, self.seconds)
        if self.seconds > timeout:
            raise KazooTimeoutError
        return "answer"


@pytest.fixture
def clock(monkeypatch):
    seconds = [1000.0]
    monkeypatch.setattr(member_session, "BoundedClient", Client)
    monkeypatch.setattr(member_session.time, "monotonic", lambda: seconds[0])
    return seconds


def test_a_member_that_falls_silent_is_given_up_after_two_seconds(clock):
    session = MemberSession("a:1", lambda: None)
    assert session.usable
    assert session.answer(Request(clock, 0.1)) == "answer"
    before = clock[0]
    with pytest.raises(KazooTimeoutError):
        session.answer(Request(clock, 1e9))
    assert clock[0] - before == ANSWER_SECONDS
    assert not session.usable


def test_members_that_are_only_slow_are_heard_in_the_end(clock):
    patience, tried = ANSWER_SECONDS, []
    while True:
        session = MemberSession("a:1", lambda: None, patience_seconds=patience)
        tried.append(patience)
        try:
            assert session.answer(Request(clock, 11.0)) == "answer"
            break
        except KazooTimeoutError:
            patience = session.next_patience_seconds()
    assert tried == [2.0, 4.0, 8.0, LONGEST_ANSWER_SECONDS]
    assert session.usable


def test_a_quick_answer_ends_the_patience(clock):
    session = MemberSession("a:1", lambda: None, patience_seconds=8.0)
    session.answer(Request(clock, 0.1))
    before = clock[0]
    with pytest.raises(KazooTimeoutError):
        session.answer(Request(clock, 1e9))
    assert clock[0] - before == ANSWER_SECONDS
    assert session.next_patience_seconds() == 2 * ANSWER_SECONDS


class Tree(Client):
    """A client of znodes; `answer_seconds` is how long each request takes."""

    def __init__(self, clock, paths, answer_seconds):
        self.clock, self.paths, self.answer_seconds, self.deleted = clock, set(paths), answer_seconds, []

    def get_children_async(self, path):
        below = [each for each in sorted(self.paths) if each.rpartition("/")[0] == path]
        return self._request(path, lambda: [each.rpartition("/")[2] for each in below])

    def delete_async(self, path):
        def delete():
            self.paths.discard(path)
            self.deleted.append(path)

        return self._request(path, delete)

    def _request(self, path, answered):
        tree = self

        class Answer(Request):
            def get(self, timeout):
                super().get(timeout)
                if path not in tree.paths:
                    raise NoNodeError
                return answered()

        return Answer(self.clock, self.answer_seconds)


def through(client):
    session = MemberSession("a:1", lambda: None)
    session.client = client
    return Znodes("a:1", session), session


def test_of_a_tree_each_znode_goes_after_those_below_it_and_one_that_is_gone_is_no_error(clock):
    tree = Tree(clock, ["/a", "/a/x", "/a/x/1", "/a/y", "/ab"], 0.1)
    znodes, _ = through(tree)
    znodes.delete_tree("/a")
    znodes.delete_tree("/a")
    assert tree.deleted == ["/a/x/1", "/a/x", "/a/y", "/a"]
    assert tree.paths == {"/ab"}


def test_who_deletes_a_tree_behind_a_silent_member_is_told_as_soon_as_who_reads(clock):
    znodes, session = through(Tree(clock, ["/a", "/a/x"], 1e9))
    before = clock[0]
    with pytest.raises(EnsembleError, match="ZooKeeper at a:1, /a: KazooTimeoutError"):
        znodes.delete_tree("/a")
    assert clock[0] - before == ANSWER_SECONDS
    assert not session.usable


class Journal:
    """A client that writes down what it is asked."""

    client_id = 1, b""

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        def ask(path, **_):
            self.asked.append((name, path))
            return type("Answer", (), {"get": lambda *_, **__: [] if name == "get_children_async" else (b"", STAT)})()

        return ask


STAT = type("Stat", (), {"version": 1, "mtime": 0, "mzxid": 1, "pzxid": 1})()


@pytest.mark.parametrize(
    ("read", "asked"),
    [
        (lambda znodes: znodes.read("/a"), "get_async"),
        (lambda znodes: znodes.read_changed("/a"), "get_async"),
        (lambda znodes: znodes.children("/a"), "get_children_async"),
        (lambda znodes: znodes.read_many(["/a", "/b"]), "get_async"),
        (lambda znodes: znodes.changed_many(["/a", "/b"]), "get_async"),
    ],
    ids=["read", "read_changed", "children", "read_many", "changed_many"],
)
def test_a_member_catches_up_with_the_ensemble_before_anything_is_read_from_it(clock, read, asked):
    journal = Journal()
    znodes, _ = through(journal)
    read(znodes)
    assert [name for name, _ in journal.asked][:2] == ["sync_async", asked]
    assert [name for name, _ in journal.asked].count("sync_async") == 1


def test_reads_of_one_look_catch_up_once_and_those_of_another_one_anew(clock):
    journal = Journal()
    for _ in range(2):
        znodes, _session = through(journal)
        znodes.read("/a")
        znodes.children("/b")
    assert [name for name, _ in journal.asked] == ["sync_async", "get_async", "get_children_async"] * 2


def test_a_look_that_goes_on_in_another_session_catches_up_again(clock):
    journal = Journal()
    znodes, _session = through(journal)
    znodes.read("/a")
    journal.client_id = 2, b""
    znodes.read("/b")
    assert [name for name, _ in journal.asked] == ["sync_async", "get_async"] * 2


def refusing(error: Exception) -> Znodes:
    """The znodes of a member that refuses each write."""

    def get(timeout: float | None = None) -> None:
        raise error

    client = SimpleNamespace(set_async=lambda *_, **__: SimpleNamespace(get=get), reconfig_async=lambda *_: SimpleNamespace(get=get))
    return Znodes("a:1", SimpleNamespace(client=client, usable=True, answer=lambda request: request.get()))


def test_a_write_over_another_version_is_refused_as_changed_meanwhile():
    with pytest.raises(ChangedMeanwhileError, match=r"^/a changed since it was read$"):
        refusing(BadVersionError()).compare_and_set("/a", b"", 1)
    with pytest.raises(ChangedMeanwhileError, match=r"^the membership changed since it was read$"):
        refusing(BadVersionError()).reconfigure(MembershipChange((), (3,), 1))


class Transaction:
    """A transaction of kazoo, which tells what it was asked for. ZooKeeper answers with these results."""

    def __init__(self, *results: object) -> None:
        self.asked: list[tuple[object, ...]] = []
        self._results = list(results)

    def __getattr__(self, name):
        return lambda *what: self.asked.append((name, *what))

    def commit_async(self):
        return SimpleNamespace(get=lambda: self._results)


def committing(transaction: Transaction) -> Znodes:
    client = SimpleNamespace(transaction=lambda: transaction)
    return Znodes("a:1", SimpleNamespace(client=client, usable=True, answer=lambda request: request.get()))


def test_what_a_deletion_rests_on_is_checked_in_its_transaction():
    transaction = Transaction(True, "/c", True, True)
    committing(transaction).delete_if("/a", 1, {"/b": 2}, ("/c",))
    assert transaction.asked == [("check", "/b", 2), ("create", "/c"), ("delete", "/c"), ("delete", "/a", 1)]


@pytest.mark.parametrize("error", [BadVersionError(), NodeExistsError()])
def test_a_deletion_that_rests_on_what_has_changed_is_refused_as_changed_meanwhile(error):
    with pytest.raises(ChangedMeanwhileError, match=r"^/a changed since it was read$"):
        committing(Transaction(RolledBackError(), error)).delete_if("/a", 1)


def test_a_deletion_that_rests_on_what_is_gone_tells_so():
    with pytest.raises(EnsembleError, match="/a: NoNodeError"):
        committing(Transaction(RolledBackError(), NoNodeError(), RuntimeInconsistency())).delete_if("/a", 1)


def test_a_reconfig_with_another_password_names_the_way_out():
    with pytest.raises(EnsembleError, match=r"refused the password: .* restart its pod"):
        refusing(NoAuthError()).reconfigure(MembershipChange((), (3,), 1))
