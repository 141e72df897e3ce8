"""A bookie whose cookie is missing: it is put back only when all that is known agrees, else a person is told why and what to run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from situations import objects, pods
from test_plan_bookkeeper import CLUSTER, HEALTHY, IDENTITIES, PODS, STORE, claims, plan, settled

from herdkeeper.bookkeeper.build.bookies import Founded, build_bookies_shared
from herdkeeper.bookkeeper.state.numbers import ids_that_served
from herdkeeper.bookkeeper.state.refusal import COOKIE, REFUSED
from herdkeeper.codecs.bookkeeper.cookie import Cookie, encode_cookie
from herdkeeper.planning.actions import Delete, RemoveCookie, RestoreCookie
from herdkeeper.planning.intent import with_intent
from herdkeeper.shared.names import BookKeeperNames, ObjectKey
from herdkeeper.shared.reason import Reason

ID = IDENTITIES[0].bookie_id
ON_VOLUMES = Cookie(ID, "/journal/journal", ("/ledgers/ledgers",), "an-instance")
AWAY = replace(HEALTHY, writable=HEALTHY.writable - {ID})
WITHOUT_COOKIE = replace(AWAY, cookies=HEALTHY.cookies - {ID})
RESTORED = RestoreCookie(STORE.address, "/demo/bk/ledgers", ON_VOLUMES)


def ended(message: str, code: int = 2, state: str = "lastState", *, ready: bool = False):
    status = {"ready": ready, state: {"terminated": {"exitCode": code, "message": message}}}
    return pods([PODS[0]], containerStatuses=[status])


def told(cookie: Cookie | None = ON_VOLUMES, **changes):
    return ended(COOKIE + encode_cookie(replace(cookie, **changes)).decode())


def planned(*parts, metadata=WITHOUT_COOKIE):
    return plan(*claims(0, 1, 2, 3), settled(), pods(PODS[1:]), *parts, metadata=metadata)


def restores(made):
    return [action for action in made.actions if isinstance(action, RestoreCookie)]


@pytest.mark.parametrize("state", ["state", "lastState"])
def test_a_cookie_is_put_back_when_volumes_cluster_and_identity_agree(state):
    made = planned(ended(COOKIE + encode_cookie(ON_VOLUMES).decode(), state=state))
    assert restores(made) == [RESTORED]


@pytest.mark.parametrize(
    ("situation", "metadata", "pod"),
    [
        ("its cookie is there", AWAY, told()),
        ("it is registered", replace(HEALTHY, cookies=WITHOUT_COOKIE.cookies), told()),
        ("it is registered as read-only", replace(WITHOUT_COOKIE, read_only=frozenset({ID})), told()),
        ("its container is ready by now", WITHOUT_COOKIE, ended(COOKIE + encode_cookie(ON_VOLUMES).decode(), ready=True)),
        ("it told nothing of its volumes", WITHOUT_COOKIE, ended("java.net.UnknownHostException")),
        ("it has no pod", WITHOUT_COOKIE, {}),
    ],
)
def test_no_cookie_is_written_unless_it_is_missing_and_the_volumes_were_heard(situation, metadata, pod):
    assert restores(planned(pod, metadata=metadata)) == [], situation


OTHER_OF_ITS_NUMBER = replace(WITHOUT_COOKIE, cookies=WITHOUT_COOKIE.cookies | {"bk-bookie-0-zzzzzz"})


@pytest.mark.parametrize(
    ("situation", "pod", "metadata", "message"),
    [
        (
            "another cluster's volumes",
            told(instance_id="other"),
            WITHOUT_COOKIE,
            "belong to the BookKeeper cluster other (instanceId in VERSION)",
        ),
        (
            "another bookie's volumes",
            told(bookie_id="bk-bookie-1-bbbbbb"),
            WITHOUT_COOKIE,
            "instead of Cookie(bookie_id='bk-bookie-0-aaaaaa'",
        ),
        ("another journal", told(journal="/j"), WITHOUT_COOKIE, "journal='/j'"),
        ("other directories", told(ledgers=("/ledgers/ledgers", "/more")), WITHOUT_COOKIE, "'/more'"),
        ("directories for indexes", told(indexes=("/x",)), WITHOUT_COOKIE, "indexes=('/x',)"),
        ("what is no cookie", ended(f"{COOKIE}5\nbookieHost"), WITHOUT_COOKIE, "can't be read"),
        ("another cookie of its number", told(), OTHER_OF_ITS_NUMBER, "but one of bk-bookie-0-zzzzzz, from other volumes"),
        (
            "the entry point refused",
            ended("log\nrefused: /ledgers is another bookie's", REFUSED),
            WITHOUT_COOKIE,
            "/ledgers is another bookie's",
        ),
        ("the entry point refused a bookie with a cookie", ended("refused: VERSION is missing", REFUSED), AWAY, "VERSION is missing"),
    ],
)
def test_what_disagrees_is_a_persons_to_decide(situation, pod, metadata, message):
    made = planned(pod, metadata=metadata)
    assert restores(made) == [], situation
    assert not any(isinstance(action, (Delete, RemoveCookie)) for action in made.actions)
    assert made.wait is not None
    assert made.wait.reason is Reason.VOLUMES_REFUSED
    assert message in made.wait.message
    assert "`kubectl delete pvc bk-bookie-0-journal bk-bookie-0-ledgers -n demo`" in made.wait.message


@pytest.mark.parametrize(("unready_since", "refused"), [("2026-11-21T11:59:50Z", True), ("2026-11-21T18:00:00Z", False)])
def test_a_bookie_that_served_since_its_volumes_were_refused_is_not_told_to_give_them_up(unready_since, refused):
    """Its process runs on and has lost its session: the reason of an earlier start says nothing of its volumes now."""
    terminated = {"exitCode": REFUSED, "message": "refused: VERSION is missing", "finishedAt": "2026-11-21T12:00:00Z"}
    container = {"ready": False, "state": {"running": {}}, "lastState": {"terminated": terminated}}
    unready = {"type": "Ready", "status": "False", "lastTransitionTime": unready_since}
    made = planned(pods([PODS[0]], containerStatuses=[container], conditions=[unready]), metadata=AWAY)
    assert (made.wait is not None and made.wait.reason is Reason.VOLUMES_REFUSED) is refused


def test_volumes_are_not_to_be_given_up_while_other_bookies_are_away_that_may_hold_the_only_other_copies():
    away = replace(WITHOUT_COOKIE, writable=WITHOUT_COOKIE.writable - {"bk-bookie-1-bbbbbb"})
    made = planned(told(instance_id="other"), metadata=away)
    assert made.wait is not None
    assert made.wait.reason is Reason.VOLUMES_REFUSED
    assert "other bookies are away, too (bk-bookie-1-bbbbbb)" in made.wait.message
    assert "kubectl delete" not in made.wait.message


def test_while_the_volumes_were_not_heard_it_is_said_that_the_cookie_is_missing():
    made = planned()
    assert made.wait is not None
    assert made.wait.reason is Reason.RECOVERING
    assert f"no cookie of {ID}" in made.wait.message


def test_a_bookie_that_was_never_started_lacks_no_cookie():
    new = with_intent(
        build_bookies_shared(CLUSTER, STORE.address, Founded("an-instance", WITHOUT_COOKIE.cookies, WITHOUT_COOKIE.cookies))[0]
    )
    made = planned({("ConfigMap", "bk-bookie"): new})
    assert made.wait is None or "cookie" not in made.wait.message


def test_an_id_that_served_stays_known_without_its_cookie_as_long_as_it_has_claims():
    named = BookKeeperNames(ObjectKey("demo", "bk"))
    assert ID in ids_that_served(named, objects(settled(), *claims(0, 1, 2, 3)), WITHOUT_COOKIE)
    assert ID not in ids_that_served(named, objects(settled(), *claims(1, 2, 3)), WITHOUT_COOKIE)
    assert ID in ids_that_served(named, objects(), replace(HEALTHY, cookies=frozenset()))
