"""NetworkPolicies of resources with servers: made, kept as intended, removed; and which peers are refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import ValidationError
from situations import live, objects, quickstart, with_spec

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, ZooKeeperCluster
from herdkeeper.api.network import NetworkPeer
from herdkeeper.bookkeeper.validate import bookkeeper_refusals
from herdkeeper.engine.kinds import steps_by_kind
from herdkeeper.herddb.validate import herddb_refusals
from herdkeeper.planning.actions import Apply, Delete, Plan
from herdkeeper.planning.network_policies import (
    admit_moved_operator,
    build_server_policies,
    plan_network_policies,
    with_network_policies,
)
from herdkeeper.settings import Settings
from herdkeeper.shared.reason import Reason
from herdkeeper.zookeeper.state import Ensemble
from herdkeeper.zookeeper.validate import zookeeper_refusals
from herdkeeper_e2e.defaulting import stored

HOME = "operators"
NAMES = {
    "ZooKeeperCluster": ["zk-zookeeper"],
    "BookKeeperCluster": ["bk-bookie", "bk-autorecovery"],
    "HerdDBCluster": ["db-herddb"],
}
kinds = pytest.mark.parametrize("kind", NAMES)


def rule(cluster: Any, policy: str, port: int) -> dict[str, Any] | None:
    """The rule of a port."""
    (manifest,) = [each for each in build_server_policies(cluster, HOME) if each["metadata"]["name"] == policy]
    found = [each for each in manifest["spec"]["ingress"] if port in [entry["port"] for entry in each["ports"]]]
    return found[0] if found else None


@kinds
def test_a_resource_that_says_nothing_gets_its_policies_which_go_with_it(kind: str) -> None:
    cluster = quickstart(kind)
    made = plan_network_policies(cluster, objects(), HOME)
    assert [(type(action), action.manifest["metadata"]["name"], action.new) for action in made] == [
        (Apply, name, True) for name in NAMES[kind]
    ]
    owners = {action.manifest["metadata"]["ownerReferences"][0]["uid"] for action in made}
    assert owners == {cluster.metadata.uid}
    assert {tuple(action.manifest["spec"]["policyTypes"]) for action in made} == {("Ingress",)}


def without_empty(value: Any) -> Any:
    """As the API server stores it: what is empty is left out, but for selectors."""
    match value:
        case dict():
            kept = {name: without_empty(part) for name, part in value.items()}
            return {name: part for name, part in kept.items() if part != [] and not (name == "matchLabels" and part == {})}
        case list():
            return [without_empty(part) for part in value]
        case _:
            return value


@kinds
@pytest.mark.parametrize("stored", [copy.deepcopy, without_empty])
@pytest.mark.parametrize("peers", [(), (NetworkPeer(),), (NetworkPeer(namespace_labels={}),)])
def test_policies_as_intended_get_no_write(kind: str, stored: Any, peers: Any) -> None:
    cluster = with_spec(quickstart(kind), clients=peers) if peers else quickstart(kind)
    found = live(build_server_policies(cluster, HOME))
    assert plan_network_policies(cluster, objects({key: stored(item) for key, item in found.items()}), HOME) == ()


@kinds
def test_after_a_move_of_the_operator_a_refused_resource_admits_it_and_no_other_from_its_former_namespace(kind: str) -> None:
    cluster = with_spec(quickstart(kind), clients=(NetworkPeer(namespace_labels={"team": "a"}),))
    before = live(build_server_policies(cluster, "before"))
    actions = admit_moved_operator(objects(before), HOME)
    after = [each for each in build_server_policies(cluster, HOME) if each not in build_server_policies(cluster, "before")]
    assert [(action.manifest["metadata"]["name"], action.manifest["spec"], action.new) for action in actions] == [
        (each["metadata"]["name"], each["spec"], False) for each in after
    ]
    assert actions
    assert admit_moved_operator(objects(live(build_server_policies(cluster, HOME))), HOME) == ()


@kinds
def test_a_policy_that_somebody_opened_is_put_back(kind: str) -> None:
    cluster = quickstart(kind)
    found = live(build_server_policies(cluster, HOME))
    changed = found["NetworkPolicy", NAMES[kind][0]]
    changed["spec"] = {**changed["spec"], "ingress": [{}]}
    (action,) = plan_network_policies(cluster, objects(found), HOME)
    assert (action.manifest["metadata"]["name"], action.reason) == (NAMES[kind][0], Reason.UPDATING)


@kinds
@pytest.mark.parametrize(
    "added",
    [
        lambda spec: spec["podSelector"]["matchLabels"].update({"app": "none"}),
        lambda spec: [rule["from"][-1].update({"namespaceSelector": {}}) for rule in spec["ingress"] if rule["from"]],
        lambda spec: spec["ingress"].append({}),
        lambda spec: spec["policyTypes"].append("Egress"),
    ],
    ids=["label", "namespaces", "rule", "type"],
)
def test_what_somebody_adds_to_a_policy_is_taken_away(kind: str, added: Any) -> None:
    cluster = quickstart(kind)
    found = live(build_server_policies(cluster, HOME))
    changed = found["NetworkPolicy", NAMES[kind][0]] = copy.deepcopy(found["NetworkPolicy", NAMES[kind][0]])
    added(changed["spec"])
    (action,) = plan_network_policies(cluster, objects(found), HOME)
    assert (action.manifest["metadata"]["name"], action.reason) == (NAMES[kind][0], Reason.UPDATING)


@kinds
def test_disabled_removes_the_policies_and_makes_none(kind: str) -> None:
    cluster = quickstart(kind)
    disabled = with_spec(cluster, network_policy="Disabled")
    removed = plan_network_policies(disabled, objects(live(build_server_policies(cluster, HOME))), HOME)
    assert {(type(action), action.name, action.reason) for action in removed} == {(Delete, name, Reason.REMOVED) for name in NAMES[kind]}
    assert plan_network_policies(disabled, objects(), HOME) == ()


def test_autorecovery_that_is_switched_off_has_no_policy() -> None:
    cluster = quickstart("BookKeeperCluster")
    off = with_spec(cluster, auto_recovery=cluster.spec.auto_recovery.model_copy(update={"enabled": False}))
    (action,) = plan_network_policies(off, objects(live(build_server_policies(cluster, HOME))), HOME)
    assert (type(action), action.name) == (Delete, "bk-autorecovery")


def test_nothing_is_made_for_a_resource_that_has_no_servers_yet() -> None:
    waiting = Plan.waiting(Reason.WAITING_FOR_ZOOKEEPER, "there is no ensemble yet")
    assert with_network_policies(waiting, quickstart("BookKeeperCluster"), objects(), HOME) == waiting


def test_a_resource_that_waits_gets_the_policies_of_the_servers_that_it_has() -> None:
    waiting = Plan.waiting(Reason.WAITING_FOR_OTHERS, "another one is restarted")
    servers = {("StatefulSet", "db-herddb"): {"kind": "StatefulSet", "metadata": {"name": "db-herddb"}}}
    plan = with_network_policies(waiting, quickstart("HerdDBCluster"), objects(servers), HOME)
    assert ([action.manifest["kind"] for action in plan.actions], plan.wait) == (["NetworkPolicy"], waiting.wait)


def test_the_policies_come_behind_all_that_the_plan_makes() -> None:
    plan = steps_by_kind(Settings(namespace=HOME))["ZooKeeperCluster"].plan(nothing_seen())
    made = [action.manifest["kind"] for action in plan.actions]
    assert (made[0], made[-2:]) == ("Secret", ["StatefulSet", "NetworkPolicy"])
    last = plan.actions[-1].manifest["spec"]["ingress"]
    assert {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": HOME}}}.items() <= last[0]["from"][0].items()


def nothing_seen() -> Ensemble:
    return Ensemble(quickstart("ZooKeeperCluster"), objects(), fresh_password="given")


def test_a_port_that_nobody_needs_has_no_rule_since_one_without_peers_would_open_it() -> None:
    cluster = quickstart("BookKeeperCluster")
    assert rule(cluster, "bk-autorecovery", 8080) is None
    scraped = with_spec(cluster, scrapers=(NetworkPeer(pod_labels={"app": "prometheus"}),))
    found = rule(scraped, "bk-autorecovery", 8080)
    assert found is not None
    here = {"matchLabels": {"kubernetes.io/metadata.name": "demo"}}
    assert found["from"] == [{"podSelector": {"matchLabels": {"app": "prometheus"}}, "namespaceSelector": here}]


def test_peers_are_of_the_own_namespace_unless_they_name_another_or_all() -> None:
    peers = (
        NetworkPeer(pod_labels={"app": "a"}),
        NetworkPeer(pod_labels={"app": "b"}, namespace_labels={"team": "shop"}),
        NetworkPeer(namespace_labels={}),
    )
    found = rule(with_spec(quickstart("HerdDBCluster"), clients=peers), "db-herddb", 7000)
    assert found is not None
    assert found["from"][-3:] == [
        {"podSelector": {"matchLabels": {"app": "a"}}, "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "demo"}}},
        {"podSelector": {"matchLabels": {"app": "b"}}, "namespaceSelector": {"matchLabels": {"team": "shop"}}},
        {"podSelector": {"matchLabels": {}}, "namespaceSelector": {"matchLabels": {}}},
    ]


@pytest.mark.parametrize(
    ("key", "refused"),
    [
        ("app", False),
        ("App_1.x", False),
        ("example.org/app", False),
        ("kubernetes.io/metadata.name", False),
        ("", True),
        ("-app", True),
        ("my app", True),
        ("/app", True),
        ("a/b/c", True),
        ("Example.org/app", True),
        ("x" * 64, True),
        (f"{'x' * 254}/app", True),
    ],
)
def test_a_label_that_kubernetes_does_not_know_is_refused_with_its_field_and_value(key: str, refused: bool) -> None:
    peer = NetworkPeer.model_construct(pod_labels={}, namespace_labels={key: "here"})
    for kind, field, refusals in (
        ("ZooKeeperCluster", "clients", lambda cluster: zookeeper_refusals(Ensemble(cluster, objects()))),
        ("BookKeeperCluster", "clients", bookkeeper_refusals),
        ("BookKeeperCluster", "scrapers", bookkeeper_refusals),
        ("HerdDBCluster", "clients", lambda cluster: herddb_refusals(cluster, None)),
        ("HerdDBCluster", "scrapers", lambda cluster: herddb_refusals(cluster, None)),
    ):
        found = refusals(with_spec(quickstart(kind), **{field: (peer,)}))
        where = f"spec.{field}[0].namespaceLabels[{key!r}]"
        assert [(refusal.path, refusal.value) for refusal in found] == ([(where, "'here'")] if refused else [])
        assert all("letters, digits" in refusal.fix for refusal in found)


@pytest.mark.parametrize("wrong", [{"networkPolicy": "On"}, {"clients": [{"podLabels": {"app": "a b"}}]}, {"clients": [{"ports": [1]}]}])
@pytest.mark.parametrize("kind", [ZooKeeperCluster, BookKeeperCluster, HerdDBCluster])
def test_a_value_that_means_nothing_is_refused_with_its_field(kind: Any, wrong: dict[str, Any]) -> None:
    named = {"BookKeeperCluster": {"zooKeeperRef": {"name": "zk"}}, "HerdDBCluster": {"bookKeeperRef": {"name": "bk"}}}.get(kind.KIND, {})
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        stored({"kind": kind.KIND, "metadata": {"name": "a"}, "spec": {**named, **wrong}})
