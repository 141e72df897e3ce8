"""Who may connect to which port: the one table of it. planning/network_policies.py makes the NetworkPolicies of it, schema/network_page.py
the page docs/network.md. Whatever is not in the table is refused: a new connection between pods needs a row here.

Kubelets' probes are not subject to policies. References do not cross namespaces, so "ours" are pods of the resource's own namespace.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from herdkeeper.shared import names

SPARK_DRIVERS = (names.CHECKPOINT_COMPONENT, names.AUDIT_COMPONENT, names.RESTORE_COMPONENT)
"""Components of jobs that may have executors."""


class Reach(Enum):
    """Whose pods of a component are meant; the value is for people."""

    SAME_RESOURCE = "same resource"
    NAMESPACE = "namespace"


@dataclass(frozen=True)
class Ours:
    """Pods that the operator makes."""

    reach: Reach
    components: tuple[str, ...]


class Declared(Enum):
    """Pods that the resource names; the value is the field of its spec."""

    CLIENTS = "clients"
    SCRAPERS = "scrapers"


@dataclass(frozen=True)
class Operator:
    """The operator's own pods, in whichever namespace it runs."""


Admitted = Ours | Declared | Operator


@dataclass(frozen=True)
class Entrance:
    """Ports (none: all of them) of the pods of some components, and who may connect to them. `why` is for people."""

    components: tuple[str, ...]
    ports: tuple[int, ...]
    admitted: tuple[Admitted, ...]
    why: str


def _own(*components: str) -> Ours:
    return Ours(Reach.SAME_RESOURCE, components)


def _any(*components: str) -> Ours:
    return Ours(Reach.NAMESPACE, components)


_MEMBERS, _BOOKIES, _NODES = (names.ZOOKEEPER_COMPONENT,), (names.BOOKIE_COMPONENT,), (names.HERDDB_COMPONENT,)
_LOG_READERS = (names.CHECKPOINT_COMPONENT, names.AUDIT_COMPONENT, names.ARCHIVE_COMPONENT)

ENTRANCES = (
    Entrance(
        _MEMBERS,
        (names.ZOOKEEPER_CLIENT_PORT, names.ZOOKEEPER_SECURE_PORT),
        (
            Operator(),
            _any(
                *(names.BOOKIE_COMPONENT, names.AUTORECOVERY_COMPONENT, names.DRAIN_COMPONENT, names.HERDDB_COMPONENT),
                *(*_LOG_READERS, names.RESTORE_COMPONENT, names.EXECUTOR_COMPONENT),
            ),
            Declared.CLIENTS,
        ),
        "metadata of ledgers and tablespaces; executors of a restore ask who leads",
    ),
    Entrance(
        _MEMBERS, (names.ZOOKEEPER_QUORUM_PORT, names.ZOOKEEPER_ELECTION_PORT), (_own(names.ZOOKEEPER_COMPONENT),), "the ensemble itself"
    ),
    Entrance(_MEMBERS, (names.ZOOKEEPER_ADMIN_PORT,), (Operator(),), "whether a member serves"),
    Entrance(_MEMBERS, (names.ZOOKEEPER_METRICS_PORT,), (Declared.SCRAPERS,), "metrics"),
    Entrance(
        _BOOKIES,
        (names.BOOKIE_PORT,),
        (
            _own(names.AUTORECOVERY_COMPONENT, names.DRAIN_COMPONENT),
            _any(names.HERDDB_COMPONENT, *_LOG_READERS, names.EXECUTOR_COMPONENT),
            Declared.CLIENTS,
        ),
        "entries of the log; bookies do not talk to each other",
    ),
    Entrance(
        _BOOKIES,
        (names.BOOKIE_ADMIN_PORT,),
        (Operator(), Declared.SCRAPERS),
        "read-only mode for drains, metrics",
    ),
    Entrance((names.AUTORECOVERY_COMPONENT,), (names.BOOKIE_ADMIN_PORT,), (Declared.SCRAPERS,), "metrics"),
    Entrance(
        _NODES,
        (names.HERDDB_SQL_PORT,),
        (Operator(), _own(names.HERDDB_COMPONENT), _any(names.RESTORE_COMPONENT, names.EXECUTOR_COMPONENT), Declared.CLIENTS),
        "SQL, open to everybody where `spec.clients` is absent; a node copies a tablespace from its leader; a restore loads rows",
    ),
    Entrance(
        _NODES,
        (names.HERDDB_HTTP_PORT,),
        (Operator(), _any(names.CHECKPOINT_COMPONENT), Declared.SCRAPERS),
        "state and orders of a node; a Checkpoint asks for positions, digests and tables; metrics",
    ),
    Entrance(
        (*SPARK_DRIVERS, names.EXECUTOR_COMPONENT),
        (),
        (_own(*SPARK_DRIVERS, names.EXECUTOR_COMPONENT),),
        "Spark, whose ports are chosen when the job starts",
    ),
)


def entrances_of(component: str) -> tuple[Entrance, ...]:
    """The entrances of a component's pods."""
    return tuple(entrance for entrance in ENTRANCES if component in entrance.components)
