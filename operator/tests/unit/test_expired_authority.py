"""An authority that has expired: servers refuse what it has signed, and another one takes its place at once.

Of each pair of members it is known whether they are connected: they connect when each accepts the other's certificate, and stay so until
one restarts. Who is connected to a majority serves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st
from rolled_stack import BOOKIE, BOOKKEEPER, MEMBERS, NAMED, SECURE, Stack
from situations import with_spec
from test_given_authorities import GIVEN, fresh, intermediate, named

from herdkeeper.api.zookeeper_cluster import Security
from herdkeeper.certificates.authority import RENEWED_AFTER, authority_data, expiry_of, first_authority, is_signed_by, read_authority
from herdkeeper.certificates.issue import AUTHORITY_LIFE, CERTIFICATE_LIFE, Validity, fresh_key
from herdkeeper.clients import identities
from herdkeeper.clients.kubernetes import values_of_secret
from herdkeeper.planning.actions import Wait
from herdkeeper.planning.summary import Health
from herdkeeper.shared.objects import is_ready
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of
from herdkeeper.zookeeper.authority_roll import TIME_TO_LOAD
from herdkeeper.zookeeper.state import NOT_READ, Ensemble

MINUTES = TIME_TO_LOAD.total_seconds() / 60
IDENTITY = BOOKKEEPER.names.identity_secret
LONG_AFTER = AUTHORITY_LIFE + timedelta(hours=2)
MONTHS = timedelta(days=60)
"""Until then no other certificate is due."""
BOOKIE_AWAY = "the BookKeeperCluster bk: it is not Ready (a bookie is not registered)"
CLIENTS_GIVEN = with_spec(SECURE, security=Security(mode="TLS", authority=GIVEN.spec.security.authority))


class Ageing(Stack):
    """A stack that lives by its own clock: whoever shows a certificate that has ended is refused."""

    def __init__(self, patch: pytest.MonkeyPatch, declared: Any = SECURE, items: Mapping[tuple[str, str], Any] | None = None) -> None:
        self.connected: set[frozenset[tuple[str, str]]] = set()
        self.disruption: str | None = None
        self.unplaced: set[str] = set()
        """Members that no Kubernetes node has room for."""
        self.clocks: dict[str, timedelta] = {}
        """How far members' clocks are ahead."""
        patch.setattr(identities, "datetime", SimpleNamespace(now=lambda _: self.now + self.ahead))
        super().__init__(declared, items)

    def kubernetes(self) -> None:
        super().kubernetes()
        there = [name for name in MEMBERS if ("Pod", name) in self.items and name not in self.unplaced]
        for name in self.unplaced:
            unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node has room"}
            self.items["Pod", name]["status"] = {"phase": "Pending", "conditions": [unscheduled]}
        ends = {name: (name, self.items["Pod", name]["metadata"]["resourceVersion"]) for name in there}
        self.connected = {pair for pair in self.connected if pair <= set(ends.values())}
        for one, other in combinations(there, 2):
            first, second = (self.started[name][NAMED.members_secret] for name in (one, other))
            if self.accept(first, second, by=one) and self.accept(second, first, by=other):
                self.connected.add(frozenset((ends[one], ends[other])))
        for name in there:
            if is_ready(self.items["Pod", name]) != (name in self.serving()):
                self.is_ready(name, str(name in self.serving()))

    def serving(self) -> list[str]:
        """The members of a majority, the leader last."""
        ends = sorted(name for pair in self.connected for name, _ in pair)
        return sorted(set(ends), key=lambda name: (ends.count(name), name))

    def accept(self, trusting: Mapping[str, str], showing: Mapping[str, str], by: str = "") -> bool:
        now = self.now + self.clocks.get(by, timedelta())
        shown = x509.load_pem_x509_certificate(showing["tls.crt"].encode())
        trusted = x509.load_pem_x509_certificates(trusting["ca.crt"].encode())
        return shown.not_valid_before_utc <= now < shown.not_valid_after_utc and any(is_signed_by(shown, each) for each in trusted)

    def lets_in(self, client: Mapping[str, str]) -> list[str]:
        """The members that a client can connect to anew."""
        found = []
        for name in self.serving():
            member = {**self.started[name][NAMED.clients_secret], "tls.crt": self.mounted[name][NAMED.clients_secret]["tls.crt"]}
            if self.accept(member, client, by=name) and self.accept(client, member):
                found.append(name)
        return found

    def ensemble(self) -> Ensemble:
        found, serving = super().ensemble(), self.serving()
        operator = self.items.get(("Secret", NAMED.operator_secret))
        reads = operator is not None and self.lets_in(values_of_secret(operator))
        return replace(
            found,
            modes={MEMBERS.index(name): "leader" if name == serving[-1] else "follower" for name in serving},
            zxids={MEMBERS.index(name): 0x100000001 for name in serving},
            membership=found.membership if reads else NOT_READ,
            disruption=self.disruption,
        )

    def brings(self) -> None:
        """Kubelets bring all that is in the Secrets now."""
        for name in (*MEMBERS, BOOKIE):
            self.bring(name)

    def members_end(self) -> None:
        """As after a power cut."""
        for name in MEMBERS:
            del self.items["Pod", name]
        self.kubernetes()

    def work(self, looks: int = 12) -> None:
        """Everybody does what there is to do now, and kubelets bring files to members that start; no time passes."""
        for _ in range(looks):
            self.look()
            self.look_at_bookies()

    def claims(self) -> dict[str, Any]:
        return {name: item["metadata"] for (kind, name), item in self.items.items() if kind == "PersistentVolumeClaim"}

    def trusted(self) -> dict[str, set[str]]:
        """The authorities that each of the operator's Secrets trusts."""
        secrets = {name: values_of_secret(item) for (kind, name), item in self.items.items() if kind == "Secret"}
        return {name: set(data["ca.crt"].split("-----END CERTIFICATE-----\n")[:-1]) for name, data in secrets.items() if "ca.crt" in data}

    def told(self) -> Health:
        found = self.rolled()
        assert found is not None
        return found


def is_whole(stack: Ageing) -> bool:
    return len(stack.serving()) == 3 and stack.lets_in(stack.mounted[BOOKIE][IDENTITY]) == stack.serving() and stack.strangers() == []


def wait_of(stack: Ageing) -> Wait:
    wait = stack.look().wait
    assert wait is not None
    return wait


def shown_by_members(stack: Ageing) -> str:
    """The certificate that members show each other once they have restarted."""
    return values_of_secret(stack.items["Secret", NAMED.members_secret])["tls.crt"]


def test_a_stack_whose_authorities_have_expired_is_served_again_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator was away for years, and then the machines, too."""
    stack = Ageing(monkeypatch)
    assert is_whole(stack)
    claims = stack.claims()
    stack.now += LONG_AFTER
    stack.members_end()
    assert stack.serving() == []
    stack.work()
    stack.bring(BOOKIE)
    assert is_whole(stack)
    assert stack.claims() == claims
    assert [event.partition(" expired at ")[0] for event in stack.events[:2]] == ["zk clients 1", "zk quorum 1"]
    assert stack.events[0].endswith(", and zk clients 2 takes its place")
    assert stack.authorities()[IDENTITY] == ["zk clients 2"] * 2
    assert stack.authorities()[NAMED.members_secret] == ["zk quorum 2"] * 2
    assert "step 3 of 3" in stack.told().message
    stack.passes(MINUTES + 0.1)
    stack.work()
    assert stack.rolled() is None
    assert set(values_of_secret(stack.items["Secret", NAMED.authority_secret])) == {"generation", "signing.crt", "signing.key"}
    assert stack.look().actions == ()


def test_members_that_serve_by_connections_from_before_are_left_alone_and_it_is_told_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Ageing(monkeypatch)
    before = dict(stack.items)
    stack.now += LONG_AFTER
    stack.work()
    assert stack.serving() == MEMBERS
    assert [stack.items["Pod", name] for name in MEMBERS] == [before["Pod", name] for name in MEMBERS]
    assert stack.events == []
    assert "zk quorum 2 takes its place once no member serves: they serve by connections from before" in stack.told().message
    assert f"(kubectl delete pod {' '.join(MEMBERS)})" in stack.told().message
    wait = wait_of(stack)
    assert wait.reason is Reason.INVALID_SECRET
    end = text_of(
        x509.load_pem_x509_certificate(
            values_of_secret(before["Secret", NAMED.authority_secret])["signing.crt"].encode()
        ).not_valid_after_utc
    )
    assert wait.message.startswith(f"the authority in the Secret {NAMED.authority_secret} expired at {end}, and servers refuse what it has")
    del stack.items["Pod", MEMBERS[0]]
    stack.work()
    assert len(stack.serving()) == 2, "one that restarts is refused, and the others are left alone"
    stack.members_end()
    stack.work()
    stack.bring(BOOKIE)
    assert is_whole(stack)


def test_members_whose_certificate_ended_while_no_operator_ran_all_serve_until_a_person_restarts_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their authority signs on, but one that restarts with a renewed certificate would refuse the others."""
    stack = Ageing(monkeypatch)
    pods, shown = [stack.items["Pod", name] for name in MEMBERS], shown_by_members(stack)
    stack.now += CERTIFICATE_LIFE + timedelta(days=1)
    for _ in range(3):
        stack.work()
        stack.brings()
    assert [stack.items["Pod", name] for name in MEMBERS] == pods
    assert stack.serving() == MEMBERS == stack.lets_in(stack.mounted[BOOKIE][IDENTITY]), "clients have renewed ones"
    wait = wait_of(stack)
    end = text_of(expiry_of(shown))
    assert (wait.reason, wait.message) == (
        Reason.INVALID_SECRET,
        f"the certificate in the Secret {NAMED.members_secret} expired at {end}: it is renewed once no member serves: they serve by "
        "connections from before, and refuse one that restarts. To have it now, at the cost of some minutes without ZooKeeper, delete "
        f"their pods (kubectl delete pod {' '.join(MEMBERS)})",
    )
    stack.members_end()
    stack.work()
    assert is_whole(stack)
    assert shown_by_members(stack) != shown
    assert stack.look().actions == ()


def test_one_of_an_old_backup_that_has_ended_is_renewed_at_once_where_members_started_with_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stack = Ageing(monkeypatch)
    old = values_of_secret(stack.items["Secret", NAMED.members_secret])
    stack.now += CERTIFICATE_LIFE * RENEWED_AFTER
    stack.work()
    stack.now += CERTIFICATE_LIFE * RENEWED_AFTER - timedelta(days=1)
    stack.hold(NAMED.members_secret, old)
    for _ in range(12):
        stack.look()
        stack.look_at_bookies()
        assert len(stack.serving()) >= 2
    stack.brings()
    assert is_whole(stack)
    assert shown_by_members(stack) != old["tls.crt"]


@pytest.mark.parametrize("disruption", [None, BOOKIE_AWAY])
def test_where_only_the_authority_of_clients_has_expired_members_restart_one_by_one(
    monkeypatch: pytest.MonkeyPatch, disruption: str | None
) -> None:
    """Servers above may be away until then: they can't connect."""
    stack = Ageing(monkeypatch, CLIENTS_GIVEN, named("company", intermediate("company 1", life=MONTHS)))
    stack.now += MONTHS
    stack.disruption = disruption
    stack.work()
    assert stack.events == []
    assert stack.serving() == MEMBERS
    stack.hold("company", intermediate("company 2", key=fresh(), begin=stack.now - timedelta(hours=1)))
    for _ in range(20):
        stack.look()
        stack.look_at_bookies()
        assert len(stack.serving()) >= 2
    stack.bring(BOOKIE)
    assert is_whole(stack)
    assert stack.events[0].endswith(", and company 2 takes its place")


def test_members_that_refuse_clients_and_wait_for_one_that_is_pending_are_told_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that serve know only the one that has expired, and one that restarted would leave no quorum."""
    stack = Ageing(monkeypatch, CLIENTS_GIVEN, named("company", intermediate("company 1", life=MONTHS)))
    pending, *others = MEMBERS
    stack.unplaced.add(pending)
    stack.now += MONTHS
    stack.hold("company", intermediate("company 2", key=fresh(), begin=stack.now - timedelta(hours=1)))
    stack.work()
    stack.bring(BOOKIE)
    assert (sorted(stack.serving()), stack.lets_in(stack.mounted[BOOKIE][IDENTITY])) == (others, [])
    assert stack.told().message.endswith(
        f". {' and '.join(others)} do not trust company 2, so they refuse clients until they restart, and they restart only while all "
        f"members serve ({pending}: Unschedulable: no node has room). Fix that or, to have it now, at the cost of some minutes without "
        f"ZooKeeper, delete their pods (kubectl delete pod {' '.join(others)})"
    )
    for name in others:
        del stack.items["Pod", name]
    stack.work()
    assert sorted(stack.lets_in(stack.mounted[BOOKIE][IDENTITY])) == others
    assert "refuse clients" not in stack.told().message


@pytest.mark.parametrize("restarted", [False, True])
def test_in_an_ordinary_third_step_members_wait_for_the_stack_also_if_the_old_authority_ends_meanwhile(
    monkeypatch: pytest.MonkeyPatch, *, restarted: bool
) -> None:
    """They trust the one that signs, so nobody has to get back in."""
    stack = Ageing(monkeypatch, CLIENTS_GIVEN, named("company", intermediate("company 1", life=MONTHS)))
    stack.hold("company", intermediate("company 2", key=fresh(), life=3 * MONTHS))
    for _ in range(2):
        stack.work()
        stack.passes(MINUTES + 0.1)
    if restarted:
        for _ in range(12):  # the bookies are paused
            stack.look()
        stack.declared = stack.cluster = with_spec(CLIENTS_GIVEN, image="another")
    stack.disruption = BOOKIE_AWAY
    stack.now += MONTHS
    pods = [stack.items["Pod", name]["metadata"]["resourceVersion"] for name in MEMBERS]
    for _ in range(4):
        stack.look()
    assert "step 3 of 3" in stack.told().message
    assert wait_of(stack).message.endswith(f"is restarted once no other server of the stack is disrupted: {stack.disruption}")
    assert [stack.items["Pod", name]["metadata"]["resourceVersion"] for name in MEMBERS] == pods
    assert stack.serving() == stack.lets_in(values_of_secret(stack.items["Secret", NAMED.operator_secret]))


@pytest.mark.parametrize("restarted", [False, True])
def test_a_certificate_that_is_renewed_in_the_third_step_makes_no_member_look_as_if_it_refused_clients(
    monkeypatch: pytest.MonkeyPatch, *, restarted: bool
) -> None:
    """Members that wait for the stack began with another certificate than they would begin with now."""
    due = CERTIFICATE_LIFE * RENEWED_AFTER
    stack = Ageing(monkeypatch, CLIENTS_GIVEN, named("company", intermediate("company 1", life=due + timedelta(days=3))))
    stack.now += due - timedelta(days=1)
    stack.hold("company", intermediate("company 2", key=fresh(), begin=stack.now - timedelta(hours=1)))
    for _ in range(2):
        stack.work()
        stack.passes(MINUTES + 0.1)
    stack.disruption = None if restarted else BOOKIE_AWAY
    for _ in range(12):  # the bookies are paused
        stack.look()
    stack.disruption = BOOKIE_AWAY
    pods, shown = [stack.items["Pod", name] for name in MEMBERS], shown_by_members(stack)
    stack.now += timedelta(days=5)
    for _ in range(4):
        stack.look()
    assert "step 3 of 3" in stack.told().message
    assert shown_by_members(stack) != shown
    assert wait_of(stack).message.endswith(f"is restarted once no other server of the stack is disrupted: {BOOKIE_AWAY}")
    assert [stack.items["Pod", name] for name in MEMBERS] == pods
    stack.unplaced.add(MEMBERS[0])
    stack.kubernetes()
    assert "refuse clients" not in stack.told().message


def test_a_given_authority_that_has_expired_waits_for_another_one_in_its_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Ageing(monkeypatch, CLIENTS_GIVEN, named("company", intermediate("company 1", life=MONTHS)))
    stack.now += MONTHS
    stack.work()
    assert (stack.told().status, stack.told().reason) == ("False", Reason.INVALID_SECRET)
    assert "the Secret company of spec.security.authority has a certificate in tls.crt that is valid from" in stack.told().message
    assert ": renew it. company 1 expired at " in stack.told().message
    assert stack.told().message.endswith(", and nothing can take its place yet")
    assert wait_of(stack).message.startswith(f"the authority in the Secret {NAMED.authority_secret} expired at ")
    stack.declared = stack.cluster = SECURE
    stack.work()
    assert stack.authorities()[IDENTITY] == ["zk clients 2"] * 2, "or for the field to go"


def test_one_with_another_key_may_have_the_name_of_an_authority_that_has_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    """As cert-manager renews it: nobody has to trust both."""
    stack = Ageing(monkeypatch, CLIENTS_GIVEN, named("company", intermediate("company 1", life=MONTHS)))
    stack.hold("company", intermediate("company 1", key=fresh(), life=2 * MONTHS))
    stack.work()
    assert "has another key, or identifier of it, under the subject" in stack.told().message
    stack.now += MONTHS
    stack.work()
    stack.bring(BOOKIE)
    assert is_whole(stack)
    stack.passes(MINUTES + 0.1)
    stack.work()
    assert stack.rolled() is None


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_one_that_expires_amid_a_roll_is_replaced_by_the_one_that_is_to_follow_or_another(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    stack = Ageing(monkeypatch, CLIENTS_GIVEN, named("company", intermediate("company 1", life=MONTHS)))
    second = intermediate("company 2", key=fresh(), life=MONTHS + timedelta(days=9))
    stack.hold("company", second)
    for _ in range(steps - 1):
        stack.work()
        stack.passes(MINUTES + 0.1)
    for _ in range(3):  # the bookies are paused
        stack.look()
    assert f"step {steps} of 3" in stack.told().message
    stack.now += MONTHS + (timedelta(days=9) if steps > 1 else timedelta())
    if steps == 1:
        del stack.items["Secret", "company"]
    else:
        stack.hold("company", intermediate("company 3", key=fresh(), begin=stack.now - timedelta(hours=1)))
    stack.work()
    stack.bring(BOOKIE)
    assert is_whole(stack)
    assert stack.authorities()[IDENTITY] == [f"company {2 if steps == 1 else 3}"] * 2
    former = read_authority("zk", values_of_secret(stack.items["Secret", NAMED.authority_secret])).distrusted or ""
    assert former.count("BEGIN") == (1 if steps == 1 else 2), "whoever still trusts any of them is waited for"


@pytest.mark.parametrize("steps", [2, 3])
def test_the_former_one_may_come_back_in_place_of_one_that_expires_amid_its_roll(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """A short one was put there by mistake."""
    first = intermediate("company 1", life=3 * MONTHS)
    stack = Ageing(monkeypatch, CLIENTS_GIVEN, named("company", first))
    stack.hold("company", intermediate("by mistake", key=fresh(), life=MONTHS))
    for _ in range(steps - 1):
        stack.work()
        stack.passes(MINUTES + 0.1)
    for _ in range(3):  # the bookies are paused
        stack.look()
    assert f"step {steps} of 3" in stack.told().message
    stack.now += MONTHS
    stack.hold("company", first)
    stack.work()
    stack.bring(BOOKIE)
    assert is_whole(stack)
    assert stack.authorities()[IDENTITY] == ["company 1"] * 2
    stack.passes(MINUTES + 0.1)
    stack.work()
    assert stack.rolled() is None


def test_members_that_trust_the_one_that_comes_back_wait_for_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was the first of the two that they trust: they refuse nobody."""
    first = intermediate("company 1", life=3 * MONTHS)
    stack = Ageing(monkeypatch, CLIENTS_GIVEN, named("company", first))
    stack.hold("company", intermediate("by mistake", key=fresh(), life=MONTHS))
    stack.work()
    stack.passes(MINUTES + 0.1)
    stack.work()
    assert "step 2 of 3" in stack.told().message
    stack.disruption = BOOKIE_AWAY
    stack.now += MONTHS
    stack.hold("company", first)
    pods = [stack.items["Pod", name]["metadata"]["resourceVersion"] for name in MEMBERS]
    stack.work()
    stack.bring(BOOKIE)
    assert stack.lets_in(stack.mounted[BOOKIE][IDENTITY]) == stack.serving()
    assert [stack.items["Pod", name]["metadata"]["resourceVersion"] for name in MEMBERS] == pods
    assert wait_of(stack).message.endswith(f"is restarted once no other server of the stack is disrupted: {stack.disruption}")


@pytest.mark.parametrize("ahead", [timedelta(days=250), timedelta(days=360), LONG_AFTER])
def test_an_operator_whose_clock_is_ahead_cuts_nobody_off(monkeypatch: pytest.MonkeyPatch, ahead: timedelta) -> None:
    """By its clock certificates are due, or the authorities have expired. What it signs meanwhile counts by all other clocks."""
    stack = Ageing(monkeypatch)
    for stack.ahead in (ahead, timedelta()):
        for _ in range(12):
            stack.work(1)
            stack.brings()
            assert len(stack.serving()) >= 2
        assert is_whole(stack)
    assert stack.authorities()[IDENTITY] == ["zk clients 1"] * 2


def test_a_roll_that_a_clock_ahead_begins_cuts_nobody_off(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Ageing(monkeypatch)
    for _ in range(9):
        stack.now += timedelta(days=250)
        stack.work(8)
        stack.brings()
        assert is_whole(stack)
    assert stack.events == []
    stack.ahead = timedelta(days=300)
    for step in (1, 2, 3):
        stack.work()
        assert f"step {step} of 3" in stack.told().message
        stack.passes(MINUTES + 0.1)
        assert is_whole(stack)
    stack.work()
    assert stack.rolled() is None


def test_a_clock_ahead_of_an_authoritys_end_brings_the_next_one_early_and_all_are_served_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its Secret has one under the same name already, as cert-manager renews it. That one waits for the end."""
    stack = Ageing(monkeypatch, CLIENTS_GIVEN, named("company", intermediate("company 1", life=MONTHS)))
    stack.hold("company", intermediate("company 1", key=fresh(), life=2 * MONTHS))
    stack.ahead = MONTHS
    stack.work()
    assert stack.lets_in(stack.mounted[BOOKIE][IDENTITY]) == [], "by all other clocks the old one was good"
    for stack.ahead in (MONTHS, timedelta()):
        stack.brings()
        assert is_whole(stack)
        stack.passes(MINUTES + 0.1)
        stack.work()
    assert stack.rolled() is None


def test_members_that_a_clock_ahead_cut_off_wait_for_nobody_also_once_it_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bookies need the members first."""
    stack = Ageing(monkeypatch, CLIENTS_GIVEN, named("company", intermediate("company 1", life=MONTHS)))
    stack.hold("company", intermediate("company 1", key=fresh(), life=2 * MONTHS))
    stack.ahead = MONTHS
    stack.look(1)
    stack.ahead = timedelta()
    stack.disruption = BOOKIE_AWAY
    stack.work()
    stack.brings()
    assert is_whole(stack)


def test_a_member_whose_clock_is_ahead_refuses_the_others_and_nothing_is_replaced_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Ageing(monkeypatch)
    early, *others = MEMBERS
    secrets = {key: item for key, item in stack.items.items() if key[0] == "Secret"}
    stack.clocks[early] = LONG_AFTER
    stack.work()
    assert stack.lets_in(stack.mounted[BOOKIE][IDENTITY]) == others
    del stack.items["Pod", early]
    stack.work()
    assert sorted(stack.serving()) == sorted(stack.lets_in(stack.mounted[BOOKIE][IDENTITY])) == others
    stack.clocks.clear()
    stack.work()
    assert is_whole(stack)
    assert {key: item for key, item in stack.items.items() if key[0] == "Secret"} == secrets
    assert stack.events == []


def restore_old_backup(stack: Ageing, secret: str) -> None:
    """A Secret is again as it was with an authority that another one followed, and that has expired since."""
    stack.hold(secret, authority_data(first_authority("before", fresh_key(), Validity(stack.now - LONG_AFTER, AUTHORITY_LIFE))))


@pytest.mark.parametrize(
    ("secret", "holder"), [(NAMED.authority_secret, NAMED.clients_secret), (NAMED.quorum_authority_secret, NAMED.members_secret)]
)
def test_an_expired_authority_of_an_old_backup_takes_no_certificate_of_a_later_one_away(
    monkeypatch: pytest.MonkeyPatch, secret: str, holder: str
) -> None:
    stack = Ageing(monkeypatch)
    restore_old_backup(stack, secret)
    before = dict(stack.items)
    stack.work()
    assert stack.items == before
    assert is_whole(stack)
    assert stack.told().message.startswith("before 1 expired at ")
    assert (
        f", but the Secret {holder} has a valid certificate of another one: restore a later {secret} from a backup" in stack.told().message
    )
    del stack.items["Secret", holder]
    assert "2 takes its place" in stack.told().message, "the way without a backup"


def test_a_given_authority_takes_the_place_of_one_of_an_old_backup_if_it_signed_what_members_have(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Ageing(monkeypatch, CLIENTS_GIVEN, named("company", intermediate("company 1")))
    before = stack.authorities()
    restore_old_backup(stack, NAMED.authority_secret)
    stack.work()
    assert is_whole(stack)
    assert stack.events[0].endswith(", and company 1 takes its place")
    assert stack.authorities() == before


def test_the_first_step_is_not_left_for_an_authority_that_expires_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Ageing(monkeypatch, CLIENTS_GIVEN, named("company", intermediate("company 1", life=2 * MONTHS)))
    short = intermediate("by mistake", key=fresh(), life=timedelta(days=3))
    stack.hold("company", short)
    stack.work()
    assert stack.authorities()[IDENTITY] == ["company 1", "by mistake", "company 1"]
    stack.now += timedelta(days=2)
    stack.work()
    assert stack.authorities()[IDENTITY][-1] == "company 1"
    assert "it waits, since by mistake expires at" in stack.told().message
    assert stack.told().message.endswith(": put another one into the Secret company")
    stack.hold("company", intermediate("company 2", key=fresh(), life=2 * MONTHS))
    for _ in range(4):
        stack.work()
        stack.passes(MINUTES + 0.1)
    assert stack.authorities()[IDENTITY] == ["company 2"] * 2


def test_once_the_field_is_gone_the_operators_follows_instead_of_one_that_expires_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Ageing(monkeypatch, CLIENTS_GIVEN, named("company", intermediate("company 1", life=2 * MONTHS)))
    stack.hold("company", intermediate("by mistake", key=fresh(), life=timedelta(days=3)))
    stack.work()
    stack.declared = stack.cluster = SECURE
    stack.now += timedelta(days=2)
    stack.work()
    assert stack.authorities()[IDENTITY] == ["company 1", "zk clients 2", "company 1"]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["look", "crash", "bookies", "kubelet", "time", "end"]), st.integers(0, 7)), max_size=40))
def test_whatever_is_interrupted_nobody_trusts_a_third_one_and_all_are_served_in_the_end(events: list[tuple[str, int]]) -> None:
    """The operator ends between any two actions, kubelets bring files whenever they do, and members end."""
    with pytest.MonkeyPatch.context() as patch:
        stack = Ageing(patch)
        claims, old = stack.claims(), stack.trusted()
        stack.now += LONG_AFTER
        stack.members_end()
        for what, number in events:
            stack.happens(what, number)
            trusted = stack.trusted()
            assert not trusted[NAMED.members_secret] & trusted[NAMED.clients_secret]
        for _ in range(40):
            stack.passes(1)
            stack.work(1)
        assert is_whole(stack)
        assert stack.claims() == claims
        new = stack.trusted()
        assert all(len(new[name]) == 1 and not new[name] & old[name] for name in old)
        assert stack.rolled() is None
