"""An ensemble in plain text moves to certificates: what members are made of at each step, and when the next one begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import pytest
from situations import live, member_claims, objects, pods, quickstart, security_of, with_spec, with_status

from herdkeeper.api.resource import Condition
from herdkeeper.api.zookeeper_cluster import MOST_PLAINTEXT_USERS, Security
from herdkeeper.bookkeeper.build.bookies import BookieIdentity, Founded, build_bookie, build_bookies_shared
from herdkeeper.bookkeeper.drain.build import DrainSource, build_move, build_retirement
from herdkeeper.bookkeeper.state.bookies import MetadataAbsent, MetadataStore
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.status import summarize_bookkeeper
from herdkeeper.codecs.zookeeper.membership import Membership, Role
from herdkeeper.planning.actions import ChangeMembership, Create
from herdkeeper.planning.identities import secret_of
from herdkeeper.planning.network_policies import build_server_policies
from herdkeeper.shared import names
from herdkeeper.shared.conditions import ENCRYPTED
from herdkeeper.shared.objects import Json, mounts
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.zookeeper.build import build_zookeeper
from herdkeeper.zookeeper.membership import next_change
from herdkeeper.zookeeper.plan import plan_zookeeper
from herdkeeper.zookeeper.state import Encryption, Ensemble, server_of
from herdkeeper.zookeeper.status import summarize_zookeeper

PLAIN = quickstart("ZooKeeperCluster")
PERMISSIVE, SECURE = (with_spec(PLAIN, security=Security(mode=mode)) for mode in ("Permissive", "TLS"))
NAMED = PLAIN.names
ACCEPTED, USED, REQUIRED = names.TLS_ACCEPTED, names.TLS_USED, "required"
GONE = "gone"
SPOKEN = {None: "plain", ACCEPTED: "plain", USED: "tls", REQUIRED: "tls"}
"""What a member speaks to others, by its step."""
ACCEPTS = {None: {"plain"}, ACCEPTED: {"plain", "tls"}, USED: {"plain", "tls"}, REQUIRED: {"tls"}}
STEP_OF = {Encryption.NONE: None, Encryption.ACCEPTED: ACCEPTED, Encryption.USED: USED, Encryption.REQUIRED: REQUIRED}
SECURE_ADDRESS = NAMED.address(3, names.ZOOKEEPER_SECURE_PORT)


def running(*steps: str | None) -> dict[tuple[str, str], Json]:
    """Members' pods, each made when the template said this of TLS. None: it has no certificate. GONE: there is no pod."""
    there = {number: step for number, step in enumerate(steps) if step != GONE}
    found = pods([NAMED.pod(number) for number in there])
    for pod, step in zip(found.values(), there.values(), strict=True):
        pod["metadata"]["annotations"] = {names.QUORUM_TLS_ANNOTATION: step} if step in (ACCEPTED, USED) else {}
        pod["spec"] = {"volumes": [] if step is None else [{"name": "t", "secret": {"secretName": NAMED.members_secret}}]}
    return found


def membership(closed: int = 0) -> Membership:
    """Three voters, the first ones closed to plain text."""
    return Membership(0x100000000, tuple(server_of(PLAIN, number, Role.PARTICIPANT, closed=number < closed) for number in range(3)))


def saw(cluster: Any, *steps: str | None, closed: int = 0, **more: Any) -> Ensemble:
    """A founded ensemble in step, with these pods."""
    found = Ensemble(cluster, objects(member_claims(*[names.FOUNDED] * 3), running(*steps)))
    modes = {0: "follower", 1: "follower", 2: "leader"}
    asked = {"modes": modes, "zxids": dict.fromkeys(range(3), 0x100000001), "membership": membership(closed), "password": "secret"}
    return replace(found, **{**asked, **more})


def built(ensemble: Ensemble) -> dict[str, Json]:
    return {each["kind"]: each for each in build_zookeeper(ensemble)}


def lines(ensemble: Ensemble) -> set[str]:
    return set(built(ensemble)["ConfigMap"]["data"]["zoo.cfg"].splitlines())


@pytest.mark.parametrize(
    ("cluster", "steps", "closed", "encryption"),
    [
        (PLAIN, (None, None, None), 0, Encryption.NONE),
        (PERMISSIVE, (None, None, None), 0, Encryption.ACCEPTED),
        (PERMISSIVE, (None, ACCEPTED, ACCEPTED), 0, Encryption.ACCEPTED),
        (PERMISSIVE, (), 0, Encryption.ACCEPTED),
        (PERMISSIVE, (ACCEPTED, ACCEPTED, ACCEPTED), 0, Encryption.USED),
        (PERMISSIVE, (ACCEPTED, USED, USED), 0, Encryption.USED),
        (PERMISSIVE, (USED, USED), 0, Encryption.USED),
        (SECURE, (USED, USED, USED), 0, Encryption.USED),
        (SECURE, (USED, USED, USED), 2, Encryption.USED),
        (SECURE, (USED, USED, USED), 3, Encryption.REQUIRED),
        (SECURE, (USED, USED, REQUIRED), 3, Encryption.REQUIRED),
        (SECURE, (REQUIRED, REQUIRED, REQUIRED), 3, Encryption.REQUIRED),
        (PERMISSIVE, (USED, USED, ACCEPTED), 3, Encryption.USED),
        (PERMISSIVE, (USED, USED, USED), 3, Encryption.REQUIRED),
        (PERMISSIVE, (REQUIRED, REQUIRED, REQUIRED), 3, Encryption.REQUIRED),
        (SECURE, (None, None, None), 0, Encryption.ACCEPTED),
    ],
)
def test_members_go_a_step_further_once_no_pod_is_two_steps_behind(cluster: Any, steps: Any, closed: int, encryption: Encryption) -> None:
    assert saw(cluster, *steps, closed=closed).encryption is encryption


def test_an_ensemble_that_is_founded_needs_no_first_step() -> None:
    assert Ensemble(PERMISSIVE, objects()).encryption is Encryption.USED
    assert Ensemble(SECURE, objects()).encryption is Encryption.REQUIRED


def test_a_founded_ensemble_whose_membership_was_never_read_is_closed_unless_its_pods_are_open() -> None:
    assert saw(SECURE, membership=Ensemble(SECURE, objects()).membership).encryption is Encryption.REQUIRED
    assert saw(SECURE, USED, USED, USED, membership=Ensemble(SECURE, objects()).membership).encryption is Encryption.USED


@dataclass(frozen=True)
class Move:
    """A move at one moment: the pods of the members, how many are closed, the template, whether the mode is TLS, and how many pods may
    still die.
    """

    steps: tuple[str | None, ...] = (None, None, None)
    closed: int = 0
    ends: bool = False
    template: str | None = None
    deaths: int = 2

    @property
    def understood(self) -> bool:
        """Whether all running members can connect to one another, in both directions."""
        there = [step for step in self.steps if step != GONE]
        return all(SPOKEN[one] in ACCEPTS[other] for one, other in permutations(there, 2))

    def nexts(self) -> Iterator[Move]:
        """What the operator, the StatefulSet, the user or a crash can do next."""
        ensemble, complete = saw(SECURE if self.ends else PERMISSIVE, *self.steps, closed=self.closed), GONE not in self.steps
        yield replace(self, template=STEP_OF[ensemble.encryption])
        if not self.ends and ensemble.accepts_both and not ensemble.plaintext_needed_by:
            yield replace(self, ends=True)
        if isinstance(next_change(ensemble), ChangeMembership):
            yield replace(self, closed=self.closed + 1)
        for number, step in enumerate(self.steps):
            if step == GONE:
                yield self._with(number, self.template)
            elif self.deaths:
                yield replace(self._with(number, GONE), deaths=self.deaths - 1)
            if complete and step != self.template:
                yield self._with(number, GONE)  # the operator restarts one member at a time

    def _with(self, number: int, step: str | None) -> Move:
        return replace(self, steps=(*self.steps[:number], step, *self.steps[number + 1 :]))


def test_members_understand_one_another_in_every_order_of_a_move_while_any_two_die() -> None:
    seen, left = {Move()}, [Move()]
    ends: set[tuple[tuple[str | None, ...], int]] = set()
    while left:
        move = left.pop()
        assert move.understood, move
        following = set(move.nexts()) - {move}
        ends |= set() if following else {(move.steps, move.closed)}
        left += following - seen
        seen |= following
    assert ends == {((REQUIRED,) * 3, 3)}
    assert len(seen) > 100


def test_each_step_is_understood_by_the_one_before() -> None:
    told = [lines(saw(PERMISSIVE, *steps)) for steps in ((None,) * 3, (ACCEPTED,) * 3)]
    told.append(lines(saw(SECURE, USED, USED, USED, closed=3)))
    assert [("sslQuorum=true" in each, "portUnification=true" in each) for each in told] == [(False, True), (True, True), (True, False)]
    assert all("secureClientPort=2281" in each for each in told)
    assert not any("ssl" in line for line in lines(saw(PLAIN, None, None, None)))


def test_a_member_is_ready_at_the_port_that_it_has_before_and_after_it_is_closed() -> None:
    probes = [
        built(saw(cluster, *[USED] * 3, closed=closed))["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]
        for cluster, closed in ((PERMISSIVE, 0), (SECURE, 2), (SECURE, 3))
    ]
    both = "/opt/zookeeper/serving.sh || /opt/zookeeper/serving.sh 2182"
    assert [probe["exec"]["command"][-1] for probe in probes] == [both, both, "2182"]


def test_pods_say_what_they_do_only_while_there_are_two_ways() -> None:
    def said(ensemble: Ensemble) -> str | None:
        annotations: dict[str, str] = built(ensemble)["StatefulSet"]["spec"]["template"]["metadata"]["annotations"]
        return annotations.get(names.QUORUM_TLS_ANNOTATION)

    assert [said(saw(PERMISSIVE, *steps)) for steps in ((None,) * 3, (ACCEPTED,) * 3)] == [ACCEPTED, USED]
    assert [said(saw(PLAIN, None, None, None)), said(saw(SECURE, *[USED] * 3, closed=3))] == [None, None]


def test_clients_find_both_ports_while_both_are_served() -> None:
    def ports(ensemble: Ensemble) -> list[int]:
        services = [each for each in build_zookeeper(ensemble) if each["metadata"]["name"] == NAMED.client_service]
        return [port["port"] for each in services if each["kind"] == "Service" for port in each["spec"]["ports"]]

    assert ports(saw(PERMISSIVE, None, None, None)) == [2181, 2281]
    assert ports(saw(SECURE, *[USED] * 3)) == [2181, 2281]
    assert ports(saw(SECURE, *[USED] * 3, closed=3)) == [2281]


@pytest.mark.parametrize(
    ("cluster", "admitted"),
    [
        (PLAIN, [2181]),
        (PERMISSIVE, [2181, 2281]),
        (with_status(SECURE, plaintext_needed_by="nobody", authority_expires="2036-01-01T00:00:00Z"), [2181, 2281]),
        (with_status(SECURE, authority_expires="2036-01-01T00:00:00Z"), [2281]),
        (with_status(SECURE, founded=True), [2181, 2281]),  # a plain ensemble that was declared anew
        (SECURE, [2181, 2281]),
    ],
)
def test_policies_admit_to_the_ports_that_are_served(cluster: Any, admitted: list[int]) -> None:
    (policy,) = build_server_policies(cluster, "herdkeeper")
    assert [port["port"] for port in policy["spec"]["ingress"][0]["ports"]] == admitted


# the address


def test_clients_are_sent_to_the_secure_port_once_every_member_serves_it_and_then_for_good() -> None:
    def published(cluster: Any, *steps: str | None) -> object:
        return summarize_zookeeper(saw(cluster, *steps)).fields["address"]

    assert published(PERMISSIVE, None, ACCEPTED, ACCEPTED) == NAMED.address(3)
    assert published(PERMISSIVE, ACCEPTED, ACCEPTED, ACCEPTED) == SECURE_ADDRESS
    assert published(with_status(PERMISSIVE, address=SECURE_ADDRESS)) == SECURE_ADDRESS


def test_clients_of_bookies_use_certificates_once_every_bookie_has_one() -> None:
    bookkeeper = with_spec(quickstart("BookKeeperCluster"), bookies=2)
    named = bookkeeper.names
    store = MetadataStore(SECURE_ADDRESS, serving=True, plaintext=True)

    def published(before: str | None, *bookies: bool, plaintext: bool = True) -> str:
        found = pods([named.pod(number) for number in range(len(bookies))])
        for pod, has in zip(found.values(), bookies, strict=True):
            pod["spec"] = {"volumes": [{"name": "i", "secret": {"secretName": named.identity_secret if has else "other"}}]}
        sets = live(
            {"kind": "StatefulSet", "metadata": {"name": named.stateful_set(number)}, "spec": {"replicas": 1}} for number in range(2)
        )
        cluster = bookkeeper if before is None else with_status(bookkeeper, zoo_keeper_address=before)
        fleet = BookieFleet(cluster, objects(found, sets), replace(store, plaintext=plaintext), MetadataAbsent(), ())
        return fleet.clients_address

    plain = NAMED.address(3)
    assert published(plain, False, True) == plain
    assert published(plain, True) == plain, "one is not there"
    assert published(plain, True, True) == SECURE_ADDRESS
    assert published(SECURE_ADDRESS, True) == SECURE_ADDRESS, "it does not go back"
    assert published(None, False, True) == plain, "the status is lost"
    assert published(None) == SECURE_ADDRESS, "a new cluster"
    assert published(plain, False, True, plaintext=False) == SECURE_ADDRESS


def test_bookies_accept_both_until_plain_text_is_refused() -> None:
    bookkeeper = quickstart("BookKeeperCluster")

    def said(address: str, *, plaintext: bool) -> tuple[bool, bool]:
        (config, *_) = build_bookies_shared(bookkeeper, address, Founded("i", frozenset(), frozenset()), plaintext=plaintext)
        return "tlsProviderFactoryClass=" in config["data"]["bk_server.conf"], "authorizedRoles=" in config["data"]["bk_server.conf"]

    assert said(NAMED.address(3), plaintext=True) == (False, False)
    assert said(SECURE_ADDRESS, plaintext=True) == (True, False)
    assert said(SECURE_ADDRESS, plaintext=False) == (True, True)
    bookie = BookieIdentity(0, "bk-bookie-0-aaaaaa")
    one, other = (build_bookie(bookkeeper, bookie, SECURE_ADDRESS, plaintext=plaintext) for plaintext in (True, False))
    assert one["spec"]["template"] != other["spec"]["template"], "it restarts"


def test_a_drain_reads_bookies_as_all_clients_do_and_ends_with_the_bookies_own_configuration() -> None:
    bookkeeper, bookie = quickstart("BookKeeperCluster"), BookieIdentity(0, "bk-bookie-0-aaaaaa")
    amid = DrainSource(NAMED.address(3), "jobs", SECURE_ADDRESS)
    jobs = (build_move(bookkeeper, bookie, 1, amid), build_retirement(bookkeeper, bookie, amid))
    assert [mounts(job["spec"]["template"], bookkeeper.names.identity_secret) for job in jobs] == [False, True]


# plain text is refused


def test_plain_ports_are_closed_one_by_one_once_nobody_needs_them() -> None:
    steps = [next_change(saw(SECURE, USED, USED, USED, closed=closed)) for closed in range(4)]
    assert all(isinstance(step, ChangeMembership) for step in steps[:3])
    servers = [step.server for step in steps[:3] if isinstance(step, ChangeMembership) and step.server is not None]
    assert [(server.server_id, server.client) for server in servers] == [(number, "127.0.0.1:2182") for number in (1, 2, 3)]
    assert steps[3] is None


def test_members_that_are_to_join_do_so_before_any_port_is_closed() -> None:
    step = next_change(saw(with_spec(SECURE, replicas=5), USED, USED, USED))
    assert isinstance(step, ChangeMembership)
    assert step.server is not None
    assert (step.server.server_id, step.server.role) == (4, Role.OBSERVER)


@pytest.mark.parametrize(
    ("seen", "who"),
    [
        (saw(SECURE, USED, USED, USED, plaintext_users=("the HerdDBCluster db",)), "the HerdDBCluster db"),
        (saw(SECURE, USED, ACCEPTED, USED), "the pod zk-zookeeper-1"),
        (saw(SECURE, USED, USED), "the pod zk-zookeeper-2"),
        (saw(PERMISSIVE, USED, USED, USED), "nobody"),
    ],
)
def test_no_port_is_closed_before_and_the_status_names_who_needs_it(seen: Ensemble, who: str) -> None:
    assert next_change(seen) is None
    summary = summarize_zookeeper(seen)
    assert summary.fields["plaintextNeededBy"] == who
    assert summary.conditions[ENCRYPTED].status == "False"


def test_a_stack_is_not_called_encrypted_before_the_last_member_that_takes_plain_text_from_others_has_restarted() -> None:
    """Its client port is closed by then; at those of the quorum a stranger could copy all metadata, or lead."""
    told = [
        summarize_zookeeper(saw(SECURE, *steps, closed=3)).conditions.get(ENCRYPTED)
        for steps in ((USED, USED, USED), (REQUIRED, USED, REQUIRED), (REQUIRED, REQUIRED, REQUIRED))
    ]
    assert [each and each.status for each in told] == ["False", "False", None]
    assert told[1] is not None
    assert told[1].message.endswith("until these have restarted: zk-zookeeper-1")


def bookies_that(*accept: bool | None, plaintext: bool = False, address: str = SECURE_ADDRESS) -> BookieFleet:
    """Bookies whose pods were made when plain text was accepted, or not. None: before they had certificates."""
    cluster = with_spec(quickstart("BookKeeperCluster"), bookies=len(accept))
    found = pods([cluster.names.pod(number) for number in range(len(accept))])
    sets = []
    for number, (pod, accepts) in enumerate(zip(found.values(), accept, strict=True)):
        spoken = PLAIN.address if accepts is None else SECURE_ADDRESS
        sets.append(build_bookie(cluster, BookieIdentity(number, "bk"), spoken, plaintext=accepts is True))
        template = sets[-1]["spec"]["template"]
        pod["metadata"]["annotations"], pod["spec"] = template["metadata"]["annotations"], template["spec"]
    store = MetadataStore(address, serving=True, plaintext=plaintext)
    return BookieFleet(cluster, objects(found, live(sets)), store, MetadataAbsent(), ())


def test_bookies_are_not_called_encrypted_before_the_last_that_accepts_plain_text_has_restarted() -> None:
    """They restart after the ensemble has refused plain text: one by one, and not while a drain runs."""

    def told(fleet: BookieFleet) -> str | None:
        found = summarize_bookkeeper(fleet).conditions.get(ENCRYPTED)
        return None if found is None else f"{found.status}: {found.message}"

    amid = told(bookies_that(True, False, None)) or ""
    assert amid.startswith("False: plain text is accepted")
    assert amid.endswith("until these have restarted: bk-bookie-0-0, bk-bookie-2-0")
    assert told(bookies_that(False, False)) is None
    assert (told(bookies_that(True, True, plaintext=True)) or "").startswith("False: plain text is accepted")
    assert told(bookies_that(None, None, address=PLAIN.address)) is None, "the ensemble says so"


def test_bookies_that_accept_plain_text_are_not_called_encrypted_while_their_ensemble_is_unknown() -> None:
    """Such as one that was deleted, or restored without its status: its bookies run on."""
    fleet = bookies_that(True, True, plaintext=True)
    before = summarize_bookkeeper(fleet).conditions[ENCRYPTED]
    known = Condition(
        type=ENCRYPTED,
        status="False",
        reason=before.reason,
        message=before.message,
        last_transition_time="2026-01-01T00:00:00Z",
        observed_generation=1,
    )
    missing = Problem(Reason.WAITING_FOR_ZOOKEEPER, "the ZooKeeperCluster zk does not exist in the namespace demo")
    assert ENCRYPTED not in summarize_bookkeeper(replace(fleet, store=missing)).conditions
    told = replace(fleet, cluster=with_status(fleet.cluster, conditions=(known,)))
    assert summarize_bookkeeper(replace(told, store=missing)).conditions[ENCRYPTED] == before


@pytest.mark.parametrize("closed", [0, 2])
def test_a_port_that_somebody_opened_is_closed_again_and_no_member_comes_to_accept_plain_text(closed: int) -> None:
    opened = saw(SECURE, REQUIRED, REQUIRED, REQUIRED, closed=closed)
    assert opened.encryption is Encryption.REQUIRED
    assert isinstance(next_change(opened), ChangeMembership)
    assert summarize_zookeeper(opened).fields["plaintextNeededBy"] is None


def test_the_first_closed_port_decides() -> None:
    late = saw(SECURE, USED, USED, USED, closed=1, plaintext_users=("the HerdDBCluster db",))
    assert isinstance(next_change(late), ChangeMembership)
    assert summarize_zookeeper(late).fields["plaintextNeededBy"] is None


def test_many_who_need_plain_text_fit_the_status() -> None:
    text = summarize_zookeeper(saw(PERMISSIVE, USED, USED, USED, plaintext_users=("the pod x",) * 500)).fields["plaintextNeededBy"]
    assert isinstance(text, str)
    assert len(text) <= MOST_PLAINTEXT_USERS


def test_without_certificates_nobody_is_sent_to_the_secure_port_though_the_status_names_it() -> None:
    """A resource was applied anew with the default mode over the volumes of an ensemble in plain text, and put right."""
    put_right = with_status(PLAIN, address=SECURE_ADDRESS, founded=True)
    unread = saw(put_right, None, None, None, membership=Ensemble(PLAIN, objects()).membership)
    assert unread.address == NAMED.address(3)
    assert summarize_zookeeper(unread).fields["address"] == NAMED.address(3)


# authorities


def test_an_ensemble_that_lost_its_authorities_is_not_taken_for_one_in_plain_text() -> None:
    there = live(tuple(secret_of({"name": name}, {"tls.crt": "x"}) for name in (NAMED.clients_secret, NAMED.members_secret)))
    known = {"address": SECURE_ADDRESS, "founded": True, "authority_expires": "2036-01-01T00:00:00Z"}
    secure, plain = (with_status(cluster, **known) for cluster in (SECURE, PLAIN))
    seen = saw(secure, *[REQUIRED] * 3, closed=3)
    seen = replace(seen, objects=objects(seen.objects.items, there))
    seen = replace(seen, security=security_of(secure, seen.objects))
    assert summarize_zookeeper(seen).fields["authorityExpires"] == "2036-01-01T00:00:00Z"  # so that the API server refuses another mode
    wait = plan_zookeeper(seen).wait
    assert wait is not None
    assert (wait.reason, "Insecure" in wait.message) == (Reason.INVALID_SECRET, False)
    declared_plain = replace(seen, cluster=plain, security=None)
    stopped = plan_zookeeper(declared_plain)
    assert stopped.actions == ()
    assert stopped.wait is not None
    assert stopped.wait.reason is Reason.INVALID_SPEC


def test_bookies_of_a_closed_ensemble_do_not_open_because_its_mode_says_permissive() -> None:
    closed = with_status(PERMISSIVE, address=SECURE_ADDRESS, authority_expires="2036-01-01T00:00:00Z")
    assert not closed.accepts_plaintext
    assert with_status(PERMISSIVE, address=SECURE_ADDRESS, plaintext_needed_by="nobody").accepts_plaintext


def test_an_ensemble_in_plain_text_gets_its_authorities_first() -> None:
    seen = saw(PERMISSIVE, None, None, None)
    plan = plan_zookeeper(replace(seen, security=security_of(PERMISSIVE, seen.objects)))
    assert [action.manifest["metadata"]["name"] for action in plan.actions if isinstance(action, Create)] == [
        NAMED.authority_secret,
        NAMED.quorum_authority_secret,
    ]
    assert len(plan.actions) == 2


def test_an_authority_that_was_lost_is_not_made_anew() -> None:
    held = live((secret_of({"name": NAMED.members_secret}, {"tls.crt": "x"}),))
    seen = saw(PERMISSIVE, ACCEPTED, ACCEPTED, ACCEPTED)
    found = objects(dict(seen.objects.items), held)
    plan = plan_zookeeper(replace(seen, objects=found, security=security_of(PERMISSIVE, found)))
    assert (plan.actions, plan.wait and plan.wait.reason) == ((), Reason.INVALID_SECRET)
    assert plan.wait is not None
    assert "the Secret zk-zookeeper-quorum-authority of the authority is missing: restore it from a backup" in plan.wait.message
