"""A real HDFS without containers: a NameNode and a DataNode, each a plain Java process on free ports, in a temporary folder."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import requests

from herdkeeper_e2e.server_processes import Servers, free_port, jars_of, servers

USER = "checkpoints"
_NAME_NODE, _DATA_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode", "org.apache.hadoop.hdfs.server.datanode.DataNode"
_OPTIONS = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


@contextmanager
def running_hdfs() -> Iterator[str]:
    """Its URL, `webhdfs://127.0.0.1:PORT`, once a file can be written; it ends with the block. All users may do everything."""
    with servers() as running:
        port = free_port()
        _configure(running, port)
        command = ["java", *_OPTIONS, "-cp", f"{running.folder}:{jars_of('hdfs')}/*"]
        formats = subprocess.run([*command, _NAME_NODE, "-format", "-nonInteractive"], check=False, capture_output=True, text=True)
        if formats.returncode:
            raise SystemExit(f"the NameNode could not be formatted; its last words:\n{formats.stderr[-3000:]}")
        for name, program in (("namenode", _NAME_NODE), ("datanode", _DATA_NODE)):
            running.run(name, [*command, program])
        running.wait("namenode", lambda: _would_write(port))
        yield f"webhdfs://127.0.0.1:{port}"


def _configure(running: Servers, port: int) -> None:
    name_node = f"hdfs://127.0.0.1:{free_port()}"
    _write(running, "core-site.xml", {"fs.defaultFS": name_node, "hadoop.tmp.dir": running.folder})
    settings = {
        "dfs.namenode.http-address": f"127.0.0.1:{port}",
        "dfs.namenode.name.dir": running.folder / "name",
        "dfs.datanode.data.dir": running.folder / "data",
        "dfs.datanode.hostname": "127.0.0.1",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.replication": 1,
        # Who starts the servers owns the root, and that is not the user of the jobs.
        "dfs.permissions.enabled": "false",
        **{f"dfs.datanode.{kind}address": "127.0.0.1:0" for kind in ("", "http.", "ipc.")},
    }
    _write(running, "hdfs-site.xml", settings)


def _write(running: Servers, name: str, settings: Mapping[str, object]) -> None:
    properties = "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items())
    (running.folder / name).write_text(f"<configuration>{properties}</configuration>")


def _would_write(port: int) -> bool:
    """Whether the NameNode serves, is out of safe mode, and knows a DataNode to write to."""
    asked = f"http://127.0.0.1:{port}/webhdfs/v1/any?op=CREATE&user.name={USER}"
    try:
        return requests.put(asked, timeout=5, allow_redirects=False).status_code == requests.codes.temporary_redirect
    except requests.RequestException:
        return False
