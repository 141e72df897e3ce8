"""What is deleted in ZooKeeper for good: it stays if what the deletion rests on has changed since it was read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from test_plan_leaders import RECORD

from herdkeeper.clients.zookeeper import ANY_VERSION, ChangedMeanwhileError, EnsembleError
from herdkeeper.codecs.bookkeeper.cookie import cookie_path
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, ledger_path
from herdkeeper.codecs.herddb.ledgers import ledgers_path
from herdkeeper.codecs.herddb.tablespace import encode_tablespace, heartbeat_path, tablespace_path
from herdkeeper.engine.execute_metadata import LAYOUT, delete_logs, delete_znodes, forget_node, remove_cookie
from herdkeeper.planning.actions import DeleteLogs, ForgetNode, RemoveCookie
from herdkeeper.protocol.log_pin import log_pin_path, replica_pin

LEDGERS, HERD, BOOKIE, NODE = "/ledgers", "/herd", "bookie-7", "db-herddb-7"
COOKIE, NODE_RECORD = cookie_path(LEDGERS, BOOKIE), f"{HERD}/nodes/{NODE}"
FLIGHTS, LIST = tablespace_path(HERD, "flights"), ledgers_path(HERD, RECORD.uuid)
LEDGER = LEDGERS + ledger_path(LedgerLayout.HIERARCHICAL, 7)


@dataclass
class Znodes:
    """Znodes in memory. `meanwhile` happens once, right before the deletion of a path."""

    held: dict[str, tuple[bytes, int]]
    meanwhile: dict[str, Callable[[], None]] = field(default_factory=dict)

    def put(self, path: str, data: bytes = b"") -> None:
        self.held[path] = (data, self.held[path][1] + 1 if path in self.held else 0)

    def read(self, path: str) -> tuple[bytes, int] | None:
        return self.held.get(path)

    def children(self, path: str) -> tuple[str, ...] | None:
        below = {other.removeprefix(f"{path}/").partition("/")[0] for other in self.held if other.startswith(f"{path}/")}
        return tuple(sorted(below)) or None

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self.delete_if(path, version)

    def delete_if(self, path: str, version: int, unchanged: Mapping[str, int] | None = None, absent: Sequence[str] = ()) -> None:
        self.meanwhile.pop(path, lambda: None)()
        read = {**(unchanged or {}), path: version}
        wrong = [each for each, known in read.items() if each in self.held and known not in (ANY_VERSION, self.held[each][1])]
        if wrong or any(each in self.held for each in absent):
            raise ChangedMeanwhileError(f"{path} changed since it was read")
        self.held.pop(path, None)

    def delete_together(self, paths: Sequence[str]) -> bool:
        self.meanwhile.pop(paths[0], lambda: None)()
        left = {path: found for path, found in self.held.items() if path not in paths}
        if any(path.startswith(tuple(f"{gone}/" for gone in paths)) for path in left):
            return False
        self.held = left
        return True

    def delete_tree(self, path: str) -> None:
        for each in [each for each in self.held if each == path or each.startswith(f"{path}/")]:
            self.delete(each)


def holding() -> Znodes:
    """A database with one tablespace, whose log has one ledger, and a node and a bookie that nobody needs any more."""
    listed = json.dumps({"activeLedgers": [7], "ledgersTimestamps": [7], "firstLedger": 7, "zkVersion": 0}).encode()
    paths = {
        COOKIE: b"",
        NODE_RECORD: b"",
        heartbeat_path(HERD, RECORD.uuid, NODE): b"",
        log_pin_path(HERD, RECORD.uuid, replica_pin(NODE)): b"",
        FLIGHTS: encode_tablespace(RECORD),
        LIST: listed,
        f"{LEDGERS}/LAYOUT": LAYOUT,
        LEDGER: ledger_of(RECORD.uuid),
    }
    return Znodes({path: (data, 0) for path, data in paths.items()})


def ledger_of(tablespace: str) -> bytes:
    lines = ("quorumSize: 1", "ensembleSize: 1", "length: 0", "lastEntryId: -1", "state: OPEN", "ackQuorumSize: 1", "digestType: CRC32C")
    custom = f'customMetadata {{ key: "tablespaceuuid" value: "{tablespace}" }}'
    segment = 'segment { ensembleMember: "a" firstEntryId: 0 }'
    return "\n".join(("BookieMetadataFormatVersion\t2", *lines, segment, custom)).encode()


def of_another_cookie(znodes: Znodes) -> None:
    znodes.put(COOKIE, b"another one")


def registered(znodes: Znodes) -> None:
    znodes.put(f"{LEDGERS}/available/{BOOKIE}")


def registered_read_only(znodes: Znodes) -> None:
    znodes.put(f"{LEDGERS}/available/readonly/{BOOKIE}")


@pytest.mark.parametrize("change", [of_another_cookie, registered, registered_read_only])
def test_the_cookie_of_a_bookie_that_comes_back_in_this_very_moment_stays(change: Callable[[Znodes], None]) -> None:
    znodes = holding()
    znodes.meanwhile[COOKIE] = lambda: change(znodes)
    with pytest.raises(EnsembleError):
        remove_cookie(znodes, RemoveCookie("", LEDGERS, BOOKIE))
    assert COOKIE in znodes.held


def test_the_cookie_of_a_bookie_that_stays_away_goes_once() -> None:
    znodes = holding()
    for _ in range(2):
        remove_cookie(znodes, RemoveCookie("", LEDGERS, BOOKIE))
        assert COOKIE not in znodes.held


def test_the_record_of_a_node_that_registers_again_in_this_very_moment_stays() -> None:
    znodes = holding()
    znodes.meanwhile[NODE_RECORD] = lambda: znodes.put(NODE_RECORD, b"its new address")
    with pytest.raises(ChangedMeanwhileError):
        forget_node(znodes, ForgetNode("", HERD, NODE))
    assert znodes.held[NODE_RECORD][0] == b"its new address"


def test_the_record_of_a_node_that_gets_a_replica_in_this_very_moment_stays() -> None:
    znodes = holding()
    znodes.meanwhile[NODE_RECORD] = lambda: znodes.put(FLIGHTS, encode_tablespace(replace(RECORD, replicas=(*RECORD.replicas, NODE))))
    with pytest.raises(ChangedMeanwhileError):
        forget_node(znodes, ForgetNode("", HERD, NODE))
    assert NODE_RECORD in znodes.held


def test_a_node_that_nothing_names_is_forgotten() -> None:
    znodes = holding()
    forget_node(znodes, ForgetNode("", HERD, NODE))
    assert not [path for path in znodes.held if NODE in path]
    forget_node(znodes, ForgetNode("", HERD, NODE))


DELETE_LOGS = DeleteLogs("", LEDGERS, HERD, (RECORD.uuid,))


@pytest.mark.parametrize("name", ["flights", "another"])
def test_the_log_of_a_tablespace_that_has_a_record_by_now_stays(name: str) -> None:
    znodes = holding()
    del znodes.held[FLIGHTS]
    znodes.put(tablespace_path(HERD, name), encode_tablespace(replace(RECORD, name=name)))
    with pytest.raises(EnsembleError, match=f"the tablespace {name} is {RECORD.uuid}, so its log stays"):
        delete_logs(znodes, DELETE_LOGS)
    assert {LEDGER, LIST} <= znodes.held.keys()


def test_a_ledger_that_a_leader_lists_while_its_dropped_log_is_deleted_goes_with_the_next_try() -> None:
    znodes = holding()
    del znodes.held[FLIGHTS]
    another = LEDGERS + ledger_path(LedgerLayout.HIERARCHICAL, 8)

    def list_another() -> None:
        znodes.put(another, ledger_of(RECORD.uuid))
        znodes.put(LIST, json.dumps({"activeLedgers": [7, 8], "ledgersTimestamps": [7, 8], "firstLedger": 7, "zkVersion": 1}).encode())

    znodes.meanwhile[LIST] = list_another
    with pytest.raises(ChangedMeanwhileError):
        delete_logs(znodes, DELETE_LOGS)
    assert another in znodes.held
    delete_logs(znodes, DELETE_LOGS)
    assert not {another, LEDGER, LIST} & znodes.held.keys()


def test_a_ledger_that_is_another_logs_in_this_very_moment_stays() -> None:
    znodes = holding()
    del znodes.held[FLIGHTS]
    znodes.meanwhile[LEDGER] = lambda: znodes.put(LEDGER, ledger_of("another"))
    with pytest.raises(ChangedMeanwhileError):
        delete_logs(znodes, DELETE_LOGS)
    assert znodes.held[LEDGER][0] == ledger_of("another")
    delete_logs(znodes, DELETE_LOGS)
    assert LEDGER in znodes.held


def root_of_bookies() -> Znodes:
    return Znodes(
        dict.fromkeys((LEDGERS, *(f"{LEDGERS}/{below}" for below in ("INSTANCEID", "available", "available/readonly")), LEDGER), (b"", 0))
    )


@pytest.mark.parametrize("register", [registered, registered_read_only])
def test_the_metadata_of_a_bookie_that_registers_in_this_very_moment_stays(register: Callable[[Znodes], None]) -> None:
    znodes = root_of_bookies()
    znodes.meanwhile[f"{LEDGERS}/available/readonly"] = lambda: register(znodes)
    before = set(znodes.held)
    with pytest.raises(EnsembleError, match="a bookie is registered below /ledgers/available"):
        delete_znodes(znodes, LEDGERS)
    assert before < set(znodes.held)


def test_the_metadata_of_bookies_that_are_gone_goes_also_where_its_deletion_was_interrupted() -> None:
    for interrupted in (False, True):
        znodes = root_of_bookies()
        if interrupted:
            del znodes.held[f"{LEDGERS}/available"], znodes.held[f"{LEDGERS}/available/readonly"]
        delete_znodes(znodes, LEDGERS)
        assert znodes.held == {}
