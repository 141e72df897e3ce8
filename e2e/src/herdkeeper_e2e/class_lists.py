"""Writes which Java classes the servers load: images/NAME/classes.lst, from which the images' archives of classes are made.

A stack with certificates on every port is started from the images' jars, and used. What each JVM loads beyond the classes that Java lists
itself is written in Java's own form (-XX:DumpLoadedClassList). A list is a hint: a class that it lacks is read from its jar, as without an
archive, and a name without a class is passed over. So it has to be made anew only after jars have changed.

Usage: python -m herdkeeper_e2e.class_lists
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from herdkeeper.certificates.settings import quorum_lines
from herdkeeper.sql.connection import Address, Connection
from herdkeeper.sql.encryption import Encryption
from herdkeeper_e2e.certificates import Authority
from herdkeeper_e2e.free_ports import free_ports
from herdkeeper_e2e.mutual_tls import LOOPBACK, stack_secrets
from herdkeeper_e2e.server_processes import CREDENTIALS, GUARDED_HTTP, Servers, servers

IMAGES = Path(__file__).parents[3] / "images"
LIST = "classes.lst"
"""Beside an image's Dockerfile."""
_END_SECONDS = 120
_FROM_FILE = " source: "
"""Marks a class of another loader than Java's own, which such an archive can't hold."""
_GENERATED = re.compile(r"jdk/jfr/internal/handlers/\w+\d+_\d+-\d+")
"""Classes that a process generates, with the time and its number in their names."""
_HEADER = "# Classes that this server loads. Made by `make lock-classes`; see herdkeeper_e2e.class_lists.\n"


def image_of(process: str) -> str:
    """Returns whose jars a process of `Servers` runs with."""
    if process.startswith("zookeeper"):
        return "zookeeper"
    return "herddb" if process.startswith("node") else "bookkeeper"


def merged(lists: Iterable[Iterable[str]], known: Iterable[str]) -> list[str]:
    """Returns the lines of several lists, each once and sorted, without comments, generated classes, and what `known` has."""
    left_out = set(known)
    found = {line.rstrip() for lines in lists for line in lines if not line.startswith("#") and _FROM_FILE not in line}
    return sorted(line for line in found - left_out - {""} if not _GENERATED.fullmatch(line))


def listed(file: Path) -> list[str]:
    """Returns the names of the classes in a list, with slashes, without what Java generates."""
    return [line for line in file.read_text().splitlines() if not line.startswith(("#", "@"))]


@contextmanager
def _stack() -> Iterator[tuple[Servers, Address]]:
    with servers(java_options=("-XX:DumpLoadedClassList=%p.lst", "-Xshare:off")) as running:
        folder = running.folder / "authority"
        folder.mkdir()
        authority = Authority(folder, "lists")
        running.secrets = stack_secrets(running.folder / "secrets", authority)
        nodes = running.secrets.nodes.folder
        election, quorum, metrics, http = free_ports(4)
        running.start_zookeeper(
            {
                "standaloneEnabled": "false",
                "reconfigEnabled": "true",
                "server.1": f"{LOOPBACK}:{quorum}:{election}",
                "metricsProvider.className": "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider",
                "metricsProvider.httpPort": metrics,
                "initLimit": 10,
                "syncLimit": 5,
                **quorum_lines(str(running.secrets.zookeeper.folder)),
            }
        )
        own = {
            "ledgerStorageClass": "io.herdkeeper.bookie.GuardedLedgerStorage",
            "bookieAuthProviderFactoryClass": "io.herdkeeper.bookie.TlsRequiredFactory",
        }
        running.start_bookies(1, {**GUARDED_HTTP, "httpServerPort": http, **own})
        running.start_autorecovery()
        encrypted = {"server.ssl": "true", "herdkeeper.tls.dir": nodes, "herdkeeper.tls.plaintext": "refused"}
        address = running.start_sql_node(encrypted, Encryption(LOOPBACK, authority.certificate))
        running.start_another_sql_node(1, encrypted)
        yield running, address


def _use(address: Address) -> None:
    with Connection.connect(address, CREDENTIALS, timeout_seconds=_END_SECONDS) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, name string, at timestamp)")
        connection.execute("CREATE INDEX named ON t (name)")
        for number in range(50):
            connection.execute("INSERT INTO t (id, name) VALUES (?, ?)", (number, "x"))
        connection.execute("UPDATE t SET name = 'y' WHERE id = ?", (3,))
        connection.execute("DELETE FROM t WHERE name = ?", ("y",))
        connection.query("SELECT name, COUNT(*) AS n FROM t WHERE id > 5 GROUP BY name ORDER BY n LIMIT 3")


def main() -> None:
    """Writes the lists of all three images, and says how long they are."""
    with _stack() as (running, address):
        _use(address)
        processes = dict(running.processes)
        for process in reversed(processes.values()):
            process.terminate()
            process.wait(_END_SECONDS)
        known = (Path(os.environ["JAVA_HOME"]) / "lib/classlist").read_text().splitlines()
        for image in ("zookeeper", "bookkeeper", "herddb"):
            files = [running.folder / f"pid{process.pid}.lst" for name, process in processes.items() if image_of(name) == image]
            lines = merged((file.read_text().splitlines() for file in files), known)
            (IMAGES / image / LIST).write_text(_HEADER + "".join(f"{line}\n" for line in lines))
            print(f"images/{image}/{LIST}: {len(lines)} lines", flush=True)


if __name__ == "__main__":
    main()
