"""Plans a HerdDB cluster: credentials, root in ZooKeeper, nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from herdkeeper.certificates.access import herd_access
from herdkeeper.codecs.herddb.users import SqlUser
from herdkeeper.herddb.build import build_herddb, build_herddb_secret, refuses_plaintext
from herdkeeper.herddb.leadership.plan import LeadershipPlan, plan_leadership
from herdkeeper.herddb.leadership.requeue import SOON_SECONDS
from herdkeeper.herddb.leadership.services import leader_services
from herdkeeper.herddb.plan.restart import DemoteFirst, leading, most_away, next_restart
from herdkeeper.herddb.plan.scale_down import ScaleDown, forget_gone_nodes, scale_down
from herdkeeper.herddb.plan.users import refresh_users
from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.herddb.state.tls import tls_of
from herdkeeper.herddb.tablespace.default import plan_default_tablespace
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Action, AddToSecret, Create, CreateHerdRoot, EnsureZnode, Plan, SetLogPin, Wait
from herdkeeper.planning.intent import needed_applies
from herdkeeper.planning.rolling import Gate, being_recreated, roll
from herdkeeper.shared import names
from herdkeeper.shared.conditions import is_ready_resource, serves_as_made
from herdkeeper.shared.lost_node import unreachable
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import moment_of
from herdkeeper.shared.unknown import Unknown

_TABLESPACES_COME_SECONDS = 24 * 3600.0


def plan_herddb(fleet: SqlFleet) -> Plan:
    log, bookkeeper = fleet.log, fleet.cluster.spec.book_keeper_ref.name
    if log is None:
        return Plan.waiting(Reason.WAITING_FOR_BOOKKEEPER, f"the BookKeeperCluster {bookkeeper} has no bookies yet")
    shrink, leaders = scale_down(fleet), plan_leadership(fleet)
    plan = _plan_objects(fleet, log, leaders, shrink)
    to_restart = {each["node"]: each["reason"] for each in plan.decided_fields.get("relievedNodes", ())}
    decided = {"leavingNodes": list(shrink.leaving), **_relieved({**to_restart, **shrink.relieved})}
    return replace(shrink.extended(plan), shown=leaders.actions, decided_fields=decided)


def _relieved(reasons: Mapping[str, str]) -> Mapping[str, Any]:
    return {"relievedNodes": [{"node": node, "reason": why} for node, why in sorted(reasons.items())]}


def _why_not_yet(fleet: SqlFleet, log: LogStore) -> Plan | None:
    """Returns what must be known, or fixed, before a node is touched."""
    if tls_of(fleet.cluster, log) is None and refuses_plaintext(fleet.objects.data("ConfigMap", fleet.named.config_map)):
        why = (
            "SQL nodes refuse plain text, but by the BookKeeperCluster's status their stack has no certificates. They stay as they are: "
            f"set spec.tls (secretName: {fleet.named.identity_secret}, plaintext: Accepted)"
        )
        return Plan.waiting(Reason.INVALID_SPEC, why, requeue.BLOCKED)
    if isinstance(fleet.tls, Problem):
        return Plan.waiting(fleet.tls.reason, fleet.tls.why)
    above = fleet.root if log.asks_for_certificates else fleet.root_parent
    return Plan.waiting(Reason.UNREADABLE, above.why, SOON_SECONDS) if isinstance(above, Unknown) else None


def _plan_objects(fleet: SqlFleet, log: LogStore, leaders: LeadershipPlan, shrink: ScaleDown) -> Plan:
    # The leadership controller executes its moves. No node may be touched before they are done.
    moving = Plan((), leaders.wait, SOON_SECONDS, later=leaders.later) if leaders.moves else None
    named = fleet.named
    new = fleet.objects.get("StatefulSet", named.stateful_set) is None
    # whatever else waits, or fails for long: an eviction does not ask
    guards = () if new else _forbid_evictions(fleet, log, shrink)
    if isinstance(fleet.sql_users, Problem):
        return replace(moving or Plan.waiting(fleet.sql_users.reason, fleet.sql_users.why), actions=guards)
    secret_steps = _secret_steps(fleet, fleet.sql_users.users)
    # Last, and nothing waits for them: nothing depends on them, and they may be forbidden.
    hints = () if secret_steps else refresh_users(fleet)
    if (unmet := moving or _why_not_yet(fleet, log)) is not None:
        # users change without a node's restart, and a login may be taken away because its password leaked
        return unmet if new else replace(unmet, actions=(*guards, *secret_steps, *hints))
    if new and (waiting := _before_the_first_node(fleet)) is not None:
        return waiting
    actions: list[Action] = []
    if log.asks_for_certificates:
        if not fleet.root:
            access = herd_access(fleet.cluster.key, fleet.cluster.spec.book_keeper_ref.name)
            actions.append(CreateHerdRoot(log.zookeeper_address, named.herd_root, access))
    elif not fleet.root_parent:
        actions.append(EnsureZnode(log.zookeeper_address, named.herd_root.rpartition("/")[0]))
    actions += secret_steps
    *others, stateful_set = build_herddb(fleet.cluster, log, fleet.secret, shrink.nodes, most_away(fleet))
    actions += needed_applies(others, fleet.objects)
    pods = [named.pod(number) for number in range(shrink.nodes)]
    step = roll(stateful_set, fleet.objects, pods, Gate(_why_not_disrupt(fleet)))
    if isinstance(step, Wait):
        return Plan((*actions, *hints), step, requeue.PENDING)
    if step is not None:
        beside = () if actions or step.new else _beside_restarts(fleet, log, shrink)  # a template may be refused for long
        actions += [step, *beside]
    if actions:
        return Plan((*actions, *hints), leaders.wait, _soon(fleet, pods))
    plan = _plan_nodes(fleet, log, leaders, shrink)
    return replace(plan, actions=(*plan.actions, *hints))


def _forbid_evictions(fleet: SqlFleet, log: LogStore, shrink: ScaleDown) -> tuple[Action, ...]:
    """Returns the budget that lets no node go, where that is due."""
    if most_away(fleet):
        return ()
    objects = build_herddb(fleet.cluster, log, fleet.secret, shrink.nodes, most_away=0)
    return tuple(needed_applies([each for each in objects if each["kind"] == "PodDisruptionBudget"], fleet.objects))


def _before_the_first_node(fleet: SqlFleet) -> Plan | None:
    """Returns why no node is made yet, or None. A node takes the ledgers that the cluster's root lists for its own log. In another
    BookKeeperCluster they are others': the node would fence them and replay their entries.
    """
    if why := fleet.why_no_ledger_can_open:
        return Plan.waiting(Reason.WAITING_FOR_BOOKKEEPER, why.why if isinstance(why, Unknown) else why)
    match fleet.foreign_ledger:
        case None:
            return None
        case Unknown(why_unread):
            return Plan.waiting(Reason.UNREADABLE, why_unread)
        case foreign:
            message = (
                f"the BookKeeperCluster {fleet.cluster.spec.book_keeper_ref.name} does not have this database's log: {foreign}. No SQL "
                "node is made, since it would take others' ledgers for its own. Set spec.deletionPolicy: Retain, delete this resource, and "
                "create it with spec.bookKeeperRef.name of the BookKeeperCluster that has its log, or under another name"
            )
            return Plan.waiting(Reason.INVALID_SPEC, message, requeue.BLOCKED)


def _plan_nodes(fleet: SqlFleet, log: LogStore, leaders: LeadershipPlan, shrink: ScaleDown) -> Plan:
    """Returns what the nodes need once their objects match their intents."""
    named = fleet.named
    pods = [named.pod(number) for number in range(shrink.nodes)]
    hanging = unreachable(fleet.objects, pods, fleet.machines)
    recreated = being_recreated(fleet.objects, dict.fromkeys(pods, named.stateful_set), hanging)
    gate = Gate(_why_not_disrupt(fleet), hanging, leading(fleet), recreated)
    restart = next_restart(named.stateful_set, fleet, pods, gate)
    match restart:
        case tuple():
            return Plan(restart, requeue_after_seconds=requeue.SOON)
        case DemoteFirst(node):
            wait = leaders.wait or Wait(Reason.RELIEVING, f"{node} is restarted with its new template once it leads nothing")
            return Plan((), wait, requeue.NEXT_STEP, decided_fields=_relieved({node: "it is restarted with its new template"}))
        case Wait():
            # it may wait for a leaving node, which leaves only once HerdDB's own tablespace has moved off it
            return Plan(plan_default_tablespace(fleet, log, shrink.leaving), restart, requeue.SOON)
        case None:
            changes = _beside_restarts(fleet, log, shrink)
            return Plan(changes, leaders.wait or _template_unseen(fleet), requeue.NEXT_STEP if changes else _soon(fleet, pods))
        case _:
            assert_never(restart)


def _beside_restarts(fleet: SqlFleet, log: LogStore, shrink: ScaleDown) -> tuple[Action, ...]:
    """Returns what is due and restarts no node. The leadership controller writes the Services that exist."""
    records = [found.record for found in fleet.records.values()] if not isinstance(fleet.records, Unknown) else []
    return (
        *plan_default_tablespace(fleet, log, shrink.leaving),
        *(service for service in leader_services(fleet, records) if service.new),
        *forget_gone_nodes(fleet, log.zookeeper_address),
        *_ownerless_pins(fleet, log),
    )


def _ownerless_pins(fleet: SqlFleet, log: LogStore) -> Iterator[SetLogPin]:
    """Remove them, but not soon after the cluster's resource was made: its Tablespaces may yet come, as from a backup or by GitOps."""
    made = moment_of(fleet.cluster.metadata.creation_timestamp)
    if made is not None and fleet.now - made.timestamp() > _TABLESPACES_COME_SECONDS:
        for path, version in fleet.ownerless_pins:
            yield SetLogPin(log.zookeeper_address, path, None, version, "no Tablespace declares it")


def _template_unseen(fleet: SqlFleet) -> Wait | None:
    """Returns what is told while nobody knows which nodes lack the current template. Nothing waits for it but a roll."""
    name = fleet.named.stateful_set
    unseen = fleet.objects.is_template_unseen(name)
    return Wait(Reason.ROLLING, f"the controller of {name} has not seen its current template yet") if unseen else None


def _soon(fleet: SqlFleet, pods: list[str]) -> float | None:
    return None if all(map(fleet.objects.pod_ready, pods)) else requeue.PENDING


def _why_not_disrupt(fleet: SqlFleet) -> str | None:
    log = fleet.bookkeeper
    serves = is_ready_resource(log) or (serves_as_made(log) and fleet.why_no_ledger_can_open is None)
    return fleet.disruption if serves else "its BookKeeperCluster is not Ready"


def _secret_steps(fleet: SqlFleet, users: Sequence[SqlUser]) -> tuple[Action, ...]:
    """Returns the actions for the Secret that the pods mount.

    A generated password is created once, then only read. The users file derived from it follows changes of it or of another user's Secret.
    A missing token, in an old Secret, is added; an existing one stays.
    """
    name, token = fleet.secret, fleet.token or fleet.fresh_token
    intended = build_herddb_secret(fleet.cluster, name, users, token)
    if fleet.cluster.spec.credentials_secret_ref is not None:
        return needed_applies((intended,), fleet.objects)
    if fleet.credentials is None:
        return (Create(intended),)
    live, data = fleet.objects.get("Secret", name), fleet.objects.data("Secret", name)
    derived = {key: intended["data"][key] for key in (names.USERS_KEY, names.TOKEN_KEY)}
    lacking = {key: value for key, value in derived.items() if data.get(key) != value}
    return (AddToSecret(name, live["metadata"]["uid"], lacking),) if live is not None and lacking else ()
