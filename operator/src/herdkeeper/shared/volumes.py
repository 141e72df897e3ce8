"""Volume claims of Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from herdkeeper.shared import names
from herdkeeper.shared.quantity import parsed


@dataclass(frozen=True)
class Claim:
    """A volume claim. Deletions carry the uid: a new claim with the same name holds other data.

    `going`: it is being deleted. `bound`: it has a volume. `size` is what it requests, as the API server writes it. Bytes are None if
    unreadable, `capacity_bytes` also without a volume. `resizing` is what its driver says of a growing volume.
    """

    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    going: bool = False
    bound: bool = False
    size: str | None = None
    requested_bytes: int | None = None
    capacity_bytes: int | None = None
    storage_class: str | None = None
    resizing: str = ""

    def is_made_for(self, owner_kind: str, owner_name: str) -> bool:
        """Returns whether it carries the labels of this owner."""
        return {names.OWNER_KIND_LABEL: owner_kind, names.OWNER_NAME_LABEL: owner_name}.items() <= self.labels.items()

    @staticmethod
    def of(item: Mapping[str, Any]) -> Claim:
        metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
        size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
        told = (entry for entry in status.get("conditions") or [] if entry.get("status") == "True")
        return Claim(
            name=metadata["name"],
            uid=metadata.get("uid", ""),
            labels=metadata.get("labels") or {},
            annotations=metadata.get("annotations") or {},
            going=bool(metadata.get("deletionTimestamp")),
            bound=status.get("phase") == "Bound",
            size=size,
            requested_bytes=_bytes(size),
            capacity_bytes=_bytes((status.get("capacity") or {}).get("storage")),
            storage_class=spec.get("storageClassName"),
            resizing="; ".join(f"{entry['type']}: {entry.get('message', '')}".rstrip(": ") for entry in told),
        )


def _bytes(quantity: str | None) -> int | None:
    number = parsed(quantity)
    return None if number is None else int(number)
