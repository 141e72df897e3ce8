"""Converts rows of the audit's tables to values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from herdkeeper.protocol.audit_finding import Finding, FindingKind, RepairOutcome, Severity


def finding_of(row: Mapping[str, Any]) -> Finding:
    """Converts a row of audit_findings. Raises KeyError or ValueError for another program's row."""
    typed = {"kind": FindingKind(row["kind"]), "severity": Severity(row["severity"])}
    repair = None if row["repair"] is None else RepairOutcome(row["repair"])
    return Finding(**known_fields(Finding, row) | typed | {"repair": repair})


def known_fields(kind: type[Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """Keeps the columns that the dataclass has."""
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in row.items() if name in names}
