"""What `spec.pods` of a resource does to the pods of its servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pydantic import ValidationError
from situations import objects

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, ZooKeeperCluster
from herdkeeper.api.default_images import SHIPPED_IMAGES
from herdkeeper.api.resource import Compute
from herdkeeper.bookkeeper.build.bookies import BookieIdentity, build_autorecovery, build_bookie
from herdkeeper.bookkeeper.drain.build import DrainSource, build_retirement
from herdkeeper.bookkeeper.state.racks import placement_of
from herdkeeper.herddb.build import LogStore, build_herddb
from herdkeeper.planning.pods import compute
from herdkeeper.shared.names import ObjectKey
from herdkeeper.zookeeper.build import build_zookeeper
from herdkeeper.zookeeper.state import Ensemble

META = {"name": "quick", "namespace": "demo", "uid": "11111111-2222-3333-4444-555555555555"}
ZOOKEEPER = "quick-zookeeper-0.quick-zookeeper-members.demo.svc:2181"
PODS = {
    "labels": {"team": "storage"},
    "annotations": {"example.com/note": "kept"},
    "nodeSelector": {"disk": "nvme"},
    "tolerations": [{"key": "storage", "operator": "Exists", "effect": "NoSchedule"}],
    "priorityClassName": "storage",
    "imagePullSecrets": [{"name": "registry"}],
    "antiAffinity": "Required",
}
Template = Mapping[str, Any]


def bookkeeper(pods: Any) -> BookKeeperCluster:
    return SHIPPED_IMAGES.completed(
        BookKeeperCluster.model_validate({"metadata": META, "spec": {"zooKeeperRef": {"name": "quick"}, "pods": pods}})
    )


def template(built: Mapping[str, Any]) -> Template:
    return dict(built["spec"]["template"])


def of_zookeeper(pods: Any) -> Template:
    cluster = SHIPPED_IMAGES.completed(ZooKeeperCluster.model_validate({"metadata": META, "spec": {"pods": pods}}))
    return template(build_zookeeper(Ensemble(cluster, objects()))[-1])


def of_bookie(pods: Any) -> Template:
    return template(build_bookie(bookkeeper(pods), BookieIdentity(0, "quick-bookie-0-abc123"), ZOOKEEPER))


def of_autorecovery(pods: Any) -> Template:
    return template(build_autorecovery(bookkeeper(pods), ZOOKEEPER, {})[-1])


def of_sql_node(pods: Any) -> Template:
    cluster = SHIPPED_IMAGES.completed(
        HerdDBCluster.model_validate({"metadata": META, "spec": {"bookKeeperRef": {"name": "quick"}, "pods": pods}})
    )
    store = LogStore(ZOOKEEPER, "/demo/quick/ledgers", placement_of(bookkeeper({}), {}), ObjectKey("demo", "bk"))
    built = build_herddb(cluster, store, "quick-herddb-credentials")
    (found,) = [each for each in built if each["kind"] == "StatefulSet"]
    return template(found)


SERVERS = (of_zookeeper, of_bookie, of_autorecovery, of_sql_node)


@pytest.mark.parametrize("of_server", SERVERS)
def test_pods_are_placed_and_marked_as_the_resource_says(of_server: Callable[[Any], Template]) -> None:
    found, plain = of_server(PODS), of_server({})
    spec = found["spec"]
    assert spec["nodeSelector"] == {"disk": "nvme"}
    assert spec["tolerations"] == [{"key": "storage", "operator": "Exists", "effect": "NoSchedule"}]
    assert spec["priorityClassName"] == "storage"
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert found["metadata"]["labels"] == {**plain["metadata"]["labels"], "team": "storage"}
    assert found["metadata"]["annotations"] == {**plain["metadata"]["annotations"], "example.com/note": "kept"}


@pytest.mark.parametrize("of_server", SERVERS)
def test_no_two_pods_share_a_node_where_that_is_required(of_server: Callable[[Any], Template]) -> None:
    required = of_server(PODS)["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    ((preferred,),) = of_server({})["spec"]["affinity"]["podAntiAffinity"].values()
    assert required == [preferred["podAffinityTerm"]]


@pytest.mark.parametrize("of_server", SERVERS)
def test_servers_write_json_where_the_resource_asks_for_it_and_are_the_same_pods_where_not(of_server: Callable[[Any], Template]) -> None:
    def told(pods: Any) -> list[Any]:
        return [each for each in of_server(pods)["spec"]["containers"][0]["env"] if each["name"] == "LOG_FORMAT"]

    assert told({"logFormat": "JSON"}) == [{"name": "LOG_FORMAT", "value": "JSON"}]
    assert told({"logFormat": "Text"}) == []
    assert of_server({"logFormat": "Text"}) == of_server({})


@pytest.mark.parametrize("of_server", SERVERS)
def test_pods_are_spread_over_zones_if_possible_or_as_the_resource_says(of_server: Callable[[Any], Template]) -> None:
    rack = {"topologyKey": "example.com/rack", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}
    (zones,), (racks,) = (of_server(pods)["spec"]["topologySpreadConstraints"] for pods in ({}, {"topologySpreadConstraints": [rack]}))
    assert (zones["topologyKey"], zones["whenUnsatisfiable"]) == ("topology.kubernetes.io/zone", "ScheduleAnyway")
    assert racks == {**rack, "labelSelector": zones["labelSelector"]}


def test_a_container_has_the_requests_and_limits_that_the_resource_adds() -> None:
    more = Compute.model_validate(
        {
            "cpu": "500m",
            "memory": "2Gi",
            "requests": {"memory": "1Gi", "ephemeral-storage": "1Gi"},
            "limits": {"cpu": "2", "ephemeral-storage": "4Gi", "hugepages-2Mi": "64Mi"},
        }
    )
    assert compute(more) == {
        "requests": {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "1Gi"},
        "limits": {"memory": "2Gi", "cpu": "2", "ephemeral-storage": "4Gi", "hugepages-2Mi": "64Mi"},
    }
    assert compute(Compute(cpu="500m", memory="2Gi")) == {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}


def test_jobs_of_a_drain_run_where_bookies_may() -> None:
    job = build_retirement(bookkeeper(PODS), BookieIdentity(0, "quick-bookie-0-abc123"), DrainSource(ZOOKEEPER, "jobs"))
    spec = job["spec"]["template"]["spec"]
    assert (spec["nodeSelector"], spec["imagePullSecrets"]) == ({"disk": "nvme"}, [{"name": "registry"}])
    assert "affinity" not in spec


def test_a_toleration_that_kubernetes_does_not_know_is_refused() -> None:
    with pytest.raises(ValidationError, match="effect"):
        bookkeeper({"tolerations": [{"key": "storage", "effect": "Never"}]})
