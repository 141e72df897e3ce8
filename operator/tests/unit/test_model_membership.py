"""An ensemble keeps a quorum of members that have its data, through every change of its size and of its template.

All orders in which the operator looks and acts, the StatefulSet's controller makes and removes pods, members start, and some fail, within
small bounds. A member counts only with its data: one with an empty disk has it once it has followed a quorum. `make model` goes further.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import pytest
from exploration import MORE_FAULTS, Explored, Explorer
from situations import claim, quickstart, with_spec, with_status
from situations import pods as running_pods

from herdkeeper.codecs.zookeeper.membership import Membership, Role
from herdkeeper.planning.actions import Action, Annotate, ChangeMembership, Create, Delete, deletions
from herdkeeper.planning.rolling import Gate
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json, Objects
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper import membership as changes
from herdkeeper.zookeeper import plan as plans
from herdkeeper.zookeeper.state import Ensemble, server_of
from herdkeeper.zookeeper.status import summarize_zookeeper

MOST_STATES = 60_000 if MORE_FAULTS == 0 else 600_000
LONGEST = 200
"""Steps from any state to the declared ensemble, at most."""
NEW, OLD = "zk-zookeeper-new", "zk-zookeeper-old"


@lru_cache
def declared(replicas: int):  # type: ignore[no-untyped-def]
    return with_status(with_spec(quickstart("ZooKeeperCluster"), replicas=replicas, allow_single_member=True), founded=True)


class Listed(NamedTuple):
    """The committed membership."""

    voters: frozenset[int]
    observers: frozenset[int] = frozenset()


class Member(NamedTuple):
    """`mark` is that of its claim, None without one; `pod` the revision of its pod's template, None without a pod. `data`: its disk has
    what the ensemble acknowledged."""

    mark: str | None = None
    pod: str | None = None
    runs: bool = False
    data: bool = False


ABSENT = Member()


class Restart(NamedTuple):
    """The pod is deleted by its uid: not the one that comes after it."""

    number: int


class DeleteClaim(NamedTuple):
    number: int


class Mark(NamedTuple):
    """The annotation of a claim; the first one creates it."""

    number: int
    mark: str


class Change(NamedTuple):
    """Of the membership `since`. ZooKeeper refuses it when it has another one by then."""

    since: Listed
    then: Listed
    why: str


Order = Restart | DeleteClaim | Mark | Change


class Members(NamedTuple):
    """`pods` is the StatefulSet's number of replicas. `planned` is what the operator has decided and not done yet: crashes, and changes of
    others, come between."""

    replicas: int
    members: tuple[Member, ...]
    listed: Listed
    leader: int | None = None
    pods: int = 0
    planned: tuple[Order, ...] = ()
    faults: int = 0
    mistake: str | None = None

    def having(self, number: int, member: Member) -> Members:
        return self._replace(members=(*self.members[:number], member, *self.members[number + 1 :]))

    def votes(self, voters: frozenset[int]) -> bool:
        """Whether a majority of these voters runs and has the data."""
        return 2 * sum(self.members[each].runs and self.members[each].data for each in voters) > len(voters)

    @property
    def serving(self) -> bool:
        return self.votes(self.listed.voters)

    def elected(self) -> Members:
        """A leader that runs stays."""
        able = [each for each in sorted(self.listed.voters) if self.members[each].runs and self.members[each].data]
        if self.leader in able and self.serving:
            return self
        return self._replace(leader=able[-1] if self.serving else None)


Steps = Iterator[tuple[str, Members]]


@cache
def membership_of(listed: Listed) -> Membership:
    roles = {**dict.fromkeys(listed.voters, Role.PARTICIPANT), **dict.fromkeys(listed.observers, Role.OBSERVER)}
    return Membership(0x100000007, tuple(server_of(declared(3), number, role) for number, role in sorted(roles.items())))


@cache
def pod_of(number: int, revision: str, ready: bool) -> Json:
    not_ready = {} if ready else {"conditions": [{"type": "Ready", "status": "False"}], "phase": "Running"}
    ((_, pod),) = running_pods([f"zk-zookeeper-{number}"], **not_ready).items()
    pod["metadata"]["labels"] = {names.REVISION_LABEL: revision}
    found: Json = pod
    return found


@cache
def claim_of(number: int, mark: str) -> Json:
    ((_, found),) = claim(f"data-zk-zookeeper-{number}", **{names.FOUNDED_ANNOTATION: mark}).items()
    found["metadata"]["labels"] = names.labels(names.ZOOKEEPER_COMPONENT, "ZooKeeperCluster", "zk")
    made: Json = found
    return made


def ensemble_of(world: Members) -> Ensemble:
    """As the operator observes it. What a reconcile applies is in place, but for the StatefulSet's replicas."""
    committed = membership_of(world.listed)
    spec = {"replicas": world.pods, "template": {"spec": {}}, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
    status = {"observedGeneration": 0, "updateRevision": NEW}
    metadata = {"name": "zk-zookeeper", "uid": "set", "generation": 0}
    items: dict[tuple[str, str], Json] = {
        ("StatefulSet", "zk-zookeeper"): {"kind": "StatefulSet", "metadata": metadata, "spec": spec, "status": status},
        ("ConfigMap", "zk-zookeeper"): {"data": {f"zoo.cfg.dynamic.{committed.version:x}": committed.file, names.FOUNDING_KEY: "false"}},
    }
    modes: dict[int, str | Unknown] = {}
    for number, member in enumerate(world.members):
        serves = member.runs and world.serving
        if member.mark is not None:
            items["PersistentVolumeClaim", f"data-zk-zookeeper-{number}"] = claim_of(number, member.mark)
        if member.pod is not None:
            items["Pod", f"zk-zookeeper-{number}"] = pod_of(number, member.pod, serves)
        if serves:
            modes[number] = "leader" if number == world.leader else "observer" if number in world.listed.observers else "follower"
    return Ensemble(
        declared(world.replicas),
        Objects(items),
        modes=modes,
        zxids=dict.fromkeys(modes, 0x200000010),
        membership=committed if world.serving else Unknown("no quorum"),
        password="password",
    )


@dataclass(frozen=True)
class Planned:
    """`pods` there shall be, and `listed` may run: an unlisted follower, too. `ready` is the status that is written when nothing is due.
    `data_lost`: a person has to decide, since no volume is one that has voted."""

    orders: tuple[Order, ...]
    pods: int
    listed: frozenset[int]
    ready: bool
    data_lost: bool


@cache
def planned(world: Members) -> Planned:
    ensemble = ensemble_of(world)
    unlisted = frozenset() if ensemble.unlisted_follower is None else frozenset({ensemble.unlisted_follower})
    plan = plans.plan_zookeeper(ensemble)
    orders = tuple(order_of(action, world.listed) for action in plan.actions)
    ready, data_lost = summarize_zookeeper(ensemble).health.status == "True", plan.wait is not None and plan.wait.reason is Reason.DATA_LOST
    listed = world.listed.voters | world.listed.observers | unlisted
    return Planned(orders, len(ensemble.pods), listed, ready, data_lost)


def order_of(action: Action, listed: Listed) -> Order:
    match action:
        case Delete(kind="Pod", name=name):
            return Restart(number_of(name))
        case Delete(kind="PersistentVolumeClaim", name=name):
            return DeleteClaim(number_of(name))
        case Annotate(_, name, _, annotations):
            return Mark(number_of(name), annotations[names.FOUNDED_ANNOTATION] or "")
        case Create(manifest):
            return Mark(number_of(manifest["metadata"]["name"]), names.NEW)
        case ChangeMembership():
            return Change(listed, changed(listed, action), action.why)
    raise AssertionError(f"{action} is not modelled")


def changed(listed: Listed, change: ChangeMembership) -> Listed:
    gone = {each - 1 for each in change.leaving} | ({change.server.server_id - 1} if change.server is not None else set())
    voters, observers = set(listed.voters - gone), set(listed.observers - gone)
    if change.server is not None:
        (voters if change.server.role is Role.PARTICIPANT else observers).add(change.server.server_id - 1)
    return Listed(frozenset(voters), frozenset(observers))


def seen(world: Members) -> Members:
    """What plans follow from."""
    return world._replace(planned=(), faults=0, mistake=None)


def number_of(name: str) -> int:
    return int(name.rsplit("-", 1)[1])


@dataclass(frozen=True)
class Scope:
    """`sizes` are those that a user declares. Which faults there are, by their names in FAULTS."""

    start: int
    sizes: tuple[int, ...]
    faults: frozenset[str]
    most_faults: int = 1

    def explored(self) -> Explored:
        room = max(self.start, *self.sizes)
        members = tuple(Member("true", NEW, runs=True, data=True) if each < self.start else ABSENT for each in range(room))
        start = Members(self.start, members, Listed(frozenset(range(self.start))), pods=self.start, faults=self.most_faults + MORE_FAULTS)
        return Explorer[Members](self._steps, lambda world: world.mistake or why_unsettled(seen(world))).explore(
            start.elected(), MOST_STATES
        )

    def _steps(self, world: Members) -> Steps:
        yield from _operator(world)
        yield from _controller(world)
        yield from _members(world)
        for size in self.sizes:
            if size != world.replicas:
                yield f"{size} members are declared", world._replace(replicas=size)
        if world.faults:
            for fault in sorted(self.faults):
                for told, after in FAULTS[fault](world):
                    yield told, after.elected()._replace(faults=world.faults - 1)


def _operator(world: Members) -> Steps:
    if world.planned:
        yield _done(world._replace(planned=world.planned[1:]), world.planned[0])
        return
    plan = planned(seen(world))
    if plan.pods != world.pods:
        going = sorted(plan.listed.intersection(range(plan.pods, world.pods)))
        mistake = f"the pods of {going} go, which are listed" if going else None
        yield f"the operator scales to {plan.pods} pods", world._replace(pods=plan.pods, mistake=mistake)
    elif plan.orders:
        mistake = next((why for order in plan.orders if (why := _mistake(world, order)) is not None), None)
        yield f"the operator looks, and plans {plan.orders}", world._replace(planned=plan.orders, mistake=mistake)
    elif plan.ready and not world.listed.voters.issuperset(range(world.replicas)):
        yield "the operator reports the status", world._replace(mistake="Ready, though a declared member has no vote")


def _mistake(world: Members, order: Order) -> str | None:
    """What is wrong with an order, by what was seen when it was planned."""
    voters = world.listed.voters
    match order:
        case Restart(number) if world.serving and number in voters and world.members[number].runs:
            down = sorted(each for each in voters - {number} if not world.members[each].runs)
            return f"the voter {number} is restarted while {down} are down" if down else None
        case DeleteClaim(number) if number in voters:
            return f"the claim of {number} is deleted, and its member votes"
        case Mark(number, names.FOUNDED) if not world.members[number].data:
            return f"member {number} counts as founded, and is empty"
        case Change(_, then) if not world.votes(then.voters):
            return "ZooKeeper refuses the change: no majority follows"
    return None


def _done(world: Members, order: Order) -> tuple[str, Members]:
    """ZooKeeper refuses what no majority follows."""
    match order:
        case Restart(number):
            return f"the operator deletes the pod {number}", _without_pod(world, number).elected()
        case DeleteClaim(number):
            return f"the operator deletes the claim {number}", world.having(number, ABSENT)
        case Mark(number, mark):
            return f"the claim {number} is marked {mark}", world.having(number, world.members[number]._replace(mark=mark))
        case Change(since, then, why):
            if not (world.serving and world.listed == since and world.votes(then.voters)):
                return "ZooKeeper refuses a change", world._replace(planned=())
            return f"ZooKeeper commits: {why}", world._replace(listed=then).elected()


def _without_pod(world: Members, number: int) -> Members:
    left = tuple(each for each in world.planned if each != Restart(number))
    return world.having(number, world.members[number]._replace(pod=None, runs=False))._replace(planned=left)


def _controller(world: Members) -> Steps:
    """The StatefulSet's: it makes pods from the current template, and claims if there are none."""
    for number, member in enumerate(world.members):
        if member.pod is None and number < world.pods:
            made = world.having(number, member._replace(pod=NEW, mark=member.mark or "false"))
            yield f"the pod {number} is created", made
        if member.pod is not None and number >= world.pods:
            yield f"the pod {number} is removed", _without_pod(world, number).elected()


def _members(world: Members) -> Steps:
    """A listed member starts; an empty one gets the data from a quorum of others."""
    for number, member in enumerate(world.members):
        if member.pod is not None and not member.runs and number in planned(seen(world)).listed:
            started = world.having(number, member._replace(runs=True, data=member.data or world.serving))
            if member.data or world.serving:
                yield f"member {number} starts", started.elected()


@cache
def why_unsettled(world: Members) -> str | None:
    """Why the declared members do not all vote, from the current template, once nothing fails any more. None if they do."""
    for _ in range(LONGEST):
        steps = (*_operator(world), *_controller(world), *_members(world))
        if not steps:
            as_declared = world.listed == Listed(frozenset(range(world.replicas))) and world.pods == world.replicas
            current = all(member.runs and member.pod == NEW for member in world.members[: world.replicas])
            return None if (as_declared and current) or planned(seen(world)).data_lost else f"nothing more is done: {world}"
        world = steps[0][1]
        if world.mistake is not None:
            return world.mistake
    return f"it goes on without an end: {world}"


def _crashes(world: Members) -> Steps:
    for number, member in enumerate(world.members):
        if member.runs:
            yield f"member {number} crashes", world.having(number, member._replace(runs=False))


def _disk_lost(world: Members) -> Steps:
    """With its claim, and so with its pod. That of a member that a quorum can do without."""
    for number, member in enumerate(world.members):
        after = _without_pod(world.having(number, member._replace(mark=None, data=False)), number)
        if member.mark is not None and after.serving:
            yield f"the disk of {number} is lost", after


def _template_changed(world: Members) -> Steps:
    if any(member.pod == NEW for member in world.members):
        members = tuple(member._replace(pod=OLD) if member.pod is not None else member for member in world.members)
        yield "the template changes", world._replace(members=members)


def _operator_crashes(world: Members) -> Steps:
    if world.planned:
        yield "the operator crashes", world._replace(planned=())


FAULTS = {"crash": _crashes, "disk lost": _disk_lost, "template": _template_changed, "operator crash": _operator_crashes}
SCOPES = {
    "one member becomes three, and one again": Scope(1, (1, 3), frozenset(FAULTS)),
    "three become one": Scope(3, (1, 3), frozenset(FAULTS)),
    "three are rolled": Scope(3, (3,), frozenset(FAULTS), most_faults=3),
    "three become five": Scope(3, (3, 5), frozenset({"crash"})),
}


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Objects are in place; what is modelled is the order of the steps."""
    stateful_set = {"kind": "StatefulSet", "metadata": {"name": "zk-zookeeper"}}
    stateful_set["spec"] = {"template": {"spec": {}}, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
    monkeypatch.setattr(plans, "build_zookeeper", lambda _: (stateful_set,))
    monkeypatch.setattr(plans, "build_zookeeper_secret", lambda _: None)
    monkeypatch.setattr(plans, "needed_applies", lambda *_: ())
    monkeypatch.setattr(plans, "needed_apply", lambda *_: None)
    planned.cache_clear()
    why_unsettled.cache_clear()
    yield
    planned.cache_clear()
    why_unsettled.cache_clear()


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
def test_in_whichever_order_it_happens_a_quorum_with_the_data_stays(scope: Scope) -> None:
    scope.explored().require_right()


def all_outdated(_: Json, objects: Objects, pods: Sequence[str], __: Gate) -> tuple[Delete, ...]:
    outdated = (pod for pod in pods if objects.outdated(pod, NEW))
    return deletions((objects.get("Pod", pod) for pod in outdated), Reason.ROLLING)


WITHOUT = {
    "a gate of the roll": (plans, "restart", all_outdated, "is restarted while"),
    "the others being in step at a change": (changes, "why_not_in_step", lambda *_: None, "ZooKeeper refuses the change"),
    "pods that follow the membership": (Ensemble, "pods", property(lambda ensemble: ensemble.declared), "go, which are listed"),
    "a mark that waits for the data": (Ensemble, "is_ready", lambda *_: True, "counts as founded, and is empty"),
}


@pytest.mark.parametrize(("owner", "name", "instead", "wrong"), WITHOUT.values(), ids=WITHOUT)
def test_without_one_of_the_rules_a_story_is_found_that_breaks_it(
    owner: object, name: str, instead: object, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, instead)
    told = [str(scope.explored().wrong) for scope in SCOPES.values()]
    print(told)
    assert any(wrong in each for each in told)
