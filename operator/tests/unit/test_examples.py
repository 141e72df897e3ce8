"""Every shipped example is what the models accept, and every refusal by condition says what its first line promises."""

from __future__ import annotations

import importlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from herdkeeper.api import (
    KINDS,
    BookKeeperCluster,
    Checkpoint,
    HerdDBCluster,
    ReplicationAudit,
    ScheduledCheckpoint,
    ScheduledReplicationAudit,
    Tablespace,
    ZooKeeperCluster,
)
from herdkeeper.api.resource import GROUP, Resource
from herdkeeper.bookkeeper.validate import bookkeeper_refusals
from herdkeeper.certificates.settings import zookeeper_client_options
from herdkeeper.herddb.tablespace.validate import tablespace_refusals
from herdkeeper.herddb.validate import herddb_refusals
from herdkeeper.jobs.validate import audit_refusals, checkpoint_refusals, schedule_refusals
from herdkeeper.planning.refusal import Refusal
from herdkeeper.shared import names
from herdkeeper.shared.names import BookKeeperNames, ObjectKey, TablespaceNames, ZooKeeperNames
from herdkeeper.shared.objects import Objects
from herdkeeper.zookeeper.state import Ensemble
from herdkeeper.zookeeper.validate import zookeeper_refusals
from herdkeeper_e2e.defaulting import stored

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
APPLIED = sorted(EXAMPLES.glob("*.yaml"))
REFUSED = sorted((EXAMPLES / "refused").glob("*.yaml"))
BY_CONDITION = [path for path in REFUSED if path.name.startswith("by-condition-")]


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def test_examples_that_make_a_claim_of_one_name_make_the_same_one_since_a_claim_can_not_be_changed() -> None:
    claims = [found for path in APPLIED for found in documents(path) if found["kind"] == "PersistentVolumeClaim"]
    by_name = {claim["metadata"]["name"]: claim["spec"] for claim in claims}
    assert len(by_name) < len(claims)
    assert [claim for claim in claims if claim["spec"] != by_name[claim["metadata"]["name"]]] == []


def resources(path: Path) -> list[Resource]:
    return [stored(document) for document in documents(path) if document["apiVersion"].startswith(GROUP)]


def refusals(subject: Resource, neighbours: list[Resource]) -> tuple[Refusal, ...]:
    """The refusals of a resource among its neighbours, as the reconcile asks for them."""

    def named(kind: type[Resource], name: str) -> Any:
        return next((other for other in neighbours if isinstance(other, kind) and other.metadata.name == name), None)

    match subject:
        case ZooKeeperCluster():
            found = zookeeper_refusals(Ensemble(subject, Objects({})))
        case BookKeeperCluster():
            found = bookkeeper_refusals(subject)
        case HerdDBCluster():
            found = herddb_refusals(subject, named(BookKeeperCluster, subject.spec.book_keeper_ref.name))
        case Tablespace():
            others = [other for other in neighbours if isinstance(other, Tablespace)]
            found = tablespace_refusals(subject, named(HerdDBCluster, subject.spec.herd_db_ref.name), others)
        case Checkpoint():
            found = checkpoint_refusals(subject, named(Tablespace, subject.spec.tablespace_ref.name))
        case ReplicationAudit():
            found = audit_refusals(subject)
        case ScheduledCheckpoint() | ScheduledReplicationAudit():
            found = schedule_refusals(subject)
        case _:
            raise AssertionError(f"{type(subject).__name__} has no validation")
    return found


@pytest.mark.parametrize("path", APPLIED, ids=lambda path: path.stem)
def test_an_example_is_accepted_among_the_other_resources_of_its_file_and_of_the_quickstart(path: Path) -> None:
    neighbours = resources(path) + resources(EXAMPLES / "quickstart.yaml")
    for subject in resources(path):
        assert refusals(subject, neighbours) == ()


def container(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """The variables of an application's only container, and its Secrets by the folder where they are mounted."""
    (pod,) = (found["spec"]["template"]["spec"] for found in documents(path) if found["kind"] in ("Deployment", "Job"))
    (only,) = pod["containers"]
    secrets = {volume["name"]: volume["secret"] for volume in pod["volumes"] if "secret" in volume}
    mounted = {mount["mountPath"]: secrets[mount["name"]] for mount in only["volumeMounts"] if mount["name"] in secrets}
    return {variable["name"]: variable.get("value", "") for variable in only["env"]}, mounted


def test_a_java_application_shows_zookeeper_the_readers_certificate_as_sql_nodes_show_theirs() -> None:
    variables, mounted = container(EXAMPLES / "client-jdbc.yaml")
    assert variables["JAVA_TOOL_OPTIONS"].split() == [*zookeeper_client_options("/identity")]
    assert mounted["/identity"]["secretName"] == BookKeeperNames(ObjectKey("default", "bk")).readers_secret


def test_the_java_example_names_what_its_build_leaves_and_fits_into_a_config_map() -> None:
    text = (EXAMPLES / "client-jdbc.yaml").read_text()
    (command,) = (found["spec"]["template"]["spec"]["containers"][0]["command"] for found in documents(EXAMPLES / "client-jdbc.yaml"))
    assert "--from-file=java/target/client" in text
    assert f"public final class {command[-1]} " in (EXAMPLES / "java/Client.java").read_text()
    assert command[2] == "/client/*:/opt/herddb/lib/*"
    assert "COPY lib/ /opt/herddb/lib/" in (EXAMPLES.parent / "images/herddb/Dockerfile").read_text()


@pytest.mark.parametrize("name", ["client.yaml", "load-csv.yaml"])
def test_an_application_reads_the_authorities_where_the_connection_secret_is_mounted(name: str) -> None:
    variables, mounted = container(EXAMPLES / name)
    folder, _, file = variables["HERDDB_CA_FILE"].rpartition("/")
    assert mounted[folder]["secretName"] == TablespaceNames(ObjectKey("default", "flights")).connection_secret
    assert mounted[folder]["items"] == [{"key": names.AUTHORITIES_KEY, "path": file}]


def test_the_python_example_runs_a_program_that_lies_beside_it_in_an_image_of_the_project() -> None:
    (found,) = documents(EXAMPLES / "client.yaml")
    (only,) = found["spec"]["template"]["spec"]["containers"]
    assert only["command"][0] == "python3"
    folder, _, program = only["command"][1].rpartition("/")
    mounts = {mount["mountPath"]: mount["name"] for mount in only["volumeMounts"]}
    (volume,) = (each for each in found["spec"]["template"]["spec"]["volumes"] if each["name"] == mounts[folder])
    made = f"kubectl create configmap {volume['configMap']['name']} --from-file={program}"
    assert (made in (EXAMPLES / "client.yaml").read_text(), (EXAMPLES / program).is_file()) == (True, True)
    image = only["image"].removeprefix("herdkeeper/").partition(":")[0]
    assert "PYTHONPATH=/opt/app" in (EXAMPLES.parent / "images" / image / "Dockerfile").read_text()


def test_the_loader_is_given_each_program_that_its_command_needs() -> None:
    text = (EXAMPLES / "load-csv.yaml").read_text()
    given = set(re.findall(r"--from-file=(\S+)", text))
    (program,) = re.findall(r"python3 /program/(\S+)", text)
    imported = {f"{name}.py" for name in re.findall(r"^from (\w+) import", (EXAMPLES / program).read_text(), re.MULTILINE)}
    assert {program} | {name for name in imported if (EXAMPLES / name).is_file()} == given


@pytest.mark.parametrize("text", ['2,"a \\" b"\n3,"c"\n', '2,"Graz'], ids=["another program's quotes", "a file that breaks off"])
def test_the_loader_refuses_quotes_that_would_join_rows_or_cut_a_text(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    loader = importlib.import_module("load_csv")
    lines = loader.records(io.StringIO(f'1,"Vienna, ""the first"""\n{text}', newline=""))
    assert next(lines) == ["1", 'Vienna, "the first"']
    with pytest.raises(SystemExit, match="line 2 is not CSV: "):
        list(lines)


def test_a_reader_of_changes_asks_a_name_in_the_members_certificates_and_shows_one_of_readers() -> None:
    path = EXAMPLES / "change-data-capture.yaml"
    variables, mounted = container(path)
    assert mounted[variables[names.IDENTITY_VARIABLE]]["secretName"] == BookKeeperNames(ObjectKey("default", "bk")).readers_secret
    (host,) = set(re.findall(rf"zk\+hierarchical://(.*):{names.ZOOKEEPER_SECURE_PORT}/", path.read_text()))
    assert host.replace("$(NAMESPACE)", "default") in ZooKeeperNames(ObjectKey("default", "zk")).served_hosts


def test_every_kind_has_an_example() -> None:
    shown = {type(resource).KIND for path in APPLIED for resource in resources(path)}
    assert shown == {kind.KIND for kind in KINDS}


def test_every_example_is_in_the_list_of_examples() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    assert [path.name for path in APPLIED if f"]({path.name})" not in listed] == []


@pytest.mark.parametrize("path", BY_CONDITION, ids=lambda path: path.stem)
def test_what_is_refused_by_condition_gets_the_sentence_of_the_files_first_line(path: Path) -> None:
    promised = path.read_text().splitlines()[0].removeprefix("# refused by condition: ")
    *neighbours, subject = resources(path)
    sentences = [refusal.sentence for refusal in refusals(subject, neighbours)]
    assert len(sentences) == 1
    assert sentences[0].startswith(promised)
    for neighbour in neighbours:
        assert refusals(neighbour, [*neighbours, subject]) == ()


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_a_refused_example_says_in_its_first_line_how_it_is_refused(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    assert first.startswith("# refused by condition: " if path in BY_CONDITION else "# refused: ")
