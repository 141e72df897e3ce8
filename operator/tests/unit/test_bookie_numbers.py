"""Who stays, who leaves and who comes, by what is in the cluster."""

from __future__ import annotations

import pytest
from situations import claim, live, objects, quickstart, with_spec, with_status

from herdkeeper.build.bookkeeper import BookieIdentity, build_bookie, build_stopped_bookie
from herdkeeper.domain import names
from herdkeeper.domain.bookie_numbers import BookieNumbers, bookie_ids, bookie_numbers
from herdkeeper.domain.names import BookKeeperNames, ObjectKey

CLUSTER = quickstart("BookKeeperCluster")
NAMED = BookKeeperNames(ObjectKey("demo", "bk"))


def seen(*numbers, stopped=()):
    made = [(build_stopped_bookie if number in stopped else build_bookie)(CLUSTER, identity(number), "zk:2181") for number in numbers]
    return objects(live(made), *(claim(NAMED.journal_claim(number), **{names.BOOKIE_ID_ANNOTATION: "x"}) for number in numbers))


def identity(number):
    return BookieIdentity(number, f"bk-bookie-{number}-aaaaaa")


def cookies(*numbers):
    return frozenset(identity(number).bookie_id for number in numbers)


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
    assert bookie_numbers(cluster, seen(*numbers), cookies(*numbers)) == expected, situation


def test_a_bookie_of_which_only_the_cookie_is_left_still_counts():
    assert bookie_numbers(CLUSTER, seen(0, 1, 2), cookies(0, 1, 2, 3)).staying == (0, 1, 2, 3)


def test_a_stopped_bookie_stays_when_the_spec_wants_it_back():
    assert bookie_numbers(CLUSTER, seen(0, 1, 2, 3, stopped=(3,)), cookies(0, 1, 2, 3)).staying == (0, 1, 2, 3)


@pytest.mark.parametrize("gone", ["its cookie is gone", "its cookie is being removed"])
def test_one_whose_identity_goes_leaves_whatever_the_spec_says(gone):
    found = seen(0, 1, 2, 3, stopped=(3,))
    job = {("Job", NAMED.retire_job(3)): {"metadata": {"name": NAMED.retire_job(3)}}}
    known = cookies(0, 1, 2) if gone == "its cookie is gone" else cookies(0, 1, 2, 3)
    numbers = bookie_numbers(CLUSTER, objects(found.items, job if gone != "its cookie is gone" else {}), known)
    assert numbers == BookieNumbers((0, 1, 2), (3,), (4,))


def test_somebody_elses_scaling_retires_nobody():
    found = seen(0, 1, 2, 3)
    item = found.items["StatefulSet", NAMED.stateful_set(3)]
    scaled = {("StatefulSet", NAMED.stateful_set(3)): {**item, "spec": {**item["spec"], "replicas": 0}}}
    assert bookie_numbers(CLUSTER, objects(found.items, scaled), cookies(0, 1, 2)).staying == (0, 1, 2, 3)


def test_every_identity_that_a_number_was_seen_with_is_told():
    assert bookie_ids(NAMED, seen(3), cookies(3), 3) == {"x", "bk-bookie-3-aaaaaa"}


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
    ],
)
def test_a_number_is_read_out_of_a_name(name, number):
    assert NAMED.number_of(name) == number
