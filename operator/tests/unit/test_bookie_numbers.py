"""Who stays, who leaves and who comes, by what is in the cluster."""

from __future__ import annotations

import pytest
from situations import claim, live, objects, quickstart, with_spec, with_status

from herdkeeper.bookkeeper.build.bookies import BookieIdentity, build_bookie, build_stopped_bookie
from herdkeeper.bookkeeper.state.bookies import LedgersMetadata
from herdkeeper.bookkeeper.state.claims import bookie_ids
from herdkeeper.bookkeeper.state.numbers import BookieNumbers, bookie_numbers
from herdkeeper.shared import names
from herdkeeper.shared.names import BookKeeperNames, ObjectKey

CLUSTER = quickstart("BookKeeperCluster")
NAMED = BookKeeperNames(ObjectKey("demo", "bk"))


def seen(*numbers, stopped=()):
    made = [(build_stopped_bookie if number in stopped else build_bookie)(CLUSTER, identity(number), "zk:2181") for number in numbers]
    kept = (name for number in numbers for name in (NAMED.journal_claim(number), NAMED.ledgers_claim(number, 0)))
    return objects(live(made), *(claim(name, **{names.BOOKIE_ID_ANNOTATION: "x"}) for name in kept))


def identity(number):
    return BookieIdentity(number, f"bk-bookie-{number}-aaaaaa")


def cookies(*numbers):
    return frozenset(identity(number).bookie_id for number in numbers)


def knows(*numbers, registered=()):
    """Metadata with the cookies of these bookies."""
    return LedgersMetadata("an-instance", cookies(*registered), frozenset(), cookies(*numbers), "an-auditor", under_replicated=False)


def without_claims(found, *numbers):
    """The same, without the claims of these bookies."""
    gone = {("PersistentVolumeClaim", name) for number in numbers for name in (NAMED.journal_claim(number), NAMED.ledgers_claim(number, 0))}
    return objects({key: item for key, item in found.items.items() if key not in gone})


def test_a_copy_of_a_claim_that_somebody_keeps_makes_no_bookie_and_gives_it_no_identity():
    """As `kubectl get pvc … -o yaml` under another name: it has the labels and annotations of the claim."""
    copies = [claim(f"bk-bookie-{number}-backup", **{names.BOOKIE_ID_ANNOTATION: "another"}) for number in (1, 7)]
    found = objects(seen(0, 1, 2, 3).items, *copies)
    assert bookie_numbers(CLUSTER, found, knows(0, 1, 2, 3)) == BookieNumbers((0, 1, 2, 3), (), ())
    assert "another" not in bookie_ids(NAMED, found, cookies(1), 1)


@pytest.mark.parametrize(
    ("situation", "spec", "numbers", "next_bookie", "expected"),
    [
        ("a new cluster", {}, (), None, BookieNumbers((), (), (0, 1, 2, 3))),
        ("a founding that was cut off", {}, (0, 1), None, BookieNumbers((0, 1), (), (2, 3))),
        ("a settled cluster", {}, (0, 1, 2, 3), 4, BookieNumbers((0, 1, 2, 3), (), ())),
        ("one more", {"bookies": 5}, (0, 1, 2, 3), 4, BookieNumbers((0, 1, 2, 3), (), (4,))),
        ("the highest number leaves", {}, (0, 1, 2, 3, 4), 5, BookieNumbers((0, 1, 2, 3), (4,), ())),
        ("its number is not given again", {"bookies": 5}, (0, 1, 2, 3), 5, BookieNumbers((0, 1, 2, 3), (), (5,))),
        ("a bookie in the middle is replaced", {"drain": (1,)}, (0, 1, 2, 3), 4, BookieNumbers((0, 2, 3), (1,), (4,))),
        ("or leaves for good", {"bookies": 3, "drain": (1,)}, (0, 1, 2, 3), 4, BookieNumbers((0, 2, 3), (1,), ())),
        ("and leaves a gap", {"bookies": 3, "drain": (1,)}, (0, 2, 3), 4, BookieNumbers((0, 2, 3), (), ())),
        ("a number that shall leave is not given either", {"drain": (4,)}, (0, 1, 2), 3, BookieNumbers((0, 1, 2), (), (3,))),
        ("nor after the next one", {"bookies": 5, "drain": (4,)}, (0, 1, 2), 3, BookieNumbers((0, 1, 2), (), (3, 5))),
        ("a status that was lost is no harm while the highest lives", {}, (0, 2, 5), None, BookieNumbers((0, 2, 5), (), (6,))),
    ],
)
def test_numbers_follow_the_spec_and_what_lives(situation, spec, numbers, next_bookie, expected):
    cluster = with_status(with_spec(CLUSTER, **spec), next_bookie=next_bookie)
    assert bookie_numbers(cluster, seen(*numbers), knows(*numbers)) == expected, situation


def test_a_bookie_of_which_only_the_cookie_is_left_is_lost_and_its_number_is_not_given_again():
    numbers = bookie_numbers(CLUSTER, seen(0, 1, 2), knows(0, 1, 2, 3))
    assert (numbers.staying, numbers.leaving, numbers.new) == ((0, 1, 2), (), (4,))
    assert numbers.existing == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("situation", "spec", "lost", "registered", "expected"),
    [
        ("one is replaced at once", {}, (1,), (), ((0, 2, 3), (), (4,))),
        ("so are two", {}, (1, 2), (), ((0, 3), (), (4, 5))),
        ("so is the one with the highest number", {}, (3,), (), ((0, 1, 2), (), (4,))),
        ("its session may still serve: it has to end first", {}, (1,), (1,), ((0, 2, 3), (), ())),
        ("fewer are declared by now, and none is due", {"bookies": 3}, (1,), (), ((0, 2, 3), (), ())),
        ("it was to leave: it is not drained, since nothing can be read from it", {"drain": (1,)}, (1,), (), ((0, 2, 3), (), (4,))),
    ],
)
def test_a_bookie_that_lost_its_claims_counts_for_none_of_those_declared(situation, spec, lost, registered, expected):
    cluster = with_status(with_spec(CLUSTER, **spec), next_bookie=4)
    found = without_claims(seen(0, 1, 2, 3), *lost)
    numbers = bookie_numbers(cluster, found, knows(0, 1, 2, 3, registered=registered))
    assert (numbers.staying, numbers.leaving, numbers.new) == expected, situation
    assert tuple(each.number for each in numbers.lost) == lost
    assert numbers.existing == (0, 1, 2, 3)


def test_the_new_one_leaves_when_the_lost_one_comes_back():
    numbers = bookie_numbers(with_status(CLUSTER, next_bookie=5), seen(0, 1, 2, 3, 4), knows(0, 1, 2, 3, 4))
    assert numbers == BookieNumbers((0, 1, 2, 3), (4,), ())


def test_nobody_is_taken_for_lost_while_the_metadata_can_not_be_read():
    assert bookie_numbers(CLUSTER, without_claims(seen(0, 1, 2, 3), 1), None).lost == ()


def test_a_stopped_bookie_stays_when_the_spec_wants_it_back():
    assert bookie_numbers(CLUSTER, seen(0, 1, 2, 3, stopped=(3,)), knows(0, 1, 2, 3)).staying == (0, 1, 2, 3)


@pytest.mark.parametrize("gone", ["its cookie is gone", "its cookie is being removed"])
def test_one_whose_identity_goes_leaves_whatever_the_spec_says(gone):
    found = seen(0, 1, 2, 3, stopped=(3,))
    job = {("Job", NAMED.retire_job(3)): {"metadata": {"name": NAMED.retire_job(3)}}}
    known = knows(0, 1, 2) if gone == "its cookie is gone" else knows(0, 1, 2, 3)
    numbers = bookie_numbers(CLUSTER, objects(found.items, job if gone != "its cookie is gone" else {}), known)
    assert numbers == BookieNumbers((0, 1, 2), (3,), (4,))


def test_somebody_elses_scaling_retires_nobody():
    found = seen(0, 1, 2, 3)
    item = found.items["StatefulSet", NAMED.stateful_set(3)]
    scaled = {("StatefulSet", NAMED.stateful_set(3)): {**item, "spec": {**item["spec"], "replicas": 0}}}
    assert bookie_numbers(CLUSTER, objects(found.items, scaled), knows(0, 1, 2)).staying == (0, 1, 2, 3)


def test_every_identity_that_a_number_was_seen_with_is_told():
    assert bookie_ids(NAMED, seen(3), cookies(3), 3) == ("bk-bookie-3-aaaaaa", "x")


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("bk-bookie-3", 3),
        ("bk-bookie-12-journal", 12),
        ("bk-bookie-12-ledgers", 12),
        ("bk-bookie-3-abc123", 3),
        ("bk-bookie-3-drain-1", None),
        ("bk-bookie", None),
        ("other-bookie-3", None),
        (f"bk-bookie-{'9' * 5000}-abc123", None),
    ],
)
def test_a_number_is_read_out_of_a_name(name, number):
    assert NAMED.number_of(name) == number
