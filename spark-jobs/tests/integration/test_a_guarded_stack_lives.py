"""Real servers in a stack whose znodes belong to roles: all that they do as usual goes on, and leaves no znode open."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace

import pytest
from guarded_stack import DATABASE, LOG, ROLES, TABLE, Stack, everybody, guarded_ensemble, open_znodes, places
from operators_certificates import ZOOKEEPER

from herdkeeper.clients.bounded_http import Trust, follow
from herdkeeper.codecs.bookkeeper.layout import ledger_path
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.herddb.tablespace import encode_tablespace, tablespace_path
from herdkeeper.engine.execute_metadata import set_archive_expiry, set_log_pin
from herdkeeper.herddb.execute.node_orders import NodeOrders
from herdkeeper.planning.actions import SetArchiveExpiry, SetLogPin
from herdkeeper.protocol.log_archive import ExpiryOrder, archive_progress_path, expiry_order_path
from herdkeeper.protocol.log_pin import SECOND_DISK, log_pin_path, replica_pin, stream_pin
from herdkeeper.shared.names import IDENTITY_VARIABLE
from herdkeeper.shared.unknown import Unknown
from herdkeeper.sql.connection import Address, Connection
from herdkeeper_e2e.server_processes import CREDENTIALS, NODE, NODE_ID, TOKEN, jars_of, leads
from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata, open_catalog
from herdkeeper_jobs.bookkeeper.znode import put_znode
from herdkeeper_jobs.checkpoint.node_http import TlsAddress, log_position
from herdkeeper_jobs.errors import CheckpointRetryable
from herdkeeper_jobs.repair.bookkeeper_client import BookKeeperClient
from herdkeeper_jobs.repair.lock import LedgerLockedError, replication_lock
from herdkeeper_jobs.repair.relocation import Relocation, relocation

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]
TWO_COPIES = {f"server.bookkeeper.{size}.size": 2 for size in ("ensemble", "write.quorum", "ack.quorum")}
PATIENCE_SECONDS = 120.0
HERD, RECORD = DATABASE.names.herd_root, tablespace_path(DATABASE.names.herd_root, "herd")


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Stack, Address]]:
    """Three bookies, autorecovery, and a SQL node whose ledgers have two copies."""
    with guarded_ensemble() as stack:
        stack.servers.start_bookies(3)
        stack.servers.start_autorecovery()
        yield stack, stack.servers.start_sql_node(TWO_COPIES)


def execute(address: Address, *statements: str) -> None:
    with Connection.connect(address, CREDENTIALS, timeout_seconds=PATIENCE_SECONDS) as connection:
        for statement in statements:
            connection.execute(statement)


def ledgers(stack: Stack) -> list[LedgerMetadata]:
    """As a job with the readers' certificate reads them."""
    with open_catalog(stack.servers.zookeeper, LOG.names.ledgers_root) as catalog:
        found = [*catalog.read_many(catalog.ledger_ids())]
    assert all(isinstance(each, VersionedMetadata) for each in found)
    return [each.metadata for each in found if isinstance(each, VersionedMetadata)]


def holders(stack: Stack) -> set[str]:
    """The bookies that ledgers name."""
    return {bookie for each in ledgers(stack) for segment in each.segments for bookie in segment.bookies}


def move(stack: Stack, ledger: LedgerMetadata, bookie: str) -> None:
    """BookKeeper's client copies a ledger elsewhere, as a repair of damaged entries has it do, with the certificate of its job."""
    with open_catalog(stack.servers.zookeeper, LOG.names.ledgers_root) as catalog:
        addresses = catalog.bookie_addresses()
    planned = relocation(ledger, {bookie}, set(addresses))
    assert isinstance(planned, Relocation)
    programs = stack.servers.folder / "programs"
    programs.mkdir()
    (programs / "java").write_text(f'#!/bin/sh\nexec {shutil.which("java")} {" ".join(stack.servers.java_options)} "$@"\n')
    (programs / "java").chmod(0o755)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", f"{programs}:{os.environ['PATH']}")  # the names of servers lead to this machine
        patched.setenv(IDENTITY_VARIABLE, str(stack.secrets[ROLES["bookies"]].folder))
        BookKeeperClient(jars_of("bookkeeper"), stack.servers.zookeeper, LOG.names.ledgers_root).move(planned, addresses, lambda: None)


def is_locked_by_a_repair(stack: Stack, ledger_id: int) -> bool:
    """For a moment, unless autorecovery has not let go of it yet."""
    of_the_ledger = (LOG.names.ledgers_root, ledger_id, "a test")
    with stack.session(ROLES["bookies"]) as repair, suppress(LedgerLockedError), replication_lock(repair, *of_the_ledger) as lock:
        lock.require_held()
        return True
    return False


def test_rows_are_written_jobs_and_operator_say_what_they_need_and_each_role_may_what_is_its_own(running: tuple[Stack, Address]) -> None:
    stack, sql = running
    execute(sql, "CREATE TABLE t (n int primary key)", *(f"INSERT INTO t (n) VALUES ({number})" for number in range(5)))
    uuid = stack.record()[0].uuid
    with stack.session(ROLES["readers"]) as reader:
        put_znode(reader, log_pin_path(HERD, uuid, stream_pin("orders")), b'{"ledgerId":0,"entryId":0,"maxAgeSeconds":60}')
        put_znode(reader, archive_progress_path(HERD, uuid), b"{}")
    pin = SetLogPin("", log_pin_path(HERD, uuid, SECOND_DISK), (0, 0), None, "")
    order = SetArchiveExpiry("", expiry_order_path(HERD, uuid), ExpiryOrder("a-claim", (0, 0)), None, "")
    stack.act("the operator pins the log", lambda: set_log_pin(stack.operator, pin))
    stack.act("the operator orders to expire", lambda: set_archive_expiry(stack.operator, order))
    stack.wait("the node pins its log", lambda: stack.operator.read(log_pin_path(HERD, uuid, replica_pin(NODE_ID))) is not None)
    with open_catalog(stack.servers.zookeeper, LOG.names.ledgers_root) as catalog:
        newest = f"{LOG.names.ledgers_root}{ledger_path(catalog.layout, catalog.ledger_ids()[-1])}"
    log = (stack.servers.folder / "zookeeper.log").read_text(errors="replace")
    assert [line for line in log.splitlines() if " (access): to " in line] == [], "none of them asks for what it may not"
    assert everybody(stack, places(uuid, newest)) == TABLE
    assert open_znodes(stack) == []


def test_operator_and_checkpoints_verify_a_node_at_its_http_port_and_send_another_one_nothing(running: tuple[Stack, Address]) -> None:
    stack, _ = running
    name, url = DATABASE.names.host(0), stack.servers.node_http
    address = f"{name}:{url.rpartition(':')[2]}"
    authorities, others = (stack.secrets[secret].identity().authorities for secret in (ROLES["readers"], ZOOKEEPER.names.members_secret))
    assert NodeOrders().post(f"{url}/activator/wake", TOKEN, PATIENCE_SECONDS, Trust(authorities, name)) == {"woken": True}
    with closing(follow(f"{url}/alive", PATIENCE_SECONDS, Trust(authorities, name))) as told:
        stack.wait("a line", lambda: (told.next_line() or b"").startswith(b"alive {"))
    stack.wait("a position", lambda: log_position(TlsAddress(address, authorities), "herd").ledger_id >= 0)

    for trust in (Trust(others, name), Trust(authorities, DATABASE.names.host(1).replace("-nodes", "-other"))):
        refused = NodeOrders().post(f"{url}/activator/wake", TOKEN, PATIENCE_SECONDS, trust)
        assert isinstance(refused, Unknown)
        assert "CERTIFICATE_VERIFY_FAILED" in refused.why
    with pytest.raises(CheckpointRetryable, match="CERTIFICATE_VERIFY_FAILED"):
        log_position(TlsAddress(address, others), "herd")
    with pytest.raises(CheckpointRetryable):
        log_position(address, "herd")


def test_another_node_takes_over_and_autorecovery_copies_what_a_lost_bookie_held(running: tuple[Stack, Address]) -> None:
    stack, _ = running
    other, _ = stack.servers.begin_sql_node("node-1", "node-1", TWO_COPIES)
    stack.wait("the second node is there", lambda: stack.operator.read(f"{HERD}/nodes/node-1") is not None)
    record, version = stack.record()
    both = encode_tablespace(replace(record, replicas=(NODE_ID, "node-1")))
    stack.act("it becomes a replica", lambda: stack.operator.compare_and_set(RECORD, both, version))
    stack.wait("it follows", lambda: stack.operator.read(f"{HERD}/replicas/{record.uuid}/node-1") is not None)
    before = {each.ledger_id for each in ledgers(stack)}
    stack.servers.kill(NODE)
    record, changed = stack.record()
    moved = encode_tablespace(replace(record, leader="node-1"))
    stack.act("it is to lead", lambda: stack.operator.compare_and_set(RECORD, moved, changed))
    stack.wait("it leads", lambda: leads(other))
    execute(other, "INSERT INTO t (n) VALUES (100)")
    assert {each.ledger_id for each in ledgers(stack)} - before, "it writes a ledger of its own, and has closed those before"
    closed = [each for each in ledgers(stack) if each.ledger_id in before]
    assert all(each.closed for each in closed)
    emptied = closed[0].segments[0].bookies[0]
    move(stack, closed[0], emptied)
    assert all(emptied not in segment.bookies for segment in ledgers(stack)[0].segments)

    lost = min(holders(stack))
    stack.servers.stop_bookie(lost)
    stack.wait("all copies are elsewhere", lambda: lost not in holders(stack))
    stack.wait("a repair gets the lock that autorecovery had", lambda: is_locked_by_a_repair(stack, min(before)))
    execute(other, "INSERT INTO t (n) VALUES (101)")
    assert open_znodes(stack) == []
