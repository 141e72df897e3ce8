"""Which runs a schedule takes for its own, and that one that can't be read is never overlooked."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from situations import EXAMPLES, with_metadata

from herdkeeper.domain.observed.objects import Objects
from herdkeeper.domain.unknown import Unknown
from herdkeeper.observe.schedule import observe_schedule
from herdkeeper.observe.world import World
from herdkeeper.schema.defaulting import stored

DOCUMENTS = yaml.safe_load_all((EXAMPLES / "scheduled-checkpoint.yaml").read_text())
SCHEDULE = with_metadata(stored(next(document for document in DOCUMENTS if document["kind"] == "ScheduledCheckpoint")), uid="mine")


class Cluster:
    """Lists these Checkpoints."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        self.documents = documents

    def owned(self, owner_kind, key, kinds):
        assert (owner_kind, key.name, kinds) == ("ScheduledCheckpoint", "flights-nightly", (("herdkeeper.io/v1alpha1", "Checkpoint"),))
        return Objects({("Checkpoint", document["metadata"]["name"]): document for document in self.documents})


def checkpoint(name: str, owner: str = "mine", created: str = "2026-05-10T03:00:00Z", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "demo", "uid": f"uid-{name}", "ownerReferences": [{"uid": owner}], "creationTimestamp": created}
    return {"kind": "Checkpoint", "metadata": metadata, "spec": SCHEDULE.spec.template.model_dump(by_alias=True, exclude_none=True), **more}


def runs(*documents: dict[str, Any]) -> Any:
    return observe_schedule(SCHEDULE, World(Cluster(*documents), None, None)).runs


def test_runs_are_seen_oldest_first_without_those_of_an_earlier_schedule_of_the_same_name():
    seen = runs(checkpoint("a", created="2026-05-11T03:00:00Z"), checkpoint("b"), checkpoint("c", owner="another"))
    assert [run.name for run in seen] == ["b", "a"]


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"spec": {"verify": "Odd"}}, "the Checkpoint b can't be read: spec.tablespaceRef: Field required"),
        ({"status": {"phase": "Odd"}}, "the status of the Checkpoint b can't be read"),
    ],
)
def test_one_run_that_can_not_be_read_makes_all_of_them_unknown(broken, told):
    assert runs(checkpoint("a"), checkpoint("b", **broken)) == Unknown(told)
