"""Whose certificate the programs of a tools pod present, which Secrets are mounted for it, and what its programs import."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.tools_pod import SOURCES, Database, ToolsPod

ON_THIS_MACHINE = {"azurite"}
ROOTS = {"herdRoot": "/e2e/db/herd", "credentialsSecret": "db-credentials", "tablespaceName": "flights"}


class PlayedCluster(Kubectl):
    """kubectl of a cluster whose ensemble serves at one port. Keeps what is executed."""

    def __init__(self, port: int) -> None:
        super().__init__("e2e", {})
        self.executed: list[tuple[str, ...]] = []
        self._address = f"zk-zookeeper-0.zk-zookeeper-members.e2e.svc:{port}"

    def get(self, kind: str, name: str) -> Object | None:
        return {"status": {**ROOTS, "zooKeeperAddress": self._address}}

    def exec(self, pod: str, *command: str, stdin: bytes = b"", timeout_seconds: float = 600.0) -> str:
        self.executed.append(command)
        return '["/e2e", "/e2e/bk"]'


def pod_on(port: int) -> tuple[ToolsPod, PlayedCluster]:
    cluster = PlayedCluster(port)
    return ToolsPod(cluster, "tools", Database.of(cluster, "db", "bk", "flights")), cluster


def test_znodes_are_listed_with_the_operators_certificate_since_readers_may_not_see_them_all():
    tools, cluster = pod_on(2281)
    assert tools.znodes() == ["/e2e", "/e2e/bk"]
    tools.fact("tablespace_record")
    listing, record = cluster.executed
    assert listing == ("env", "IDENTITY_FOLDER=/operator-identity", "python3", "-m", "herdkeeper_e2e.facts", "znodes")
    assert record == ("python3", "-m", "herdkeeper_e2e.facts", "tablespace_record")


def test_the_pod_mounts_a_readers_certificate_and_the_operators():
    tools, _ = pod_on(2281)
    manifest = tools.manifest()
    secrets = {each["name"]: each["secret"]["secretName"] for each in manifest["spec"]["volumes"] if "secret" in each}
    assert secrets == {"identity": "bk-bookie-readers", "operator-identity": "zk-zookeeper-operator"}
    (container,) = manifest["spec"]["containers"]
    assert {"name": "IDENTITY_FOLDER", "value": "/identity"} in container["env"]
    assert {"name": "operator-identity", "mountPath": "/operator-identity"} in container["volumeMounts"]


def test_in_plain_text_no_certificate_is_mounted_or_presented():
    tools, cluster = pod_on(2181)
    tools.znodes()
    assert cluster.executed == [("python3", "-m", "herdkeeper_e2e.facts", "znodes")]
    assert "identity" not in json.dumps(tools.manifest()).lower()


def test_another_user_and_the_operators_certificate_go_together():
    tools, _ = pod_on(2281)
    command = tools.as_user("app", "secret").as_operator().program("query")
    assert command[:4] == ("env", "HERDDB_USERNAME=app", "HERDDB_PASSWORD=secret", "IDENTITY_FOLDER=/operator-identity")


def test_no_program_of_a_pod_looks_for_the_repository():
    """A pod has the folder /work/herdkeeper_e2e alone."""
    texts = [file.read_text() for folder in ("src", "tests") for file in (REPOSITORY / "e2e" / folder).rglob("*.py")]
    called = {name for text in texts for name in re.findall(r'\.(?:run|program|follow|steered)\(\s*"([a-z_.]+)"', text)}
    programs = sorted(name for name in called - ON_THIS_MACHINE if (SOURCES / f"{name.replace('.', '/')}.py").is_file())
    assert {"compare", "loader", "checker.workload"} <= {*programs}
    imports = "import sys; [__import__(f'herdkeeper_e2e.{name}') for name in sys.argv[1:]]"
    loads = f"{imports}; print(*(vars(module).get('__file__') for module in sys.modules.values()))"
    loaded = subprocess.run([sys.executable, "-c", loads, *programs], capture_output=True, text=True, check=True).stdout.split()
    own = [Path(file) for file in loaded if file.startswith(str(SOURCES))]
    assert [file.name for file in own if re.search(r"parents\[[3-9]\]", file.read_text())] == []
