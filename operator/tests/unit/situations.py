"""Resources and observations that the plans' tests begin with: the quickstart, in plain text, seen whole and healthy. Tests change one
thing of it; those of certificates say so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from herdkeeper.api import BookKeeperCluster, Tablespace, ZooKeeperCluster
from herdkeeper.api.bookkeeper_cluster import BookKeeperClusterStatus
from herdkeeper.api.default_images import SHIPPED_IMAGES
from herdkeeper.api.resource import Condition
from herdkeeper.api.tablespace import MadeMark
from herdkeeper.bookkeeper.state.racks import placement_of
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.herddb.tablespace.judged_nodes import Declared
from herdkeeper.planning.intent import with_intent
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey, ZooKeeperNames
from herdkeeper.shared.objects import Json, Objects
from herdkeeper.zookeeper.observe_security import kept_authorities, observe_security
from herdkeeper.zookeeper.state import EnsembleSecurity
from herdkeeper_e2e.defaulting import stored

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def quickstart(kind: str) -> Any:
    """A resource of examples/quickstart.yaml, as the operator reads it in the namespace `demo`."""
    for document in yaml.safe_load_all((EXAMPLES / "quickstart.yaml").read_text()):
        if document["kind"] == kind:
            if kind == "ZooKeeperCluster":
                document["spec"]["security"] = {"mode": "Insecure"}
            found = SHIPPED_IMAGES.completed(stored(document, "demo"))
            metadata = found.metadata.model_copy(update={"uid": f"uid-of-{found.metadata.name}", "generation": 1})
            return found.model_copy(update={"metadata": metadata})
    raise KeyError(kind)


def with_spec(resource: Any, **changes: Any) -> Any:
    """The resource with other fields in its spec."""
    return resource.model_copy(update={"spec": resource.spec.model_copy(update=changes)})


def readable(*tablespaces: Tablespace) -> tuple[Declared, ...]:
    """Tablespaces that can be read, as a database's are observed."""
    return tuple(Declared(each.sql_name, each, readable=True) for each in tablespaces)


def security_of(cluster: ZooKeeperCluster, found: Objects) -> EnsembleSecurity:
    """What is observed of an ensemble's certificates in these objects, while no authority is given."""
    return observe_security(cluster, found, kept_authorities(cluster, found), {}, datetime.now(UTC))


def with_metadata(resource: Any, **changes: Any) -> Any:
    """The resource with other metadata."""
    return resource.model_copy(update={"metadata": resource.metadata.model_copy(update=changes)})


def with_status(resource: Any, **fields: Any) -> Any:
    """The resource with a status of these fields."""
    kind = type(resource).model_fields["status"].annotation.__args__[0]
    found = resource.model_copy(update={"status": kind(**fields)})
    return noted(found, fields["uuid"]) if isinstance(found, Tablespace) and "uuid" in fields else found


def noted(tablespace: Tablespace, uuid: str | None) -> Tablespace:
    """The Tablespace, whose metadata tell what it made (None: nothing) and whether that is filled, as the operator writes it."""
    others = {name: text for name, text in tablespace.metadata.annotations.items() if name != names.MADE_ANNOTATION}
    if uuid is None:
        return with_metadata(tablespace, annotations=others)
    mark = MadeMark(uuid, filled=tablespace.spec.bootstrap is not None and not tablespace.is_restoring)
    return with_metadata(tablespace, annotations={**others, names.MADE_ANNOTATION: mark.text(tablespace.metadata.uid)})


def ready(resource: Any, **fields: Any) -> Any:
    """The resource, Ready for its present generation, with these status fields besides."""
    condition = Condition(
        type="Ready",
        status="True",
        reason="Ready",
        message="serves",
        last_transition_time="2026-01-01T00:00:00Z",
        observed_generation=resource.metadata.generation,
    )
    return with_status(resource, conditions=(condition,), **fields)


ENSEMBLE = ZooKeeperNames(ObjectKey("demo", "zk")).address(1)
"""Where the quickstart's ensemble serves."""
LOG_STORE = LogStore("zk-0:2181", "/demo/bk/ledgers", placement_of(quickstart("BookKeeperCluster"), {}), ObjectKey("demo", "bk"))
"""The location of the log of a database on the quickstart's bookies."""


def bookkeeper_serving() -> BookKeeperCluster:
    """The quickstart's bookies, Ready."""
    found: BookKeeperCluster = ready(
        quickstart("BookKeeperCluster"),
        zoo_keeper_address=ENSEMBLE,
        ledgers_root="/demo/bk/ledgers",
        instance_id="an-instance",
        ready_bookies=4,
    )
    assert isinstance(found.status, BookKeeperClusterStatus)
    return found


def live(manifests: Iterable[Json]) -> dict[tuple[str, str], Json]:
    """Manifests as they are once applied, by kind and name."""
    found = {}
    for manifest in manifests:
        marked = with_intent(manifest)
        metadata = {**marked["metadata"], "uid": f"uid-{marked['kind']}-{marked['metadata']['name']}"}
        found[(marked["kind"], marked["metadata"]["name"])] = {**marked, "metadata": metadata}
    return found


def pods(names: Iterable[str], **status: Any) -> dict[tuple[str, str], Json]:
    """Ready pods, or pods of another status."""
    return {
        ("Pod", name): {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "uid": f"uid-{name}"}, "status": status or READY}
        for name in names
    }


def claim(name: str, **annotations: str) -> dict[tuple[str, str], Json]:
    """A volume claim with annotations."""
    metadata = {"name": name, "uid": f"uid-{name}", "annotations": dict(annotations)}
    return {("PersistentVolumeClaim", name): {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}}


def member_claims(*marks: str | None, cluster: str = "zk") -> dict[tuple[str, str], Json]:
    """The claims of an ensemble's members, by number, as the operator marked them; None: there is none."""
    found = {}
    for number, mark in enumerate(marks):
        if mark is not None:
            found |= claim(f"data-{cluster}-zookeeper-{number}", **{names.FOUNDED_ANNOTATION: mark})
    for made in found.values():
        made["metadata"]["labels"] = names.labels(names.ZOOKEEPER_COMPONENT, "ZooKeeperCluster", cluster)
    return found


def objects(*parts: Mapping[tuple[str, str], Json]) -> Objects:
    """All of these together; later ones win."""
    return Objects({key: item for part in parts for key, item in part.items()})
