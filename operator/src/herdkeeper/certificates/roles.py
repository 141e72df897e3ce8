"""The subjects of a stack's certificates, by role."""

from __future__ import annotations

from herdkeeper.certificates.issue import Subject

OPERATOR = Subject("operator")
ANY = "*"
"""In place of a name where access is granted: any name."""


def bookies(bookkeeper: str) -> Subject:
    """Bookies and autorecovery of a BookKeeperCluster, and the jobs that do their work: drains and repairs."""
    return Subject(f"bookies.{bookkeeper}", bookkeeper)


def readers(bookkeeper: str) -> Subject:
    """All other jobs, and applications that read the log."""
    return Subject(f"readers.{bookkeeper}", bookkeeper)


def sql_nodes(herddb: str, bookkeeper: str) -> Subject:
    """SQL nodes of a HerdDBCluster whose log is in this BookKeeperCluster."""
    return Subject(f"nodes.{herddb}", bookkeeper)
