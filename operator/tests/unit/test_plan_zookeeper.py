"""An ensemble is founded once, by new claims only; then pods follow the membership, and a changed template reaches the leader last."""

from __future__ import annotations

from dataclasses import replace

import pytest
from situations import claim, live, objects, pods, quickstart, with_spec, with_status
from situations import member_claims as claims

from herdkeeper.codecs.zookeeper.membership import Membership, Role
from herdkeeper.planning.actions import Annotate, Apply, ChangeMembership, Create, Delete
from herdkeeper.shared import names
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.build import build_zookeeper, build_zookeeper_secret
from herdkeeper.zookeeper.plan import plan_zookeeper
from herdkeeper.zookeeper.state import NOT_READ, Ensemble, server_of

CLUSTER = quickstart("ZooKeeperCluster")
VERSION = 0x100000007
NEW, OLD = "zk-zookeeper-new", "zk-zookeeper-old"


def claim_of(number: int) -> str:
    return f"data-zk-zookeeper-{number}"


def pod_of(number: int) -> str:
    return f"zk-zookeeper-{number}"


def made_by_the_stateful_set(number: int):
    """A claim in the place of a deleted one, as Kubernetes makes it."""
    found = claim(claim_of(number))
    found["PersistentVolumeClaim", claim_of(number)]["metadata"]["labels"] = names.selector(names.ZOOKEEPER_COMPONENT, "zk")
    return found


def members(*numbers: int, revision: str = NEW, ready: bool = True):
    """Pods of members, made from a revision of the template."""
    found = pods([pod_of(number) for number in numbers], **({} if ready else {"conditions": [{"type": "Ready", "status": "False"}]}))
    for pod in found.values():
        pod["metadata"]["labels"] = {names.REVISION_LABEL: revision}
    return found


def stopping(number: int):
    """The outdated pod of a member, being deleted."""
    found = members(number, revision=OLD)
    found["Pod", pod_of(number)]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return found


def membership(voters=(0, 1, 2), observers=()) -> Membership:
    roles = {**dict.fromkeys(voters, Role.PARTICIPANT), **dict.fromkeys(observers, Role.OBSERVER)}
    return Membership(VERSION, tuple(server_of(CLUSTER, number, role) for number, role in sorted(roles.items())))


def settled(committed: Membership | None, pods: int | None = None, cluster=CLUSTER):
    """All objects as they are once applied, and seen by their controllers; of an ensemble that is founded without a `committed` membership.
    `pods`: somebody else scaled it."""
    marked = {} if committed is None else claims("true")
    ensemble = Ensemble(cluster, objects(marked), membership=committed or NOT_READ, password="secret")
    found = live((*build_zookeeper(ensemble), build_zookeeper_secret(ensemble)))
    found["StatefulSet", "zk-zookeeper"]["status"] = {"observedGeneration": 0, "updateRevision": NEW}
    if pods is not None:
        found["StatefulSet", "zk-zookeeper"]["spec"]["replicas"] = pods
    return found


def saw(*parts, leader: int = 2, serving=(0, 1, 2), committed=None, **more) -> Ensemble:
    """An ensemble whose serving members are in step, each one transaction further than the leader was when it was asked."""
    return Ensemble(
        CLUSTER,
        objects(*parts),
        modes={number: "leader" if number == leader else "follower" for number in serving},
        **{
            "zxids": {number: 0x200000010 + (number != leader) for number in serving},
            "membership": committed if committed is not None else membership(),
            "password": "secret",
            "fresh_password": "fresh",
            **more,
        },
    )


def healthy(voters=(0, 1, 2), observers=(), marks=None, **more) -> Ensemble:
    """A settled ensemble in which all members serve."""
    everyone, committed = sorted({*voters, *observers}), membership(voters, observers)
    marks = marks or ["true" if number in voters else "false" for number in range(max(everyone) + 1)]
    parts = (settled(committed), claims(*marks), members(*everyone))
    return saw(*parts, serving=tuple(everyone), committed=committed, **more)


def plan(seen: Ensemble, cluster=CLUSTER):
    return plan_zookeeper(replace(seen, cluster=cluster))


def nothing_seen(*parts) -> Ensemble:
    return Ensemble(CLUSTER, objects(*parts), fresh_password="fresh")


def founding_in(made) -> str | None:
    applied = [action.manifest for action in made.actions if isinstance(action, Apply) and action.manifest["kind"] == "ConfigMap"]
    return applied[0]["data"]["founding"] if applied else None


# founding


def test_a_new_ensemble_gets_its_password_and_claims_before_the_statefulset_and_may_be_founded():
    made = plan(nothing_seen())
    kinds = [action.manifest["kind"] for action in made.actions if isinstance(action, (Create, Apply))]
    assert kinds == ["Secret", *["PersistentVolumeClaim"] * 3, "ConfigMap", "Service", "Service", "PodDisruptionBudget", "StatefulSet"]
    assert founding_in(made) == "true"


@pytest.mark.parametrize(
    ("situation", "marks", "founding"),
    [
        ("all claims are new", ("false", "false", "false"), "true"),
        ("one claim was founded: the others' members join it", ("true", "false", "false"), "false"),
        ("all were founded", ("true", "true", "true"), "false"),
        ("a claim of a member that left holds data", ("left", "false", "false"), "false"),
        ("a claim that Kubernetes made itself says nothing: not new", ("true", "true", None), "false"),
    ],
)
def test_an_empty_member_may_vote_only_while_every_claim_is_new(situation, marks, founding):
    assert founding_in(plan(nothing_seen(claims(*marks)))) == founding, situation


def test_claims_that_stayed_from_a_deleted_resource_are_taken_over_and_not_founded_again():
    made = plan(nothing_seen(claims("true", "true", "true")))
    assert not [action for action in made.actions if isinstance(action, Create)]
    assert founding_in(made) == "false"


def test_a_founded_ensemble_without_any_founded_claim_is_not_started_empty():
    made = plan(nothing_seen(claims("false", "left")), with_status(CLUSTER, founded=True))
    assert made.actions == ()
    assert made.wait is not None
    assert made.wait.reason is Reason.DATA_LOST


def test_the_claims_are_marked_as_founded_only_once_all_members_serve():
    begun = settled(None)
    unfounded = claims("false", "false", "false")
    assert plan(saw(begun, unfounded, members(0, 1), serving=(0, 1))).actions == ()
    marked = plan(saw(begun, unfounded, members(0, 1, 2))).actions
    assert [(action.name, action.annotations) for action in marked if isinstance(action, Annotate)] == [
        (claim_of(number), {names.FOUNDED_ANNOTATION: "true"}) for number in range(3)
    ]


def test_a_template_that_may_be_refused_for_long_keeps_no_ensemble_from_being_founded():
    """As long as every claim is new, a member that lost its volume would vote with an empty disk."""
    changed = with_spec(CLUSTER, image="herdkeeper/zookeeper:0.3.0")
    made = plan(saw(settled(None), claims("false", "false", "false"), members(0, 1, 2)), changed).actions
    assert [action.name for action in made if isinstance(action, Annotate)] == [claim_of(number) for number in range(3)]
    assert isinstance(made[-1], Apply), "which stops at the first refusal, so that the template is last"
    assert [type(action) for action in plan(saw(settled(None), claims(*["false"] * 3), members(0, 1)), changed).actions] == [Apply]


@pytest.mark.parametrize("declared", [1, 5])
def test_an_ensemble_that_is_being_founded_neither_grows_nor_shrinks(declared):
    """A member that came to it then would find all claims new, and might vote with an empty disk."""
    begun = settled(None)
    cluster = with_spec(CLUSTER, replicas=declared)
    assert plan(saw(begun, claims("false", "false", "false"), members(0, 1), serving=(0, 1)), cluster).actions == ()


@pytest.mark.parametrize(
    ("situation", "stateful_set", "declared"),
    [
        ("somebody scaled its StatefulSet", {"spec": {"replicas": 7}}, 3),
        ("somebody deleted its StatefulSet, after it was declared larger", None, 7),
        ("somebody deleted its StatefulSet, after it was declared smaller", None, 1),
    ],
)
def test_an_ensemble_that_is_being_founded_keeps_its_size_whatever_becomes_of_its_stateful_set(situation, stateful_set, declared):
    """Four empty members beside three would be a majority that begins with an empty tree."""
    begun = settled(None)
    made_there = {} if stateful_set is None else made_by_the_stateful_set(3)
    found = begun.pop(("StatefulSet", "zk-zookeeper"))
    parts = (begun, {} if stateful_set is None else {("StatefulSet", "zk-zookeeper"): {**found, **stateful_set}}, made_there)
    seen = saw(*parts, claims("false", "false", "false"), members(0, 1), serving=(0, 1))
    made = plan(seen, with_spec(CLUSTER, replicas=declared))
    (applied,) = [action.manifest for action in made.actions if isinstance(action, Apply)]
    assert (applied["kind"], applied["spec"]["replicas"]) == ("StatefulSet", 3), situation


@pytest.mark.parametrize("declared", [1, 7])
def test_an_ensemble_whose_founding_an_earlier_resource_began_keeps_its_size(declared):
    """Its members may have data, though not all of them ever served. The resource was deleted, and its claims stayed."""
    kept = claims("false", "false", "false")
    for found in kept.values():
        found["metadata"]["annotations"][names.ENSEMBLE_ANNOTATION] = "uid-of-the-earlier-resource"
    made = plan(nothing_seen(kept), with_spec(CLUSTER, replicas=declared))
    (applied,) = [action.manifest for action in made.actions if isinstance(action, Apply) and action.manifest["kind"] == "StatefulSet"]
    assert applied["spec"]["replicas"] == 3


@pytest.mark.parametrize("gone", [0, 1])
def test_a_founding_that_an_earlier_resource_began_keeps_its_size_also_if_a_claim_of_it_is_gone(gone):
    """Somebody deletes the claims one by one and makes the resource again, before all are gone."""
    kept = claims("false", "false", "false")
    for found in kept.values():
        found["metadata"]["annotations"][names.ENSEMBLE_ANNOTATION] = "uid-of-the-earlier-resource"
    del kept["PersistentVolumeClaim", CLUSTER.names.claim(gone)]
    made = plan(nothing_seen(kept))
    (applied,) = [action.manifest for action in made.actions if isinstance(action, Apply) and action.manifest["kind"] == "StatefulSet"]
    assert applied["spec"]["replicas"] == 3


def test_a_claim_of_a_member_that_was_never_to_be_does_not_keep_an_ensemble_from_being_founded():
    """Somebody scaled the StatefulSet up for a while, or an earlier resource of the name had more members."""
    seen = saw(settled(None), claims(*["false"] * 5), members(0, 1, 2))
    assert [action.name for action in plan(seen).actions if isinstance(action, Annotate)] == [claim_of(number) for number in range(3)]


def test_an_ensemble_that_is_being_founded_does_not_shrink_for_a_roll_that_waits():
    """The member that can't start would, once it can, be an empty voter of the first membership, which the others have left."""
    begun = settled(None, cluster=with_spec(CLUSTER, replicas=5))
    away = members(4, ready=False)
    seen = saw(
        begun, claims(*["false"] * 5), members(0, 1, 2, 3, revision=OLD), away, serving=(0, 1, 2, 3), committed=membership((0, 1, 2, 3, 4))
    )
    made = plan(seen, with_spec(CLUSTER, replicas=3))
    assert not [action for action in made.actions if isinstance(action, ChangeMembership)]


# settled


def test_a_settled_ensemble_gets_nothing():
    made = plan(healthy())
    assert (made.actions, made.wait) == ((), None)


def test_what_can_not_be_read_changes_nothing():
    made = plan(replace(healthy(), membership=Unknown("ZooKeeper did not answer")), with_spec(CLUSTER, replicas=5))
    assert made.actions == ()
    assert made.wait is not None
    assert made.wait.reason is Reason.UNREADABLE


@pytest.mark.parametrize(
    ("situation", "seen", "declared", "wanted"),
    [
        ("nothing is there", nothing_seen(), 3, 3),
        ("killed between the first claims", nothing_seen(claims("false")), 3, 3),
        ("being founded, and declared larger since", nothing_seen(claims("false", "false", "false"), settled(membership())), 5, 3),
        ("claims stayed from a larger ensemble", nothing_seen(claims(*["true"] * 5)), 3, 5),
        ("claims stayed, also of members that left", nothing_seen(claims("true", "true", "true", "left", "left")), 3, 3),
        ("the committed membership has the first three", healthy(), 5, 3),
        ("one has joined without a vote", healthy(observers=(3,)), 5, 4),
        ("one in the middle has left", healthy(voters=(0, 1, 2, 4)), 3, 5),
        ("no answer, and one claim was lost", nothing_seen(claims("true", "true"), settled(membership())), 3, 3),
        ("no answer, and somebody scaled the StatefulSet down", nothing_seen(claims(*["true"] * 3), settled(membership(), pods=1)), 3, 3),
        ("no answer, while one joins", nothing_seen(claims("true", "true", "true", "false"), settled(membership(), pods=4)), 5, 4),
    ],
)
def test_there_is_a_pod_for_each_member_and_none_is_taken_away_unseen(situation, seen, declared, wanted):
    assert len(replace(seen, cluster=with_spec(CLUSTER, replicas=declared)).pods) == wanted, situation


def test_a_lost_claim_is_made_anew_and_unfounded_and_counts_again_once_its_member_serves():
    lost = saw(settled(membership()), claims("true", None, "true"), members(0, 2), members(1, ready=False), serving=(0, 2))
    (made,) = [action.manifest for action in plan(lost).actions if isinstance(action, Create)]
    assert made["metadata"]["annotations"][names.FOUNDED_ANNOTATION] == "false"
    waiting = saw(settled(membership()), claims("true", "false", "true"), members(0, 2), members(1, ready=False), serving=(0, 2))
    assert plan(waiting).actions == ()
    (mark,) = plan(healthy(marks=("true", "false", "true"))).actions
    assert isinstance(mark, Annotate)
    assert (mark.name, mark.annotations) == (claim_of(1), {names.FOUNDED_ANNOTATION: "true"})


@pytest.mark.parametrize(("others", "founding"), [(("true", None, "true"), "false"), (("false", None, "false"), "true")])
def test_a_claim_that_the_stateful_set_made_anew_is_taken_over_as_a_new_one(others, founding):
    seen = nothing_seen(claims(*others), made_by_the_stateful_set(1))
    made = plan(seen)
    adopted = [action for action in made.actions if isinstance(action, Apply) and action.manifest["kind"] == "PersistentVolumeClaim"]
    assert [(action.manifest["metadata"]["name"], action.manifest["metadata"]["uid"]) for action in adopted] == [
        (claim_of(1), f"uid-{claim_of(1)}")
    ]
    assert adopted[0].manifest["metadata"]["annotations"][names.FOUNDED_ANNOTATION] == "false"
    assert not [action for action in made.actions if isinstance(action, Create) and action.manifest["kind"] == "PersistentVolumeClaim"]
    assert founding_in(made) == founding


def test_a_claim_whose_labels_somebody_removed_still_holds_a_voters_data():
    whole, bare = claims("true", "true", "true"), claims("true")
    bare["PersistentVolumeClaim", claim_of(0)]["metadata"]["labels"] = {}
    (labelled,) = plan(saw(settled(membership()), whole, bare, members(0, 1, 2))).actions
    assert isinstance(labelled, Apply)
    assert "spec" not in labelled.manifest, "a claim's spec can't change"
    assert labelled.manifest["metadata"]["annotations"][names.FOUNDED_ANNOTATION] == "true"
    assert labelled.manifest["metadata"]["labels"] == whole["PersistentVolumeClaim", claim_of(0)]["metadata"]["labels"]


def test_an_ensemble_whose_claims_all_lack_their_labels_is_not_founded_anew():
    """As after a restore of the claims alone, or of a resource that was deleted: neither status nor ConfigMap tells of the founding."""
    bare = claims("true", "true", "true")
    for found in bare.values():
        found["metadata"]["labels"] = {}
    assert founding_in(plan(nothing_seen(bare))) == "false"


def test_an_ensemble_that_lost_its_status_and_its_claims_is_not_founded_anew():
    seen = saw(settled(membership()))
    assert CLUSTER.status is None
    made = plan(replace(seen, objects=objects(seen.objects.items)))
    assert made.wait is not None
    assert (made.actions, made.wait.reason) == ((), Reason.DATA_LOST)


def test_an_ensemble_whose_claims_the_stateful_set_all_made_anew_is_not_founded_anew():
    made = plan(nothing_seen(*map(made_by_the_stateful_set, range(3))), with_status(CLUSTER, founded=True))
    assert (made.actions, made.wait.reason) == ((), Reason.DATA_LOST)


def test_a_claim_of_another_ensemble_is_not_used():
    marked = healthy(voters=(0, 1, 2), observers=(3,), marks=("true", "true", "true", "left"))
    for number, origin in ((0, "ours"), (3, "theirs")):
        marked.objects.items["PersistentVolumeClaim", claim_of(number)]["metadata"]["annotations"][names.ENSEMBLE_ANNOTATION] = origin
    made = plan(marked, with_spec(CLUSTER, replicas=5))
    assert made.actions == ()
    assert made.wait is not None
    assert (made.wait.reason, f"kubectl delete pvc/{claim_of(3)} pod/zk-zookeeper-3 -n demo" in made.wait.message) == (
        Reason.CLAIM_OF_ANOTHER,
        True,
    )


# a changed template


def test_a_changed_template_is_stored_at_once_and_touches_no_pod():
    made = plan(healthy(), with_spec(CLUSTER, image="herdkeeper/zookeeper:0.3.0"))
    assert [(action.manifest["kind"]) for action in made.actions if isinstance(action, Apply)] == ["StatefulSet"]
    assert [action for action in made.actions if isinstance(action, Delete)] == []


ALL = (settled(membership()), claims("true", "true", "true"))


@pytest.mark.parametrize(
    ("situation", "seen", "deleted"),
    [
        ("all are outdated: a follower, from the highest number", saw(*ALL, members(0, 1, 2, revision=OLD), leader=0), [2]),
        ("the leader has the highest number", saw(*ALL, members(0, 1, 2, revision=OLD)), [1]),
        ("only the leader is left", saw(*ALL, members(0, 1), members(2, revision=OLD)), [2]),
        ("all are new", saw(*ALL, members(0, 1, 2)), []),
        ("one starts again", saw(*ALL, members(0, 2, revision=OLD), members(1, ready=False), serving=(0, 2)), None),
        ("one is gone", saw(*ALL, members(0, 2, revision=OLD), serving=(0, 2)), None),
        ("one stops, and serves until then", saw(*ALL, members(0, 1, revision=OLD), stopping(2)), None),
        ("nobody says that it leads", saw(*ALL, members(0, 1, 2, revision=OLD), leader=7), None),
        (
            "one does not say what it is",
            replace(saw(*ALL, members(0, 1, 2, revision=OLD)), modes={0: "leader", 1: Unknown("x"), 2: "follower"}),
            None,
        ),
        ("one is far behind", saw(*ALL, members(0, 1, 2, revision=OLD), zxids={0: 0x200000000, 1: 0x200001000, 2: 0x200001000}), None),
        (
            "one shows the old epoch, and the new one has just begun",
            saw(*ALL, members(0, 1, 2, revision=OLD), zxids={0: 0x1000FFFFF, 1: 0x200000001, 2: 0x200000001}),
            [1],
        ),
        ("bookies are being restarted", saw(*ALL, members(0, 1, 2, revision=OLD), disruption="bk is not Ready"), None),
        ("one that does not serve is outdated", saw(*ALL, members(0, 2), members(1, ready=False, revision=OLD), serving=(0, 2)), [1]),
        (
            "a broken template is mended",
            saw(*ALL, members(0, 2, revision=OLD), members(1, ready=False, revision="broken"), serving=(0, 2)),
            [1],
        ),
        ("none serves", saw(*ALL, members(0, 1, 2, ready=False, revision=OLD), serving=(), membership=Unknown("x")), [2]),
        (
            "none serves, and one is being made anew",
            saw(*ALL, members(0, 1, ready=False, revision=OLD), serving=(), membership=Unknown("x")),
            None,
        ),
        (
            "none serves, and one runs with the new template: the quorum needs another one",
            saw(*ALL, members(0, 1, ready=False, revision=OLD), members(2, ready=False), serving=(), membership=Unknown("x")),
            [1],
        ),
        (
            "none is Ready, and all are in step: the leader is no idle member",
            saw(*ALL, members(0, 1, 2, ready=False, revision=OLD)),
            [1],
        ),
        (
            "the new one serves but is not Ready: it is waited for",
            saw(*ALL, members(0, 2, revision=OLD), members(1, ready=False)),
            None,
        ),
        (
            "one that serves but is not Ready is outdated",
            saw(*ALL, members(0, revision=OLD), members(1, ready=False), members(2, ready=False, revision=OLD)),
            [2],
        ),
        (
            "one that serves is not Ready, and bookies are being restarted",
            saw(*ALL, members(0, 2), members(1, ready=False, revision=OLD), disruption="bk is not Ready"),
            None,
        ),
    ],
)
def test_a_pod_that_serves_is_restarted_only_while_all_are_in_step_and_the_leader_last(situation, seen, deleted):
    made = plan(seen)
    assert [action.name for action in made.actions if isinstance(action, Delete)] == [pod_of(number) for number in deleted or []], situation
    if deleted is None:
        assert made.wait is not None
        assert made.wait.reason is Reason.WAITING_FOR_OTHERS


def test_no_pod_is_restarted_before_the_controller_knows_the_new_template():
    seen = saw(*ALL, members(0, 1, 2, revision=OLD))
    seen.objects.items["StatefulSet", "zk-zookeeper"]["metadata"]["generation"] = 2
    made = plan(seen)
    seen.objects.items["StatefulSet", "zk-zookeeper"]["metadata"]["generation"] = 0
    assert made.actions == ()
    assert made.wait is not None
    assert made.wait.reason is Reason.ROLLING


@pytest.mark.parametrize("ready", [True, False])
def test_a_pod_that_keeps_a_deleted_claim_alive_is_not_restarted(ready):
    """Kubernetes would finish the deletion. The pods of other members are no reason to wait for that."""
    seen = saw(*ALL, members(0, 2), members(1, revision=OLD, ready=ready))
    seen.objects.items["PersistentVolumeClaim", claim_of(1)]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    made = plan(seen)
    del seen.objects.items["PersistentVolumeClaim", claim_of(1)]["metadata"]["deletionTimestamp"]
    assert made.actions == ()
    assert made.wait is not None
    assert (made.wait.reason, claim_of(1) in made.wait.message) == (Reason.CLAIM_LOST, True)


def test_a_pod_that_stops_already_is_not_deleted_again():
    assert plan(saw(*ALL, members(0, 2, revision=OLD), stopping(1), serving=(0, 2))).actions == ()


# membership


SINGLE = membership((0,))
FOLLOWED = saw(
    settled(SINGLE),
    claims("true", "false"),
    members(0, 1),
    leader=0,
    serving=(0, 1),
    committed=SINGLE,
)
"""A single voter, and one that follows it without being listed."""


def test_beside_a_single_voter_the_next_member_begins_as_a_follower_and_only_that_one():
    """ZooKeeper counts no observers when it looks whether a new membership has a quorum."""
    alone = saw(
        settled(SINGLE, cluster=with_spec(CLUSTER, replicas=1)), claims("true"), members(0), leader=0, serving=(0,), committed=SINGLE
    )
    made = plan(alone, with_spec(CLUSTER, replicas=3)).actions
    applied = {action.manifest["kind"]: action.manifest for action in made if isinstance(action, Apply)}
    assert applied["StatefulSet"]["spec"]["replicas"] == 2
    lines = applied["ConfigMap"]["data"]["zoo.cfg.dynamic"].splitlines()
    assert [line.split(":")[3] for line in lines] == ["participant;2181"] * 2
    assert applied["ConfigMap"]["data"][f"zoo.cfg.dynamic.{VERSION:x}"] == SINGLE.file
    assert [action for action in made if isinstance(action, ChangeMembership)] == []


def test_a_follower_that_is_not_wanted_any_more_goes_without_a_change_of_the_membership():
    made = plan(FOLLOWED, with_spec(CLUSTER, replicas=1)).actions
    applied = {action.manifest["kind"]: action.manifest for action in made if isinstance(action, Apply)}
    assert applied["StatefulSet"]["spec"]["replicas"] == 1
    assert len(applied["ConfigMap"]["data"]["zoo.cfg.dynamic"].splitlines()) == 1


@pytest.mark.parametrize(
    ("situation", "seen", "declared", "wanted"),
    [
        ("a new member joins without a vote, before its pod is there", healthy(), 5, (3, Role.OBSERVER)),
        ("it serves and is in step", healthy(observers=(3,)), 5, (3, Role.PARTICIPANT)),
        ("the next one", healthy(voters=(0, 1, 2, 3)), 5, (4, Role.OBSERVER)),
        ("the second of three follows, and gets its vote", FOLLOWED, 3, (1, Role.PARTICIPANT)),
        ("the third of three", healthy(voters=(0, 1), leader=0), 3, (2, Role.OBSERVER)),
        ("an observer beside a single voter", healthy(voters=(0,), observers=(1,), leader=0), 3, 1),
        ("all vote", healthy(voters=(0, 1, 2, 3, 4)), 5, None),
        ("the highest leaves first", healthy(voters=(0, 1, 2, 3, 4), leader=0), 3, 4),
        ("the leader leaves last", healthy(voters=(0, 1, 2, 3, 4), leader=4), 3, 3),
        ("the leader leaves at last", healthy(voters=(0, 1, 2, 4), leader=4), 3, 4),
        ("one that has joined but is not wanted any more leaves", healthy(observers=(3,)), 3, 3),
        ("one that was leaving is wanted again", healthy(voters=(0, 1, 2, 4), leader=4), 5, (3, Role.OBSERVER)),
        ("five became one of another leader", healthy(voters=(0, 1), leader=1), 1, 1),
    ],
)
def test_the_membership_becomes_the_declared_one_step_by_step(situation, seen, declared, wanted):
    made = plan(seen, with_spec(CLUSTER, replicas=declared))
    changes = [action for action in made.actions if isinstance(action, ChangeMembership)]
    assert len(made.actions) == len(changes)
    shown = [(c.leaving[0] - 1) if c.server is None else (c.server.server_id - 1, c.server.role) for c in changes]
    assert shown == ([] if wanted is None else [wanted]), situation
    assert all(change.version == VERSION for change in changes)


STARTING = saw(
    settled(membership(observers=(3,))),
    claims("true", "true", "true", "false"),
    members(0, 1, 2),
    members(3, ready=False),
    committed=membership(observers=(3,)),
)


@pytest.mark.parametrize(
    ("situation", "seen", "declared", "reason"),
    [
        ("the new member starts", STARTING, 5, Reason.JOINING),
        (
            "it is behind",
            healthy(observers=(3,), zxids={0: 0x200000000, 1: 0x200000000, 2: 0x200009000, 3: 0x200000001}),
            5,
            Reason.WAITING_FOR_OTHERS,
        ),
        ("it alone is behind", healthy(observers=(3,), zxids={**dict.fromkeys(range(3), 0x200009000), 3: 0x200000001}), 5, Reason.JOINING),
        ("it does not say where it is", healthy(observers=(3,), zxids=dict.fromkeys(range(3), 0x200009000)), 5, Reason.JOINING),
        ("a voter is away", saw(*ALL, members(0, 2), members(1, ready=False), serving=(0, 2)), 5, Reason.WAITING_FOR_OTHERS),
        ("there is no leader", healthy(leader=7), 5, Reason.WAITING_FOR_OTHERS),
        ("a voter is outdated", saw(*ALL, members(0, 1, 2, revision=OLD), disruption="bookies"), 5, Reason.WAITING_FOR_OTHERS),
        (
            "one that would stay is away",
            saw(
                settled(membership((0, 1, 2, 3, 4))),
                claims(*["true"] * 5),
                members(0, 2, 3, 4),
                members(1, ready=False),
                serving=(0, 2, 3, 4),
                committed=membership((0, 1, 2, 3, 4)),
            ),
            3,
            Reason.WAITING_FOR_OTHERS,
        ),
    ],
)
def test_the_membership_is_not_changed_while_somebody_is_not_in_step(situation, seen, declared, reason):
    made = plan(seen, with_spec(CLUSTER, replicas=declared))
    assert (made.actions, made.wait.reason if made.wait else None) == ((), reason), situation


def test_a_member_that_a_person_added_beyond_all_numbers_gets_no_pod_and_leaves():
    committed = membership((0, 1, 2, 8))
    seen = saw(settled(committed), claims("true", "true", "true"), members(0, 1, 2), committed=committed)
    (change,) = plan(seen).actions
    assert isinstance(change, ChangeMembership)
    assert change.leaving == (9,)


def test_a_member_that_leaves_may_be_away():
    committed = membership((0, 1, 2, 3, 4))
    seen = saw(
        settled(committed),
        claims(*["true"] * 5),
        members(0, 1, 2, 3),
        members(4, ready=False),
        serving=(0, 1, 2, 3),
        committed=committed,
    )
    (made,) = plan(seen, with_spec(CLUSTER, replicas=3)).actions
    assert isinstance(made, ChangeMembership)
    assert made.leaving == (5,)


def test_a_member_whose_claim_a_quota_refuses_may_leave_again():
    committed = membership(observers=(3,))
    (made,) = plan(saw(settled(committed), claims("true", "true", "true"), members(0, 1, 2), committed=committed)).actions
    assert isinstance(made, ChangeMembership)
    assert made.leaving == (4,)


@pytest.mark.parametrize(("voters", "away", "leaves"), [((0, 1, 2), 1, 1), ((0, 1, 2), 2, 2), ((0, 1, 2, 3, 4), 1, 1)])
def test_a_member_that_is_away_leaves_before_those_that_serve(voters, away, leaves):
    """ZooKeeper changes a membership only while a majority of the next one follows: of two voters, both."""
    committed, serving = membership(voters), tuple(number for number in voters if number != away)
    parts = (settled(committed), claims(*["true"] * len(voters)), members(*serving), members(away, ready=False))
    (made,) = plan(saw(*parts, leader=0, serving=serving, committed=committed), with_spec(CLUSTER, replicas=1)).actions
    assert isinstance(made, ChangeMembership)
    assert made.leaving == (leaves + 1,)


@pytest.mark.parametrize(
    ("situation", "voters", "away", "declared", "revision"),
    [
        ("of three voters, one is away: four would need three that follow", (0, 1, 4), (4,), 3, NEW),
        ("of five voters, two are away: six would need four", (0, 1, 2, 5, 6), (5, 6), 5, NEW),
        ("a roll waits for it, too", (0, 1, 2, 4, 5, 6), (6,), 5, OLD),
    ],
)
def test_a_member_that_is_away_leaves_before_another_one_joins(situation, voters, away, declared, revision):
    """One that joins has followed as an observer, which ZooKeeper does not count (Leader.isQuorumSynced)."""
    committed, serving = membership(voters), tuple(number for number in voters if number not in away)
    others = [number for number in range(voters[-1]) if number not in serving]
    marks = ["true" if number in voters else "left" for number in range(voters[-1] + 1)]
    parts = (settled(committed), claims(*marks), members(*serving, revision=revision), members(*others, voters[-1], ready=False))
    seen = saw(*parts, leader=0, serving=serving, committed=committed)
    (made,) = plan(seen, with_spec(CLUSTER, replicas=declared)).actions
    assert isinstance(made, ChangeMembership), situation
    assert made.leaving == (voters[-1] + 1,)


@pytest.mark.parametrize(
    ("situation", "voters", "observers", "away", "leaves"),
    [
        ("one that joined can't start, and is not wanted any more", (0, 1, 2), (3,), 3, 3),
        ("a voter that leaves is away for good", (0, 1, 2, 3, 4), (), 4, 4),
    ],
)
def test_a_roll_that_waits_for_a_member_which_is_not_wanted_any_more_lets_it_leave(situation, voters, observers, away, leaves):
    committed = membership(voters, observers)
    serving = tuple(number for number in (*voters, *observers) if number != away)
    parts = (
        settled(committed),
        claims(*["true"] * (max(*voters, *observers) + 1)),
        members(*serving, revision=OLD),
        members(away, ready=False),
    )
    seen = saw(*parts, leader=max(set(voters).intersection(serving)), serving=serving, committed=committed)
    waiting = plan(seen, with_spec(CLUSTER, replicas=5))
    assert not [action for action in waiting.actions if isinstance(action, Delete)], situation
    assert waiting.wait is not None
    assert f"{pod_of(away)} serves" not in waiting.wait.message
    (made,) = plan(seen, with_spec(CLUSTER, replicas=3)).actions
    assert isinstance(made, ChangeMembership), situation
    assert made.leaving == (leaves + 1,)


@pytest.mark.parametrize(
    ("declared", "leaving", "joining"), [(3, (5,), None), (5, (), server_of(CLUSTER, 3, Role.OBSERVER))], ids=["unwanted", "wanted again"]
)
def test_a_roll_that_waits_for_a_member_which_has_left_lets_the_membership_change(declared, leaving, joining):
    """It was restarted before the leader, which has a higher number, left: no member that has left starts again."""
    committed = membership((0, 1, 2, 4))
    parts = (settled(committed), claims("true", "true", "true", "left", "true"), members(0, 1, 2, 4, revision=OLD), members(3, ready=False))
    (made,) = plan(saw(*parts, leader=4, serving=(0, 1, 2, 4), committed=committed), with_spec(CLUSTER, replicas=declared)).actions
    assert isinstance(made, ChangeMembership)
    assert (made.leaving, made.server) == (leaving, joining)


@pytest.mark.parametrize(
    ("situation", "seen"),
    [
        ("the operator does not reach it", {"modes": {**dict.fromkeys(range(4), "follower"), 2: "leader", 4: Unknown("timed out")}}),
        ("it is behind", {"zxids": {**dict.fromkeys(range(4), 0x200009000), 4: 0x200000001}}),
        ("its claim was deleted already", {}),
    ],
)
def test_a_roll_that_waits_for_a_member_which_is_ready_and_not_wanted_any_more_lets_it_leave(situation, seen):
    committed = membership(range(5))
    parts = (settled(committed), claims(*["true"] * 5), members(*range(5), revision=OLD))
    waits = replace(saw(*parts, serving=range(5), committed=committed), **seen)
    if not seen:
        waits.objects.items["PersistentVolumeClaim", claim_of(4)]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    waiting = plan(waits, with_spec(CLUSTER, replicas=5))
    assert (waiting.actions, waiting.wait is None) == ((), False), situation
    (made,) = plan(waits, with_spec(CLUSTER, replicas=3)).actions
    assert isinstance(made, ChangeMembership), situation
    assert made.leaving == (5,)


def test_a_roll_that_waits_for_others_changes_no_membership():
    committed = membership((0, 1, 2, 3, 4))
    parts = (settled(committed), claims(*["true"] * 5), members(0, 1, 2, 3, 4, revision=OLD))
    seen = saw(*parts, serving=(0, 1, 2, 3, 4), committed=committed, disruption="bk is not Ready")
    made = plan(seen, with_spec(CLUSTER, replicas=3))
    assert (made.actions, made.wait.reason if made.wait else None) == ((), Reason.WAITING_FOR_OTHERS)


def test_a_member_that_has_joined_gets_its_claim_the_membership_and_then_its_pod():
    seen = saw(settled(membership()), claims("true", "true", "true"), members(0, 1, 2), committed=membership(observers=(3,)))
    made = plan(seen, with_spec(CLUSTER, replicas=5))
    shown = [
        (action.manifest["kind"], action.manifest["metadata"]["name"]) for action in made.actions if isinstance(action, (Create, Apply))
    ]
    assert shown == [("PersistentVolumeClaim", claim_of(3)), ("ConfigMap", "zk-zookeeper"), ("StatefulSet", "zk-zookeeper")]
    assert f"zoo.cfg.dynamic.{VERSION:x}" in made.actions[1].manifest["data"]
    assert made.actions[2].manifest["spec"]["replicas"] == 4


def test_a_pod_goes_only_after_its_member_has_left():
    seen = saw(settled(membership((0, 1, 2, 3, 4))), claims(*["true"] * 5), members(0, 1, 2, 3, 4), committed=membership())
    made = plan(seen)
    applied = {action.manifest["kind"]: action.manifest for action in made.actions if isinstance(action, Apply)}
    assert applied["StatefulSet"]["spec"]["replicas"] == 3


LEFT = (settled(membership()), members(0, 1, 2))


@pytest.mark.parametrize(
    ("situation", "policy", "parts", "wanted"),
    [
        ("it is marked", "Retain", (claims("true", "true", "true", "true"),), ("Annotate", "left")),
        ("marked already, it stays", "Retain", (claims("true", "true", "true", "left"),), None),
        ("under Delete it waits for its pod", "Delete", (claims("true", "true", "true", "left"), members(3)), None),
        ("under Delete it goes", "Delete", (claims("true", "true", "true", "left"),), ("Delete", f"uid-{claim_of(3)}")),
        (
            "under Delete also one whose member never voted",
            "Delete",
            (claims("true", "true", "true", "false"),),
            ("Delete", f"uid-{claim_of(3)}"),
        ),
    ],
)
def test_the_claim_of_a_member_that_left(situation, policy, parts, wanted):
    made = plan(saw(*LEFT, *parts), with_spec(CLUSTER, deletion_policy=policy))
    shown = [
        (type(action).__name__, action.uid if isinstance(action, Delete) else action.annotations[names.FOUNDED_ANNOTATION])
        for action in made.actions
    ]
    assert shown == ([] if wanted is None else [wanted]), situation


def test_the_membership_is_not_forgotten_while_zookeeper_does_not_answer():
    """A new pod would begin as a voter with the membership of the founding."""
    seen = replace(healthy(observers=(3,)), membership=Unknown("no answer"))
    made = plan(seen, with_spec(CLUSTER, replicas=5))
    assert [action for action in made.actions if isinstance(action, Apply)] == []
