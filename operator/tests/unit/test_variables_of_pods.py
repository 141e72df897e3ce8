"""What a resource says stands in arguments and variables of pods, where Kubernetes replaces `$(NAME)` by another variable of the
container: a password, a token or a key that the resource's author may not read, on its way to an address of the author's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from situations import LOG_STORE

from herdkeeper.api import Checkpoint, ReplicationAudit, Tablespace
from herdkeeper.api.job import Destination
from herdkeeper.herddb.log.build_archive import build_archiver
from herdkeeper.spark.build_job import build_audit, build_checkpoint, build_restore
from herdkeeper.spark.sources import ArchiveSource, AuditSource, CheckpointSource, Login, RestoreSource
from herdkeeper.spark.work import work_of

META = {"name": "quick", "namespace": "demo", "uid": "11111111-2222-3333-4444-555555555555"}
ZOOKEEPER = "quick-zookeeper-0.quick-zookeeper-members.demo.svc:2181"
IMAGE = "herdkeeper/spark:0.2.0"
EVERY = "$(HERDDB_PASSWORD)-$(HERDDB_TOKEN)-$(DESTINATION_AWS_SECRET_ACCESS_KEY)-$$(HERDDB_TOKEN)-$$$(POD_IP)-$HOME-$"
MINE = {
    "uri": "s3://mine/flights",
    "endpoint": f"https://thief.example/{EVERY}",
    "region": EVERY[:50],
    "credentialsSecretRef": {"name": "mine"},
}
THEIRS = {"uri": "s3://theirs/flights", "credentialsSecretRef": {"name": "theirs"}}
EXECUTORS = {"executors": {"instances": 2}}

_REFERENCE = re.compile(r"\$(\$|\(([A-Za-z0-9_.-]+)\))?")


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """As Kubernetes does (third_party/forked/golang/expansion): `$$` is `$`, `$(NAME)` a variable, if there is one before."""
    return _REFERENCE.sub(lambda at: "$" if at[1] == "$" else variables.get(at[2] or "", at[0]), text)


def variables_of(container: Mapping[str, Any]) -> dict[str, str]:
    """In their order: a value refers to those before it."""
    found: dict[str, str] = {}
    for entry in container.get("env") or []:
        found[entry["name"]] = f"<the Secret's {entry['name']}>" if "valueFrom" in entry else expanded(entry["value"], found)
    return found


def started(container: Mapping[str, Any]) -> tuple[list[str], dict[str, str]]:
    """The arguments and variables with which a kubelet starts it."""
    variables = variables_of(container)
    return [expanded(each, variables) for each in container["args"]], variables


def container_of(workload: Mapping[str, Any]) -> Mapping[str, Any]:
    return dict(workload["spec"]["template"]["spec"]["containers"][0])


def executors_of(arguments: list[str]) -> dict[str, str]:
    """The variables of the pods that Spark makes of the template among the driver's arguments."""
    return variables_of(json.loads(arguments[arguments.index("--executor-pod") + 1])["spec"]["containers"][0])


def test_a_restores_store_does_not_get_the_administrators_password_nor_the_keys_of_another_store() -> None:
    archive = {"objectStore": MINE}
    spec = {
        "herdDBRef": {"name": "db"},
        "bootstrap": {"checkpoint": {"name": "theirs"}, "target": {"latest": True}, "archive": archive, "job": EXECUTORS},
    }
    source = RestoreSource(
        ZOOKEEPER,
        "/demo/db/herd",
        Destination.model_validate({"objectStore": THEIRS}),
        "a/b/manifests/1-2.json",
        Login("db-credentials"),
        archive=ArchiveSource(None, Destination.model_validate(archive)),
    )
    job = build_restore(Tablespace.model_validate({"metadata": META, "spec": spec}), source, IMAGE)[-1]
    arguments, variables = started(container_of(job))
    for found in (variables, executors_of(arguments)):
        assert found["ARCHIVE_AWS_ENDPOINT_URL"] == MINE["endpoint"]
        assert found["ARCHIVE_AWS_REGION"] == MINE["region"]


def test_a_checkpoints_store_does_not_get_the_token_of_the_sql_nodes() -> None:
    spec = {"tablespaceRef": {"name": "flights"}, "destination": {"objectStore": MINE}, "job": EXECUTORS}
    source = CheckpointSource(ZOOKEEPER, "/demo/bk/ledgers", "/demo/db/herd", "flights", None, "10.0.0.1:9845", "db-credentials")
    job = build_checkpoint(Checkpoint.model_validate({"metadata": META, "spec": spec}), source, IMAGE)[-1]
    assert "HERDDB_TOKEN" in variables_of(container_of(job))
    arguments, variables = started(container_of(job))
    for found in (variables, executors_of(arguments)):
        assert found["DESTINATION_AWS_ENDPOINT_URL"] == MINE["endpoint"]
        assert found["DESTINATION_AWS_REGION"] == MINE["region"]


def test_an_archivers_place_is_told_as_it_was_declared() -> None:
    spec = {"herdDBRef": {"name": "db"}, "log": {"archive": {"destination": {"objectStore": MINE}}}}
    found = build_archiver(Tablespace.model_validate({"metadata": META, "spec": spec}), LOG_STORE, "/demo/db/herd", IMAGE)
    arguments, variables = started(container_of(found))
    assert arguments[arguments.index("--place") + 1] == f"s3://mine/flights at {MINE['endpoint']}"
    assert variables["DESTINATION_AWS_ENDPOINT_URL"] == MINE["endpoint"]


@pytest.mark.parametrize("executors", [0, 2])
def test_an_audits_bookies_are_those_that_were_named(executors: int) -> None:
    spec = {"bookKeeperRef": {"name": "bk"}, "filter": {"bookies": ["$(POD_IP)$$"]}, "job": {"executors": {"instances": executors}}}
    audit = ReplicationAudit.model_validate({"metadata": META, "spec": spec})
    arguments, _ = started(container_of(build_audit(audit, AuditSource(ZOOKEEPER, "/demo/bk/ledgers"), IMAGE)[-1]))
    assert arguments[arguments.index("--bookies") + 1] == "$(POD_IP)$$"


def test_a_job_at_such_a_store_is_known_by_its_place() -> None:
    """Files are not removed from a place at which a run reads."""
    spec = {"tablespaceRef": {"name": "flights"}, "destination": {"objectStore": MINE}}
    checkpoint = Checkpoint.model_validate({"metadata": META, "spec": spec})
    source = CheckpointSource(ZOOKEEPER, "/demo/bk/ledgers", "/demo/db/herd", "flights", None, "10.0.0.1:9845", "db-credentials")
    assert [each.at(checkpoint.place) for each in work_of(build_checkpoint(checkpoint, source, IMAGE)[-1])] == [True]
