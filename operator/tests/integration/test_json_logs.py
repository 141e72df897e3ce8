"""Real servers, started by the images' entry points with LOG_FORMAT, as spec.pods.logFormat sets it: each line of a log is JSON."""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from real_members import IMAGE, home, start_member

from herdkeeper_e2e.control_plane import REPOSITORY
from herdkeeper_e2e.free_ports import free_port, free_ports
from herdkeeper_e2e.server_processes import jars_of

PATIENCE_SECONDS = 120
SMALL = "-Xmx96m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"


def member(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """A member of ZooKeeper whose two peers are not there."""
    config = folder / "config"
    config.mkdir()
    ports = free_ports(10)
    servers = [
        f"server.{number}=127.0.0.1:{ports[number]}:{ports[number + 3]}:participant;127.0.0.1:{ports[number + 6]}\n" for number in (1, 2, 3)
    ]
    files = {"founding": "true", "zoo.cfg.dynamic": "".join(servers)}
    files["zoo.cfg"] = f"tickTime=500\ninitLimit=10\nsyncLimit=5\ndataDir={folder}/data/store\nadmin.enableServer=false\n"
    for name, text in files.items():
        (config / name).write_text(text + ("reconfigEnabled=true\nstandaloneEnabled=false\n" if name == "zoo.cfg" else ""))
    return start_member("zk-zookeeper-0", (home(folder), config, folder / "data"), log, LOG_FORMAT="JSON", ZOOKEEPER_SUPER_DIGEST="/none")


def autorecovery(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """BookKeeper's autorecovery, whose ZooKeeper is not there."""
    config, made, tmp = folder / "config", folder / "home", folder / "tmp"
    for each in (config, made, tmp):
        each.mkdir()
    (made / "lib").symlink_to(jars_of("bookkeeper"))
    (made / "conf").symlink_to(REPOSITORY / "images/bookkeeper/conf")
    (config / "bk_server.conf").write_text(f"metadataServiceUri=zk+hierarchical://127.0.0.1:{free_port()}/ledgers\nzkTimeout=2000\n")
    folders = {"BOOKKEEPER_HOME": made, "BOOKKEEPER_CONFIG": config, "BOOKKEEPER_TMP": tmp}
    variables = {**{name: str(path) for name, path in folders.items()}, "JVM_OPTIONS": SMALL}
    return start([REPOSITORY / "images/bookkeeper/entrypoint.sh", "autorecovery"], log, variables)


def sql_node(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """A HerdDB server that stands alone."""
    made = folder / "home"
    made.mkdir()
    (made / "lib").symlink_to(jars_of("herddb"))
    login = {"HERDDB_USERNAME": "sa", "HERDDB_PASSWORD": "of-a-test"}
    variables = {"HERDDB_HOME": str(made), "HERDDB_LOGGING": str(REPOSITORY / "images/herddb/logging.properties"), **login}
    command = [REPOSITORY / "images/herddb/entrypoint.sh", "throwaway", "--folder", folder / "data", "--port", free_port()]
    return start(command, log, {**variables, "HERDDB_JAVA_OPTS": SMALL})


def start(command: list[object], log: Path, variables: dict[str, str]) -> subprocess.Popen[bytes]:
    environment = {"PATH": os.environ["PATH"], "LOG_FORMAT": "JSON", **variables}
    with log.open("wb") as output:
        return subprocess.Popen([str(word) for word in command], env=environment, stdout=output, stderr=subprocess.STDOUT)


@pytest.mark.parametrize(
    ("server", "fails_with"),
    [(member, "java.net.ConnectException"), (autorecovery, "org.apache.zookeeper.KeeperException"), (sql_node, None)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_line_of_a_servers_log_is_an_object_with_its_parts(
    tmp_path: Path, server: Callable[[Path, Path], subprocess.Popen[bytes]], fails_with: str | None
) -> None:
    assert IMAGE.is_dir()
    log = tmp_path / "log"
    process = server(tmp_path, log)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (lines := log.read_text().splitlines()[:-1]) is not None and time.monotonic() < deadline and process.poll() is None:
            if len(lines) >= 10 and (fails_with is None or any(fails_with in line for line in lines)):
                break
            time.sleep(0.2)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    found = [json.loads(line) for line in lines]
    assert len(found) >= 5
    for each in found:
        assert datetime.datetime.fromisoformat(each["time"]).tzinfo == datetime.UTC
        assert {"level", "logger", "thread", "message"} <= each.keys()
        assert each.keys() <= {"time", "level", "logger", "thread", "message", "context", "exception"}
        assert "exception" not in each or "\n\tat " in each["exception"], each
    assert any(each["logger"].startswith(("org.apache.", "herddb.", "io.herdkeeper.")) for each in found)
    if fails_with is not None:
        assert any(fails_with in each.get("exception", "") for each in found), [each["message"] for each in found]
