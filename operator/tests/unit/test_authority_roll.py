"""Another authority takes over from one that signs: in three steps, each when the one before is everywhere, and nobody is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rolled_stack import BOOKIE, BOOKKEEPER, MEMBERS, NAMED, Stack
from situations import quickstart, with_metadata

from herdkeeper.certificates.authority import authority_data, first_authority, next_step, read_authority, successor_of
from herdkeeper.certificates.issue import AUTHORITY_LIFE, CERTIFICATE_LIFE, Validity, fresh_key
from herdkeeper.clients.kubernetes import values_of_secret
from herdkeeper.planning.actions import AnswerRequest, Request, SetAuthority
from herdkeeper.shared import names
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.reason import Reason
from herdkeeper.zookeeper.authority_roll import TIME_TO_LOAD, roll_authorities
from herdkeeper.zookeeper.state import Ensemble

MINUTES = TIME_TO_LOAD.total_seconds() / 60
IDENTITY = BOOKKEEPER.names.identity_secret


@pytest.fixture
def stack() -> Stack:
    found = Stack()
    assert found.strangers() == []
    assert found.authorities()[NAMED.members_secret] == ["zk quorum 1", "zk quorum 1"]
    return found


def work(stack: Stack, looks: int = 12) -> None:
    """Everybody does what there is to do now; no time passes."""
    for _ in range(looks):
        stack.look()
        stack.look_at_bookies()
        assert stack.strangers() == []


def told(stack: Stack) -> str:
    found = stack.rolled()
    return "" if found is None else found.message


def begun(stack: Stack) -> Stack:
    """It was asked for, and all Secrets trust both."""
    stack.ask()
    work(stack)
    return stack


# the steps


def test_three_steps_follow_one_another_and_each_waits_for_pods(stack: Stack) -> None:
    files = begun(stack).started[MEMBERS[0]]
    assert stack.answers == ["done: zk clients 2 takes over and zk quorum 2 takes over"]
    assert stack.authorities()[IDENTITY] == ["zk clients 1", "zk clients 2", "zk clients 1"]
    assert stack.authorities()[NAMED.members_secret] == ["zk quorum 1", "zk quorum 2", "zk quorum 1"]
    assert "zk clients 2 follows zk clients 1: step 1 of 3, every server must trust both; all Secrets have it, and pods load it" in told(
        stack
    )
    stack.passes(MINUTES - 1)
    work(stack)
    assert stack.authorities()[IDENTITY][-1] == "zk clients 1"

    stack.passes(1.1)
    work(stack)
    assert stack.started[MEMBERS[0]] != files
    assert stack.authorities()[IDENTITY] == ["zk clients 1", "zk clients 2", "zk clients 2"]
    assert stack.authorities()[NAMED.members_secret] == ["zk quorum 1", "zk quorum 2", "zk quorum 2"]
    assert "step 2 of 3" in told(stack)

    stack.passes(MINUTES + 0.1)
    work(stack)
    assert stack.authorities()[IDENTITY] == ["zk clients 2"] * 2
    assert stack.authorities()[NAMED.members_secret] == ["zk quorum 2"] * 2
    assert "step 3 of 3" in told(stack)

    stack.passes(MINUTES + 0.1)
    work(stack)
    assert set(values_of_secret(stack.items["Secret", NAMED.authority_secret])) == {"generation", "signing.crt", "signing.key"}
    assert stack.rolled() is None
    assert stack.events[-1].endswith("the old one is no longer trusted")
    settled = stack.look()
    assert settled.actions == ()


def test_a_time_that_an_operator_noted_whose_clock_was_ahead_is_not_waited_for(stack: Stack) -> None:
    ahead = timedelta(days=30)
    stack.now += ahead
    begun(stack)
    stack.now -= ahead
    for name in (*MEMBERS, BOOKIE):
        stack.bring(name)  # kubelets have clocks of their own
    for step in (1, 2, 3):
        work(stack)
        assert f"step {step} of 3" in told(stack)
        stack.passes(MINUTES + 0.1)
    work(stack)
    assert stack.rolled() is None


def test_it_begins_by_itself_when_two_thirds_of_its_life_are_over(stack: Stack) -> None:
    due = stack.now + AUTHORITY_LIFE * 2 / 3
    while stack.now < due - timedelta(days=1):
        stack.now = min(stack.now + CERTIFICATE_LIFE * 0.9, due - timedelta(days=1))
        work(stack)  # certificates are renewed, and members restart
    assert stack.events == []
    stack.now += timedelta(days=1)
    work(stack, 2)
    assert stack.events[0] == "zk clients 2 follows zk clients 1: it is created, and every server must trust both"


def test_an_ensemble_without_certificates_has_no_authority_to_roll() -> None:
    cluster = with_metadata(quickstart("ZooKeeperCluster"), annotations={names.ROLL_AUTHORITIES_ANNOTATION: "now"}, resource_version="7")
    answer = "refused: spec.security.mode is Insecure, so there is no authority"
    assert roll_authorities(Ensemble(cluster, Objects({})), settled=True) == (
        AnswerRequest("ZooKeeperCluster", "zk", "7", Request.ROLL_AUTHORITIES, answer),
    )


def test_a_request_waits_for_an_ensemble_that_changes(stack: Stack) -> None:
    stack.ask()
    stack.is_ready(MEMBERS[0], "False")
    work(stack, 3)
    assert (stack.events, stack.answers) == ([], [])
    stack.is_ready(MEMBERS[0])
    work(stack, 1)
    assert len(stack.events) == 2


def test_a_request_in_the_second_step_is_refused_and_one_after_the_roll_begins_another(stack: Stack) -> None:
    """The authority that signs already may be the one that has to go."""
    begun(stack).passes(MINUTES + 0.1)
    work(stack)
    assert "step 2 of 3" in told(stack)
    stack.ask()
    work(stack)
    assert stack.answers[1].startswith("refused: zk clients 2 follows zk clients 1: step 2 of 3, the new one signs and both are trusted. ")
    assert stack.answers[1].endswith("; request it again once that has ended")
    for _ in range(2):
        stack.passes(MINUTES + 0.1)
        work(stack)
    assert stack.rolled() is None
    stack.ask()
    work(stack)
    assert stack.answers[2] == "done: zk clients 3 takes over and zk quorum 3 takes over"


def test_a_request_while_another_takes_over_begins_no_second_one(stack: Stack) -> None:
    begun(stack).ask()
    work(stack, 2)
    assert stack.answers[1] == stack.answers[0]
    assert len([event for event in stack.events if "it is created" in event]) == 2


def test_no_authority_is_said_to_go_on_while_the_other_one_waits(stack: Stack) -> None:
    before = values_of_secret(stack.items["Secret", NAMED.members_secret])
    begun(stack).hold(NAMED.members_secret, before)
    assert told(stack).count(f"it waits, since the Secret {NAMED.members_secret} does not have it yet") == 2
    assert "load it until" not in told(stack)


def test_the_condition_names_its_reason(stack: Stack) -> None:
    found = begun(stack).rolled()
    assert found is not None
    assert (found.status, found.reason) == ("False", Reason.AUTHORITY_ROLLING)


# the end


def second_step(stack: Stack) -> Stack:
    """The new ones sign, everybody has it, and the old ones are about to be trusted no longer."""
    begun(stack).passes(MINUTES + 0.1)
    work(stack)
    stack.passes(MINUTES + 0.1)
    return stack


def test_a_roll_has_not_ended_while_a_paused_resource_trusts_the_old_authority(stack: Stack) -> None:
    second_step(stack)
    for _ in range(6):
        stack.look()
        stack.passes(MINUTES + 0.1)
    assert stack.authorities()[IDENTITY] == ["zk clients 1", "zk clients 2", "zk clients 2"]
    assert "zk clients 2 follows zk clients 1: step 3 of 3, no server must trust the old one any more; it waits, since" in told(stack)
    assert f"the Secret {IDENTITY} does not have it yet" in told(stack)
    work(stack)
    stack.passes(MINUTES + 0.1)
    work(stack)
    assert (stack.rolled(), stack.authorities()[IDENTITY]) == (None, ["zk clients 2"] * 2)


def test_a_roll_has_not_ended_while_a_process_trusts_the_old_authority(stack: Stack) -> None:
    """Members until they have restarted, and bookies until the kubelet has brought their files."""
    second_step(stack)
    ends = []
    for _ in range(40):
        stack.look()
        stack.look_at_bookies()
        trusted = [stack.started[pod][NAMED.clients_secret] for pod in MEMBERS] + [stack.mounted[BOOKIE][IDENTITY]]
        if any(each["ca.crt"].count("BEGIN") == 2 for each in trusted):
            assert stack.rolled() is not None
        ends.append(stack.rolled() is None)
        stack.passes(1)
    assert ends[-1]
    assert stack.events[-1].endswith("the old one is no longer trusted")


# who is waited for


def after(stack: Stack) -> str:
    """Who signs for bookies after all the time that a step takes."""
    for _ in range(3):
        stack.passes(MINUTES + 0.1)
        for _ in range(4):
            stack.look()
    return stack.authorities()[IDENTITY][-1]


def test_a_holder_that_lags_is_named_and_waited_for(stack: Stack) -> None:
    stack.ask()
    stack.look()
    assert after(stack) == "zk clients 1"
    assert f"it waits, since the Secret {IDENTITY} does not have it yet" in told(stack)
    work(stack)
    assert "all Secrets have it" in told(stack)


def test_a_secret_that_somebody_changes_makes_the_wait_begin_anew(stack: Stack) -> None:
    begun(stack)
    before = values_of_secret(stack.items["Secret", IDENTITY])
    stack.passes(MINUTES - 1)
    stack.hold(IDENTITY, {**before, "ca.crt": before["tls.crt"]})
    stack.look()
    assert stack.events[-1].endswith(f"the wait for pods starts again, since the Secret {IDENTITY} does not have it yet")
    stack.look_at_bookies()
    stack.passes(2)
    stack.look()
    assert stack.authorities()[NAMED.operator_secret][-1] == "zk clients 1"


def test_a_secret_that_can_not_be_read_is_waited_for(stack: Stack) -> None:
    begun(stack).hold(IDENTITY, {"tls.crt": "x", "ca.crt": "x", "keystore.pem": "x"})
    stack.look()
    assert f"the Secret {IDENTITY} does not have it yet" in told(stack)


def test_a_secret_that_a_pod_mounts_and_that_is_gone_is_waited_for(stack: Stack) -> None:
    del begun(stack).items["Secret", IDENTITY]
    stack.look()
    assert f"the Secret {IDENTITY} is missing, which the pod {BOOKIE} mounts" in told(stack)


def test_whoever_has_a_copy_of_whom_to_trust_is_waited_for(stack: Stack) -> None:
    """As connection Secrets have, of the Secret that SQL nodes serve with."""
    stale = {"ca.crt": values_of_secret(stack.items["Secret", IDENTITY])["ca.crt"]}
    stack.items["Secret", "flights-connection"] = {
        **stack.items["Secret", IDENTITY],
        "metadata": {**stack.items["Secret", IDENTITY]["metadata"], "name": "flights-connection"},
    }
    begun(stack).hold("flights-connection", stale)
    work(stack, 2)
    assert "the Secret flights-connection does not have it yet" in told(stack)


def test_a_pod_that_is_not_ready_may_lack_the_files_and_is_waited_for(stack: Stack) -> None:
    begun(stack).is_ready(BOOKIE, "False")
    work(stack, 1)
    assert f"the pod {BOOKIE} is not Ready" in told(stack)
    assert after(stack) == "zk clients 1"


def test_a_pod_that_was_cut_off_while_nobody_looked_gets_its_minutes(stack: Stack) -> None:
    begun(stack).passes(MINUTES - 1)
    stack.is_ready(BOOKIE)
    stack.passes(1.1)
    work(stack, 2)
    assert stack.authorities()[IDENTITY][-1] == "zk clients 1"
    stack.passes(MINUTES)
    work(stack, 2)
    assert stack.authorities()[IDENTITY][-1] == "zk clients 2"


def test_a_job_that_reads_whom_to_trust_when_it_starts_has_to_end_unless_it_began_with_both(stack: Stack) -> None:
    for name, waited_for in (("early", True), ("late", False)):
        if not waited_for:
            begun(stack).passes(1)
        stack.start(name, [], "Tablespace", "flights")
        reference = {"name": IDENTITY, "key": "ca.crt"}
        stack.items["Pod", name]["spec"]["containers"] = [
            {"env": [{"name": "HERDDB_AUTHORITIES", "valueFrom": {"secretKeyRef": reference}}]}
        ]
        if waited_for:
            begun(stack)
            assert f"the pod {name} reads its trusted certificates only at its start, and must end first" in told(stack)
            stack.items["Pod", name]["status"]["phase"] = "Succeeded"
    work(stack, 1)
    assert "all Secrets have it" in told(stack)


def wait_for_the_end(stack: Stack) -> None:
    for _ in range(60):
        stack.passes(1)
        work(stack, 1)


def test_kubelets_that_are_as_late_as_they_may_be_leave_nobody_refused(stack: Stack) -> None:
    stack.ask()
    wait_for_the_end(stack)
    assert (stack.rolled(), stack.authorities()[IDENTITY]) == (None, ["zk clients 2"] * 2)


# crashes


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["look", "crash", "bookies", "kubelet", "time"]), st.integers(0, 7)), min_size=10, max_size=60))
def test_at_no_time_meets_a_process_one_that_it_does_not_trust(events: list[tuple[str, int]]) -> None:
    """The operator ends between any two actions, and comes back; kubelets bring files whenever they do, within their time."""
    stack = Stack()
    stack.ask()
    for what, number in events:
        stack.happens(what, number)
        assert stack.strangers() == []
    wait_for_the_end(stack)
    assert stack.authorities()[IDENTITY] == ["zk clients 2"] * 2
    assert stack.authorities()[NAMED.members_secret] == ["zk quorum 2"] * 2


def test_an_operator_that_ends_between_two_beginnings_begins_the_other_one_before_it_answers(stack: Stack) -> None:
    stack.ask()
    stack.look(actions=1)
    assert stack.events == ["zk clients 2 follows zk clients 1: it is created, and every server must trust both"]
    while not stack.answers:
        stack.look()  # the bookies are late
    assert stack.answers == ["done: zk clients 2 takes over and zk quorum 2 takes over"]
    assert stack.events[1:] == ["zk quorum 2 follows zk quorum 1: it is created, and every server must trust both"]


def test_an_operator_that_ends_between_two_ends_begins_no_other_roll_that_it_refuses(stack: Stack) -> None:
    begun(stack)
    for _ in range(2):
        stack.passes(MINUTES + 0.1)
        work(stack)
    stack.passes(MINUTES + 0.1)
    stack.ask()
    stack.look(actions=1)
    before = len(stack.events)
    work(stack)
    assert stack.answers[1].startswith("refused: zk quorum 2 follows zk quorum 1: step 3 of 3")
    assert stack.events[before:] == ["zk quorum 2 follows zk quorum 1: the old one is no longer trusted"]
    assert stack.rolled() is None


def test_a_step_is_written_only_onto_what_was_read(stack: Stack) -> None:
    stack.ask()
    steps = [action for action in stack.look().actions if isinstance(action, SetAuthority)]
    assert len(steps) == 2
    with pytest.raises(AssertionError):
        stack.do(steps[0])


# what is kept


def test_each_state_is_read_as_it_was_written(stack: Stack) -> None:
    now = stack.now.replace(microsecond=0)
    first = first_authority("zk", fresh_key(), Validity(now, AUTHORITY_LIFE))
    second = read_authority("zk", {**authority_data(first)})
    both = replace(second, following=successor_of(first, "zk", fresh_key(), Validity(now, AUTHORITY_LIFE)), everywhere_since=now)
    states = [first, both]
    while states[-1].is_rolling:
        states.append(next_step(states[-1]))
    assert len(states) == 5
    for state in states:
        assert read_authority("zk", authority_data(state)) == state
    with pytest.raises(ValueError, match="nothing follows zk 1"):
        next_step(first)


def test_a_successor_with_the_key_of_another_one_never_signs(stack: Stack) -> None:
    held = values_of_secret(begun(stack).items["Secret", NAMED.authority_secret])
    with pytest.raises(ValueError, match=r"following.key is not the key of following.crt"):
        read_authority("zk", {**held, "following.key": held["signing.key"]})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"following.key": "x"}, "following.crt or following.key is missing"),
        ({"following.crt": "x", "following.key": "y"}, "following.crt is no certificate in PEM"),
        ({"leaving.crt": "x"}, "leaving.crt is no certificate in PEM"),
        ({"distrusted.crt": "x"}, "distrusted.crt is no certificate in PEM"),
    ],
)
def test_a_damaged_successor_is_named_and_nothing_goes_on(stack: Stack, change: dict[str, str], said: str) -> None:
    held = values_of_secret(stack.items["Secret", NAMED.authority_secret])
    with pytest.raises(ValueError, match=said):
        read_authority("zk", {**held, **change})
    stack.hold(NAMED.authority_secret, {**held, **change})
    stack.ask()
    plan = stack.look()
    assert plan.wait is not None
    assert plan.wait.reason is Reason.INVALID_SECRET
    assert not any(isinstance(action, SetAuthority) for action in plan.actions)
