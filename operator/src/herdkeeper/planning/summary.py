"""The state of a resource, before it becomes conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from herdkeeper.shared.reason import Reason


@dataclass(frozen=True)
class Health:
    """Whether the resource serves as declared, and why: the condition Ready."""

    status: Literal["True", "False", "Unknown"]
    reason: Reason
    message: str


@dataclass(frozen=True)
class Summary:
    """Health and the kind's own status fields, in camelCase. None leaves a field out. `conditions` are further conditions, by type."""

    health: Health
    fields: Mapping[str, Any]
    conditions: Mapping[str, Health] = field(default_factory=dict)
