"""A violated promise of a replicated SQL database, with the operations that show it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from herdkeeper_e2e.checker.operation import Operation


class ViolationKind(StrEnum):
    """The violated promise."""

    LOST = "an acknowledged write is lost"
    TORN = "a transaction took effect in part"
    UNDEAD = "a write that failed took effect"
    STRANGER = "a row or a value that nobody wrote"
    DUPLICATE = "a row is there more than once"
    BACK_IN_TIME = "a read is older than what this leader had shown or acknowledged before it began"
    BACK_BETWEEN_LEADERS = "a read is older than what another leader had shown or acknowledged in an earlier ledger"


@dataclass(frozen=True)
class Violation:
    """One contradiction. `operations` may be empty, e.g. for a row that nobody wrote."""

    kind: ViolationKind
    explanation: str
    operations: tuple[Operation, ...] = ()

    def __str__(self) -> str:
        return "\n    ".join([f"{self.kind.value}: {self.explanation}", *(str(operation) for operation in self.operations)])
