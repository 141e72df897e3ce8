"""An ensemble is founded once, by new claims only."""

from __future__ import annotations

import pytest
from situations import claim, live, objects, pods, quickstart, with_spec, with_status

from herdkeeper.build.zookeeper import build_zookeeper
from herdkeeper.domain import names
from herdkeeper.domain.observed.zookeeper import ZooKeeperObserved
from herdkeeper.domain.reason import Reason
from herdkeeper.plan.action import Annotate, Apply, Create
from herdkeeper.plan.zookeeper import plan_zookeeper

CLUSTER = quickstart("ZooKeeperCluster")
CLAIMS = [f"data-zk-zookeeper-{number}" for number in range(3)]
PODS = [f"zk-zookeeper-{number}" for number in range(3)]


def claims(*marks: str | None):
    return [claim(name, **{names.FOUNDED_ANNOTATION: mark}) for name, mark in zip(CLAIMS, marks, strict=True) if mark is not None]


def plan(*parts, cluster=CLUSTER):
    return plan_zookeeper(cluster, ZooKeeperObserved(objects(*parts), {}))


def founding_in(plan) -> str | None:
    applied = [action.manifest for action in plan.actions if isinstance(action, Apply) and action.manifest["kind"] == "ConfigMap"]
    return applied[0]["data"]["founding"] if applied else None


def test_a_new_ensemble_gets_its_claims_before_the_statefulset_and_may_be_founded():
    made = plan()
    kinds = [action.manifest["kind"] for action in made.actions if isinstance(action, (Create, Apply))]
    assert kinds == ["PersistentVolumeClaim"] * 3 + ["ConfigMap", "Service", "Service", "PodDisruptionBudget", "StatefulSet"]
    assert founding_in(made) == "true"


@pytest.mark.parametrize(
    ("situation", "marks", "founding"),
    [
        ("all claims are new", ("false", "false", "false"), "true"),
        ("one claim was founded: the others' members join it", ("true", "false", "false"), "false"),
        ("all were founded", ("true", "true", "true"), "false"),
        ("a claim that Kubernetes made itself says nothing: not new", ("true", "true", None), "false"),
    ],
)
def test_an_empty_member_may_vote_only_while_every_claim_is_new(situation, marks, founding):
    assert founding_in(plan(*claims(*marks))) == founding, situation


def test_claims_that_stayed_from_a_deleted_resource_are_taken_over_and_not_founded_again():
    made = plan(*claims("true", "true", "true"))
    assert not [action for action in made.actions if isinstance(action, Create)]
    assert founding_in(made) == "false"


def test_a_founded_ensemble_without_any_founded_claim_is_not_started_empty():
    made = plan(cluster=with_status(CLUSTER, founded=True))
    assert made.actions == ()
    assert made.wait is not None
    assert made.wait.reason is Reason.DATA_LOST


def test_the_claims_are_marked_as_founded_only_once_all_members_serve():
    settled = live(build_zookeeper(CLUSTER, founding=True))
    unfounded = claims("false", "false", "false")
    assert plan(settled, *unfounded, pods(PODS[:2])).actions == ()
    marked = plan(settled, *unfounded, pods(PODS)).actions
    assert [(action.name, action.annotations) for action in marked if isinstance(action, Annotate)] == [
        (name, {names.FOUNDED_ANNOTATION: "true"}) for name in CLAIMS
    ]


def test_a_settled_ensemble_gets_nothing():
    settled = live(build_zookeeper(CLUSTER, founding=False))
    made = plan(settled, *claims("true", "true", "true"), pods(PODS))
    assert (made.actions, made.wait) == ((), None)


def test_members_are_restarted_for_another_image_also_when_one_of_them_is_down():
    """The StatefulSet itself goes one by one, and waits for each; without this a broken image could not be mended."""
    settled = live(build_zookeeper(CLUSTER, founding=False))
    changed = with_spec(CLUSTER, image="herdkeeper/zookeeper:0.2.0")
    made = plan(settled, *claims("true", "true", "true"), pods(PODS[:2]), cluster=changed)
    assert [(action.manifest["kind"], action.reason) for action in made.actions if isinstance(action, Apply)] == [
        ("StatefulSet", Reason.ROLLING)
    ]
