"""Members of a ZooKeeperCluster as real processes, from the objects and with the certificates that the operator makes. No
containers, and no API server."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from real_members import IMAGE, Ports, home, start_member

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.api.default_images import SHIPPED_IMAGES
from herdkeeper.certificates.authority import first_authority, in_place_of, name_of, next_step, successor_of
from herdkeeper.certificates.holders import Holder, due_changes
from herdkeeper.certificates.issue import Subject, Validity, fresh_key, make_authority
from herdkeeper.clients.zookeeper import EnsembleError, EnsembleSessions, MembershipChange, Znodes
from herdkeeper.codecs.zookeeper.membership import CONFIG_PATH, Membership, decode_membership
from herdkeeper.codecs.zookeeper.super_digest import super_digest
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey, ZooKeeperNames
from herdkeeper.shared.objects import Objects
from herdkeeper.zookeeper import build, state
from herdkeeper.zookeeper.build import build_zookeeper
from herdkeeper_e2e.control_plane import REPOSITORY
from herdkeeper_e2e.defaulting import stored
from herdkeeper_e2e.free_ports import free_ports
from herdkeeper_e2e.mutual_tls import MountedSecret
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]
NUMBERS = range(3)
PASSWORD = "of-a-test"
OPERATOR = ObjectKey("demo", "zk-zookeeper-operator")
SERVED = Limit(300.0, 0.2)
Answer = TypeVar("Answer")
_SERVER = re.compile(r"server\.(\d+)=[^;\s]+:(participant|observer);(\S*?)(\d+)(?=\s|$)")


def declared() -> ZooKeeperCluster:
    """The quickstart's ensemble, with certificates."""
    for document in yaml.safe_load_all((REPOSITORY / "examples/quickstart.yaml").read_text()):
        if document["kind"] == "ZooKeeperCluster":
            document["spec"]["security"] = {"mode": "TLS"}
            found: Any = SHIPPED_IMAGES.completed(stored(document, "demo"))
            made: ZooKeeperCluster = found.model_copy(
                update={"metadata": found.metadata.model_copy(update={"uid": "a-uid", "generation": 1})}
            )
            return made
    raise KeyError("ZooKeeperCluster")


class Members:
    """Three of them, each with the certificates of all, and whoever the operator is to them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cluster, self.home = folder, declared(), home(folder)
        self.named = ZooKeeperNames(ObjectKey("demo", self.cluster.metadata.name))
        self.ports = tuple(Ports(*free_ports(4)) for _ in NUMBERS)
        self.secure, self.loopback = free_ports(len(NUMBERS)), free_ports(len(NUMBERS))
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.mounted = {secret: MountedSecret(folder / secret) for secret in ("clients", "members", "operator")}
        self.validity = Validity(datetime.now(UTC), timedelta(days=1))
        self.held: dict[str, dict[str, str]] = {}
        self.authorities = {of: first_authority(f"zk {of}", fresh_key(), self.validity) for of in ("clients", "members")}
        self.issue()
        self.encrypted = EnsembleSessions(lambda _: self.mounted["operator"].identity())
        self.plain = EnsembleSessions()

    @property
    def address(self) -> str:
        return ",".join(f"localhost:{port}" for port in self.secure)

    def issue(self, validity: Validity | None = None) -> None:
        """All get what is due to them."""
        hosts = self.named.served_hosts | {"localhost"}
        clients = (Holder("clients", Subject("zookeeper"), hosts), Holder("operator", Subject("operator")))
        for of, holders in (("clients", clients), ("members", (Holder("members", Subject("member"), hosts),))):
            for change in due_changes(holders, self.held, self.authorities[of], fresh_key, validity or self.validity):
                self.held[change.holder.secret] = dict(change.data)
                self.mounted[change.holder.secret].write(change.data)

    def roll(self) -> None:
        """One member after the other starts anew with what is due, and the operator is served meanwhile."""
        self.issue()
        for number in NUMBERS:
            self.end(number)
            self.ensure(f"/without/{number}")
            self.start(number)
            self.wait_until_served()

    def expire(self) -> None:
        """As after their life: authorities of the same names and keys have ended, and all that they signed; running members keep theirs."""
        validity = Validity(datetime.now(UTC) - timedelta(days=2), timedelta(days=1))
        for of, authority in self.authorities.items():
            pair = authority.signing
            self.authorities[of] = replace(authority, signing=make_authority(name_of(pair.certificate), pair.key, validity))
        self.held.clear()
        self.issue(validity)

    def end(self, number: int) -> None:
        """A member's process ends."""
        self.processes[number].terminate()
        self.processes[number].wait()

    def log(self, number: int) -> str:
        """What a member has logged."""
        return (self.folder / f"member-{number}.log").read_text(errors="replace")

    def start(self, number: int) -> None:
        """A member on its volume, with what the operator makes."""
        read = {
            f"{mount}/{key}": self.held[secret][key]
            for mount, secret, key in (
                (build.CLIENTS_MOUNT, "clients", names.AUTHORITIES_KEY),
                (build.MEMBERS_MOUNT, "members", names.AUTHORITIES_KEY),
                (build.MEMBERS_MOUNT, "members", names.CERTIFICATE_KEY),
            )
        }
        ensemble = state.Ensemble(self.cluster, Objects({}), password=PASSWORD, security=state.EnsembleSecurity(read_at_start=read))
        objects = {made["kind"]: made for made in build_zookeeper(ensemble)}
        data = objects["ConfigMap"]["data"]
        variables = objects["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]["env"]
        config, volume = self.folder / f"config-{number}", self.folder / f"volume-{number}"
        for folder in (config, volume):
            folder.mkdir(exist_ok=True)
        for name, text in data.items():
            (config / name).write_text(self._here(text, number).replace("/data/", f"{volume}/"))
        digest = self.folder / "super-digest"
        digest.write_text(super_digest(PASSWORD))
        read_at_start = self._here(next(each["value"] for each in variables if each["name"] == "READ_AT_START"), number)
        self.processes[number] = start_member(
            self.named.pod(number),
            (self.home, config, volume),
            self.folder / f"member-{number}.log",
            ZOOKEEPER_SUPER_DIGEST=str(digest),
            READ_AT_START=read_at_start,
        )

    def _here(self, text: str, number: int) -> str:
        """With this machine's ports and folders."""
        ports = self.ports[number]
        for there, here in (
            (f"secureClientPort={names.ZOOKEEPER_SECURE_PORT}", f"secureClientPort={self.secure[number]}"),
            (f"admin.serverPort={names.ZOOKEEPER_ADMIN_PORT}", f"admin.serverPort={ports.admin}"),
            (build.CLIENTS_MOUNT, str(self.mounted["clients"].folder)),
            (build.MEMBERS_MOUNT, str(self.mounted["members"].folder)),
        ):
            text = text.replace(there, here)
        return self.lines_here(text)

    def lines_here(self, text: str) -> str:
        """Lines of the membership."""

        def server(found: re.Match[str]) -> str:
            ports = self.ports[int(found[1]) - 1]
            port = self.loopback[int(found[1]) - 1] if found[4] == str(names.ZOOKEEPER_LOOPBACK_PORT) else ports.client
            return f"server.{found[1]}=127.0.0.1:{ports.quorum}:{ports.election}:{found[2]};{found[3]}{port}"

        return _SERVER.sub(server, text)

    def serves(self, number: int) -> bool:
        """What the image's readiness probe says, at the port that the membership has now."""

        def says(port: int) -> bool:
            return subprocess.run([str(IMAGE / "serving.sh"), str(port)], capture_output=True, check=False).returncode == 0

        return says(self.ports[number].client) or says(self.loopback[number])

    def wait_until_served(self) -> None:
        def words() -> str:
            return "\n".join(self.log(number)[-1500:] for number in NUMBERS)

        wait_for("all members serve", lambda: all(map(self.serves, NUMBERS)) or Pending(words()), SERVED)

    def wait_until_refused_by(self, numbers: Iterable[int]) -> None:
        """Until each of them has refused another one anew: its certificate has ended, which ZooKeeper's log leaves out."""
        line = "Exception reading or writing challenge"
        before = {number: self.log(number).count(line) for number in numbers}

        def refused() -> bool | Pending:
            missing = [number for number, count in before.items() if self.log(number).count(line) == count]
            return Pending(f"not yet by {missing}: {self.log(missing[0])[-1500:]}") if missing else True

        wait_for("members refuse each other", refused, SERVED)

    def membership(self) -> Membership:
        """As it is committed. The member that was asked last may have left: another one is asked then."""
        found = patiently(self.encrypted, self.address, lambda znodes: znodes.read(CONFIG_PATH), OPERATOR)
        assert found is not None
        return decode_membership(found[0])

    def ensure(self, path: str) -> None:
        """A znode is made, by a session with the operator's certificate."""
        patiently(self.encrypted, self.address, lambda znodes: znodes.ensure(path), OPERATOR)

    def leave(self, server: int) -> None:
        """A member leaves the membership. If it is the one that is asked, it may end before it answers: the membership is read again."""

        def left() -> bool | Pending:
            now = self.membership()
            if server not in now.voters:
                return True
            with suppress(EnsembleError):
                self.encrypted.reconfigure(self.address, PASSWORD, MembershipChange((), (server,), now.version), OPERATOR)
            return Pending(f"the voters were {sorted(now.voters)}")

        wait_for(f"member {server} leaves", left, SERVED)

    def stop(self) -> None:
        self.encrypted.stop()
        self.plain.stop()
        for process in self.processes.values():
            process.kill()
            process.wait()


def patiently(ensembles: EnsembleSessions, address: str, act: Callable[[Znodes], Answer], identity: ObjectKey | None = None) -> Answer:
    """What comes of it once the ensemble answers: on a busy machine a member is silent for longer than sessions wait."""

    def asked() -> tuple[Answer] | Pending:
        try:
            return (act(ensembles.at(address, identity)),)
        except EnsembleError as error:
            return Pending(str(error))

    (found,) = wait_for("the ensemble answers", asked, SERVED)
    return found


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    made = Members(tmp_path)
    yield made
    made.stop()


def test_an_ensemble_is_founded_with_certificates_and_its_membership_changes(members: Members) -> None:
    for number in NUMBERS:
        members.start(number)
    members.wait_until_served()
    members.ensure("/a/b")
    before = members.membership()
    assert {server.client.rpartition(":")[0] for server in before.servers} == {"127.0.0.1"}
    members.leave(3)
    assert members.membership().voters == {1, 2}
    with pytest.raises(EnsembleError, match="did not answer"):
        members.plain.at(members.address)


def test_other_authorities_take_over_in_three_steps_while_members_serve(members: Members) -> None:
    for number in NUMBERS:
        members.start(number)
    members.wait_until_served()
    before = members.held["operator"]
    for of, authority in members.authorities.items():
        successor = successor_of(authority, "zk", fresh_key(), members.validity)
        members.authorities[of] = replace(authority, following=successor)
    members.roll()
    for _ in range(2):
        members.authorities = {of: next_step(authority) for of, authority in members.authorities.items()}
        members.roll()
    members.ensure("/after")
    for number in NUMBERS:
        assert "the mounted certificates are not those" not in members.log(number)
    members.mounted["operator"].write({**before, "ca.crt": members.held["operator"]["ca.crt"]})
    outdated = EnsembleSessions(lambda _: members.mounted["operator"].identity())
    try:
        with pytest.raises(EnsembleError, match="did not answer"):
            outdated.at(members.address, OPERATOR).read(CONFIG_PATH)
    finally:
        outdated.stop()


def test_members_whose_authorities_have_expired_serve_again_with_others_in_their_place(members: Members) -> None:
    for number in NUMBERS:
        members.start(number)
    members.wait_until_served()
    members.ensure("/before")
    members.expire()
    members.end(0)
    members.start(0)
    members.wait_until_refused_by((1, 2))
    assert [members.serves(number) for number in NUMBERS] == [False, True, True], "the others serve by connections from before"
    for number in (1, 2):
        members.end(number)
        members.start(number)
    members.wait_until_refused_by(NUMBERS)
    assert not any(map(members.serves, NUMBERS))
    for of, authority in members.authorities.items():
        members.authorities[of] = in_place_of(authority, successor_of(authority, "zk", fresh_key(), members.validity))
    members.issue()
    for number in NUMBERS:
        members.end(number)
        members.start(number)
    members.wait_until_served()
    kept = patiently(members.encrypted, members.address, lambda znodes: znodes.children("/"), OPERATOR)
    assert kept is not None
    assert "before" in kept
