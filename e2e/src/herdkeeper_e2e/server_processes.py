"""Real servers without containers: ZooKeeper, bookies and SQL nodes, each a plain Java process on free ports, in a temporary folder.

They use the images' jars. They end with their benchmark or test. Their files are not fsynced where that is configurable, since clients are
under test here.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from kazoo.client import KazooClient

from herdkeeper.certificates.settings import bookie_lines, bookkeeper_lines, zookeeper_client_options
from herdkeeper.clients.zookeeper import EnsembleError, EnsembleSessions
from herdkeeper.codecs.bookkeeper.start_tls import start_tls_request
from herdkeeper.engine.execute_metadata import format_ledgers_root
from herdkeeper.shared.names import ObjectKey
from herdkeeper.sql.connection import DEFAULT_TABLESPACE, Address, Connection, Credentials
from herdkeeper.sql.encryption import Encryption
from herdkeeper.sql.errors import SqlError
from herdkeeper.tls.identity import MountedIdentity
from herdkeeper.tls.kazoo_handler import MutualTlsHandler
from herdkeeper_e2e.free_ports import free_port
from herdkeeper_e2e.mutual_tls import LOOPBACK, REFRESHED, ROLE, StackSecrets

TESTER = ObjectKey("tests", "tester")
"""Stands for the Secret with the certificate of whoever tests."""
_SCRIPTS = Path(__file__).parents[2] / "images"
_START_SECONDS = 180
LEDGERS_ROOT, HERD_ROOT = "/ledgers", "/herd"
CREDENTIALS = Credentials("bench", "only-for-a-benchmark")
NODE, NODE_ID = "node", "node-0"
"""The SQL node's process name, and its id in the cluster."""
AUTORECOVERY = "autorecovery"
GUARDED_HTTP = {
    "httpServerEnabled": "true",
    "httpServerClass": "io.herdkeeper.bookie.GuardedHttpServer",
    "statsProviderClass": "org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider",
    "prometheusStatsHttpEnable": "false",
}
"""Settings for an HTTP port as in the pods of bookies and autorecovery; the caller sets `httpServerPort`."""
QUICK_COMPILER = ("-XX:TieredStopAtLevel=1", "-Xshare:auto")
"""Servers of a test end before the work of Java's slow compiler has paid."""
TOKEN = "orders-of-a-test"
"""The token of the HTTP ports of SQL nodes and bookies."""
_NO_SESSION = "Failed to create zookeeper client"
"""What a bookie says then."""
_LOG4J = """<Configuration status="ERROR"><Appenders><Console name="stdout"/></Appenders>
<Loggers><Root level="WARN"><AppenderRef ref="stdout"/></Root></Loggers></Configuration>"""


@cache
def jars_of(server: str) -> Path:
    """Returns the folder with the jars of an image: zookeeper, bookkeeper or herddb; or of `example`, which examples/java makes."""
    printed = subprocess.run([str(_SCRIPTS / "server-jars.sh"), server], check=True, stdout=subprocess.PIPE, text=True).stdout
    return Path(printed.strip())


def class_path(jars: Path) -> tuple[str, ...]:
    """Returns the options of a JVM with these jars, as the images' entry points give them: with the archive of their classes, if any."""
    archive = jars.parent / "classes.jsa"
    node = [jar for jar in (jars / "herddb-node.jar",) if jar.exists()]  # it replaces classes of HerdDB, so it comes first
    found = ":".join(map(str, (*node, *sorted(jars.glob("*.jar")))))
    return *((f"-XX:SharedArchiveFile={archive}",) if archive.exists() else ()), "-cp", found


@dataclass
class Servers:
    """The running servers. Made by `servers`."""

    folder: Path
    jars: Mapping[str, Path] = field(default_factory=dict)
    """Folders with the jars of images, if not this checkout's."""
    java_options: tuple[str, ...] = QUICK_COMPILER
    """For every JVM, besides its own."""
    secrets: StackSecrets | None = None
    """If given, servers and clients authenticate each other by these certificates, which are then mandatory."""
    zookeeper_host: str = LOOPBACK
    """Host name of the member, which resolves to 127.0.0.1."""
    bookie_host: str = LOOPBACK
    """The same for bookies."""
    ledgers_root: str = LEDGERS_ROOT
    herd_root: str = HERD_ROOT
    tick_millis: int = 2000
    """ZooKeeper's tick, half of the shortest session."""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    commands: dict[str, list[str]] = field(default_factory=dict)
    """The command line of each process."""
    zookeeper: str = ""
    """host:port once started."""
    node_http: str = ""
    """URL of the SQL node's HTTP port once started."""

    def start_zookeeper(self, more: Mapping[str, object] | None = None) -> str:
        """Start one member; returns its address. `more` are further settings."""
        port = free_port()
        data = self._folder("zookeeper")
        plain = {"clientPort": port, "clientPortAddress": LOOPBACK}
        lines = {
            "dataDir": data,
            "tickTime": self.tick_millis,
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            **(plain if self.secrets is None else self.secrets.zookeeper_lines(port)),
            **(more or {}),
        }
        (data / "zoo.cfg").write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        (data / "myid").write_text("1\n")
        quiet = _SCRIPTS.parents[1] / "images/zookeeper/conf/logback.xml"
        options = ["-Xmx512m", "-Dzookeeper.forceSync=no", f"-Dlogback.configurationFile={quiet}"]
        self._start("zookeeper", options, "zookeeper", ("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(data / "zoo.cfg")))
        self.zookeeper = f"{self.zookeeper_host}:{port}"
        self.wait("zookeeper", lambda: _listens(port))
        with self.client():  # it listens before it serves
            return self.zookeeper

    def start_bookies(
        self, count: int, settings: Mapping[str, object] | None = None, first: Callable[[], None] = lambda: None
    ) -> list[str]:
        """Start bookies with DbLedgerStorage and their cluster at `ledgers_root`; returns their ids once all are registered. `settings`
        override configuration lines; `first` is called before the bookies start.
        """
        names = [f"bookie-{number}" for number in range(count)]
        tester = self._identity()
        ensembles = EnsembleSessions(None if tester is None else lambda _: tester())
        try:
            self.wait("zookeeper", lambda: self._has_ledgers_root(ensembles, None if tester is None else TESTER))
        finally:
            ensembles.stop()
        first()
        for name in names:
            self._bookie_file(name, settings or {})
            self._start_bookie(name)
        with self.client() as client:
            for name in names:
                self._wait_for_bookie(client, name)
        return names

    def restart_bookie(self, name: str, meanwhile: Callable[[Path], None] | None = None) -> None:
        """Stop a bookie like its StatefulSet (SIGTERM), call `meanwhile` with its folder, and start it again."""
        # Its registration must not be mistaken for the next one's.
        self.stop_bookie(name)
        if meanwhile is not None:
            meanwhile(self.folder / name)
        self._start_bookie(name)
        with self.client() as client:
            self._wait_for_bookie(client, name)

    def stop_bookie(self, name: str) -> None:
        """Stop a bookie for good, in order; its registration is removed."""
        self.processes[name].terminate()
        self.processes[name].wait(_START_SECONDS)
        with self.client() as client:
            self.wait(name, lambda: client.exists(f"{self.ledgers_root}/available/{name}") is None, may_have_ended=True)

    def start_autorecovery(self, more: Mapping[str, object] | None = None) -> None:
        """Start one daemon, auditor and replication worker, that considers a bookie lost as soon as it is not registered. It reports no
        readiness: wait for its effects. `more` are further settings.
        """
        file = self._bookie_file(AUTORECOVERY, {"lostBookieRecoveryDelay": 0, **(more or {})})
        command = ("org.apache.bookkeeper.replication.AutoRecoveryMain", "--conf", str(file))
        self._start(AUTORECOVERY, ["-Xmx256m", "-XX:MaxDirectMemorySize=256m"], "bookkeeper", command)

    def move_recorded(self, bookie: str, record: str) -> tuple[int, str]:
        """Move the recorded ledgers of a bookie, as a drain's Job does; returns the exit code and the output."""
        name = f"move-{sum(1 for process in self.processes if process.startswith('move-'))}"
        file = self._bookie_file(name, {})
        (self.folder / name / "record").write_text(record)
        command = ("io.herdkeeper.bookie.MoveLedgers", str(file), bookie, str(self.folder / name / "record"), "-1")
        code = self._start(name, ["-Xmx256m", "-XX:MaxDirectMemorySize=256m"], "bookkeeper", command).wait(_START_SECONDS)
        return code, (self.folder / f"{name}.log").read_text(errors="replace")

    def _start_bookie(self, name: str) -> None:
        options = ["-Xmx384m", "-XX:MaxDirectMemorySize=512m", "-Dio.netty.tryReflectionSetAccessible=true", "-Dherdkeeper.bookie=true"]
        file, token = self.folder / name / "bk_server.conf", self.folder / name / "token"
        token.write_text(TOKEN)
        options += [f"-Dherdkeeper.token={token}", f"-Dherdkeeper.bookie.id={name}"]
        self._start(name, options, "bookkeeper", ("org.apache.bookkeeper.server.Main", "--conf", str(file)))

    def _wait_for_bookie(self, client: KazooClient, name: str) -> None:
        """It registers before it serves. One that gave up its first session, for which BookKeeper waits 10 s, is started again, as the
        kubelet does."""

        def registered() -> bool:
            ended = self.processes[name].poll() is not None
            if ended and _NO_SESSION in (self.folder / f"{name}.log").read_text(errors="replace"):
                (self.folder / f"{name}.log").unlink()
                self.run(name, self.commands[name])
            return client.exists(f"{self.ledgers_root}/available/{name}") is not None

        self.wait(name, registered, may_have_ended=self.secrets is not None)
        lines = (self.folder / name / "bk_server.conf").read_text().splitlines()
        port = int(next(line for line in lines if line.startswith("bookiePort=")).partition("=")[2])
        self.wait(name, lambda: _serves_entries(port))

    def start_sql_node(self, more: Mapping[str, object] | None = None, encryption: Encryption | None = None) -> Address:
        """Start a SQL node that leads the tablespace `herd`, whose log has one copy per bookie, at most three.

        `more` are additional or overriding settings; `encryption` is how clients verify a node that these make encrypt its SQL port.
        """
        address, self.node_http = self.begin_sql_node(NODE, NODE_ID, more or {})
        address = replace(address, encryption=encryption)
        self.wait(NODE, lambda: leads(address))
        return address

    def start_another_sql_node(self, number: int, more: Mapping[str, object] | None = None) -> str:
        """Start node `number`, from 1 on, with the id `node-<number>`, which leads nothing until told; returns the URL of its HTTP port
        once it answers.
        """
        name = f"node-{number}"
        _, http = self.begin_sql_node(name, name, more or {})
        self.wait(name, lambda: _listens(int(http.rpartition(":")[2])))
        return http

    def begin_sql_node(self, name: str, node_id: str, more: Mapping[str, object]) -> tuple[Address, str]:
        """Start the process of a SQL node without waiting; returns its future SQL address, and the URL of its HTTP port."""
        copies = min(3, sum(1 for process in self.processes if process.startswith("bookie-")))
        port, http, folder = free_port(), free_port(), self._folder(name)
        credentials = self.folder / "credentials"
        credentials.mkdir(exist_ok=True)
        (credentials / "username").write_text(CREDENTIALS.username)
        (credentials / "password").write_text(CREDENTIALS.password)
        (credentials / "token").write_text(TOKEN)
        settings = {
            "server.mode": "cluster",
            "server.host": "127.0.0.1",
            "server.port": port,
            "server.zookeeper.address": self.zookeeper,
            "server.zookeeper.path": self.herd_root,
            "server.bookkeeper.start": "false",
            "server.bookkeeper.ledgers.path": self.ledgers_root,
            "server.bookkeeper.wait.cluser.ready.timeout": 10,
            "server.base.dir": folder,
            "server.jmx.enable": "false",
            "herdkeeper.http.host": "127.0.0.1",
            "herdkeeper.http.port": http,
            "herdkeeper.hand-over.seconds": 0,
            "herdkeeper.credentials.dir": credentials,
        } | {f"server.bookkeeper.{quorum}.size": copies for quorum in ("ensemble", "write.quorum", "ack.quorum")}
        if self.secrets is not None:
            settings |= {f"bookkeeper.{key}": value for key, value in bookkeeper_lines(str(self.secrets.nodes.folder)).items()}
        settings |= more
        (folder / "server.properties").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        options = ["-Xmx2g", "-XX:MaxDirectMemorySize=1g", "-Xss512k", "-Dio.netty.tryReflectionSetAccessible=true"]
        arguments = ("--config", str(folder / "server.properties"), "--node-id", node_id, "--advertised-host", "127.0.0.1")
        encrypted = () if self.secrets is None else ("--http-certificate", str(self.secrets.nodes.folder))
        self._start(name, options, "herddb", ("io.herdkeeper.node.Main", *arguments, *encrypted))
        return Address("127.0.0.1", port), f"{'https' if encrypted else 'http'}://127.0.0.1:{http}"

    def pause(self, name: str) -> None:
        """Stops a process until SIGCONT. It may answer for a moment after the signal was sent: returns once all of it stands still."""
        process = self.processes[name]
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)

    def kill(self, name: str) -> None:
        """End a server at once, like a power cut (SIGKILL)."""
        self.processes[name].kill()
        self.processes[name].wait()

    def start_again(self, name: str, ready: Callable[[], bool]) -> None:
        """Restart an ended server with the same command and files, and wait until it is ready."""
        self.run(name, self.commands[name])
        self.wait(name, ready)

    @contextmanager
    def client(self) -> Iterator[KazooClient]:
        identity = self._identity()
        handler = None if identity is None else MutualTlsHandler(identity)
        client = KazooClient(hosts=self.zookeeper, timeout=30.0, handler=handler)
        client.start(timeout=_START_SECONDS)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def process_ids(self) -> list[int]:
        """Returns the ids of the running servers' processes."""
        return [process.pid for process in self.processes.values() if process.poll() is None]

    def stop(self) -> None:
        """End all of them, the last one first."""
        for process in reversed(self.processes.values()):
            process.kill()
            process.wait()

    def _has_ledgers_root(self, ensembles: EnsembleSessions, identity: ObjectKey | None) -> bool:
        """Create the ledgers root if missing. False while a busy machine keeps ZooKeeper from answering."""
        try:
            znodes = ensembles.at(self.zookeeper, identity)
            if znodes.read(f"{self.ledgers_root}/LAYOUT") is None:
                format_ledgers_root(znodes, self.ledgers_root)
        except EnsembleError:
            return False
        return True

    def _bookie_file(self, name: str, more: Mapping[str, object]) -> Path:
        folder = self._folder(name)
        settings: Mapping[str, object] = {
            "metadataServiceUri": f"zk+hierarchical://{self.zookeeper}{self.ledgers_root}",
            "bookieId": name,
            "bookiePort": free_port(),
            "listeningInterface": "lo",
            "allowLoopback": "true",
            "advertisedAddress": self.bookie_host,
            "journalDirectories": folder / "journal",
            "ledgerDirectories": folder / "ledgers",
            "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
            "dbStorage_writeCacheMaxSizeMb": 64,
            "dbStorage_readAheadCacheMaxSizeMb": 64,
            "dbStorage_rocksDB_blockCacheSize": 32 * 1024 * 1024,
            "journalSyncData": "false",
            "diskUsageThreshold": 0.99,
            "diskUsageWarnThreshold": 0.98,
            "httpServerEnabled": "false",
            "minUsableSizeForEntryLogCreation": 1,
            "minUsableSizeForIndexFileCreation": 1,
            **({} if self.secrets is None else {**bookkeeper_lines(str(self.secrets.bookies.folder)), **bookie_lines(ROLE), **REFRESHED}),
            **more,
        }
        file = folder / "bk_server.conf"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return file

    def _folder(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir()
        return folder

    def _start(self, name: str, options: list[str], jars: str, command: tuple[str, ...]) -> subprocess.Popen[bytes]:
        log4j = self.folder / "log4j2.xml"
        log4j.write_text(_LOG4J)
        settings = ("-XX:+UseSerialGC", "-XX:-UsePerfData", f"-Dlog4j2.configurationFile={log4j}")
        folder = self.jars.get(jars) or jars_of(jars)
        self.commands[name] = [
            "java",
            *options,
            *settings,
            *self._identity_options(jars),
            *self.java_options,
            *class_path(folder),
            *command,
        ]
        return self.run(name, self.commands[name])

    def _identity(self) -> MountedIdentity | None:
        """Identity of clients in this process."""
        return None if self.secrets is None else self.secrets.tester.identity

    def _identity_options(self, jars: str) -> tuple[str, ...]:
        """Options of a JVM with a ZooKeeper client."""
        if self.secrets is None or jars == "zookeeper":
            return ()
        secret = self.secrets.bookies if jars == "bookkeeper" else self.secrets.nodes
        return zookeeper_client_options(str(secret.folder))

    def run(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        """Start a process in the folder; its output goes into a file there."""
        with (self.folder / f"{name}.log").open("ab") as output:
            self.processes[name] = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=self.folder)
        return self.processes[name]

    def wait(self, name: str, ready: Callable[[], bool], may_have_ended: bool = False) -> None:
        """Raises SystemExit with the end of the server's output if it has ended, or does not get ready."""
        deadline = time.monotonic() + _START_SECONDS
        while not ready():
            ended = self.processes[name].poll() is not None and not may_have_ended
            if ended or time.monotonic() > deadline:
                words = (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]
                raise SystemExit(f"{name} did not start; its last words:\n{words}")
            time.sleep(0.2)


@contextmanager
def servers(java_options: tuple[str, ...] = QUICK_COMPILER) -> Iterator[Servers]:
    """Nothing runs yet; whatever is started ends with the block, including its files. What is measured needs both of Java's compilers."""
    if "JAVA_HOME" not in os.environ:
        raise SystemExit("JAVA_HOME is not set: run this through e2e/bootstrap/run.sh")
    made = Servers(Path(tempfile.mkdtemp(prefix="herdkeeper-servers-")), java_options=java_options)
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(made.folder)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _serves_entries(port: int) -> bool:
    """Whether the bookie answers START_TLS, with or without certificates. Between its registration and its first request it closes each
    connection (RejectRequestHandler of BookKeeper 4.18.0)."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=5.0) as opened:
            opened.sendall(start_tls_request())
            return bool(opened.recv(1))
    except OSError:
        return False


def leads(address: Address, tablespace: str = DEFAULT_TABLESPACE) -> bool:
    """Returns whether that node leads the tablespace now."""
    try:
        with Connection.connect(address, CREDENTIALS, tablespace, timeout_seconds=5.0) as connection:
            connection.require_leader()
    except SqlError:
        return False
    return True
