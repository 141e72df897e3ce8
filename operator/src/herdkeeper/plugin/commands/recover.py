"""`kubectl herdkeeper recover`: what a stack's ZooKeeper ensemble has lost for good, and a way back that a person chooses."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from herdkeeper.plugin.cluster import Cluster, ClusterError, ForbiddenError
from herdkeeper.plugin.command import FINE, WRONG, Answer, Argument, BadInputError, Call, Command, Takes, find, find_any
from herdkeeper.plugin.kinds import CLAIM, POD, RESOURCES, ZOOKEEPER
from herdkeeper.plugin.lost_quorum import LOOK, Diagnosis, Held, Lost, Member, State, alone, diagnose, loses, volume_of
from herdkeeper.plugin.request import Awaited, Outcome, awaited, timeout_seconds, waiting
from herdkeeper.plugin.stack_tree import condition, parent_of
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey, ZooKeeperNames
from herdkeeper.shared.objects import Json, is_ready, pod_trouble
from herdkeeper.shared.paused import paused_by
from herdkeeper.shared.unknown import Unknown

CONTAINER = "zookeeper"
PAGE = "docs/how-to/lost-quorum.md"


def run(call: Call) -> Answer:
    """Tell what is lost and what a way back loses; with `--accept`, go it."""
    timeout_seconds(call)
    item = _ensemble(call)
    name, accepted = str(item["metadata"]["name"]), call.given.accept
    found = diagnose(examined(call.cluster, item))
    if accepted is None:
        return told(call.cluster.namespace, name, found)
    member = _accepted(item, found, accepted)
    if not call.given.dry_run:
        call.tell(told(call.cluster.namespace, name, found).text)
        _confirm(call, name)
        # reading what a person types takes time: all is read again
        if diagnose(examined(call.cluster, find(call.cluster, ZOOKEEPER, name, f"RESOURCE {name}:"))) != found:
            raise ClusterError("the members are no longer as they were shown; nothing was changed. Look again")
    answer = _go_back(call, name, found, member)
    return awaited(call, answer, Awaited(ZOOKEEPER, name, serving))


def examined(cluster: Cluster, item: Json) -> dict[int, Member]:
    """Returns what each member of a ZooKeeperCluster holds that has a pod or a claim, by number. Reads live."""
    named = ZooKeeperNames(ObjectKey(cluster.namespace, item["metadata"]["name"]))
    pods, claims = ({each["metadata"]["name"]: each for each in cluster.list(kind)} for kind in (POD, CLAIM))
    members = {number: (named.pod(number), named.claim(number)) for number in range(names.ZOOKEEPER_MOST_MEMBERS)}
    wanted = item["spec"].get("replicas", names.ZOOKEEPER_MOST_MEMBERS)
    left = {claim for number, (_, claim) in members.items() if number >= wanted and claim in claims and _has_left(claims[claim])}
    return {
        number: _member(cluster, pod, pods.get(pod), claims.get(claim))
        for number, (pod, claim) in members.items()
        if pod in pods or claim in claims.keys() - left
    }


def _has_left(claim: Json) -> bool:
    """Whether the claim was kept when its member left: the others have a newer membership."""
    return (claim["metadata"].get("annotations") or {}).get(names.FOUNDED_ANNOTATION) == names.LEFT


def _member(cluster: Cluster, name: str, pod: Json | None, claim: Json | None) -> Member:
    if pod is not None and (pod.get("status") or {}).get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp"):
        return Member(name, _volume(cluster, name), str(pod["metadata"]["uid"]), is_ready(pod))
    if claim is not None and (claim.get("status") or {}).get("phase") == "Pending":
        return Member(name, _pending(claim["spec"]))
    return Member(name, Unknown(f"its volume can't be read: {pod_trouble(pod)}"))


def _pending(claim: Json) -> Lost | Unknown:
    """Returns what a claim without a volume will have: a person may bring one back, from a snapshot or by its name."""
    if (source := claim.get("dataSourceRef") or claim.get("dataSource")) is not None:
        return Unknown(f"its volume claim waits for a volume made from {source['kind']} {source['name']}")
    if named := claim.get("volumeName"):
        return Unknown(f"its volume claim waits for the volume {named}")
    return Lost("its volume claim never had a volume")


def _volume(cluster: Cluster, pod: str) -> Held | Lost | Unknown:
    try:
        shown = cluster.execute(pod, CONTAINER, LOOK)
        return volume_of(shown, cluster.lines(POD, pod, "log", [("container", CONTAINER)]))
    except ForbiddenError:
        raise
    except ClusterError as error:
        return Unknown(str(error))


def told(namespace: str, name: str, found: Diagnosis) -> Answer:
    """Returns what was found, and the ways back."""
    ways = [{"way": way, "loses": lost} for way, lost in ways_back(namespace, name, found)]
    lines = [f"ZooKeeperCluster/{name}: {found.sentence}", *(f"  {member.pod}: {member.said}" for member in found.voters)]
    lines += [f"{number}. {each['way']}\n   {each['loses']}" for number, each in enumerate(ways, 1)]
    members = [{"pod": member.pod, "lost": isinstance(member.volume, Lost), "holds": member.said} for member in found.voters]
    document = {"resource": f"ZooKeeperCluster/{name}", "state": found.state.value, "message": found.sentence}
    exit_code = FINE if found.state is State.SERVES else WRONG
    return Answer("\n".join(lines), {**document, "members": members, "ways": ways}, exit_code)


def ways_back(namespace: str, name: str, found: Diagnosis) -> Iterator[tuple[str, str]]:
    """Yields what a person can do, and what that loses."""
    match found.state:
        case State.STARTS_AGAIN:
            yield f"Find out why their pods don't serve: kubectl herdkeeper doctor --namespace {namespace}", "Nothing is lost."
        case State.UNKNOWN:
            lost = f"Whose disk is gone for good has its volume claim deleted, and counts as lost ({PAGE})."
            yield "Bring the pods of these members back, and look again", lost
        case State.LOST | State.NOTHING_LEFT:
            lost = "What changed after the snapshots, and is on no other volume, is lost."
            yield f"Bring lost volumes back from snapshots: {PAGE}, 'Volumes from snapshots'", lost
    if found.best is not None:
        command = f"kubectl herdkeeper recover zkc/{name} --accept {found.best.pod} --namespace {namespace}"
        yield f"Accept what {found.best.pod} holds: {command}", loses(found.best)


def serving(item: Json) -> Outcome | None:
    """Returns the outcome once the ensemble is Ready, or None."""
    ready = condition(item, "Ready")
    return Outcome("a quorum serves", good=True) if ready is not None and ready["status"] == "True" else None


def _ensemble(call: Call) -> Json:
    """Returns the ZooKeeperCluster on which the named resource depends."""
    kind, item = find_any(call.cluster, call.given.resource, "RESOURCE")
    while kind is not ZOOKEEPER:
        below = parent_of(item)
        if below is None:
            raise BadInputError(
                f"RESOURCE {call.given.resource}: the ZooKeeper of its {kind.name} is no ZooKeeperCluster; recover it by its own tools"
            )
        kind = next(each for each in RESOURCES if each.name == below[0])
        item = find(call.cluster, kind, below[1], f"RESOURCE {call.given.resource}:")
    return item


def _accepted(item: Json, found: Diagnosis, pod: str) -> Member:
    """Returns the member whose data is accepted. Raises ClusterError while nothing may be accepted, and BadInputError for another one."""
    name = item["metadata"]["name"]
    if (mark := paused_by(item["metadata"].get("annotations") or {})) is not None:
        raise ClusterError(f"ZooKeeperCluster/{name} has {mark}, and the operator has to bring the others back: resume it first")
    if found.best is None:
        raise ClusterError(f"ZooKeeperCluster/{name}: nothing can be accepted: {found.sentence}")
    if found.best.pod != pod:
        held = "; ".join(f"{member.pod}: {member.said}" for member in found.voters)
        raise BadInputError(f"--accept {pod}: {found.best.pod} has the newest data that is left ({held}); name that one")
    return found.best


def _confirm(call: Call, name: str) -> None:
    if call.given.yes:
        return
    if not sys.stdin.isatty() or call.given.output != "text":
        raise BadInputError(f"--accept {call.given.accept}: data is lost; give --yes, or type the name {name} on a terminal")
    if input(f"Type the name of the ZooKeeperCluster to go on ({name}): ") != name:
        raise BadInputError("another name was typed; nothing was changed")


def _go_back(call: Call, name: str, found: Diagnosis, member: Member) -> Answer:
    """Gives the member a membership of itself alone, and restarts it with that."""
    assert found.newest is not None
    script, dry_run = alone(member, found.newest), bool(call.given.dry_run)
    # before the rest: a membership that waits on a volume would make a second quorum at some later start
    call.cluster.delete(POD, member.pod, member.uid, dry_run=True)
    if not dry_run:
        call.cluster.execute(member.pod, CONTAINER, script)
        _restart(call.cluster, member)
    sentence = f"{member.pod} starts again as the only voter; the others join with empty volumes"
    note = " (dry run, nothing changed)" if dry_run else ""
    changes = [
        {"resource": f"Pod/{member.pod}", "change": {"execute": script}, "what": "a newer membership of itself alone"},
        {"resource": f"Pod/{member.pod}", "change": {"delete": {"uid": member.uid}}, "what": "it starts again with that"},
    ]
    document = {**told(call.cluster.namespace, name, found).document, "dryRun": dry_run, "changes": changes}
    return Answer(f"ZooKeeperCluster/{name}: {sentence}{note}. {loses(member)}", document)


def _restart(cluster: Cluster, member: Member) -> None:
    try:
        cluster.delete(POD, member.pod, member.uid)
    except ClusterError as error:
        raise ClusterError(
            f"{member.pod} has the membership of itself alone, and is not known to be restarted: delete this pod, or its next start "
            f"will make a second quorum of it ({error})"
        ) from error


COMMAND = Command(
    "recover",
    "tells what a ZooKeeper ensemble has lost for good, and the ways back with what each loses; with `--accept` it takes one",
    run,
    (
        Argument("resource", "a ZooKeeperCluster as KIND/NAME, or what depends on one, e.g. zkc/zk or ts/flights", kinds=RESOURCES),
        Argument("--accept", "the pod whose data is accepted: it starts again as the only voter; others join it empty", kind=POD),
        Argument("--yes", "accept without typing the ZooKeeperCluster's name", Takes.NOTHING),
        *waiting("900"),
    ),
    description="It reads each member's volume by a command in its pod (the right pods/exec). While anything of a member is unknown, "
    "nothing can be accepted. Lost disks of bookies and SQL nodes need no such choice: the operator replaces them.",
    writes=True,
)
