"""Words for what pydantic refuses in a message of another process."""

from __future__ import annotations

from pydantic import ValidationError


def faults_of(error: ValidationError, whole: str) -> str:
    """Returns the missing and invalid fields, each with its fault. `whole` names the message itself."""
    return "; ".join(f"{'.'.join(str(part) for part in fault['loc']) or whole}: {fault['msg']}" for fault in error.errors())
