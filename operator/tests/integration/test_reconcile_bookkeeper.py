"""A BookKeeperCluster on a real API server: its metadata root, the identities of bookies, changes one by one, and what is lost."""

from __future__ import annotations

import base64
import re

import pytest
from kubernetes.client import ApiException
from kubernetes.dynamic import DynamicClient
from played_ensemble import PlayedEnsembles
from played_ledgers import PlayedLedgers
from played_members import PlayedMembers
from stage import CLAIM, ZOOKEEPER_ADDRESS, Stage, nothing_written

from herdkeeper.api.resource import API_VERSION
from herdkeeper.bookkeeper.state.refusal import COOKIE
from herdkeeper.codecs.bookkeeper.cookie import Cookie, decode_cookie, encode_cookie
from herdkeeper.engine.result import Outcome
from herdkeeper.shared import names
from herdkeeper.shared.names import BookKeeperNames, ObjectKey, ZooKeeperNames

KIND = "BookKeeperCluster"
BOOKIES = 3
BOOKIE_ID = "herdkeeper.io/bookie-id"


@pytest.fixture
def stage(dynamic: DynamicClient, namespace: str) -> Stage:
    """A BookKeeperCluster bk of three bookies on a ZooKeeper that somebody else runs, not yet looked at."""
    stage = Stage(dynamic, namespace)
    stage.declare(KIND, "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": BOOKIES})
    return stage


def named(stage: Stage) -> BookKeeperNames:
    return BookKeeperNames(ObjectKey(stage.namespace, "bk"))


def root(stage: Stage) -> str:
    return named(stage).ledgers_root


def serving(stage: Stage, bookies: int = BOOKIES) -> Stage:
    """All bookies and autorecovery serve, and the operator has seen it."""
    stage.settle(KIND, "bk")
    for number in range(bookies):
        stage.serve_bookie(named(stage), number)
    stage.settle(KIND, "bk")
    stage.set_status("Deployment", "bk-autorecovery", {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1})
    stage.elect_auditor(named(stage))
    stage.settle(KIND, "bk")
    assert stage.condition(KIND, "bk") == ("True", "Ready")
    return stage


def claim_ids(stage: Stage, number: int) -> tuple[str, str]:
    """The ids on the journal's and on the ledgers' claim of a bookie."""
    claims = (named(stage).journal_claim(number), named(stage).ledgers_claim(number))
    journal, ledgers = (stage.found(CLAIM, name)["metadata"]["annotations"][BOOKIE_ID] for name in claims)
    return journal, ledgers


def generations(stage: Stage, bookies: int = BOOKIES) -> list[int]:
    return [stage.found("StatefulSet", named(stage).stateful_set(number))["metadata"]["generation"] for number in range(bookies)]


def rolled(stage: Stage, before: list[int]) -> list[int]:
    """The numbers of the bookies whose StatefulSet changed."""
    return [number for number, generation in enumerate(generations(stage)) if generation != before[number]]


def running(stage: Stage) -> list[str | None]:
    """The uids of the bookies' pods, None for one that is not there."""
    found = (stage.live("Pod", named(stage).pod(number)) for number in range(BOOKIES))
    return [pod["metadata"]["uid"] if pod is not None else None for pod in found]


def restarted(stage: Stage, before: list[str | None]) -> list[int]:
    """The numbers of the bookies whose pod is not the one that it was."""
    return [number for number, uid in enumerate(running(stage)) if uid != before[number]]


def claims(stage: Stage) -> set[str]:
    return {claim["metadata"]["name"] for claim in stage.listed(CLAIM)}


def change_configuration(stage: Stage) -> None:
    """The configuration changes, and the StatefulSets' controllers see their new templates."""
    stage.patch(KIND, "bk", {"spec": {"config": {"rwRereplicateBackoffMs": "90000"}}})
    stage.settle(KIND, "bk")
    for number in range(BOOKIES):
        stage.see_template(named(stage).stateful_set(number))


def test_the_metadata_root_is_made_before_anything_else(stage: Stage) -> None:
    stage.reconcile(KIND, "bk")
    made = {path.removeprefix(root(stage)) for path in stage.ensemble.znodes if path.startswith(root(stage))}
    assert made == {"", "/available", "/available/readonly", "/INSTANCEID", "/LAYOUT"}
    assert stage.made() == {}


def test_the_metadata_root_is_made_once(stage: Stage) -> None:
    written: list[str] = []
    stage.ensemble.written = written.append
    serving(stage)
    assert written == [f"ensure {root(stage).rpartition('/')[0]}", "create_all"]
    instance_id = stage.ensemble.znodes[f"{root(stage)}/INSTANCEID"][0].decode()
    assert stage.found(KIND, "bk")["status"]["instanceId"] == instance_id


def test_a_root_that_is_there_already_is_taken_as_it_is(stage: Stage) -> None:
    stage.ensemble.put(f"{root(stage)}/INSTANCEID", b"theirs")
    serving(stage)
    assert stage.ensemble.znodes[f"{root(stage)}/INSTANCEID"] == (b"theirs", 0)
    assert stage.found(KIND, "bk")["status"]["instanceId"] == "theirs"


def test_something_else_at_the_root_is_left_alone(stage: Stage) -> None:
    stage.ensemble.put(root(stage), b"mine")
    before = dict(stage.ensemble.znodes)
    stage.settle(KIND, "bk")
    assert (stage.ensemble.znodes, stage.made()) == (before, {})
    assert stage.condition(KIND, "bk") == ("Unknown", "Unreadable")


def test_exactly_these_objects_are_made_and_autorecovery_last(stage: Stage) -> None:
    first = {
        ("Secret", "bk-bookie-token"),
        ("ConfigMap", "bk-bookie"),
        ("ConfigMap", "bk-racks"),
        ("Service", "bk-bookie"),
        ("PodDisruptionBudget", "bk-bookie"),
        ("NetworkPolicy", "bk-bookie"),
        ("NetworkPolicy", "bk-autorecovery"),
        *(("StatefulSet", f"bk-bookie-{number}") for number in range(BOOKIES)),
        *((CLAIM, f"bk-bookie-{number}-{volume}") for number in range(BOOKIES) for volume in ("journal", "ledgers")),
    }
    stage.settle(KIND, "bk")
    assert set(stage.made()) == first
    stage.serve_bookie(named(stage), 0)
    stage.settle(KIND, "bk")
    later = {("ConfigMap", "bk-autorecovery"), ("Deployment", "bk-autorecovery")}
    assert set(stage.made()) == first | later | {("Pod", "bk-bookie-0-0")}


def test_the_token_stays_and_a_deleted_one_is_made_anew_without_a_restart(stage: Stage) -> None:
    def token() -> str:
        return str(stage.found("Secret", "bk-bookie-token")["data"]["token"])

    serving(stage)
    first, pods = token(), [key for key in stage.made() if key[0] == "Pod"]
    with nothing_written(stage):
        stage.reconcile(KIND, "bk")
    stage.delete("Secret", "bk-bookie-token")
    stage.settle(KIND, "bk")
    assert token() != first
    assert [key for key in stage.made() if key[0] == "Pod"] == pods


@pytest.mark.parametrize(("stored", "kept"), [("by-a-person\n", "by-a-person"), (" \n", None)])
def test_a_token_is_what_bookies_read_of_it_without_space_around(stage: Stage, stored: str, kept: str | None) -> None:
    stage.settle(KIND, "bk")
    stage.patch("Secret", "bk-bookie-token", {"data": {"token": base64.b64encode(stored.encode()).decode()}})
    stage.settle(KIND, "bk")
    found = base64.b64decode(stage.found("Secret", "bk-bookie-token")["data"]["token"]).decode()
    assert found == found.strip() == (kept or found)
    assert found


def test_all_but_claims_and_pods_belong_to_the_resource(stage: Stage) -> None:
    uid = stage.found(KIND, "bk")["metadata"]["uid"]
    serving(stage)
    owner = {"apiVersion": API_VERSION, "kind": KIND, "name": "bk", "uid": uid, "controller": True, "blockOwnerDeletion": True}
    owners = {key: item["metadata"].get("ownerReferences") for key, item in stage.made().items() if key[0] != "Pod"}
    assert owners == {key: None if key[0] == CLAIM else [owner] for key in owners}


def test_both_claims_and_the_process_of_a_bookie_carry_the_same_id_and_no_other_bookie_has_it(stage: Stage) -> None:
    stage.settle(KIND, "bk")
    found = [(*claim_ids(stage, number), stage.bookie_id(named(stage), number)) for number in range(BOOKIES)]
    ids = [journal for journal, _, _ in found]
    assert found == [(bookie_id,) * 3 for bookie_id in ids]
    assert all(re.fullmatch(rf"bk-bookie-{number}-[a-z0-9]{{6,16}}", bookie_id) for number, bookie_id in enumerate(ids))


def test_a_settled_cluster_gets_no_write(stage: Stage) -> None:
    serving(stage)
    with nothing_written(stage):
        result = stage.reconcile(KIND, "bk")
    assert (result.outcome, result.requeue_after_seconds) == (Outcome.OK, None)
    status = stage.found(KIND, "bk")["status"]
    assert (status["readyBookies"], status["underReplicated"]) == (BOOKIES, False)
    assert [bookie["state"] for bookie in status["bookies"]] == ["Writable"] * BOOKIES


def test_the_budget_of_an_earlier_version_names_how_many_bookies_stay(stage: Stage, dynamic: DynamicClient) -> None:
    """It named how many may be away. Both together are refused."""
    serving(stage)
    live = stage.found("PodDisruptionBudget", named(stage).disruption_budget)
    assert live["spec"]["minAvailable"] == BOOKIES - 1
    metadata = {key: value for key, value in live["metadata"].items() if key in ("name", "namespace", "labels", "ownerReferences")}
    earlier = {**live, "metadata": metadata, "spec": {"maxUnavailable": 1, "selector": live["spec"]["selector"]}}
    del earlier["status"]
    budgets = dynamic.resources.get(api_version="policy/v1", kind="PodDisruptionBudget")
    budgets.delete(metadata["name"], stage.namespace)
    dynamic.server_side_apply(budgets, body=earlier, field_manager=names.MANAGER)
    stage.settle(KIND, "bk")
    spec = stage.found("PodDisruptionBudget", metadata["name"])["spec"]
    assert (spec.get("minAvailable"), spec.get("maxUnavailable")) == (BOOKIES - 1, None)


def test_bookies_keep_their_ids_when_their_stateful_sets_are_made_again(stage: Stage) -> None:
    serving(stage)
    before = [claim_ids(stage, number) for number in range(BOOKIES)]
    for number in range(BOOKIES):
        stage.delete("StatefulSet", named(stage).stateful_set(number))
    stage.settle(KIND, "bk")
    assert [claim_ids(stage, number) for number in range(BOOKIES)] == before
    assert [stage.bookie_id(named(stage), number) for number in range(BOOKIES)] == [journal for journal, _ in before]


def test_a_further_bookie_disturbs_none_of_the_others(stage: Stage) -> None:
    serving(stage)
    before = generations(stage)
    stage.patch(KIND, "bk", {"spec": {"bookies": BOOKIES + 1}})
    stage.settle(KIND, "bk")
    assert rolled(stage, before) == []
    assert claim_ids(stage, BOOKIES)[0] == stage.bookie_id(named(stage), BOOKIES)
    assert stage.condition(KIND, "bk") == ("False", "BookiesNotReady")


def test_a_changed_configuration_restarts_one_bookie_after_the_other(stage: Stage) -> None:
    serving(stage)
    before = running(stage)
    change_configuration(stage)
    for number in range(BOOKIES):
        stage.settle(KIND, "bk")
        assert restarted(stage, before) == list(range(number + 1))
        stage.settle(KIND, "bk")
        assert restarted(stage, before) == list(range(number + 1))
        stage.serve_bookie(named(stage), number)
    stage.settle(KIND, "bk")
    assert stage.condition(KIND, "bk", "Progressing") == ("False", "Settled")
    assert restarted(stage, before) == list(range(BOOKIES))
    assert "rwRereplicateBackoffMs=90000\n" in stage.found("ConfigMap", "bk-bookie")["data"]["bk_server.conf"]


def test_of_registered_bookies_whose_probes_all_fail_one_is_restarted_at_a_time(stage: Stage) -> None:
    serving(stage)
    before = running(stage)
    for number in range(BOOKIES):
        stage.stop_serving(named(stage).pod(number))
    change_configuration(stage)
    stage.settle(KIND, "bk")
    stage.settle(KIND, "bk")
    assert restarted(stage, before) == [0]


def test_a_bookie_on_a_template_that_is_put_right_is_made_anew(stage: Stage) -> None:
    serving(stage)
    for changed in ("example.com/nope:1", None):
        stage.patch(KIND, "bk", {"spec": {"image": changed}})
        stage.settle(KIND, "bk")
        for number in range(BOOKIES):
            stage.see_template(named(stage).stateful_set(number))
        if changed is not None:
            stage.settle(KIND, "bk")
            stage.serve(named(stage).stateful_set(0))
            stage.stop_serving(named(stage).pod(0))  # its image can't be pulled
            stage.ensemble.delete_tree(f"{root(stage)}/available/{stage.bookie_id(named(stage), 0)}")
    before = running(stage)
    stage.settle(KIND, "bk")
    assert restarted(stage, before) == [0]


@pytest.mark.parametrize("trouble", ["another bookie is away", "ledgers are under-replicated", "a ledger names a bookie that is gone"])
def test_no_serving_bookie_is_restarted_while_something_else_is_disturbed(stage: Stage, trouble: str) -> None:
    serving(stage)
    before = running(stage)
    marker = f"{root(stage)}/underreplication/ledgers/0000/0000/0000/0001/urL0000000001"
    if trouble == "another bookie is away":
        stage.stop_serving(named(stage).pod(2))
        stage.ensemble.delete_tree(f"{root(stage)}/available/{stage.bookie_id(named(stage), 2)}")
    elif trouble == "ledgers are under-replicated":
        stage.ensemble.put(marker)
    else:
        put_ledger(stage, 1, stage.bookie_id(named(stage), 0), "bk-bookie-7-aaaaaa")
    change_configuration(stage)
    stage.settle(KIND, "bk")
    # one that does not serve can't be disrupted: else a broken configuration could not be mended
    assert restarted(stage, before) == ([2] if trouble == "another bookie is away" else [])
    stage.serve_bookie(named(stage), 2)
    stage.ensemble.delete_tree(marker)
    stage.ensemble.delete_tree(f"{root(stage)}/00")
    stage.settle(KIND, "bk")
    assert 0 in restarted(stage, before)


REPLACEMENT = {f"bk-bookie-{BOOKIES}-journal", f"bk-bookie-{BOOKIES}-ledgers"}
"""The claims of the bookie that starts beside a lost one."""


def put_ledger(stage: Stage, number: int, *bookies: str, closed: bool = True) -> None:
    """A ledger over these bookies."""
    PlayedLedgers(stage.ensemble, root(stage)).put(number, (0, bookies), last_entry_id=9 if closed else None)


def lose_claims(stage: Stage, number: int, *volumes: str) -> set[str]:
    """A bookie stops, and these of its claims are gone."""
    stage.stop_bookie(named(stage), number)
    lost = {f"bk-bookie-{number}-{volume}" for volume in volumes}
    for name in sorted(lost):
        stage.delete(CLAIM, name)
    return lost


@pytest.mark.parametrize("volumes", [("journal",), ("ledgers",), ("journal", "ledgers")], ids="-".join)
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "open"])
def test_no_claim_is_made_in_the_place_of_a_lost_one_while_a_ledger_names_its_bookie(
    stage: Stage, volumes: tuple[str, ...], closed: bool
) -> None:
    serving(stage)
    before = claims(stage)
    put_ledger(stage, 1, stage.bookie_id(named(stage), 0), stage.bookie_id(named(stage), 1), closed=closed)
    lost = lose_claims(stage, 1, *volumes)
    stage.settle(KIND, "bk")
    assert claims(stage) == before - lost | REPLACEMENT
    assert stage.condition(KIND, "bk") == ("False", "Recovering")
    assert [bookie.get("ledgersLeft") for bookie in stage.found(KIND, "bk")["status"]["bookies"]] == [None, 1, None, None]
    stage.serve_bookie(named(stage), BOOKIES)
    stage.settle(KIND, "bk")
    assert stage.condition(KIND, "bk") == ("True", "Ready"), "as many as are declared serve"
    assert stage.live("StatefulSet", "bk-bookie-1") is not None, "its identity stays while the ledger names it"


def test_a_lost_bookie_is_replaced_under_a_fresh_id_and_retired_once_its_ledgers_are_elsewhere(stage: Stage) -> None:
    serving(stage)
    ids = [stage.bookie_id(named(stage), number) for number in range(BOOKIES)]
    put_ledger(stage, 1, ids[0], ids[1])
    lose_claims(stage, 1, "journal", "ledgers")
    stage.settle(KIND, "bk")
    put_ledger(stage, 1, ids[0], ids[2])
    stage.settle(KIND, "bk")
    assert stage.live("StatefulSet", "bk-bookie-1") is None
    assert f"{root(stage)}/cookies/{ids[1]}" not in stage.ensemble.znodes
    fresh = stage.bookie_id(named(stage), BOOKIES)
    assert claim_ids(stage, BOOKIES) == (fresh, fresh)
    stage.serve_bookie(named(stage), BOOKIES)
    stage.settle(KIND, "bk")
    assert stage.condition(KIND, "bk") == ("True", "Ready")
    assert [event["reason"] for event in stage.events("bk")].count("BookieRetired") == 2


@pytest.mark.parametrize("volumes", [("journal",), ("journal", "ledgers")], ids="-".join)
def test_a_bookie_whose_claims_lost_their_labels_is_not_lost(stage: Stage, volumes: tuple[str, ...]) -> None:
    serving(stage)
    before = {name: stage.found(CLAIM, name)["metadata"]["labels"] for name in claims(stage)}
    stage.stop_bookie(named(stage), 1)
    for volume in volumes:
        name = f"bk-bookie-1-{volume}"
        stage.patch(CLAIM, name, {"metadata": {"labels": dict.fromkeys(before[name])}})
    stage.settle(KIND, "bk")
    assert {name: stage.found(CLAIM, name)["metadata"].get("labels") for name in claims(stage)} == before
    assert stage.found("StatefulSet", "bk-bookie-1")["spec"]["replicas"] == 1


@pytest.mark.parametrize("volume", ["journal", "ledgers"])
def test_what_is_left_of_a_lost_bookie_is_a_persons_to_give_up(stage: Stage, volume: str) -> None:
    serving(stage)
    before = claims(stage)
    lost = lose_claims(stage, 1, volume)
    stage.settle(KIND, "bk")
    assert claims(stage) == before - lost | REPLACEMENT
    assert stage.condition(KIND, "bk") == stage.condition(KIND, "bk", "Progressing") == ("False", "ClaimLost")
    (kept,) = {"bk-bookie-1-journal", "bk-bookie-1-ledgers"} - lost
    (told,) = [event for event in stage.events("bk") if event["reason"] == "ClaimLost"]
    assert (told["type"], f"kubectl delete pvc {kept}" in told["message"]) == ("Warning", True)
    stage.delete(CLAIM, kept)
    stage.settle(KIND, "bk")
    assert claims(stage) == {name for name in before if "bookie-1-" not in name} | {"bk-bookie-3-journal", "bk-bookie-3-ledgers"}


def test_an_emptied_disk_is_known_by_what_the_entry_point_says(stage: Stage) -> None:
    serving(stage)
    old = stage.bookie_id(named(stage), 1)
    assert old in stage.found("ConfigMap", "bk-bookie")["data"]["known-bookies"].split()
    stage.ensemble.delete_tree(f"{root(stage)}/available/{old}")
    stage.stop_serving(named(stage).pod(1))
    ended = {"exitCode": 79, "message": "refused: both volumes are empty", "reason": "Error"}
    container = {"name": "server", "ready": False, "restartCount": 3, "image": "", "imageID": "", "lastState": {"terminated": ended}}
    stage.set_status("Pod", named(stage).pod(1), {"containerStatuses": [container]})
    stage.settle(KIND, "bk")
    assert stage.condition(KIND, "bk") == ("False", "ClaimLost")
    assert "both volumes are empty" in stage.found(KIND, "bk")["status"]["message"]


def starts_without_a_cookie(stage: Stage, number: int, instance_id: str) -> None:
    """BookKeeper refuses to start the bookie, after its entry point has left what the volumes have."""
    cookie = Cookie(stage.bookie_id(named(stage), number), "/journal/journal", ("/ledgers/ledgers",), instance_id)
    ended = {"exitCode": 2, "message": COOKIE + encode_cookie(cookie).decode(), "reason": "Error"}
    container = {"name": "server", "ready": False, "restartCount": 3, "image": "", "imageID": "", "lastState": {"terminated": ended}}
    stage.stop_serving(named(stage).pod(number))
    stage.set_status("Pod", named(stage).pod(number), {"containerStatuses": [container]})


def test_a_deleted_cookie_is_put_back_once_the_volumes_prove_to_be_the_clusters(stage: Stage) -> None:
    serving(stage)
    bookie_id, instance_id = stage.bookie_id(named(stage), 1), stage.found(KIND, "bk")["status"]["instanceId"]
    path = f"{root(stage)}/cookies/{bookie_id}"
    stage.ensemble.delete_tree(path)
    stage.ensemble.delete_tree(f"{root(stage)}/available/{bookie_id}")
    stage.stop_serving(named(stage).pod(1))
    stage.settle(KIND, "bk")
    assert stage.condition(KIND, "bk") == ("False", "Recovering")
    lists = stage.found("ConfigMap", "bk-bookie")["data"]
    assert bookie_id in lists["known-bookies"].split()
    assert bookie_id not in lists["cookies"].split()
    starts_without_a_cookie(stage, 1, "another-instance")
    before = claims(stage)
    stage.settle(KIND, "bk")
    assert stage.condition(KIND, "bk") == ("False", "VolumesRefused")
    assert f"not to {instance_id}" in stage.found(KIND, "bk")["status"]["message"]
    assert path not in stage.ensemble.znodes
    starts_without_a_cookie(stage, 1, instance_id)
    stage.settle(KIND, "bk")
    assert decode_cookie(stage.ensemble.znodes[path][0]) == Cookie(bookie_id, "/journal/journal", ("/ledgers/ledgers",), instance_id)
    assert bookie_id in stage.found("ConfigMap", "bk-bookie")["data"]["cookies"].split()
    stage.serve_bookie(named(stage), 1)
    stage.set_status("Pod", named(stage).pod(1), {"containerStatuses": None})
    stage.settle(KIND, "bk")
    assert stage.condition(KIND, "bk") == ("True", "Ready")
    assert claims(stage) == before
    assert [event["reason"] for event in stage.events("bk")].count("CookieRestored") == 1


def test_a_bookie_whose_claims_and_stateful_set_are_lost_is_known_by_its_cookie(stage: Stage) -> None:
    serving(stage)
    old = stage.bookie_id(named(stage), 1)
    put_ledger(stage, 1, old, stage.bookie_id(named(stage), 0))
    before = claims(stage)
    lost = lose_claims(stage, 1, "journal", "ledgers")
    stage.delete("StatefulSet", "bk-bookie-1")
    stage.settle(KIND, "bk")
    assert claims(stage) == before - lost | REPLACEMENT
    assert stage.live("StatefulSet", "bk-bookie-1") is None
    assert stage.condition(KIND, "bk") == ("False", "Recovering")
    put_ledger(stage, 2, old)
    stage.settle(KIND, "bk")
    assert stage.condition(KIND, "bk") == ("False", "ClaimLost")
    assert stage.found(KIND, "bk")["status"]["message"].startswith("1 ledger has entries only on lost bookies (2)")


def bound_claims(stage: Stage, *, expandable: bool) -> list[str]:
    """The bookies' claims for ledgers, each with a volume of 20Gi."""
    stage.add_storage_class(stage.namespace, expandable)
    ledgers = {"size": "20Gi", "storageClassName": stage.namespace}
    stage.declare(KIND, "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": BOOKIES, "ledgers": ledgers})
    serving(stage)
    names = [named(stage).ledgers_claim(number) for number in range(BOOKIES)]
    for name in names:
        stage.set_status(CLAIM, name, {"phase": "Bound", "capacity": {"storage": "20Gi"}})
    return names


def test_a_size_that_no_volume_got_is_taken_back_to_more_than_the_volumes_have(
    dynamic: DynamicClient, charted: DynamicClient, namespace: str
) -> None:
    stage = Stage(dynamic, namespace, operator=charted)
    names = bound_claims(stage, expandable=True)
    asked = {}
    for size in ("1024Ti", "20Gi", "21Gi"):
        stage.patch(KIND, "bk", {"spec": {"ledgers": {"size": size}}})
        stage.settle(KIND, "bk")
        requests = {stage.found(CLAIM, name)["spec"]["resources"]["requests"]["storage"] for name in names}
        asked[size] = (requests, stage.condition(KIND, "bk"), "set 21Gi or more" in stage.found(KIND, "bk")["status"]["message"])
    assert asked == {
        "1024Ti": ({"1Pi"}, ("True", "Ready"), False),
        "20Gi": ({"1Pi"}, ("False", "InvalidSpec"), True),
        "21Gi": ({"21Gi"}, ("True", "Ready"), False),
    }
    with pytest.raises(ApiException, match=r"can not be less than status\.capacity"):
        stage.patch(CLAIM, names[0], {"spec": {"resources": {"requests": {"storage": "20Gi"}}}})


@pytest.mark.parametrize("expandable", [True, False])
def test_a_larger_size_grows_the_volumes_where_their_class_can(
    dynamic: DynamicClient, charted: DynamicClient, namespace: str, expandable: bool
) -> None:
    stage = Stage(dynamic, namespace, operator=charted)
    names = bound_claims(stage, expandable=expandable)
    stage.patch(KIND, "bk", {"spec": {"ledgers": {"size": "40Gi"}}})
    stage.settle(KIND, "bk")
    asked = {stage.found(CLAIM, name)["spec"]["resources"]["requests"]["storage"] for name in names}
    assert asked == ({"40Gi"} if expandable else {"20Gi"})
    if expandable:
        assert stage.condition(KIND, "bk", "Progressing") == ("True", "Resizing")
        stage.patch(KIND, "bk", {"spec": {"ledgers": {"size": "20Gi"}}})
    else:
        assert "does not allow expansion" in stage.found(KIND, "bk")["status"]["message"]
    stage.settle(KIND, "bk")
    assert stage.condition(KIND, "bk") == ("False", "InvalidSpec")


def test_a_size_that_the_volumes_can_not_have_restarts_no_bookie(dynamic: DynamicClient, namespace: str) -> None:
    stage = Stage(dynamic, namespace)
    stage.add_storage_class(namespace, expandable=False)
    journal = {"size": "5Gi", "storageClassName": namespace}
    stage.declare(KIND, "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": BOOKIES, "journal": journal})
    serving(stage)
    for number in range(BOOKIES):
        stage.set_status(CLAIM, named(stage).journal_claim(number), {"phase": "Bound", "capacity": {"storage": "5Gi"}})
    before, pods = generations(stage), running(stage)
    stage.patch(KIND, "bk", {"spec": {"journal": {"size": "10Gi"}}})
    stage.settle(KIND, "bk")
    assert "set spec.journal.size back to 5Gi" in stage.found(KIND, "bk")["status"]["message"]
    assert (rolled(stage, before), restarted(stage, pods)) == ([], [])


def test_claims_of_two_bookies_are_not_taken_for_one_bookies(stage: Stage) -> None:
    serving(stage)
    stage.patch(CLAIM, "bk-bookie-1-journal", {"metadata": {"annotations": {BOOKIE_ID: "bk-bookie-1-another1"}}})
    stage.settle(KIND, "bk")
    assert stage.condition(KIND, "bk") == ("False", "ClaimLost")
    assert claim_ids(stage, 1)[0] == "bk-bookie-1-another1"


def test_lost_metadata_is_not_made_anew_under_the_volumes(stage: Stage) -> None:
    serving(stage)
    stage.ensemble.delete_tree(f"/{stage.namespace}")
    before = stage.versions()
    stage.settle(KIND, "bk")
    assert root(stage) not in stage.ensemble.znodes
    assert stage.versions() == before
    assert stage.condition(KIND, "bk") == ("False", "MetadataLost")


def test_while_zookeeper_is_silent_nothing_is_changed_and_nothing_is_claimed(stage: Stage) -> None:
    serving(stage)
    stage.ensemble.silent = True
    change_configuration(stage)
    before = stage.versions()
    stage.settle(KIND, "bk")
    assert stage.versions() == before
    assert stage.condition(KIND, "bk") == ("Unknown", "Unreadable")


def test_a_changed_delay_is_written_where_auditors_read_it(stage: Stage) -> None:
    serving(stage)
    path = f"{root(stage)}/underreplication/lostBookieRecoveryDelay"
    stage.ensemble.put(path, b"300")
    stage.patch(KIND, "bk", {"spec": {"autoRecovery": {"lostBookieRecoveryDelaySeconds": 600}}})
    stage.settle(KIND, "bk")
    assert stage.ensemble.znodes[path] == (b"600", 1)


def test_a_line_that_bookkeeper_ignores_is_a_warning_and_changes_nothing_else(stage: Stage) -> None:
    serving(stage)
    stage.patch(KIND, "bk", {"spec": {"config": {"compactionRat": "1"}}})
    stage.reconcile(KIND, "bk")
    assert stage.condition(KIND, "bk", "ConfigKnown") == ("False", "UnknownConfigKeys")
    assert stage.condition(KIND, "bk") == ("True", "Ready")
    stage.patch(KIND, "bk", {"spec": {"config": {"compactionRat": None}}})
    stage.reconcile(KIND, "bk")
    # it is yet to be taken out of what the bookies have
    assert {entry["type"] for entry in stage.found(KIND, "bk")["status"]["conditions"]} == {"Ready", "Progressing", "Reconciling"}


def test_marks_of_the_auditor_are_counted_and_the_oldest_is_dated(stage: Stage) -> None:
    serving(stage)
    for number, time in enumerate((1_700_000_060_000, 1_700_000_000_000)):
        mark = f"{root(stage)}/underreplication/ledgers/0000/0000/0000/000{number}/urL000000000{number}"
        stage.ensemble.put(mark, f'replica: "bk-bookie-0-aaaaaa"\nctime: {time}\n'.encode())
    stage.ensemble.put(f"{root(stage)}/underreplication/disable")
    stage.reconcile(KIND, "bk")
    status = stage.found(KIND, "bk")["status"]
    assert (status["underReplicatedLedgers"], status["underReplicatedSince"]) == (2, "2023-11-14T22:13:20Z")
    assert (status["underReplicated"], status["replicationEnabled"]) == (True, False)


def zone(name: str, region: str = "north") -> dict[str, str]:
    return {"topology.kubernetes.io/zone": name, "topology.kubernetes.io/region": region}


def racks(stage: Stage) -> list[str]:
    """The locations that BookKeeper's clients are told, in the order of the bookies."""
    return [line.split()[1] for line in stage.found("ConfigMap", "bk-racks")["data"]["racks"].splitlines()]


def test_clients_are_told_the_zones_of_the_bookies_nodes_and_keep_them_while_a_bookie_is_away(stage: Stage) -> None:
    stage.settle(KIND, "bk")
    for number in range(BOOKIES):
        stage.add_node(f"{stage.namespace}-{number}", zone(f"zone-{number}"))
        stage.serve_bookie(named(stage), number, f"{stage.namespace}-{number}")
    stage.settle(KIND, "bk")
    assert racks(stage) == ["/zone-0", "/zone-1", "/zone-2"]
    stage.delete("Pod", named(stage).pod(1))
    stage.delete("Node", f"{stage.namespace}-2")
    stage.settle(KIND, "bk")
    assert racks(stage) == ["/zone-0", "/zone-1", "/zone-2"]
    assert [bookie["rack"] for bookie in stage.found(KIND, "bk")["status"]["bookies"]] == ["zone-0", "zone-1", "zone-2"]
    assert stage.found(KIND, "bk")["status"]["placementPolicy"] == "RackAware"


def test_ledgers_whose_copies_are_in_one_zone_are_told_and_not_read_for_again_at_once(stage: Stage) -> None:
    stage.settle(KIND, "bk")
    for number in range(BOOKIES):
        stage.add_node(f"{stage.namespace}-{number}", zone("zone-b" if number else "zone-a"))
        stage.serve_bookie(named(stage), number, f"{stage.namespace}-{number}")
    ids = [stage.bookie_id(named(stage), number) for number in range(BOOKIES)]
    ledgers = PlayedLedgers(stage.ensemble, root(stage))
    ledgers.put(7, (0, ids[1:]), last_entry_id=9)
    ledgers.put(8, (0, ids[:2]), last_entry_id=9)
    stage.settle(KIND, "bk")
    found = stage.found(KIND, "bk")["status"]["placementCheck"]
    assert (found["ledgers"], found["firstLedgers"]) == (1, [7])
    ledgers.put(9, (0, ids[1:]), last_entry_id=9)
    with nothing_written(stage):
        stage.reconcile(KIND, "bk")
    assert stage.found(KIND, "bk")["status"]["placementCheck"] == found


def test_a_second_region_selects_the_region_aware_policy_and_restarts_autorecovery_with_it(stage: Stage) -> None:
    stage.settle(KIND, "bk")
    for number in range(BOOKIES):
        stage.add_node(f"{stage.namespace}-{number}", zone("zone-a", "north" if number else "south"))
        stage.serve_bookie(named(stage), number)
    stage.settle(KIND, "bk")
    template = stage.found("Deployment", "bk-autorecovery")["spec"]["template"]
    assert racks(stage) == []
    for number in range(BOOKIES):
        stage.delete("Pod", named(stage).pod(number))
        stage.serve_bookie(named(stage), number, f"{stage.namespace}-{number}")
    stage.settle(KIND, "bk")
    assert racks(stage) == ["/south/zone-a", "/north/zone-a", "/north/zone-a"]
    assert "RegionAwareEnsemblePlacementPolicy\n" in stage.found("ConfigMap", "bk-autorecovery")["data"]["bk_server.conf"]
    assert stage.found("Deployment", "bk-autorecovery")["spec"]["template"]["metadata"] != template["metadata"]
    assert stage.found(KIND, "bk")["status"]["placementPolicy"] == "RegionAware"


def test_autorecovery_that_is_switched_off_is_removed(stage: Stage) -> None:
    serving(stage)
    stage.patch(KIND, "bk", {"spec": {"autoRecovery": {"enabled": False}}})
    stage.settle(KIND, "bk")
    assert [key for key in stage.made() if key[1] == "bk-autorecovery"] == []
    assert stage.condition(KIND, "bk") == ("True", "Ready")


def test_it_waits_for_the_ensemble_that_it_refers_to_and_then_finds_it(dynamic: DynamicClient, namespace: str) -> None:
    zookeeper = ZooKeeperNames(ObjectKey(namespace, "zk"))
    stage = Stage(dynamic, namespace, PlayedEnsembles(zookeeper.address(1)))
    stage.declare(KIND, "bk", {"zooKeeperRef": {"name": "zk"}, "bookies": BOOKIES})
    stage.settle(KIND, "bk")
    assert stage.condition(KIND, "bk") == ("False", "WaitingForZooKeeper")
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 1})
    stage.settle("ZooKeeperCluster", "zk")
    stage.settle(KIND, "bk")
    assert stage.condition(KIND, "bk") == ("False", "WaitingForZooKeeper")
    assert (list(stage.ensemble.znodes), claims(stage)) == (["/"], {"data-zk-zookeeper-0"})
    PlayedMembers(stage, "zk").turn()
    stage.settle("ZooKeeperCluster", "zk")
    serving(stage)
    assert zookeeper.address(1) in stage.found("ConfigMap", "bk-bookie")["data"]["bk_server.conf"]


def test_no_serving_bookie_is_restarted_while_a_zookeeper_member_is_away(dynamic: DynamicClient, namespace: str) -> None:
    zookeeper = ZooKeeperNames(ObjectKey(namespace, "zk"))
    stage = Stage(dynamic, namespace, PlayedEnsembles(zookeeper.address(1)))
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 1})
    stage.declare(KIND, "bk", {"zooKeeperRef": {"name": "zk"}, "bookies": BOOKIES})
    stage.settle("ZooKeeperCluster", "zk")
    PlayedMembers(stage, "zk").turn()
    stage.settle("ZooKeeperCluster", "zk")
    serving(stage)
    before = running(stage)
    stage.stop_serving("zk-zookeeper-0")
    stage.settle("ZooKeeperCluster", "zk")
    change_configuration(stage)
    stage.settle(KIND, "bk")
    assert restarted(stage, before) == []
    stage.serve("zk-zookeeper")
    stage.settle("ZooKeeperCluster", "zk")
    stage.settle(KIND, "bk")
    assert restarted(stage, before) == [0]
