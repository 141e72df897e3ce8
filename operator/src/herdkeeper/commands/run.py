"""`herdkeeper run`: the operator's process."""

from __future__ import annotations


def run() -> None:
    """Run the operator. Settings come from the environment (HERDKEEPER_*)."""
    from herdkeeper.handlers.main import run as run_operator  # the generators must work without kopf and a cluster

    run_operator()
