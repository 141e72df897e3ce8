"""Whose certificate the programs of a tools pod present, and which Secrets are mounted for it."""

from __future__ import annotations

import json

from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.tools_pod import Database, ToolsPod

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
        return "/e2e\n/e2e/bk\n"


def pod_on(port: int) -> tuple[ToolsPod, PlayedCluster]:
    cluster = PlayedCluster(port)
    return ToolsPod(cluster, "tools", Database.of(cluster, "db", "bk", "flights")), cluster


def test_znodes_are_listed_with_the_operators_certificate_since_readers_may_not_see_them_all():
    tools, cluster = pod_on(2281)
    assert tools.znodes() == ["/e2e", "/e2e/bk"]
    tools.run("tablespace_record")
    listing, record = cluster.executed
    assert listing == ("env", "IDENTITY_FOLDER=/operator-identity", "python3", "-m", "herdkeeper_e2e.znodes")
    assert record == ("python3", "-m", "herdkeeper_e2e.tablespace_record")


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
    assert cluster.executed == [("python3", "-m", "herdkeeper_e2e.znodes")]
    assert "identity" not in json.dumps(tools.manifest()).lower()


def test_another_user_and_the_operators_certificate_go_together():
    tools, _ = pod_on(2281)
    command = tools.as_user("app", "secret").as_operator().program("query")
    assert command[:4] == ("env", "HERDDB_USERNAME=app", "HERDDB_PASSWORD=secret", "IDENTITY_FOLDER=/operator-identity")
