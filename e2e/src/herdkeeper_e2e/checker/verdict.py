"""All checks of a run, and their result. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from herdkeeper_e2e.checker.contents import Contents
from herdkeeper_e2e.checker.operation import Add, Fault, Operation, Outcome, Write
from herdkeeper_e2e.checker.register_check import check_reads, check_registers
from herdkeeper_e2e.checker.set_check import check_set, check_succession
from herdkeeper_e2e.checker.violation import Violation

MOST_SHOWN = 20


@dataclass(frozen=True)
class Verdict:
    """What was tried and what is broken; without `violations`, the database kept its promises."""

    counts: tuple[tuple[str, Outcome, int], ...]
    """(kind of operation, outcome, how many), in the order of their names."""
    faults: tuple[str, ...]
    """The faults, in order."""
    missed: int
    """How many faults hit nothing."""
    longest_gap_seconds: float
    """Between two acknowledged writes of any client."""
    violations: tuple[Violation, ...]

    def acknowledged(self, kind: str, client: str = "") -> int:
        """How many operations of a kind (add, write, read) succeeded."""
        return sum(number for name, outcome, number in self.counts if outcome is Outcome.OK and name == f"{client} {kind}".strip())

    def text(self) -> str:
        """Some lines for a person."""
        lines = [f"{number:>8} {name:<12} {outcome.value}" for name, outcome, number in self.counts]
        lines += [f"{len(self.faults)} faults, {self.missed} of them met nobody: {', '.join(self.faults) or 'none'}"]
        lines += [f"longest time without an acknowledged write: {self.longest_gap_seconds:.1f} s"]
        lines += [str(violation) for violation in self.violations[:MOST_SHOWN]]
        lines += [
            f"{len(self.violations)} violations" if self.violations else "no violation: nothing acknowledged is lost, nothing is torn"
        ]
        return "\n".join(lines)


def judge(operations: Sequence[Operation], contents: Sequence[Contents]) -> Verdict:
    """Judges a history by the tables of each final leader.

    Args:
        operations: of all clients and of the nemesis, in the order of their begins.
        contents: at least one complete read, each begun after all operations had ended.

    Raises:
        ValueError: no contents, without which losses are invisible.
    """
    if not contents:
        raise ValueError("there are no contents of the tables to judge by: read them at the end of the run")
    faults = [(operation.content.name, operation.outcome) for operation in operations if isinstance(operation.content, Fault)]
    counted = Counter((_kind(operation), operation.outcome) for operation in operations if not isinstance(operation.content, Fault))
    violations = check_reads(operations)
    for found in contents:
        violations += [*check_set(operations, found), *check_registers(operations, found)]
    for earlier, later in pairwise(contents):
        violations += check_succession(earlier, later)
    return Verdict(
        counts=tuple((kind, outcome, number) for (kind, outcome), number in sorted(counted.items())),
        faults=tuple(name for name, _ in faults),
        missed=sum(outcome is not Outcome.OK for _, outcome in faults),
        longest_gap_seconds=_longest_gap(operations),
        violations=tuple(violations),
    )


def _longest_gap(operations: Sequence[Operation]) -> float:
    ends = sorted(
        each.ended
        for each in operations
        if isinstance(each.content, (Add, Write)) and each.outcome is Outcome.OK and each.ended is not None
    )
    return max((later - earlier for earlier, later in pairwise(ends)), default=0.0)


def _kind(operation: Operation) -> str:
    client = operation.process.partition("-")[0]
    return f"{client} {type(operation.content).__name__.lower()}"
