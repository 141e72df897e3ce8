"""When a changed StatefulSet is applied, and that a pod is never restarted which alone keeps a deleted claim alive."""

from __future__ import annotations

from copy import deepcopy

import pytest
from situations import bookkeeper_serving, claim, live, objects, pods, quickstart, with_spec

from herdkeeper.bookkeeper.build.bookies import BookieIdentity, build_bookie
from herdkeeper.herddb.build import build_herddb
from herdkeeper.herddb.state.log_store import log_store
from herdkeeper.planning.actions import Apply, Wait
from herdkeeper.planning.intent import needed_apply
from herdkeeper.planning.rolling import Gate, being_recreated, roll
from herdkeeper.shared import names
from herdkeeper.shared.reason import Reason
from herdkeeper.zookeeper.build import build_zookeeper
from herdkeeper.zookeeper.state import Ensemble

OPEN, CLOSED = Gate(None), Gate("something else is disrupted")


def bookie(image: str):
    return build_bookie(with_spec(quickstart("BookKeeperCluster"), image=image), BookieIdentity(0, "bk-bookie-0-aaaaaa"), "zk-0:2181")


def herddb(image: str):
    return build_herddb(with_spec(quickstart("HerdDBCluster"), image=image), log_store(bookkeeper_serving()), "secret")[-1]


def going(name: str):
    ((key, item),) = claim(name).items()
    return {key: {**item, "metadata": {**item["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}}


@pytest.mark.parametrize(
    ("situation", "live_image", "ready", "gate", "expected"),
    [
        ("it is as intended", "new", True, CLOSED, None),
        ("nothing else is disrupted", "old", True, OPEN, Reason.ROLLING),
        ("a serving pod waits for the others", "old", True, CLOSED, Reason.WAITING_FOR_OTHERS),
        ("a pod that does not serve is mended at once", "old", False, CLOSED, Reason.ROLLING),
        ("it does not exist yet", None, False, CLOSED, Reason.CREATING),
    ],
)
def test_a_change_waits_for_others_only_while_the_pod_serves(situation, live_image, ready, gate, expected):
    seen = objects(live([bookie(live_image)]) if live_image else {}, pods(["bk-bookie-0-0"]) if ready else {})
    step = roll(bookie("new"), seen, ["bk-bookie-0-0"], gate)
    assert (step.reason if step is not None else None) == expected, situation
    assert isinstance(step, Wait) is (expected is Reason.WAITING_FOR_OTHERS)


@pytest.mark.parametrize(
    ("build", "pod", "lost"),
    [
        (bookie, "bk-bookie-0-0", "bk-bookie-0-journal"),
        (bookie, "bk-bookie-0-0", "bk-bookie-0-ledgers"),
        (herddb, "db-herddb-0", "data-db-herddb-0"),
    ],
)
@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.parametrize("image", ["old", "new"])
def test_a_pod_that_keeps_a_deleted_claim_alive_is_not_restarted_and_the_claim_is_named(build, pod, lost, ready, image):
    seen = objects(live([build("old")]), pods([pod]) if ready else pods([pod], conditions=[]), going(lost))
    step = roll(build(image), seen, [pod], OPEN)
    assert isinstance(step, Wait)
    assert (step.reason, lost in step.message) == (Reason.CLAIM_LOST, True)
    assert isinstance(roll(build("new"), objects(live([build("old")]), pods([pod]), claim(lost)), [pod], OPEN), Apply)


def test_a_pod_that_hangs_on_a_node_that_is_down_holds_up_no_repair_of_others():
    manifest = bookie("new")
    found = {**live([manifest]), **pods(["bk-bookie-0-0"])}
    found["StatefulSet", "bk-bookie-0"]["status"] = {"updateRevision": "r"}
    found["Pod", "bk-bookie-0-0"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for hanging, expected in (({}, "bk-bookie-0-0 is being recreated"), ({"bk-bookie-0-0": "its node is down"}, None)):
        assert being_recreated(objects(found), {"bk-bookie-0-0": "bk-bookie-0"}, hanging) == expected


@pytest.mark.parametrize(("made_from", "expected"), [("r", "bk-bookie-0-0 is starting"), ("an-earlier-one", None)])
def test_a_pod_that_does_not_start_from_an_earlier_template_holds_up_no_repair(made_from, expected):
    manifest = bookie("new")
    found = {**live([manifest]), **pods(["bk-bookie-0-0"], phase="Pending")}
    found["StatefulSet", "bk-bookie-0"]["status"] = {"updateRevision": "r"}
    found["Pod", "bk-bookie-0-0"]["metadata"]["labels"] = {names.REVISION_LABEL: made_from}
    assert being_recreated(objects(found), {"bk-bookie-0-0": "bk-bookie-0"}, {}) == expected


def zookeeper():
    return build_zookeeper(Ensemble(quickstart("ZooKeeperCluster"), objects()))[-1]


@pytest.mark.parametrize("manifest", [zookeeper(), herddb("one")], ids=["members", "SQL nodes"])
@pytest.mark.parametrize("when", ["whenDeleted", "whenScaled"])
def test_a_stateful_set_that_would_take_its_volumes_along_is_put_right(manifest, when):
    """It goes with its resource, under deletionPolicy Retain, too."""
    found = deepcopy(live([manifest]))
    assert needed_apply(manifest, objects(found)) is None
    spec = found["StatefulSet", manifest["metadata"]["name"]]["spec"]
    spec["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Retain", "whenScaled": "Retain", when: "Delete"}
    assert needed_apply(manifest, objects(found)) is not None
