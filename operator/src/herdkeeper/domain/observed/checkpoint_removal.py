"""What was seen of all that may need a Checkpoint's files, before they are removed."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.domain import names
from herdkeeper.domain.observed.objects import Json, job_ended
from herdkeeper.domain.unknown import Unknown


@dataclass(frozen=True)
class RemovalObserved:
    """`claim` is the destination as it is stored, None when it is gone. `checkpoints` are the others of the namespace, `tablespaces` all;
    Unknown when one of them can't be read: it may be any of those that need the files."""

    claim: Json | None
    checkpoints: tuple[Checkpoint, ...] | Unknown
    tablespaces: tuple[Tablespace, ...] | Unknown


@dataclass(frozen=True)
class CheckpointWork:
    """A Job of a Checkpoint, or a pod of one. `component` is `checkpoint` or `removal`; `ended`: its process is known to be over."""

    owner: str
    component: str
    claim: str
    ended: bool

    def at(self, claim: str) -> bool:
        """Whether it may still change files on this claim."""
        return self.claim == claim and not self.ended


def work_of(item: Json) -> tuple[CheckpointWork, ...]:
    """What a Job or a pod with a Checkpoint's labels does, for each claim that it mounts."""
    labels = item["metadata"].get("labels") or {}
    spec = item["spec"]["template"]["spec"] if item["kind"] == "Job" else item["spec"]
    ended = job_ended(item) is not None if item["kind"] == "Job" else item.get("status", {}).get("phase") in ("Succeeded", "Failed")
    owner, component = str(labels.get(names.OWNER_NAME_LABEL)), str(labels.get(names.COMPONENT_LABEL))
    claims = (volume["persistentVolumeClaim"]["claimName"] for volume in spec.get("volumes") or [] if "persistentVolumeClaim" in volume)
    return tuple(CheckpointWork(owner, component, claim, ended) for claim in claims)
