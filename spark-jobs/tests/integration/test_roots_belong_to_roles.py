"""A real ZooKeeper member with the operator's access lists: what bookies, SQL nodes, readers and another stack may do with each kind of
znode. The clients create znodes as the servers do, open to everybody."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from guarded_stack import (
    DATABASE,
    LOG,
    OPERATOR,
    OTHER_DATABASE,
    OTHER_LOG,
    ROLES,
    TABLE,
    Stack,
    everybody,
    guarded_ensemble,
    open_znodes,
    places,
)
from kazoo.exceptions import AuthFailedError, BadVersionError, NoAuthError, NodeExistsError, NoNodeError
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id, Permissions

from herdkeeper.certificates.access import SCHEME
from herdkeeper.clients.zookeeper import ChangedMeanwhileError, EnsembleError
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, encode_tablespace, tablespace_path
from herdkeeper.engine.execute_metadata import delete_znodes, set_archive_expiry, set_log_pin
from herdkeeper.planning.actions import SetArchiveExpiry, SetLogPin
from herdkeeper.protocol.log_archive import ExpiryOrder, archive_progress_path, expiry_order_path
from herdkeeper.protocol.log_pin import SECOND_DISK, log_pin_path, replica_pin, stream_pin
from herdkeeper.shared.names import IDENTITY_VARIABLE
from herdkeeper_e2e.mutual_tls import ROLE
from herdkeeper_e2e.server_processes import NODE_ID
from herdkeeper_jobs.audit.orphans import read_tablespace_logs
from herdkeeper_jobs.bookkeeper.metadata import MetadataForbiddenError, open_catalog
from herdkeeper_jobs.bookkeeper.znode import put_znode

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
UUID = "0123456789abcdef0123456789abcdef"
LEDGERS, HERD = LOG.names.ledgers_root, DATABASE.names.herd_root
LEDGER = f"{LEDGERS}/00/0000/L0001"
PLACES = places(UUID, LEDGER)


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """With a znode of each kind."""
    with guarded_ensemble() as made:
        with made.session(ROLES["bookies"]) as bookies:
            for path in ("available/bookie-0", "cookies/bookie-0", "underreplication/locks"):
                bookies.create(f"{LEDGERS}/{path}")
        with made.session(ROLES["SQL nodes"]) as nodes:
            nodes.create(LEDGER, makepath=True)
            nodes.create(
                tablespace_path(HERD, "herd"), encode_tablespace(TablespaceRecord(UUID, "herd", NODE_ID, (NODE_ID,), 1, 0)), makepath=True
            )
            for path in (f"ledgers/{UUID}", f"nodes/{NODE_ID}", f"replicas/{UUID}/{NODE_ID}"):
                nodes.create(f"{HERD}/{path}", makepath=True)
            nodes.create(log_pin_path(HERD, UUID, replica_pin(NODE_ID)), makepath=True)
        with made.session(ROLES["readers"]) as readers:
            put_znode(readers, log_pin_path(HERD, UUID, stream_pin("orders")), b"")
            put_znode(readers, archive_progress_path(HERD, UUID), b"")
        made.act(
            "the operator pins the log",
            lambda: set_log_pin(made.operator, SetLogPin("", log_pin_path(HERD, UUID, SECOND_DISK), (0, 0), None, "")),
        )
        order = SetArchiveExpiry("", expiry_order_path(HERD, UUID), ExpiryOrder("a-claim", (0, 0)), None, "")
        made.act("the operator orders to expire", lambda: set_archive_expiry(made.operator, order))
        yield made


def test_the_member_tells_who_is_refused_what(stack: Stack) -> None:
    def is_told() -> bool:
        with pytest.raises(NoAuthError):
            stranger.get(LEDGER)
        told = (stack.servers.folder / "zookeeper.log").read_text(errors="replace")
        return f"refused OU=0:other,CN=readers.other (access): to read {LEDGER}; " in told

    with stack.session(ROLES["other readers"]) as stranger:
        stack.wait("a line, once those of a minute are not used up", is_told)


def test_each_role_changes_what_is_its_own_and_another_stack_nothing(stack: Stack) -> None:
    assert everybody(stack, PLACES) == TABLE
    assert open_znodes(stack) == []


def test_a_server_that_makes_its_root_at_each_start_finds_it_made(stack: Stack) -> None:
    with stack.session(ROLES["SQL nodes"]) as node:
        for path in (HERD, f"{HERD}/tableSpaces", f"{HERD}/logPins"):
            with pytest.raises(NodeExistsError):
                node.create(path)


def test_a_bookie_may_ask_for_a_ledger_by_the_removal_of_a_version_that_it_never_has(stack: Stack) -> None:
    """`NeededLedgers` of its image does, before it deletes entries."""
    never = 2**31 - 1
    with stack.session(ROLES["bookies"]) as bookie:
        with pytest.raises(BadVersionError):
            bookie.delete(LEDGER, never)
        for gone in (f"{LEDGERS}/00/0000/L0002", f"{LEDGERS}/00/0001/L0001"):
            with pytest.raises(NoNodeError):
                bookie.delete(gone, never)
        assert bookie.exists(LEDGER)


def test_the_operator_deletes_a_cookie_only_while_nothing_has_changed_that_it_rests_on(stack: Stack) -> None:
    cookie, node = f"{LEDGERS}/cookies/bookie-9", f"{HERD}/nodes/{NODE_ID}"
    registrations = tuple(f"{LEDGERS}/available/{path}" for path in ("bookie-9", "readonly/bookie-9"))
    with stack.session(ROLES["bookies"]) as bookie:
        bookie.create(cookie)
        others = bookie.get_children(f"{LEDGERS}/available")

        def is_refused(version: int, unchanged: dict[str, int], absent: tuple[str, ...]) -> bool:
            try:
                stack.operator.delete_if(cookie, version, unchanged, absent)
            except ChangedMeanwhileError:
                return True
            raise AssertionError(f"{cookie} is deleted")

        attempts: tuple[tuple[int, dict[str, int], tuple[str, ...]], ...] = (
            (1, {}, ()),
            (0, {node: 7}, ()),
            (0, {}, (*registrations, f"{LEDGERS}/available/bookie-0")),
        )
        for attempt in attempts:
            stack.wait(f"{attempt} is refused", partial(is_refused, *attempt))
        assert bookie.exists(cookie)
        stack.act("the cookie is deleted", lambda: stack.operator.delete_if(cookie, 0, {node: 0}, registrations))
        assert bookie.exists(cookie) is None
        assert bookie.get_children(f"{LEDGERS}/available") == others
        assert bookie.get_children(f"{LEDGERS}/available/readonly") == []


@pytest.mark.parametrize("role", ["bookies", "readers"])
def test_audits_find_the_databases_of_their_own_ledgers_and_leave_out_those_of_others(
    stack: Stack, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(IDENTITY_VARIABLE, str(stack.secrets[ROLES[role]].folder))
    with open_catalog(stack.servers.zookeeper, LEDGERS) as catalog:
        assert {ROLE, "db", "other", "other-db"} <= set(catalog.names_below("/demo"))
        logs = read_tablespace_logs(catalog)
        with pytest.raises(MetadataForbiddenError):
            catalog.names_below(OTHER_DATABASE.names.herd_root)
    assert logs.tablespaces == frozenset({UUID})
    assert logs.nodes == {NODE_ID}


def test_who_may_not_read_a_znode_does_not_see_that_it_exists(stack: Stack) -> None:
    with stack.session(ROLES["other readers"]) as stranger, pytest.raises(NoAuthError):
        stranger.exists(HERD)


def test_nobody_becomes_somebody_by_saying_so(stack: Stack) -> None:
    with stack.session(ROLES["readers"]) as client, pytest.raises(AuthFailedError):
        client.add_auth(SCHEME, "CN=operator")


def test_nobody_chooses_who_has_access(stack: Stack) -> None:
    with stack.session(ROLES["SQL nodes"]) as node:
        guarded = node.get_acls(HERD)[0]
        for chosen in (OPEN_ACL_UNSAFE, [ACL(int(Permissions.ALL), Id(SCHEME, "OU=0:the-log,CN=nodes.db"))]):
            node.create(f"{HERD}/mine", acl=chosen)
            assert node.get_acls(f"{HERD}/mine")[0] == guarded
            node.delete(f"{HERD}/mine")


def test_a_restart_keeps_the_access_and_the_operator_deletes_all_of_it(stack: Stack) -> None:
    def serves() -> bool:
        with stack.session(OPERATOR.name) as client:
            return client.exists("/demo") is not None

    stack.servers.kill("zookeeper")
    stack.servers.start_again("zookeeper", serves)
    assert everybody(stack, PLACES) == TABLE

    with pytest.raises(EnsembleError, match="a bookie is registered"):
        delete_znodes(stack.operator, LEDGERS)
    assert everybody(stack, PLACES) == TABLE
    with stack.session(ROLES["bookies"]) as bookie:
        bookie.delete(f"{LEDGERS}/available/bookie-0")
    for root in (HERD, LEDGERS, OTHER_DATABASE.names.herd_root, OTHER_LOG.names.ledgers_root):
        stack.act(f"{root} is deleted", partial(delete_znodes, stack.operator, root))
    with stack.session(OPERATOR.name) as client:
        assert client.get_children("/") == ["zookeeper"]
