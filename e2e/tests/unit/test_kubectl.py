"""What kubectl is told."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from herdkeeper_e2e.kubectl import Kubectl


@dataclass(frozen=True)
class WrittenDown(Kubectl):
    """kubectl that only notes what it is told."""

    told: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, *arguments: str, stdin: bytes = b"", timeout_seconds: float = 120.0) -> str:
        self.told.append(arguments)
        return ""


def test_of_a_spec_only_what_is_wanted_is_changed():
    kubectl = WrittenDown("e2e")
    kubectl.want("tablespace", "flights", replicas=3, log={"archive": None})
    ((*words, patch),) = kubectl.told
    assert words == ["patch", "tablespace", "flights", "--type", "merge", "-p"]
    assert json.loads(patch) == {"spec": {"replicas": 3, "log": {"archive": None}}}
