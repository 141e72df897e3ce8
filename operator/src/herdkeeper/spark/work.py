"""What the Jobs and pods of Checkpoints do with the files of a place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from herdkeeper.api.job import Destination, place_in_store
from herdkeeper.planning import pods as pod
from herdkeeper.planning.actions import Wait
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json, job_ended, label
from herdkeeper.shared.reason import Reason

_PLACES = ("--destination", "--archive")
"""Options of a Checkpoint's programs that name a place."""


@dataclass(frozen=True)
class CheckpointWork:
    """A Job or pod of a Checkpoint. `component`: `checkpoint` or `removal`; `place`: a Destination's; `ended`: for certain."""

    owner: str
    component: str
    place: str
    ended: bool

    def at(self, place: str) -> bool:
        """Returns whether it may still change files at this place."""
        return self.place == place and not self.ended


def work_of(item: Json) -> tuple[CheckpointWork, ...]:
    """Returns what a Job or pod with a Checkpoint's labels does, for each claim that it mounts and the object store that it uses."""
    spec = item["spec"]["template"]["spec"] if item["kind"] == "Job" else item["spec"]
    ended = job_ended(item) is not None if item["kind"] == "Job" else item.get("status", {}).get("phase") in ("Succeeded", "Failed")
    owner, component = str(label(item, names.OWNER_NAME_LABEL)), str(label(item, names.COMPONENT_LABEL))
    claims = [volume["persistentVolumeClaim"]["claimName"] for volume in spec.get("volumes") or [] if "persistentVolumeClaim" in volume]
    return tuple(CheckpointWork(owner, component, place, ended) for place in (*claims, *_stores(spec)))


def removal_at(place: Destination, work: Iterable[CheckpointWork]) -> Wait | None:
    """Returns a wait while files are being removed from a place: a run there might adopt a manifest that is about to go."""
    removing = sorted({each.owner for each in work if each.component == names.REMOVAL_COMPONENT and each.at(place.place)})
    message = f"files of the Checkpoint {', '.join(removing)} are being removed from the same place, {place.described}"
    return Wait(Reason.WAITING_FOR_OTHERS, message) if removing else None


def _stores(spec: Json) -> Iterator[str]:
    """The places that the containers' arguments and variables name, as `Destination.place` does of object stores."""
    for container in spec.get("containers") or []:
        variables = {entry["name"]: pod.meant(entry["value"]) for entry in container.get("env") or [] if "value" in entry}
        arguments = container.get("args") or []
        for option, argument in pairwise(arguments):
            if option in _PLACES and "://" in argument:
                prefix = names.ARCHIVE_VARIABLES if option == "--archive" else names.DESTINATION_VARIABLES
                endpoint = names.STORE_ENDPOINTS.get(argument.split("://", maxsplit=1)[0], "")
                account = variables.get(f"{prefix}{names.STORAGE_ACCOUNT_VARIABLE}")
                yield place_in_store(argument, variables.get(f"{prefix}{endpoint}"), account)
