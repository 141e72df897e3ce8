"""Where a log is read from, early refusals, and what nodes answer over HTTP."""

from __future__ import annotations

import copy
import json
import pickle
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from kazoo.exceptions import ConnectionLoss, NoNodeError

from herdkeeper.codecs.bookkeeper.metadata import DigestType, LedgerMetadata, LedgerState, Segment
from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, encode_tablespace
from herdkeeper.protocol.job_summary import CheckpointSummary, JobOutcome
from herdkeeper_jobs import log_source
from herdkeeper_jobs.archive.parts import ReadBudget
from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata
from herdkeeper_jobs.bookkeeper.reader import LastConfirmed, LastConfirmedUnknownError
from herdkeeper_jobs.checkpoint import cli
from herdkeeper_jobs.checkpoint.follower_base import FollowerSource
from herdkeeper_jobs.checkpoint.node_http import FollowerDigest, NotHeld, TlsAddress, follower_digest, follower_tables, log_position
from herdkeeper_jobs.checkpoint.run import CheckpointRequest
from herdkeeper_jobs.checkpoint.target import TargetRequest
from herdkeeper_jobs.errors import (
    CheckpointRefused,
    CheckpointRetryable,
    InvariantViolated,
    LogDropped,
    LogTruncatedError,
    NotConfirmedYet,
)
from herdkeeper_jobs.log_source import LogSource, open_log
from herdkeeper_jobs.wal.lsn import Lsn

CERTIFICATES = Path(__file__).parents[3] / "images/herddb/src/test/resources/tls"
TABLESPACE = TablespaceRecord("0ab", "demo", "n0", ("n0", "n1"), 1, 60000)


def ledger(ledger_id: int, last_entry_id: int | None, tablespace_uuid: str = TABLESPACE.uuid) -> LedgerMetadata:
    state = LedgerState.OPEN if last_entry_id is None else LedgerState.CLOSED
    segments = (Segment(0, ("b0",)),)
    custom = (("tablespaceuuid", tablespace_uuid.encode()),)
    return LedgerMetadata(ledger_id, 1, 1, 1, state, None, last_entry_id, segments, DigestType.CRC32C, custom_metadata=custom)


@dataclass
class PlayedCatalog:
    """ZooKeeper with two ledgers, the second one open; `client` is itself, since only `get` is used."""

    ledgers: dict[int, LedgerMetadata] = field(default_factory=lambda: {3: ledger(3, 9), 5: ledger(5, None)})
    first: int = 3
    version: int = 2
    """The znode version of the ledger list."""
    listed: list[list[int]] = field(default_factory=lambda: [[3, 5]])
    """The ledger list at successive reads; the last one repeats."""
    failure: Exception | None = None

    @property
    def client(self) -> PlayedCatalog:
        return self

    def get(self, path: str) -> tuple[bytes, SimpleNamespace]:
        if self.failure is not None:
            raise self.failure
        if path == "/ns/db/herd/tableSpaces/demo":
            return encode_tablespace(TABLESPACE), SimpleNamespace(version=0)
        if path == "/ns/db/herd/ledgers/0ab":
            active = self.listed.pop(0) if len(self.listed) > 1 else self.listed[0]
            document = {"activeLedgers": active, "ledgersTimestamps": [1] * len(active), "firstLedger": self.first, "zkVersion": 1}
            return json.dumps(document).encode(), SimpleNamespace(version=self.version)
        raise NoNodeError

    def read_many(self, ids: list[int]) -> Iterator[VersionedMetadata]:
        return (VersionedMetadata(self.ledgers[ledger_id], 0) for ledger_id in ids if ledger_id in self.ledgers)

    def bookie_addresses(self) -> dict[str, Any]:
        return {}


def log_of(catalog: PlayedCatalog, monkeypatch: pytest.MonkeyPatch, confirmed: int = 4) -> LogSource:
    def end_of_confirmed(metadata: LedgerMetadata, addresses: object) -> LastConfirmed:
        return LastConfirmed(confirmed if metadata.last_entry_id is None else metadata.last_entry_id)

    monkeypatch.setattr(log_source, "end_of_confirmed", end_of_confirmed)
    return open_log(catalog, "/ns/db/herd/", "demo")  # type: ignore[arg-type]


def test_the_confirmed_end_is_the_open_ledgers_lac(monkeypatch: pytest.MonkeyPatch) -> None:
    assert log_of(PlayedCatalog(), monkeypatch).confirmed_end() == Lsn(5, 4)


def test_an_open_ledger_without_a_confirmed_entry_leaves_the_end_to_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    assert log_of(PlayedCatalog(), monkeypatch, confirmed=-1).confirmed_end() == Lsn(3, 9)


def test_ledgers_are_read_whole_but_the_last_one_up_to_the_lsn(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = PlayedCatalog()
    assert log_of(catalog, monkeypatch).ledgers_up_to(Lsn(5, 2)) == [(catalog.ledgers[3], 9), (catalog.ledgers[5], 2)]
    assert log_of(catalog, monkeypatch).ledgers_up_to(Lsn(3, 2)) == [(catalog.ledgers[3], 2)]


@pytest.mark.parametrize(
    ("catalog", "lsn", "error", "words"),
    [
        (PlayedCatalog(first=1), Lsn(5, 2), LogDropped, "begins with ledger 3, its first one was 1: older ones were dropped"),
        (PlayedCatalog(version=4), Lsn(5, 2), LogDropped, "4 times: 1 of its ledgers were dropped, none of them the first one"),
        (PlayedCatalog(version=0), Lsn(5, 2), LogDropped, "version 0. was not written by HerdDB alone"),
        (PlayedCatalog(), Lsn(4, 0), CheckpointRefused, "ledger 4 is not in the log of .demo., which has 2 ledgers from 3 to 5; take"),
        (PlayedCatalog(), Lsn(3, 10), CheckpointRefused, "spec.target.lsn .--to. is 3,10: ledger 3 is closed and ends with entry 9; take"),
        (PlayedCatalog(), Lsn(5, 5), NotConfirmedYet, "confirmed up to entry 4"),
        (PlayedCatalog({3: ledger(3, None), 5: ledger(5, None)}), Lsn(5, 2), CheckpointRetryable, "ledger 3 is followed by another"),
        (PlayedCatalog({5: ledger(5, None)}), Lsn(5, 2), InvariantViolated, "ledger 3 is in the log of 'demo', but BookKeeper"),
    ],
)
def test_a_log_that_cannot_give_the_lsn_says_why(
    catalog: PlayedCatalog, lsn: Lsn, error: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(error, match=words):
        log_of(catalog, monkeypatch).ledgers_up_to(lsn)


def test_ledgers_of_another_log_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their ids are the same where ledgers of another cluster stand below the root."""
    log = log_of(PlayedCatalog({3: ledger(3, 9), 5: ledger(5, None, "0cd")}), monkeypatch)
    refused = "ledger 5 is in the log of 'demo' .0ab., but its metadata names the tablespace 0cd: this is not the BookKeeper cluster"
    with pytest.raises(InvariantViolated, match=refused):
        log.ledgers_up_to(Lsn(5, 2))
    with pytest.raises(InvariantViolated, match=refused):
        log.readable_from(None)
    assert log.ledgers_up_to(Lsn(3, 2))


def test_a_log_is_read_from_the_ledger_of_a_base_on_and_not_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = PlayedCatalog(first=1)
    log = log_of(catalog, monkeypatch)
    assert log.ledgers_up_to(Lsn(5, 2), Lsn(3, 4)) == [(catalog.ledgers[3], 9), (catalog.ledgers[5], 2)]
    assert log.ledgers_up_to(Lsn(5, 2), Lsn(5, 1)) == [(catalog.ledgers[5], 2)]
    with pytest.raises(LogDropped, match="begins with ledger 3, it would be read from 1: older ones were dropped"):
        log.ledgers_up_to(Lsn(5, 2), Lsn(1, 8))


def test_changes_are_not_read_from_the_beginning_of_a_log_that_lost_a_ledger_between_two(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = PlayedCatalog()
    assert log_of(whole, monkeypatch).readable_from(None) == [(whole.ledgers[3], 9), (whole.ledgers[5], 4)]
    with pytest.raises(LogTruncatedError, match="none of them the first one"):
        log_of(PlayedCatalog(version=4), monkeypatch).readable_from(None)


def test_a_ledger_that_is_dropped_between_two_looks_is_worth_a_retry_which_tells_that_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped = {5: ledger(5, None)}
    for read in (lambda log: log.ledgers_up_to(Lsn(5, 2), Lsn(3, 4)), lambda log: log.readable_from(Lsn(3, 4))):
        log = log_of(PlayedCatalog(dropped, listed=[[3, 5], [5]]), monkeypatch)
        with pytest.raises(CheckpointRetryable, match="ledger 3 of the log of 'demo' was dropped while the log was being read"):
            read(log)
        with pytest.raises((LogDropped, LogTruncatedError), match="begins with ledger 5"):
            read(log)


def test_an_unknown_tablespace_is_refused_and_a_silent_zookeeper_is_worth_a_retry() -> None:
    with pytest.raises(CheckpointRefused, match="/herd/tableSpaces/other"):
        open_log(PlayedCatalog(), "/ns/db/herd", "other")  # type: ignore[arg-type]
    with pytest.raises(CheckpointRetryable, match="ConnectionLoss"):
        open_log(PlayedCatalog(failure=ConnectionLoss()), "/ns/db/herd", "demo")  # type: ignore[arg-type]


@pytest.mark.parametrize("found", ["..", "../another", "a/b", "", ".", "a\n", "x" * 101])
def test_what_an_ensemble_tells_leads_to_no_folder_of_another_log(found: str) -> None:
    """Somebody else may write to an ensemble in plain text."""
    whole = LogSource(SimpleNamespace(instance_id="an-instance", root="/l"), "/h", TABLESPACE)  # type: ignore[arg-type]
    assert whole.identity.path == "an-instance/0ab"
    with pytest.raises(CheckpointRefused, match=r"the INSTANCEID in ZooKeeper is '.*', and names no folder"):
        _ = replace(whole, catalog=SimpleNamespace(instance_id=found, root="/l")).identity  # type: ignore[arg-type]
    with pytest.raises(CheckpointRefused, match=r"the uuid of 'demo' in ZooKeeper is '.*', and names no folder"):
        _ = replace(whole, tablespace=replace(TABLESPACE, uuid=found)).identity


def test_bookies_that_do_not_answer_are_worth_a_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of(PlayedCatalog(), monkeypatch)

    def nobody(metadata: LedgerMetadata, addresses: object) -> LastConfirmed:
        raise LastConfirmedUnknownError("no bookie reported its LAC")

    monkeypatch.setattr(log_source, "end_of_confirmed", nobody)
    with pytest.raises(CheckpointRetryable, match="no bookie reported"):
        log.confirmed_end()


class Node(BaseHTTPRequestHandler):
    """A SQL node's HTTP port."""

    answer: ClassVar[tuple[int, object]] = (200, {})
    asked: ClassVar[list[str]] = []
    shown: ClassVar[list[str | None]] = []
    location: ClassVar[str] = ""

    def do_GET(self) -> None:
        self.asked.append(f"{self.command} {self.path}")
        self.shown.append(self.headers["Authorization"])
        status, body = self.answer
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        if self.location:
            self.send_header("Location", self.location)
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_GET  # noqa: N815 - the name that http.server looks for

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def node(status: int, body: object, certificate: str | None = None) -> Iterator[str]:
    """Its address. With a certificate it speaks TLS."""
    Node.answer, Node.asked, Node.shown, Node.location = (status, body), [], [], ""
    with ThreadingHTTPServer(("127.0.0.1", 0), Node) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATES / certificate, CERTIFICATES / "node-pkcs8.key")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_leaders_log_position_is_found_under_its_tablespace() -> None:
    body = [{"name": "herd", "applied": None}, {"name": "demo", "applied": {"ledgerId": 5, "entryId": 7}}]
    with node(200, body) as address:
        assert log_position(address, "DEMO") == Lsn(5, 7)
        with pytest.raises(CheckpointRetryable, match="'herd'"):
            log_position(address, "herd")


def test_a_followers_digest_is_asked_for_at_the_lsn() -> None:
    body = {"ledger": 5, "entry": 7, "tables": {"t": {"rows": 2, "digest": "0" * 31 + "a"}}, "openTransactions": 0}
    with node(200, body) as address:
        assert follower_digest(address, "demo", Lsn(5, 7), "a-token", 9) == FollowerDigest(Lsn(5, 7), {"t": RowDigest(2, 10)}, address)
    assert Node.asked == ["POST /tablespaces/demo/digest?ledger=5&entry=7&timeoutSeconds=9&scanSeconds=3600"]
    assert Node.shown == ["Bearer a-token"]


def test_a_node_that_rejects_the_token_is_named_with_what_it_demands() -> None:
    with node(401, {"error": "the token is wrong"}) as address, pytest.raises(CheckpointRefused, match="HERDDB_TOKEN must be the key"):
        follower_digest(address, "demo", Lsn(5, 7), "another", 9)


def test_a_redirect_gets_no_token() -> None:
    with node(200, {}) as thief:
        Node.location = f"http://{thief}/"
        Node.answer = (302, {})
        assert isinstance(follower_digest(thief, "demo", Lsn(5, 7), "a-token", 9), NotHeld)
        with pytest.raises(CheckpointRetryable, match="answered 302"):
            next(follower_tables(thief, "demo", "a-token", 9))
    assert [path for path in Node.asked if "/tablespaces/demo" not in path] == []


def test_a_follower_that_passed_the_lsn_tells_where_it_is() -> None:
    with node(409, {"error": "already at (5,9)", "position": {"ledgerId": 5, "entryId": 9}}) as address:
        assert follower_digest(address, "demo", Lsn(5, 7), "a-token", 9) == NotHeld(
            f"the node {address} answered 409: already at (5,9)", Lsn(5, 9)
        )


def test_a_node_that_speaks_tls_is_verified_and_then_shown_the_token() -> None:
    body = {"ledger": 5, "entry": 7, "tables": {}, "openTransactions": 0}
    with node(200, body, "node.crt") as address:
        found = follower_digest(TlsAddress(by_name(address), authority()), "demo", Lsn(5, 7), "a-token", 9)
    assert found == FollowerDigest(Lsn(5, 7), {}, by_name(address))
    assert Node.shown == ["Bearer a-token"]


@pytest.mark.parametrize(
    ("certificate", "authorities", "told"),
    [
        ("node.crt", "stranger.crt", "unable to get local issuer certificate"),
        ("expired.crt", "authority.crt", "certificate has expired"),
        (None, "authority.crt", "SSL"),
    ],
    ids=["another authority", "expired", "plain text"],
)
def test_a_node_that_cannot_be_verified_is_shown_nothing(certificate: str | None, authorities: str, told: str) -> None:
    with node(200, {}, certificate) as address:
        asked = TlsAddress(by_name(address), authority(authorities))
        with pytest.raises(CheckpointRetryable, match=told):
            follower_digest(asked, "demo", Lsn(5, 7), "a-token", 9)
        with pytest.raises(CheckpointRetryable, match=told):
            next(follower_tables(asked, "demo", "a-token", 9))
    assert Node.shown == []


def test_an_address_stays_one_that_speaks_tls_when_it_is_copied_or_sent_to_an_executor() -> None:
    address = TlsAddress("db-herddb-0:9845", "the authorities")
    for copied in (copy.deepcopy(address), pickle.loads(pickle.dumps(address))):
        assert isinstance(copied, TlsAddress)
        assert (copied, copied.authorities) == (address, "the authorities")


def by_name(address: str) -> str:
    """The certificates are for this machine's name, not for its address."""
    return address.replace("127.0.0.1", "localhost")


def authority(name: str = "authority.crt") -> str:
    return (CERTIFICATES / name).read_text()


def test_a_node_that_is_away_is_worth_a_retry() -> None:
    with node(200, {}) as address:
        pass
    with pytest.raises(CheckpointRetryable, match=address):
        log_position(address, "demo")


ARGUMENTS = ["--zookeeper", "z:2181", "--ledgers-root", "/l", "--herd-root", "/h", "--tablespace", "demo"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--run-id", "../x"], "--run-id is '../x'"),
        (["--run-id", "r", "--to", "yesterday"], "spec.target (--to): 'yesterday' is not a moment"),
        (["--run-id", "r", "--master", "yarn"], "--master is 'yarn'"),
        (["--run-id", "r", "--destination", "/no/such/folder"], "--destination is '/no/such/folder'"),
        (["--run-id", "r", "--bytes-per-second-per-bookie", "0"], "--bytes-per-second-per-bookie is 0: give more than 0"),
        (["--run-id", "r", "--full-every-seconds", "0"], "--full-every-seconds is 0: give more than 0"),
        (["--run-id", "r", "--base-follower", "n1:1", "--base-witness", "n1:1"], "--base-witness is n1:1, the same as --base-follower"),
        (
            ["--run-id", "r", "--leader-http", "n1:1", "--nodes-with-tls", "n1:1"],
            "give the certificates that verify it in HERDDB_AUTHORITIES",
        ),
    ],
)
def test_bad_arguments_end_with_2_and_a_summary_that_names_them(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = tmp_path / "message"
    monkeypatch.setenv("HERDKEEPER_TERMINATION_MESSAGE", str(message))
    assert cli.main([*ARGUMENTS, "--destination", str(tmp_path), *arguments]) == 2
    summary = CheckpointSummary.from_json(message.read_text())
    assert summary.outcome is JobOutcome.CONFIGURATION_REFUSED
    assert words in summary.message


def test_the_token_for_a_follower_comes_from_the_environment_and_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    followers: list[FollowerSource | None] = []
    targets: list[TargetRequest] = []

    def made(parsed: object, request: CheckpointRequest, settings: object) -> CheckpointSummary:
        followers.append(request.follower)
        targets.append(request.target)
        return CheckpointSummary("r", JobOutcome.SUCCEEDED, "done")

    monkeypatch.setattr(cli, "_checkpoint", made)
    monkeypatch.setenv("HERDKEEPER_TERMINATION_MESSAGE", str(tmp_path / "message"))
    monkeypatch.setenv("HERDDB_TOKEN", "of-the-secret")
    arguments = [*ARGUMENTS, "--destination", str(tmp_path), "--run-id", "r"]
    assert cli.main([*arguments, "--base-follower", "n1:9845", "--base-witness", "n2:9845"]) == 0
    assert cli.main(arguments) == 0
    assert followers == [FollowerSource("n1:9845", "of-the-secret", "n2:9845"), None]
    assert [target.token for target in targets] == ["of-the-secret"] * 2
    assert "of-the-secret" not in repr((followers, targets))


def test_a_node_that_is_named_with_tls_is_asked_over_tls_in_each_role(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def made(parsed: object, request: CheckpointRequest, settings: object) -> CheckpointSummary:
        assert request.follower is not None
        target, follower = request.target, request.follower
        asked.extend((target.leader_http, target.verify_against, follower.address, follower.witness))
        return CheckpointSummary("r", JobOutcome.SUCCEEDED, "done")

    monkeypatch.setattr(cli, "_checkpoint", made)
    monkeypatch.setenv("HERDKEEPER_TERMINATION_MESSAGE", str(tmp_path / "message"))
    monkeypatch.setenv("HERDDB_AUTHORITIES", authority())
    nodes = [*("--leader-http", "n0:1"), *("--verify-against", "n1:1"), *("--base-follower", "n1:1"), *("--base-witness", "n2:1")]
    assert cli.main([*ARGUMENTS, "--destination", str(tmp_path), "--run-id", "r", *nodes, "--nodes-with-tls", "n0:1,n1:1"]) == 0
    assert asked == ["n0:1", "n1:1", "n1:1", "n2:1"]
    assert [getattr(each, "authorities", None) for each in asked] == [authority(), authority(), authority(), None]


def test_all_parallel_tasks_share_the_limit_for_a_bookie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budgets: list[ReadBudget] = []

    def made(parsed: object, request: CheckpointRequest, settings: object) -> CheckpointSummary:
        budgets.append(request.budget)
        return CheckpointSummary("r", JobOutcome.SUCCEEDED, "done")

    monkeypatch.setattr(cli, "_checkpoint", made)
    monkeypatch.setenv("HERDKEEPER_TERMINATION_MESSAGE", str(tmp_path / "message"))
    arguments = [*ARGUMENTS, "--destination", str(tmp_path), "--run-id", "r", "--master", "local[3]"]
    assert cli.main([*arguments, "--bytes-per-second-per-bookie", "1000"]) == 0
    assert cli.main(arguments) == 0
    assert budgets == [ReadBudget(3, 1000), ReadBudget(3, float("inf"))]
