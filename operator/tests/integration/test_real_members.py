"""Real ZooKeeper processes under the operator's reconciles: membership under a writer, roll, lost volumes, a lost quorum.

What only real servers can tell: that the password suffices and is needed, that an observer becomes a voter, that a leader may leave. And
that members on empty or old volumes never outvote the others.
"""

from __future__ import annotations

import base64
import http.client
import io
import itertools
import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, NoAuthError, NodeExistsError, OperationTimeoutError, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError
from kubernetes.dynamic import DynamicClient
from real_members import MOST, OperatorDied, RealMembers
from stage import CLAIM, Stage, written

from herdkeeper.clients import zookeeper_member
from herdkeeper.clients.zookeeper import EnsembleError, EnsembleSessions, Znodes
from herdkeeper.codecs.zookeeper.membership import CONFIG_PATH, decode_membership
from herdkeeper.plugin.api_server import ApiServer
from herdkeeper.plugin.main import main
from herdkeeper.shared import names
from herdkeeper.shared.conditions import ENCRYPTED
from herdkeeper.shared.names import ZooKeeperNames
from herdkeeper_e2e.control_plane import ControlPlane

KIND, SERVERS = "ZooKeeperCluster", "zk-zookeeper"
PATIENCE_SECONDS = 300
SESSION_SECONDS = 100.0 * PATIENCE_SECONDS
"""A session that no test outlasts: whoever waits until that with a silent member is over is not done in time."""
Answer = TypeVar("Answer")
UNSURE = (ConnectionLoss, SessionExpiredError, OperationTimeoutError, KazooTimeoutError)


class Writer:
    """Makes numbered znodes one after the other, and knows which ones were acknowledged. It shows the certificate in the folder `identity`,
    if there is one.
    """

    def __init__(self, members: RealMembers, root: str = "/written", identity: Path | None = None) -> None:
        self.acknowledged: list[str] = []
        self.failed: BaseException | None = None
        self._root = root
        address = members.named.address(MOST, names.ZOOKEEPER_CLIENT_PORT if identity is None else names.ZOOKEEPER_SECURE_PORT)
        files = {} if identity is None else {"certfile": "tls.crt", "keyfile": "tls.key", "ca": "ca.crt"}
        shown = {key: str(identity / name) for key, name in files.items() if identity is not None}
        self._client = KazooClient(
            hosts=members.local_address(address),
            timeout=10,
            connection_retry={"max_tries": -1, "max_delay": 1},
            use_ssl=bool(shown),
            **shown,
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def _write(self) -> None:
        number = 0
        try:
            self._client.start(timeout=60)
            self._client.ensure_path(self._root)
            while not self._stopping.is_set():
                path = f"{self._root}/{number:08d}"
                try:
                    self._client.create_async(path, b"x").get(timeout=30)
                except NodeExistsError:
                    pass  # an attempt whose answer was lost
                except UNSURE:
                    self._stopping.wait(0.1)
                    continue
                self.acknowledged.append(path)
                number += 1
        except BaseException as error:  # the test must see whatever it was
            self.failed = error

    @contextmanager
    def running(self) -> Iterator[Writer]:
        """Write while the body runs; afterwards, everything acknowledged must be there."""
        self._thread.start()
        try:
            yield self
            self._stopping.set()
            self._thread.join(120)
            assert (self._thread.is_alive(), self.failed) == (False, None)
            self._client.sync(self._root)
            there = set(self._client.get_children(self._root))
            assert [path for path in self.acknowledged if path.rpartition("/")[2] not in there] == []
            assert len(self.acknowledged) > 0
        finally:
            self._stopping.set()
            self._client.stop()
            self._client.close()


@pytest.fixture
def members(dynamic: DynamicClient, namespace: str, tmp_path: Path) -> Iterator[RealMembers]:
    stage = Stage(dynamic, namespace)
    members = RealMembers(stage, "zk", tmp_path)
    stage.ensembles = members  # type: ignore[assignment]
    stage.nodes = members  # type: ignore[assignment]
    try:
        yield members
    finally:
        members.stop_all()


def until(members: RealMembers, what: str, holds: Callable[[], bool]) -> None:
    """Reconcile, and let the cluster do its part, until something holds. An operator that dies has a successor."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            status = members.stage.found(KIND, "zk").get("status")
            raise AssertionError(f"not within {PATIENCE_SECONDS} s: {what}; {status}\n{last_words(members)}")
        before = written()
        with suppress(OperatorDied):
            members.stage.reconcile(KIND, "zk")
        members.turn()
        if written() == before:
            time.sleep(0.1)  # members start, or look for a leader: the processor is theirs


def founded(members: RealMembers, replicas: int, **spec: object) -> None:
    members.stage.declare(KIND, "zk", {"replicas": replicas, **spec})
    until(members, "an ensemble is founded", lambda: settled(members))


def settled(members: RealMembers) -> bool:
    """Ready, and nothing left to do, as the status says it of the present spec."""
    document = members.stage.found(KIND, "zk")
    status = document.get("status") or {}
    if status.get("observedGeneration") != document["metadata"]["generation"]:
        return False
    told = [entry for entry in status["conditions"] if entry["type"] != ENCRYPTED]  # these members begin in plain text
    found = {entry["type"]: (entry["status"], entry["observedGeneration"]) for entry in told}
    generation = document["metadata"]["generation"]
    return found == {"Ready": ("True", generation), "Progressing": ("False", generation)} and bool(status["founded"])


def declare(members: RealMembers, replicas: int) -> None:
    members.stage.patch(KIND, "zk", {"spec": {"replicas": replicas}})
    until(members, f"{replicas} members", lambda: settled(members))
    assert voters(members) == list(range(replicas))


def voters(members: RealMembers) -> list[int]:
    found = again(lambda: members.at(members.named.address(MOST)).read(CONFIG_PATH))
    assert found is not None
    return sorted(server_id - 1 for server_id in decode_membership(found[0]).voters)


def marks(members: RealMembers) -> dict[str, str]:
    claims = {name: item for (kind, name), item in members.stage.made().items() if kind == CLAIM}
    return {name[-1]: item["metadata"]["annotations"]["herdkeeper.io/founded"] for name, item in sorted(claims.items())}


def leader(members: RealMembers) -> int:
    return int(members.stage.found(KIND, "zk")["status"]["leader"].rpartition("-")[2])


def test_one_member_becomes_three_then_one_then_three_under_a_writer_with_the_operator_dying_at_each_change(members: RealMembers) -> None:
    founded(members, 1, allowSingleMember=True)
    plain = KazooClient(hosts=members.local_address(members.named.address(1)))
    plain.start(timeout=60)
    with pytest.raises(NoAuthError):
        plain.reconfig(joining=members.to_process("server.2=a:1:2:observer;3"), leaving=None, new_members=None)
    plain.stop()
    members.dies_after_change = True
    with Writer(members).running():
        declare(members, 3)
        roles = [change.joining[0].split(":")[3].split(";")[0] for change in members.changes]
        assert roles == ["participant", "observer", "participant"]  # the second member of all can't be an observer first
        declare(members, 1)
        assert len(members.changes) == 5
        assert marks(members) == {"0": "true", "1": "left", "2": "left"}
        declare(members, 3)  # on the volumes that the two left
        assert marks(members) == {"0": "true", "1": "true", "2": "true"}


def test_a_member_begins_before_its_name_has_an_address_and_later_takes_two_more(members: RealMembers, tmp_path: Path) -> None:
    members.hosts = tmp_path / "hosts"
    members.hosts.write_text("")
    founded(members, 1, allowSingleMember=True)
    members.hosts.write_text("".join(f"127.0.0.1 member-{number + 1}.test\n" for number in range(3)))
    with Writer(members).running():
        declare(members, 3)


def test_a_changed_image_reaches_the_leader_last_and_a_lost_volume_is_filled_again(members: RealMembers) -> None:
    founded(members, 3)
    with Writer(members).running():
        before = {number: members.processes[number].pid for number in range(3)}
        led, order = leader(members), []
        members.stage.patch(KIND, "zk", {"spec": {"config": {"snapCount": "5000"}}})

        def all_new() -> bool:
            changed = [number for number, process in members.processes.items() if process.pid != before[number] and number not in order]
            order.extend(changed)
            assert len(changed) <= 1, "two members were restarted at once"
            return len(order) == 3 and settled(members)

        until(members, "all members are restarted", all_new)
        assert order[-1] == led
        lost = next(number for number in range(3) if number != leader(members))
        members.stop(lost)
        members.stage.delete(CLAIM, members.named.claim(lost))
        members.stage.delete("Pod", members.named.pod(lost))
        until(members, "the empty member serves", lambda: settled(members) and members.serves(lost))
        assert marks(members)[str(lost)] == "true"
        assert "starts from" in members.log(lost).read_text()
        assert members.log(lost).read_text().rpartition("starts from")[2].splitlines()[0].count("not founding") == 1


def test_members_move_to_certificates_one_by_one_under_writers_in_plain_text_and_with_a_certificate(
    members: RealMembers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_pods = ZooKeeperNames.served_hosts.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(ZooKeeperNames, "served_hosts", property(lambda named: of_pods(named) | {"localhost"}))
    founded(members, 3)
    restarts = Restarts(members)
    with ExitStack() as until_the_end:
        with Writer(members).running():
            members.stage.patch(KIND, "zk", {"spec": {"security": {"mode": "Permissive"}}})
            until(members, "all accept certificates", lambda: restarts.seen() and ":2281" in status(members)["address"])
            until_the_end.enter_context(Writer(members, "/encrypted", shown(members, tmp_path / "operator")).running())
            until(members, "all use certificates", lambda: restarts.seen() and status(members).get("plaintextNeededBy") == "nobody")
            until(members, "both are accepted", lambda: restarts.seen() and settled(members))
        assert [sorted(part) for part in (restarts.order[:3], restarts.order[3:])] == [[0, 1, 2], [0, 1, 2]]
        assert quorum_of(members) == {("sslQuorum=true", "portUnification=true")}
        members.stage.patch(KIND, "zk", {"spec": {"security": {"mode": "TLS"}}})
        until(members, "plain text is refused", lambda: restarts.seen() and settled(members) and len(restarts.order) == 9)
    assert sorted(restarts.order[6:]) == [0, 1, 2]
    assert quorum_of(members) == {("sslQuorum=true", "portUnification=false")}
    assert [change.joining[0].partition(";")[2] for change in members.changes] == ["127.0.0.1:2182"] * 3
    for number in range(3):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", members.ports[number].client), 10)


def test_a_member_that_was_killed_before_it_kept_its_new_leaders_epoch_starts_again(members: RealMembers) -> None:
    founded(members, 3)
    writer = Writer(members)
    with writer.running():
        until(members, "something is written", lambda: len(writer.acknowledged) > 20)
        killed = next(number for number in range(3) if number != leader(members))
        members.stop(killed, signal.SIGKILL)
        epoch = members.volume(killed) / "store/version-2/currentEpoch"
        kept = int(epoch.read_text())
        epoch.write_text(str(kept - 1))  # what it had before its leader sent the transactions that it has
        until(members, "it serves again", lambda: members.serves(killed) and settled(members))
    assert int(epoch.read_text()) == kept
    assert members.log(killed).read_text().count("A synchronisation with a leader was interrupted") == 1


class Restarts:
    """Which members were started anew, in order, never two between two looks."""

    def __init__(self, members: RealMembers) -> None:
        self.order: list[int] = []
        self._members, self._pids = members, self._now(members)

    @staticmethod
    def _now(members: RealMembers) -> dict[int, int]:
        return {number: process.pid for number, process in members.processes.items()}

    def seen(self) -> bool:
        """Look; always true."""
        now = self._now(self._members)
        changed = [number for number, pid in now.items() if pid != self._pids.get(number, pid)]
        assert len(changed) <= 1, "two members were restarted at once"
        self.order += changed
        self._pids = {**self._pids, **now}
        return True


def status(members: RealMembers) -> dict[str, str]:
    found: dict[str, str] = members.stage.found(KIND, "zk")["status"]
    return found


def shown(members: RealMembers, folder: Path) -> Path:
    """A folder with the operator's certificate."""
    folder.mkdir()
    for key, value in members.stage.found("Secret", members.named.operator_secret)["data"].items():
        (folder / key).write_bytes(base64.b64decode(value))
    return folder


def quorum_of(members: RealMembers) -> set[tuple[str, ...]]:
    """What members were started with."""
    texts = [(members.folder / f"config-{number}/zoo.cfg").read_text().splitlines() for number in range(3)]
    return {tuple(line for line in text if line.startswith(("sslQuorum=", "portUnification="))) for text in texts}


def test_who_reaches_a_members_admin_port_can_neither_take_nor_put_back_what_it_holds(members: RealMembers) -> None:
    """A restored snapshot would replace all znodes, and a snapshot has them all, the passwords of ledgers too."""
    founded(members, 1)
    writer = Writer(members)
    with writer.running():
        until(members, "something is written", lambda: bool(writer.acknowledged))
        for command in ("restore", "snapshot", "snapshot?streaming=true"):
            for method, credential in itertools.product(("POST", "GET"), (None, "digest super:secret", "digest anybody:secret")):
                headers = {"Content-Type": "application/octet-stream", **({"Authorization": credential} if credential else {})}
                port = http.client.HTTPConnection("127.0.0.1", members.ports[0].admin, timeout=10)
                with closing(port):
                    port.request(method, f"/commands/{command}", b"ZKSN" + bytes(100), headers)
                    answer = port.getresponse()
                    said = answer.read()
                assert answer.status >= 400, (command, method, credential, said[:200])
                assert b"last_zxid" not in said
                assert answer.getheader("last_zxid") is None
    assert voters(members) == [0]


def test_two_of_three_empty_members_elect_nobody_and_the_plugin_brings_the_quorum_back(
    members: RealMembers, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    founded(members, 3)
    writer = Writer(members)
    with writer.running():
        until(members, "something is written", lambda: len(writer.acknowledged) > 20)
    kept = leader(members)
    for number in range(3):
        members.stop(number)
        members.stage.delete("Pod", members.named.pod(number))
        if number != kept:
            members.stage.delete(CLAIM, members.named.claim(number))
    # members with nothing change their vote for nobody, however often they are asked; without them the third is no majority
    empty = [number for number in range(3) if number != kept]
    asked = [f"n.sid:{number + 1}, n.state:LOOKING, n.leader:{number + 1}," for number in empty]
    earlier = len(members.log(kept).read_text())  # of the election in which it was founded

    def asks_again() -> bool:
        since = members.log(kept).read_text()[earlier:]
        return all(since.count(said) >= 3 for said in asked)

    until(members, "the third asked the others again and again", asks_again)
    assert [number for number in range(3) if members.serves(number)] == []
    members.stage.reconcile(KIND, "zk")
    assert members.stage.condition(KIND, "zk") == ("False", "QuorumLost")
    message = members.stage.found(KIND, "zk")["status"]["message"]
    assert "Only 1 of 3 volumes hold data" in message

    # there is no kubelet: commands run in the members' folders, and their logs are files
    number_of = {members.named.pod(number): number for number in range(3)}
    monkeypatch.setattr(ApiServer, "execute", lambda _, pod, __, script: members.execute(number_of[pod], script))
    monkeypatch.setattr(ApiServer, "lines", lambda _, __, pod, *___: iter(members.log(number_of[pod]).read_text().splitlines()))
    words = ["recover", "zkc/zk", "-n", members.stage.namespace, "--kubeconfig", str(control_plane.kubeconfig), "-o", "json"]
    accepted = [*words, "--accept", members.named.pod(kept), "--yes"]
    before, output = members.stage.found("Pod", members.named.pod(kept))["metadata"]["uid"], io.StringIO()
    assert main(words, output=output) == 1
    told = json.loads(output.getvalue())
    assert (told["state"], [each["lost"] for each in told["members"]]) == ("Lost", [number != kept for number in range(3)])
    assert main([*accepted, "--dry-run"], output=io.StringIO()) == 0
    assert members.stage.found("Pod", members.named.pod(kept))["metadata"]["uid"] == before
    assert main(accepted, output=io.StringIO()) == 0
    until(members, "three members serve again", lambda: settled(members))
    assert voters(members) == [0, 1, 2]
    client = KazooClient(members.local_address(members.named.address(MOST)))
    client.start(timeout=60)
    try:
        assert set(writer.acknowledged) <= {f"/written/{name}" for name in client.get_children("/written")}
    finally:
        client.stop()
        client.close()


@dataclass
class Woken:
    """Counts how often it was woken, also by the end of a session."""

    times: int = 0
    known: int = 0

    def __call__(self, _: object) -> None:
        self.times += 1

    def __hash__(self) -> int:
        return id(self)

    def anew(self) -> bool:
        return self.times > self.known


@contextmanager
def standing_still(members: RealMembers, number: int) -> Iterator[None]:
    """A member whose machine is gone, as others see it: its connections stay, and nothing comes any more."""
    members.processes[number].send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        members.processes[number].send_signal(signal.SIGCONT)


def test_the_operator_reads_on_without_a_wait_for_the_end_of_its_session_whichever_member_stands_still(
    members: RealMembers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zookeeper_member, "SESSION_SECONDS", SESSION_SECONDS)
    founded(members, 3, config={"maxSessionTimeout": str(int(1000 * SESSION_SECONDS))})
    ensembles, address = EnsembleSessions(), members.local_address(members.named.address(3))
    try:
        for number in range(3):
            until(members, "all members serve", lambda: all(members.serves(each) for each in range(3)))
            before = again(lambda: ensembles.at(address).read(CONFIG_PATH))
            again(lambda: tells_of_many_what_it_tells_of_each(ensembles.at(address)))
            woken, change = Woken(), f"/told/change-{number}"
            again(partial(watch, ensembles, address, woken))
            again(partial(make, ensembles, address, change))
            until(members, "a change wakes who watches", woken.anew)
            woken.known = woken.times
            again(partial(watch, ensembles, address, woken))
            with standing_still(members, number):
                assert again(lambda: ensembles.at(address).read(CONFIG_PATH)) == before
            if not woken.anew():  # the session was with another member, and goes on
                again(partial(take_away, ensembles, address, change))
            until(members, "the next change, or the end of its session, wakes it again", woken.anew)
    finally:
        ensembles.stop()


def watch(ensembles: EnsembleSessions, address: str, woken: Woken) -> None:
    ensembles.at(address).children("/told", woken)


def make(ensembles: EnsembleSessions, address: str, path: str) -> None:
    ensembles.at(address).ensure(path)


def take_away(ensembles: EnsembleSessions, address: str, path: str) -> None:
    ensembles.at(address).delete(path)


def tells_of_many_what_it_tells_of_each(znodes: Znodes) -> None:
    """Two hundred znodes, every other one of which is there: more than are asked for at the same time."""
    paths = [f"/told/{number}" for number in range(200)]
    for path in paths[::2]:
        znodes.ensure(path)
    each = [znodes.read_changed(path) for path in paths]
    assert [znode is not None for znode in each] == [True, False] * 100
    assert znodes.changed_many(paths) == tuple(each)
    numbers = [znode.transaction for znode in each if znode is not None]
    assert numbers == sorted(set(numbers)), "changes are numbered in their order"
    assert znodes.read_many(paths) == tuple(None if znode is None else znode.data for znode in each)


def last_words(members: RealMembers) -> str:
    """The ends of all members' logs."""
    return "\n".join(f"--- {number}\n{members.log(number).read_text()[-6000:]}" for number in members.processes)


def again(ask: Callable[[], Answer]) -> Answer:
    """What the ensemble answers, asked again and again, as workers do."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return ask()
        except EnsembleError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
