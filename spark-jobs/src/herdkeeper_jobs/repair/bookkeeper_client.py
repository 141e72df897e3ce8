"""Runs BookKeeper's client, which copies a ledger's fragments between bookies and changes the metadata by compare-and-set.

Fragments move only through it: its order of copying and renaming keeps every reader safe. It is Java, hence a separate process. It ignores
our lock, so it is killed when the lock is lost. Source: BookKeeper 4.18.0, BookieShell's `recover -l` (BookKeeperAdmin.recoverLedger,
LedgerFragmentReplicator). `-sk` makes it skip open ledgers, which it would otherwise fence.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from herdkeeper.certificates.settings import bookkeeper_lines, zookeeper_client_options
from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.tls.identity import own_identity
from herdkeeper_jobs.repair.relocation import Relocation

_POLL_SECONDS = 1.0
_MAIN = "org.apache.bookkeeper.bookie.BookieShell"
_JVM = ("-Xmx192m", "-XX:MaxDirectMemorySize=192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError")
_RACK_SCRIPT = """\
#!/bin/sh
# Prints the network location of each address, by the file beside it; fails for one that is not in it.
for address in "$@"; do
    found=""
    while read -r name location; do
        if [ "$name" = "$address" ]; then found="$location"; fi
    done <"$(dirname "$0")/racks"
    [ -n "$found" ] || exit 1
    echo "$found"
done
"""


class NotMovedError(RuntimeError):
    """BookKeeper's client did not start, or failed; the message has its last output."""


@dataclass(frozen=True, slots=True)
class BookKeeperClient:
    """The client in the jars of `library`. `rack_of`: racks by bookie id, as far as known. It presents this process's certificate."""

    library: Path
    zookeeper: str
    ledgers_root: str
    rack_of: Mapping[str, str] = field(default_factory=dict)
    min_racks: int = 1
    bytes_per_second: float = float("inf")

    def move(self, planned: Relocation, addresses: Mapping[str, BookieAddress], require_lock: Callable[[], None]) -> None:
        """Copies, and returns once the metadata names the new bookies. `require_lock` is called repeatedly and raises when the move must
        stop. Raises NotMovedError, and what `require_lock` raises."""
        with tempfile.TemporaryDirectory(prefix="move-") as made:
            folder = Path(made)
            lines = self._placement(folder, addresses) | self._settings(planned)
            (folder / "client.conf").write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
            with (folder / "output").open("wb") as output:
                try:
                    process = subprocess.Popen(self._command(planned, folder), stdout=output, stderr=subprocess.STDOUT, env=_environment())
                except OSError as error:
                    raise NotMovedError(f"BookKeeper's client could not be started: {error}") from error
            try:
                code = _ended(process, require_lock)
            finally:
                process.kill()
                process.wait()
            if code != 0:
                words = (folder / "output").read_text(errors="replace").strip()[-600:]
                raise NotMovedError(f"BookKeeper's client ended with {code}: {words or 'no output'}")

    def _command(self, planned: Relocation, folder: Path) -> list[str]:
        rate = () if self.bytes_per_second == float("inf") else ("-rate", str(max(1, int(self.bytes_per_second))))
        recover = ("recover", "-f", "-sk", *rate, "-l", str(planned.metadata.ledger_id), ",".join(planned.bookie_ids))
        identity = own_identity()
        certificate = () if identity is None else zookeeper_client_options(identity.folder)
        options = (*_JVM, *certificate, f"-Djava.io.tmpdir={folder}", "-Dio.netty.tryReflectionSetAccessible=true")
        return ["java", *options, "-cp", f"{self.library}/*", _MAIN, "-conf", str(folder / "client.conf"), *recover]

    def _settings(self, planned: Relocation) -> dict[str, object]:
        # `null`: use the layout that ZooKeeper names.
        uri = f"zk+null://{self.zookeeper.replace(',', ';')}{self.ledgers_root}"
        identity = own_identity()
        certificate = {} if identity is None else bookkeeper_lines(identity.folder)
        return {"metadataServiceUri": uri, "rereplicationEntryBatchSize": planned.entries_in_lot, **certificate}

    def _placement(self, folder: Path, addresses: Mapping[str, BookieAddress]) -> dict[str, object]:
        """Lines of the configuration for racks, with the files that they name; empty without known racks."""
        located = {bookie_id: rack for bookie_id, rack in self.rack_of.items() if bookie_id in addresses}
        if not located:
            return {}
        lines = [
            f"{name} /{rack.replace('/', ':')}\n"
            for bookie_id, rack in sorted(located.items())
            for name in sorted(_names(addresses[bookie_id].host))
        ]
        (folder / "racks").write_text("".join(lines))
        script = folder / "rack.sh"
        script.write_text(_RACK_SCRIPT)
        script.chmod(0o500)
        return {
            "reppDnsResolverClass": "org.apache.bookkeeper.net.ScriptBasedMapping",
            "networkTopologyScriptFileName": script,
            "minNumRacksPerWriteQuorum": self.min_racks,
            "ignoreLocalNodeInPlacementPolicy": "true",
        }


def _ended(process: subprocess.Popen[bytes], require_lock: Callable[[], None]) -> int:
    """Waits for the process; returns its exit code. Raises what `require_lock` raises."""
    while True:
        require_lock()
        try:
            return process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            continue


def _environment() -> dict[str, str]:
    """Drops the options of Spark's JVM."""
    return {key: value for key, value in os.environ.items() if key not in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")}


def _names(host: str) -> set[str]:
    """The host and its addresses: BookKeeper may ask by any of them."""
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        found = set()
    return {host, *found}
