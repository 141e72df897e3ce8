"""The entry points of the images, run with a `java` that prints its arguments, on a pod whose name leads to it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from herdkeeper.bookkeeper.state.refusal import EMPTIED, REFUSED, cookie_on_volumes
from herdkeeper.codecs.bookkeeper.cookie import Cookie, encode_cookie

IMAGES = Path(__file__).parents[3] / "images"
ADDRESS = "10.0.0.9"
"""The pod's."""
TERMINATED = 143
"""The exit code of a shell that SIGTERM has ended."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    folder = tmp_path / "bin"
    folder.mkdir()
    played = {"java": 'echo "java $*"', "hostname": f"echo {ADDRESS}", "getent": f'echo "{ADDRESS} STREAM $2"'}
    for name, script in played.items():
        play(folder / name, script)
    return f"{folder}:{os.environ['PATH']}"


def play(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


class Member:
    """A ZooKeeper member's folders."""

    def __init__(self, folder: Path, path: str) -> None:
        self.config, self.data, self.path = folder / "config", folder / "data", path
        self.config.mkdir()
        self.data.mkdir()
        (self.config / "zoo.cfg").write_text("tickTime=2000\n")
        (self.config / "zoo.cfg.dynamic").write_text("server.1=a\nserver.3=c\n")
        self.digest = folder / "super-digest"

    def start(self, founding: str = "true", host: str = "quick-zookeeper-2", **more: str) -> subprocess.CompletedProcess[str]:
        started = self.begin(founding, host, **more)
        printed, told = started.communicate()
        return subprocess.CompletedProcess(started.args, started.returncode, printed, told)

    def begin(self, founding: str = "true", host: str = "quick-zookeeper-2", **more: str) -> subprocess.Popen[str]:
        (self.config / "founding").write_text(founding)
        folders = {
            **more,
            "ZOOKEEPER_CONFIG": str(self.config),
            "ZOOKEEPER_DATA": str(self.data),
            "ZOOKEEPER_SUPER_DIGEST": str(self.digest),
        }
        command, environment = [str(IMAGES / "zookeeper/entrypoint.sh")], {"PATH": self.path, "HOSTNAME": host, **folders}
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def member(tmp_path: Path, path: str) -> Member:
    return Member(tmp_path, path)


def test_a_member_starts_once_its_name_leads_to_its_pod_and_not_to_nobody_or_the_pod_before(member: Member, tmp_path: Path) -> None:
    asked, before = tmp_path / "asked", "10.0.0.8"
    answers = f"case $(wc -l <{asked}) in 1) exit 2 ;; 2) echo {before} STREAM $2 ;; *) echo {ADDRESS} STREAM $2 ;; esac"
    play(tmp_path / "bin/getent", f"echo $2 >>{asked}; {answers}")
    started = member.start()
    assert asked.read_text().split() == ["c", "c", "c"]
    assert "does not lead" not in started.stdout
    assert "java " in started.stdout


def test_a_second_process_of_a_member_waits_until_the_first_one_has_ended(member: Member, tmp_path: Path) -> None:
    """A pod that was deleted by force may go on for a while, beside the next one of its name."""
    store = member.data / "store"
    store.mkdir()
    play(tmp_path / "bin/java", f"flock -n {store} true || echo the JVM holds the lock")
    assert_waits_for(store, member.begin)


def assert_waits_for(folder: Path, begin: Callable[[], subprocess.Popen[str]]) -> None:
    """A process that begins while another one holds the folder becomes its JVM behind that one's end, or ends when it is told to."""
    first = os.open(folder, os.O_RDONLY)
    fcntl.flock(first, fcntl.LOCK_EX)
    second = begin()
    assert second.stdout is not None
    assert "another process uses" in second.stdout.readline()
    told = begin()
    assert told.stdout is not None
    told.stdout.readline()
    told.terminate()
    assert told.wait() == TERMINATED
    os.close(first)
    printed, _ = second.communicate()
    assert printed.splitlines()[-1:] == ["the JVM holds the lock"]


def test_a_member_starts_once_the_certificates_are_mounted_with_which_it_was_to_start(member: Member, tmp_path: Path) -> None:
    files = [tmp_path / "ca.crt", tmp_path / "tls.crt"]
    for file in files:
        file.write_text("old\n")
    told = " ".join((hashlib.sha256(b"old\nnew\n").hexdigest(), *map(str, files)))
    play(tmp_path / "bin/sleep", f"echo new >{files[1]}; echo waits")
    started = member.start(READ_AT_START=told)
    assert started.stdout.count("waits") == 1
    assert "java " in started.stdout
    assert "all the same" not in started.stdout


def test_a_member_whose_certificates_stay_others_says_so_and_starts_in_the_end(member: Member, tmp_path: Path) -> None:
    """Its operator may have ended between the Secret and the template."""
    (tmp_path / "ca.crt").write_text("newer\n")
    started = member.start(READ_AT_START=f"{hashlib.sha256(b'new').hexdigest()} {tmp_path}/ca.crt", ZOOKEEPER_FILES_SECONDS="0")
    assert "the mounted certificates are not those of READ_AT_START after 0 s: it starts all the same" in started.stdout
    assert "java " in started.stdout


def test_a_member_whose_name_leads_nowhere_says_so_and_starts_in_the_end(member: Member, tmp_path: Path) -> None:
    play(tmp_path / "bin/getent", "exit 2")
    started = member.start(ZOOKEEPER_NAME_SECONDS="0")
    assert f"c does not lead to this pod ({ADDRESS}) after 0 s" in started.stdout
    assert "java " in started.stdout


def test_a_member_that_is_told_a_port_for_metrics_serves_them_there_whatever_its_configuration_says(member: Member) -> None:
    (member.config / "zoo.cfg").write_text("metricsProvider.httpPort=1\n")
    member.start(METRICS_PORT="7070")
    lines = dict(line.partition("=")[::2] for line in (member.data / "conf/zoo.cfg").read_text().splitlines() if line)
    assert lines["metricsProvider.className"] == "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
    assert lines["metricsProvider.httpPort"] == "7070"


def test_a_member_that_is_told_no_port_for_metrics_has_no_provider(member: Member) -> None:
    member.start()
    assert "metricsProvider" not in (member.data / "conf/zoo.cfg").read_text()


def test_a_founding_member_may_make_the_empty_tree(member: Member) -> None:
    assert member.start().returncode == 0
    assert (member.data / "store/initialize").exists()
    assert (member.data / "store/myid").read_text() == "3\n"


def test_an_empty_member_of_a_founded_ensemble_may_not(member: Member) -> None:
    started = member.start(founding="false")
    assert not (member.data / "store/initialize").exists()
    assert "-Dzookeeper.db.autocreate=false" in started.stdout


def test_a_member_with_data_does_not_found_again(member: Member) -> None:
    (member.data / "store/version-2").mkdir(parents=True)
    (member.data / "store/version-2/log.1").touch()
    (member.data / "store/initialize").touch()
    member.start()
    assert not (member.data / "store/initialize").exists()


@pytest.mark.parametrize(
    ("situation", "on_the_volume", "mounted", "counts"),
    [
        ("a founding member", (), (), "zoo.cfg.dynamic"),
        ("a member that was there at each change", ("9", "a00000001", "100000000"), ("100000000",), "zoo.cfg.dynamic.a00000001"),
        ("a new member", (), ("100000000",), "zoo.cfg.dynamic.100000000"),
        ("a member that returns on an old volume", ("9", "100000000"), ("a00000001",), "zoo.cfg.dynamic.a00000001"),
        ("both know the same", ("100000000",), ("100000000",), "zoo.cfg.dynamic.100000000"),
    ],
)
def test_the_highest_membership_of_volume_and_mount_counts(
    member: Member, situation: str, on_the_volume: tuple[str, ...], mounted: tuple[str, ...], counts: str
) -> None:
    (member.data / "conf").mkdir()
    for folder, versions in ((member.data / "conf", on_the_volume), (member.config, mounted)):
        for version in versions:
            (folder / f"zoo.cfg.dynamic.{version}").write_text(f"server.3={folder.name}\n")
    started = member.start()
    assert started.returncode == 0, started.stderr
    assert (member.data / "conf/zoo.cfg").read_text().endswith(f"/conf/{counts}\n"), situation
    assert (member.data / "conf" / counts).exists()


def test_a_volume_is_not_overwritten_with_what_is_mounted(member: Member) -> None:
    (member.data / "conf").mkdir()
    for folder in (member.data / "conf", member.config):
        (folder / "zoo.cfg.dynamic.100000000").write_text(f"server.3={folder.name}\n")
    member.start()
    assert (member.data / "conf/zoo.cfg.dynamic.100000000").read_text() == "server.3=conf\n"


def test_a_member_that_follows_without_being_listed_begins_with_the_file_without_a_version_each_time(member: Member) -> None:
    for _ in range(2):
        (member.config / "zoo.cfg.dynamic.100000000").write_text("server.1=a\n")
        assert member.start().returncode == 0
        assert (member.data / "conf/zoo.cfg").read_text().endswith("/conf/zoo.cfg.dynamic\n")
        assert "server.3=c" in (member.data / "conf/zoo.cfg.dynamic").read_text()
        (member.data / "conf/zoo.cfg.dynamic.100000000").write_text("server.1=a\n")  # what it learns


def test_a_member_that_got_its_vote_begins_with_the_membership_that_lists_it(member: Member) -> None:
    (member.data / "conf").mkdir()
    (member.config / "zoo.cfg.dynamic.100000000").write_text("server.1=a\n")
    (member.data / "conf/zoo.cfg.dynamic.100000001").write_text("server.1=a\nserver.3=c\n")
    member.start()
    assert (member.data / "conf/zoo.cfg").read_text().endswith("/conf/zoo.cfg.dynamic.100000001\n")


def test_who_is_not_in_the_membership_is_refused(member: Member) -> None:
    (member.config / "zoo.cfg.dynamic.100000000").write_text("server.1=a\nserver.33=c\n")
    (member.config / "zoo.cfg.dynamic").write_text("server.1=a\nserver.33=c\n")
    refused = member.start()
    assert refused.returncode == 78
    assert "member 3 is not in the membership" in refused.stderr


@pytest.mark.parametrize(("proposed", "stays"), [("100000000", False), ("ffff", False), ("100000001", True), ("1000000000", True)])
def test_a_proposed_change_is_kept_only_while_it_may_still_be_committed(member: Member, proposed: str, stays: bool) -> None:
    (member.data / "conf").mkdir()
    (member.data / "conf/zoo.cfg.dynamic.100000000").write_text("server.3=c\n")
    (member.data / "conf/zoo.cfg.dynamic.next").write_text(f"server.3=c\nversion={proposed}")
    assert member.start().returncode == 0
    assert (member.data / "conf/zoo.cfg.dynamic.next").exists() is stays


def test_a_member_gets_the_digest_that_may_change_the_membership(member: Member) -> None:
    member.digest.write_text("super:abc=")
    started = member.start()
    assert "DigestAuthenticationProvider.superDigest=super:abc=\n" in (member.data / "conf/zoo.cfg").read_text()
    assert "skipACL" not in started.stdout


def test_without_a_digest_nobody_may_change_the_membership(member: Member) -> None:
    started = member.start()
    assert "superDigest" not in (member.data / "conf/zoo.cfg").read_text()
    assert "the membership can not be changed" in started.stdout


def test_only_where_clients_need_certificates_access_goes_by_them(member: Member) -> None:
    providers = [
        "authProvider.x509=io.herdkeeper.zookeeper.CertificateLogin",
        "authProvider.stack=io.herdkeeper.zookeeper.StackAccess",
    ]
    member.start()
    made = member.data / "conf/zoo.cfg"
    assert not [line for line in made.read_text().splitlines() if line in providers]
    (member.config / "zoo.cfg").write_text("secureClientPort=2281\n")
    member.start()
    assert [line for line in made.read_text().splitlines() if line in providers] == providers


def test_another_members_volume_is_refused(member: Member) -> None:
    member.start()
    refused = member.start(host="quick-zookeeper-0")
    assert refused.returncode == 78
    assert "the volume is another member's" in refused.stderr


def test_a_number_that_a_full_disk_left_empty_is_written_again_and_a_written_one_is_not(member: Member) -> None:
    number = member.data / "store/myid"
    number.parent.mkdir()
    number.touch()
    assert member.start().returncode == 0
    assert number.read_text() == "3\n"
    written = number.stat()
    assert member.start().returncode == 0
    assert number.stat() == written


def test_a_membership_that_a_power_cut_left_empty_is_copied_again(member: Member) -> None:
    (member.data / "conf").mkdir()
    (member.data / "conf/zoo.cfg.dynamic.100000000").touch()
    (member.config / "zoo.cfg.dynamic.100000000").write_text("server.3=c\n")
    assert member.start().returncode == 0
    assert (member.data / "conf/zoo.cfg.dynamic.100000000").read_text() == "server.3=c\n"


def test_a_member_becomes_zookeeper_by_the_class_that_finishes_what_was_interrupted(member: Member) -> None:
    assert member.start().stdout.endswith(f" io.herdkeeper.zookeeper.MemberStart {member.data}/conf/zoo.cfg\n")


class Bookie:
    """A bookie's folders."""

    def __init__(self, folder: Path, path: str) -> None:
        self.journal, self.ledgers, self.tmp, self.path = folder / "journal", folder / "ledgers", folder / "tmp", path
        self.config, self.said = folder / "config", folder / "termination-log"
        for each in (self.journal, self.ledgers, self.tmp, self.config):
            each.mkdir()
        (self.config / "bk_server.conf").write_text(
            "bookiePort=3181\nhttpServerClass=org.apache.bookkeeper.http.vertx.VertxHttpServer\n"
            "ledgerStorageClass=org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage\n"
            "bookieAuthProviderFactoryClass=org.apache.bookkeeper.tls.BookieAuthZFactory\n"
        )

    def start(self, bookie_id: str = "b-0-abc123", *arguments: str) -> subprocess.CompletedProcess[str]:
        folders = {f"BOOKKEEPER_{name.upper()}": str(getattr(self, name)) for name in ("journal", "ledgers", "tmp", "config")}
        command = [str(IMAGES / "bookkeeper/entrypoint.sh"), *(arguments or ("bookie",))]
        folders["TERMINATION_LOG"] = str(self.said)
        environment = {"PATH": self.path, "BOOKIE_ID": bookie_id, "ADVERTISED_ADDRESS": "b-0.svc", **folders}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def bookie(tmp_path: Path, path: str) -> Bookie:
    return Bookie(tmp_path, path)


def test_two_empty_volumes_get_the_identity_and_keep_it(bookie: Bookie) -> None:
    assert bookie.start().returncode == 0
    assert (bookie.journal / "bookie-id").read_text() == (bookie.ledgers / "bookie-id").read_text() == "b-0-abc123\n"
    assert bookie.start().returncode == 0
    assert "bookieId=b-0-abc123\nadvertisedAddress=b-0.svc\n" in (bookie.tmp / "bk_server.conf").read_text()


def test_a_bookie_of_this_image_serves_only_the_endpoints_that_somebody_needs(bookie: Bookie) -> None:
    """BookKeeper's own HTTP server deletes ledgers for anybody; of a key that is there twice BookKeeper takes the first line."""
    assert bookie.start().returncode == 0
    lines = (bookie.tmp / "bk_server.conf").read_text().splitlines()
    assert [line for line in lines if line.startswith("httpServerClass")] == ["httpServerClass=io.herdkeeper.bookie.GuardedHttpServer"]


def test_a_bookie_of_this_image_takes_no_key_of_zeros_and_its_shell_reads_what_it_stored(bookie: Bookie) -> None:
    """The shell dumps ledgers of BookKeeper's own storage only; both are the same on the disk."""
    for arguments, storage in (
        ((), "io.herdkeeper.bookie.Guarded"),
        (("shell", "ledger", "1"), "org.apache.bookkeeper.bookie.storage.ldb.Db"),
    ):
        assert bookie.start("b-0-abc123", *arguments).returncode == 0
        lines = (bookie.tmp / "bk_server.conf").read_text().splitlines()
        assert [line for line in lines if "LedgerStorage" in line] == [f"ledgerStorageClass={storage}LedgerStorage"]


def test_a_bookie_of_this_image_tells_of_plain_text(bookie: Bookie) -> None:
    assert bookie.start().returncode == 0
    lines = (bookie.tmp / "bk_server.conf").read_text().splitlines()
    factory = [line for line in lines if line.startswith("bookieAuthProviderFactoryClass")]
    assert factory == ["bookieAuthProviderFactoryClass=io.herdkeeper.bookie.TlsRequiredFactory"]


def test_another_identity_is_refused(bookie: Bookie) -> None:
    bookie.start()
    refused = bookie.start("b-0-fresh1")
    assert refused.returncode == 78
    assert "the volume is another bookie's" in refused.stderr


@pytest.mark.parametrize("emptied", ["journal", "ledgers"])
def test_one_empty_volume_beside_data_is_refused(bookie: Bookie, emptied: str) -> None:
    bookie.start()
    for volume in (bookie.journal, bookie.ledgers):
        (volume / "current").touch()
    for file in getattr(bookie, emptied).iterdir():
        file.unlink()
    refused = bookie.start()
    assert refused.returncode == EMPTIED
    assert "has no bookie-id" in refused.stderr


def test_two_empty_volumes_of_a_bookie_that_served_are_refused(bookie: Bookie) -> None:
    (bookie.config / "known-bookies").write_text("b-0-abc123\nb-1-xyz789\n")
    refused = bookie.start()
    assert refused.returncode == EMPTIED
    assert "b-0-abc123 served before" in refused.stderr
    assert list(bookie.journal.iterdir()) == []
    assert bookie.start("b-0-fresh1").returncode == 0


def test_a_founding_that_was_interrupted_is_completed(bookie: Bookie) -> None:
    bookie.start()
    (bookie.ledgers / "bookie-id").unlink()
    assert bookie.start().returncode == 0
    assert (bookie.ledgers / "bookie-id").exists()


class FoundedBookie(Bookie):
    """One that BookKeeper has founded and that has written, in the cluster `an-instance`. `served`, `has_cookie`: by the mounted lists."""

    def __init__(self, folder: Path, path: str) -> None:
        super().__init__(folder, path)
        self.start()
        self.journal_directory = self.journal / "journal/current"
        self.ledger_directory = self.ledgers / "ledgers/current"
        self.directories = (self.journal_directory, self.ledger_directory)
        for index in ("ledgers", "locations"):
            (self.ledger_directory / index).mkdir(parents=True)
            (self.ledger_directory / index / "CURRENT").write_text("MANIFEST-000005\n")
        (self.ledger_directory / "lastMark").touch()
        self.journal_directory.mkdir(parents=True)
        (self.journal_directory / "1a1ff5d5de0.txn").touch()
        self.cookie = encode_cookie(Cookie("b-0-abc123", "/journal/journal", ("/ledgers/ledgers",), "an-instance"))
        for directory in self.directories:
            (directory / "VERSION").write_bytes(self.cookie)
        (self.config / "known-bookies").write_text("b-0-abc123\n")
        (self.config / "cookies").write_text("b-0-abc123\n")
        (self.config / "instance-id").write_text("an-instance\n")

    def empty(self, directory: Path) -> None:
        shutil.rmtree(directory)
        directory.mkdir()


@pytest.fixture
def founded(tmp_path: Path, path: str) -> FoundedBookie:
    return FoundedBookie(tmp_path, path)


def test_a_founded_bookie_starts_and_leaves_no_word(founded: FoundedBookie) -> None:
    assert founded.start().returncode == 0
    assert not founded.said.exists()


def test_a_bookie_without_a_cookie_in_zookeeper_tells_what_its_volumes_have(founded: FoundedBookie) -> None:
    (founded.config / "cookies").write_text("b-1-xyz789\n")
    started = founded.start()
    assert started.returncode == 0, started.stderr
    ended = {"terminated": {"exitCode": 2, "message": founded.said.read_text()}}
    pod = {"status": {"containerStatuses": [{"ready": False, "lastState": ended}]}}
    assert cookie_on_volumes(pod) == founded.cookie


@pytest.mark.parametrize("directory", ["journal_directory", "ledger_directory"])
@pytest.mark.parametrize("cookies", ["b-0-abc123\n", ""], ids=["with a cookie in ZooKeeper", "without"])
def test_a_directory_without_its_data_never_starts_whatever_zookeeper_has(founded: FoundedBookie, directory: str, cookies: str) -> None:
    (founded.config / "cookies").write_text(cookies)
    founded.empty(getattr(founded, directory))
    refused = founded.start()
    assert refused.returncode == EMPTIED
    assert str(getattr(founded, directory)) in refused.stderr
    assert not founded.said.exists()


def test_a_bookie_that_served_and_lost_all_its_data_does_not_start_on_volumes_that_still_have_its_id(founded: FoundedBookie) -> None:
    (founded.config / "cookies").write_text("")
    for directory in founded.directories:
        founded.empty(directory)
    assert founded.start().returncode == EMPTIED


def test_a_founding_that_was_interrupted_before_the_cookie_was_written_is_bookkeepers_to_complete(founded: FoundedBookie) -> None:
    (founded.config / "known-bookies").write_text("")
    (founded.config / "cookies").write_text("")
    founded.empty(founded.ledger_directory)
    founded.empty(founded.journal_directory)
    (founded.journal_directory / "VERSION").write_bytes(founded.cookie)
    assert founded.start().returncode == 0


@pytest.mark.parametrize("directory", ["journal_directory", "ledger_directory"])
@pytest.mark.parametrize("left", [None, b""], ids=["missing", "cut off"])
def test_a_version_that_is_missing_beside_whole_data_is_restored(founded: FoundedBookie, directory: str, left: bytes | None) -> None:
    version = getattr(founded, directory) / "VERSION"
    version.unlink() if left is None else version.write_bytes(left)
    started = founded.start()
    assert started.returncode == 0, started.stderr
    assert version.read_bytes() == founded.cookie
    assert f"{version} was missing beside data" in started.stdout


def another_instance(founded: FoundedBookie) -> None:
    (founded.config / "instance-id").write_text("another-instance\n")


def no_instance(founded: FoundedBookie) -> None:
    (founded.config / "instance-id").unlink()


def another_bookies_cookie(founded: FoundedBookie) -> None:
    (founded.journal_directory / "VERSION").write_bytes(founded.cookie.replace(b"b-0-abc123", b"b-1-xyz789"))


def no_version_at_all(founded: FoundedBookie) -> None:
    (founded.journal_directory / "VERSION").unlink()


def no_index(founded: FoundedBookie) -> None:
    shutil.rmtree(founded.ledger_directory / "locations")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (another_instance, "names another BookKeeper cluster than ZooKeeper does (another-instance)"),
        (no_instance, "names another BookKeeper cluster than ZooKeeper does (unknown)"),
        (another_bookies_cookie, "is not of b-0-abc123"),
        (no_version_at_all, "no other directory has one"),
        (no_index, "lacks an index"),
    ],
)
def test_a_version_is_not_restored_where_anything_contradicts(
    founded: FoundedBookie, change: Callable[[FoundedBookie], None], told: str
) -> None:
    (founded.ledger_directory / "VERSION").unlink()
    change(founded)
    refused = founded.start()
    assert refused.returncode == REFUSED
    assert told in refused.stderr.splitlines()[-1]
    assert not (founded.ledger_directory / "VERSION").exists()


class BookieOfThree(Bookie):
    """One with three ledger volumes."""

    def __init__(self, folder: Path, path: str) -> None:
        super().__init__(folder, path)
        self.volumes = [self.journal, self.ledgers, folder / "ledgers-1", folder / "ledgers-2"]
        for volume in self.volumes[2:]:
            volume.mkdir()

    def begin(self, bookie_id: str = "b-0-abc123") -> subprocess.CompletedProcess[str]:
        environment = {
            **{f"BOOKKEEPER_{name.upper()}": str(getattr(self, name)) for name in ("journal", "tmp", "config")},
            "LEDGER_VOLUMES": " ".join(map(str, self.volumes[1:])),
        }
        command = [str(IMAGES / "bookkeeper/entrypoint.sh"), "bookie"]
        told = {"PATH": self.path, "BOOKIE_ID": bookie_id, **environment}
        return subprocess.run(command, env=told, capture_output=True, text=True, check=False)

    def fill(self) -> None:
        for volume in self.volumes:
            (volume / "current").touch()


@pytest.fixture
def bookie_of_three(tmp_path: Path, path: str) -> BookieOfThree:
    return BookieOfThree(tmp_path, path)


def test_all_volumes_of_a_bookie_get_the_identity_and_keep_it(bookie_of_three: BookieOfThree) -> None:
    for _ in range(2):
        assert bookie_of_three.begin().returncode == 0
        bookie_of_three.fill()
    assert {(volume / "bookie-id").read_text() for volume in bookie_of_three.volumes} == {"b-0-abc123\n"}
    assert bookie_of_three.begin("b-0-fresh1").returncode == 78


@pytest.mark.parametrize("emptied", range(4))
def test_one_empty_volume_of_several_beside_data_is_refused(bookie_of_three: BookieOfThree, emptied: int) -> None:
    bookie_of_three.begin()
    bookie_of_three.fill()
    for file in bookie_of_three.volumes[emptied].iterdir():
        file.unlink()
    refused = bookie_of_three.begin()
    assert refused.returncode == EMPTIED
    assert f"{bookie_of_three.volumes[emptied]} has no bookie-id" in refused.stderr


@pytest.mark.parametrize("written", range(4))
def test_a_founding_of_several_volumes_that_was_interrupted_anywhere_is_completed(bookie_of_three: BookieOfThree, written: int) -> None:
    for volume in bookie_of_three.volumes[:written]:
        (volume / "bookie-id").write_text("b-0-abc123\n")
    (bookie_of_three.volumes[written] / ".bookie-id.new").touch()
    assert bookie_of_three.begin().returncode == 0
    assert {(volume / "bookie-id").read_text() for volume in bookie_of_three.volumes} == {"b-0-abc123\n"}


@pytest.mark.parametrize(
    ("arguments", "program"),
    [
        (("--config", "/config/server.properties"), "io.herdkeeper.node.Main --config /config/server.properties"),
        (("throwaway", "--folder", "/d"), "io.herdkeeper.node.throwaway.ThrowawayServer --folder /d"),
    ],
)
def test_a_sql_node_is_one_of_a_cluster_or_one_that_is_thrown_away(
    tmp_path: Path, path: str, arguments: tuple[str, ...], program: str
) -> None:
    """Its own jar comes first: it has classes in place of HerdDB's."""
    lib = tmp_path / "lib"
    lib.mkdir()
    for jar in ("guava.jar", "herddb-node.jar"):
        (lib / jar).touch()
    command = [str(IMAGES / "herddb/entrypoint.sh"), *arguments]
    started = subprocess.run(command, env={"PATH": path, "HERDDB_HOME": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert started.returncode == 0, started.stderr
    assert started.stdout.strip().endswith(f"-cp {lib}/herddb-node.jar:{lib}/guava.jar:{lib}/herddb-node.jar {program}")


def test_a_second_process_of_a_sql_node_waits_until_the_first_one_has_ended(tmp_path: Path, path: str) -> None:
    """It would write the pages and checkpoints of a pod that was deleted by force and is still there."""
    data = tmp_path / "data"
    data.mkdir()
    play(tmp_path / "bin/java", f"flock -n {data} true || echo the JVM holds the lock")
    command = [str(IMAGES / "herddb/entrypoint.sh"), "--config", "/config/server.properties"]
    environment = {"PATH": path, "HERDDB_HOME": str(tmp_path), "HERDDB_DATA": str(data)}
    assert_waits_for(data, lambda: subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))


@pytest.mark.parametrize("server", ["zookeeper", "herddb"])
def test_a_volume_that_can_not_be_locked_is_used_and_nobody_else_is_blamed(tmp_path: Path, member: Member, path: str, server: str) -> None:
    """Some file systems lock no folder; flock ends with another code than for a lock that somebody holds."""
    play(tmp_path / "bin/flock", "exit 71")
    if server == "zookeeper":
        started = member.start()
    else:
        environment = {"PATH": path, "HERDDB_HOME": str(tmp_path), "HERDDB_DATA": str(member.data)}
        command = [str(IMAGES / "herddb/entrypoint.sh"), "--config", "/config/server.properties"]
        started = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "can't be locked: it starts all the same" in started.stdout
    assert "another process" not in started.stdout
    assert "java " in started.stdout.splitlines()[-1]


def test_autorecovery_needs_no_volumes(bookie: Bookie) -> None:
    assert "org.apache.bookkeeper.replication.AutoRecoveryMain" in bookie.start("auto", "autorecovery").stdout


def test_a_move_is_of_the_recorded_ledgers(bookie: Bookie) -> None:
    moved = bookie.start("", "move-recorded", "b-1-abc123", "/record/record", "5000")
    assert moved.returncode == 0, moved.stderr
    assert moved.stdout.strip().endswith(
        "io.herdkeeper.bookie.MoveLedgers " + f"{bookie.tmp}/bk_server.conf b-1-abc123 /record/record 5000"
    )
    assert bookie.start("", "move-recorded", "b-1-abc123").returncode == 2


def test_an_unknown_mode_is_refused(bookie: Bookie) -> None:
    assert bookie.start("b", "bokie").returncode == 2


@pytest.mark.parametrize(("known", "named"), [("exit 2", True), ("echo spark:x:10001", False)])
def test_a_job_names_its_user_where_the_system_does_not_know_it(path: str, tmp_path: Path, known: str, named: bool) -> None:
    play(tmp_path / "bin/getent", known)
    play(tmp_path / "bin/id", "echo 1000680000")
    users = tmp_path / "users"
    command = [str(IMAGES / "spark/entrypoint.sh"), "java", "job"]
    started = subprocess.run(command, env={"PATH": path, "EXTRA_USERS": str(users)}, capture_output=True, text=True, check=False)
    assert started.stdout == "java job\n", started.stderr
    if named:
        assert (users / "passwd").read_text() == "spark:x:1000680000:1000680000:spark:/tmp:/usr/sbin/nologin\n"
    assert users.exists() is named


def test_a_server_starts_with_the_archive_of_its_images_classes_and_without_one_where_there_is_none(member: Member, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "lib").mkdir(parents=True)
    for jar in ("b.jar", "a.jar"):
        (home / "lib" / jar).touch()
    assert "SharedArchiveFile" not in member.start(ZOOKEEPER_HOME=str(home)).stdout
    (home / "classes.jsa").touch()
    started = member.start(ZOOKEEPER_HOME=str(home)).stdout
    assert f" -XX:SharedArchiveFile={home}/classes.jsa " in started
    assert f" -cp {home}/lib/a.jar:{home}/lib/b.jar " in started
