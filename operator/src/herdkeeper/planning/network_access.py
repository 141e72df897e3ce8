"""The table of network access: who may connect to which port.

planning/network_policies.py builds the NetworkPolicies from it, schema/network_page.py the page docs/network.md. Connections that are not
in the table are refused: a new one between pods needs a row here. Policies don't apply to the kubelet's probes. References don't cross
namespaces, so "ours" are pods in the resource's namespace.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from herdkeeper.shared import names

SPARK_DRIVERS = (names.CHECKPOINT_COMPONENT, names.AUDIT_COMPONENT, names.RESTORE_COMPONENT)
"""Components of jobs with optional executors."""


class Reach(Enum):
    """Whose pods of a component may connect. The value is for people."""

    SAME_RESOURCE = "same resource"
    NAMESPACE = "namespace"


@dataclass(frozen=True)
class Ours:
    """Pods that the operator makes."""

    reach: Reach
    components: tuple[str, ...]


class Declared(Enum):
    """Pods that the resource names in this field of its spec."""

    CLIENTS = "clients"
    SCRAPERS = "scrapers"


@dataclass(frozen=True)
class Operator:
    """The operator's own pods, in its own namespace."""


Admitted = Ours | Declared | Operator


@dataclass(frozen=True)
class Entrance:
    """Ports of some components' pods (none: all ports), and who may connect to them. `why` is for people."""

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
        "metadata of ledgers and tablespaces; executors of a restore look up leaders",
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
        "SQL, open to everybody if `spec.clients` is absent; a node copies a tablespace from its leader; a restore loads rows",
    ),
    Entrance(
        _NODES,
        (names.HERDDB_HTTP_PORT,),
        (Operator(), _any(names.CHECKPOINT_COMPONENT), Declared.SCRAPERS),
        "state and commands of a node; a Checkpoint reads positions, digests and tables; metrics",
    ),
    Entrance(
        (*SPARK_DRIVERS, names.EXECUTOR_COMPONENT),
        (),
        (_own(*SPARK_DRIVERS, names.EXECUTOR_COMPONENT),),
        "Spark, whose ports are chosen when the job starts",
    ),
)


def entrances_of(component: str) -> tuple[Entrance, ...]:
    return tuple(entrance for entrance in ENTRANCES if component in entrance.components)
