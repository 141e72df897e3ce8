"""Bookies of a cluster as a model: their volumes, pods, sessions and cookies, the ledgers on them, and the operator's own plan for them.

What the model takes from BookKeeper 4.18 and from images/bookkeeper/entrypoint.sh:
- a bookie without a cookie in ZooKeeper, or on volumes that lost what they had, does not start (LegacyCookieValidation, `emptied`);
- autorecovery copies the segments of a bookie that is not registered, and closes a ledger whose last segment names one (ReplicationWorker);
- BookKeeper's decommissioning waits until the bookie is not registered and no ledger names it, then deletes the cookie.

Each ledger has two copies of each entry, and both acknowledge it: the volumes of one bookie may be lost at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from modelled_ledgers import Ledger, Segment, elsewhere
from situations import claim, live, objects, pods, quickstart, with_spec, with_status

from herdkeeper.api import BookKeeperCluster
from herdkeeper.bookkeeper.build.bookies import BookieIdentity, build_bookie_claims, directories_of
from herdkeeper.bookkeeper.drain.build import KEPT_KEY, OPEN_KEY, RECORD_KEY, WRITTEN_KEY
from herdkeeper.bookkeeper.drain.procedure import JobState
from herdkeeper.bookkeeper.plan.bookies import plan_bookkeeper
from herdkeeper.bookkeeper.state.bookies import LedgerScan, LedgersMetadata, MetadataStore, Naming
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.state.refusal import COOKIE, EMPTIED
from herdkeeper.codecs.bookkeeper.cookie import Cookie, encode_cookie
from herdkeeper.codecs.bookkeeper.share import Place, Share
from herdkeeper.planning.actions import Action, Annotate, Apply, Create, Delete, RemoveCookie, RestoreCookie, SetBookieMode
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

COPIES = 2
NEW, OLD = "new", "old"
"""Revisions of a pod's template."""
FRESH, OWN, EMPTY = "fresh", "own", "empty"
"""What is on a bookie's volumes: nothing yet, all that it acknowledged, or no longer that."""
THERE, GOING, GONE = "there", "going", ""
"""A claim; one that is deleted and kept by its pod; none."""
WRITABLE, READ_ONLY = "writable", "read-only"
RUNS, STOPPED = "runs", "stopped"
CLUSTER = quickstart("BookKeeperCluster")
NAMED = CLUSTER.names
STORE = MetadataStore("zk-0:2181", serving=True)
INSTANCE = "an-instance"
CLAIM_NAMES = ("journal", "ledgers")
LONGEST = 400
"""Steps from any state to the declared bookies, at most."""


class Round(NamedTuple):
    """Of a drain: the ledgers of its `record`, None without one, and which of them were written; its Job; whether it is kept."""

    number: int
    record: tuple[int, ...] | None
    job: JobState = JobState.ABSENT
    written: frozenset[int] = frozenset()
    kept: bool = False


class Bookie(NamedTuple):
    """`claims`: of the journal and of the ledgers. `pod` is the revision of its template, `refused` why its process ended at once.
    `session`: how ZooKeeper has it registered, which outlives the process. `read_only` is kept on disk. `rolled`: the operator restarts
    it."""

    claims: tuple[str, str] = (GONE, GONE)
    disk: str = FRESH
    stateful_set: str = ""
    pod: str = ""
    runs: bool = False
    refused: str = ""
    session: str = ""
    read_only: bool = False
    cookie: bool = False
    marked: bool = False
    rounds: tuple[Round, ...] = ()
    retirement: JobState = JobState.ABSENT
    rolled: bool = False

    @property
    def exists(self) -> bool:
        return any(self.claims) or bool(self.stateful_set) or self.cookie

    @property
    def has_data(self) -> bool:
        return self.disk == OWN and all(self.claims)

    @property
    def takes_entries(self) -> bool:
        return self.runs and self.session == WRITABLE


SERVES = Bookie((THERE, THERE), OWN, RUNS, NEW, runs=True, session=WRITABLE, cookie=True)


class Order(NamedTuple):
    """What the operator decided to do to a bookie. `detail` depends on it: of a pod, whether it served."""

    what: str
    number: int
    detail: tuple[object, ...] = ()


class Seen(NamedTuple):
    """What is read first. `drain` is the spec's list."""

    bookies: tuple[Bookie, ...]
    declared: int
    drain: frozenset[int] = frozenset()


class World(NamedTuple):
    """`planned` is what the operator decided and has not done yet; `begun` what it read before it reads the ledgers. `lost`: some volumes
    were lost, and not all their copies are replaced. `opens`: so many ledgers may still be opened; `wishes`: so often may the user change
    the spec."""

    bookies: tuple[Bookie, ...]
    ledgers: tuple[Ledger, ...]
    declared: int
    drain: frozenset[int] = frozenset()
    planned: tuple[Order, ...] = ()
    begun: Seen | None = None
    lost: bool = False
    opens: int = 0
    wishes: int = 0
    faults: int = 0
    mistake: str | None = None

    def having(self, number: int, bookie: Bookie) -> World:
        return self._replace(bookies=(*self.bookies[:number], bookie, *self.bookies[number + 1 :]))

    def changed(self, number: int, **fields: object) -> World:
        return self.having(number, self.bookies[number]._replace(**fields))  # type: ignore[arg-type]

    def with_ledger(self, number: int, ledger: Ledger) -> World:
        """Copies that the metadata no longer names don't count."""
        segments = tuple(Segment(segment.bookies, segment.copies & segment.bookies) for segment in ledger.segments)
        return self._replace(ledgers=(*self.ledgers[:number], ledger._replace(segments=segments), *self.ledgers[number + 1 :]))

    def names(self, number: int) -> bool:
        return any(ledger.names(number) for ledger in self.ledgers)

    def those(self, which: Callable[[Bookie], bool]) -> frozenset[int]:
        return frozenset(number for number, bookie in enumerate(self.bookies) if which(bookie))

    def without_data_of(self, number: int) -> World:
        """What it had on its volumes is gone."""
        after = self.changed(number, disk=EMPTY) if self.bookies[number].disk == OWN else self
        for each, ledger in enumerate(after.ledgers):
            segments = tuple(segment._replace(copies=segment.copies - {number}) for segment in ledger.segments)
            after = after.with_ledger(each, ledger._replace(segments=segments))
        return after

    @property
    def whole(self) -> bool:
        """Whether each entry has all of its copies on volumes that nobody deletes, and none that serve are being deleted."""
        if any(bookie.has_data and GOING in bookie.claims for bookie in self.bookies):
            return False
        safe = self.those(lambda bookie: bookie.has_data)
        return all(len(segment.copies & safe) >= COPIES for ledger in self.ledgers for segment in ledger.segments)


Steps = Iterator[tuple[str, World]]


def bookie_id(number: int) -> str:
    return f"bk-bookie-{number}-aaaaaa"


@cache
def declared(bookies: int, drain: frozenset[int], ever: int) -> BookKeeperCluster:
    found: BookKeeperCluster = with_status(with_spec(CLUSTER, bookies=bookies, drain=tuple(sorted(drain))), next_bookie=ever)
    return found


@cache
def stateful_set(number: int, *, stopped: bool) -> Json:
    """What is built of it, as far as a plan looks at it."""
    env = [{"name": "BOOKIE_ID", "value": bookie_id(number)}]
    claimed = (f"{NAMED.stateful_set(number)}-{kind}" for kind in CLAIM_NAMES)
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claimed]
    metadata: Json = {"name": NAMED.stateful_set(number), "labels": {names.BOOKIE_LABEL: str(number)}}
    if stopped:
        metadata["annotations"] = {names.RETIRING_ANNOTATION: bookie_id(number)}
    template = {"spec": {"containers": [{"name": "bookie", "env": env}], "volumes": volumes}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata,
        "spec": {"replicas": 0 if stopped else 1, "template": template},
    }


@cache
def built_claims(number: int) -> tuple[Json, ...]:
    return build_bookie_claims(CLUSTER, BookieIdentity(number, bookie_id(number)))


@cache
def items_of(number: int, bookie: Bookie) -> Mapping[tuple[str, str], Json]:
    """A bookie's objects, as the API server returns them."""
    found: dict[tuple[str, str], Json] = {}
    for kind, state in zip(CLAIM_NAMES, bookie.claims, strict=True):
        if state:
            marks = {names.BOOKIE_ID_ANNOTATION: bookie_id(number)}
            if kind == "journal" and bookie.marked:
                marks[names.DRAINING_ANNOTATION] = "since"
            ((key, item),) = claim(f"{NAMED.stateful_set(number)}-{kind}", **marks).items()
            item["metadata"]["labels"] = names.labels(names.BOOKIE_COMPONENT, "BookKeeperCluster", "bk")
            if state == GOING:
                item["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            found[key] = item
    if bookie.stateful_set:
        for key, item in live([stateful_set(number, stopped=bookie.stateful_set == STOPPED)]).items():
            found[key] = {**item, "status": {"updateRevision": NEW}}
    if bookie.pod:
        found |= _pod(number, bookie)
    for begun in bookie.rounds:
        found |= _round(number, begun)
    if bookie.retirement is not JobState.ABSENT:
        found |= _job(number, NAMED.retire_job(number), bookie.retirement)
    return found


def _pod(number: int, bookie: Bookie) -> dict[tuple[str, str], Json]:
    status: Json = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if bookie.runs else "False"}]}
    if bookie.refused:
        on_volumes = encode_cookie(Cookie(bookie_id(number), *directories_of(CLUSTER), INSTANCE)).decode()
        ended = {EMPTY: {"exitCode": EMPTIED, "message": "refused: emptied"}, GONE: {"exitCode": 1, "message": COOKIE + on_volumes}}
        status["containerStatuses"] = [{"ready": False, "lastState": {"terminated": ended[EMPTY if bookie.refused == EMPTY else GONE]}}]
    ((key, pod),) = pods([NAMED.pod(number)], **status).items()
    pod["metadata"]["labels"] = {names.REVISION_LABEL: bookie.pod, names.BOOKIE_LABEL: str(number)}
    return {key: pod}


def _round(number: int, begun: Round) -> dict[tuple[str, str], Json]:
    name, found = NAMED.drain_round(number, begun.number), {}
    if begun.record is not None:
        data = {
            RECORD_KEY: "".join(f"{ledger} 0:0\n" for ledger in begun.record),
            WRITTEN_KEY: "".join(f"{ledger}\n" for ledger in sorted(begun.written)),
            OPEN_KEY: "",
            **({KEPT_KEY: "true"} if begun.kept else {}),
        }
        found["ConfigMap", name] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _of_a_drain(number, name), "data": data}
    return found if begun.job is JobState.ABSENT else found | _job(number, name, begun.job)


def _job(number: int, name: str, job: JobState) -> dict[tuple[str, str], Json]:
    status = {"conditions": [{"type": "Complete", "status": "True"}]} if job is JobState.DONE else {}
    return {("Job", name): {"apiVersion": "batch/v1", "kind": "Job", "metadata": _of_a_drain(number, name), "status": status}}


def _of_a_drain(number: int, name: str) -> Json:
    labels = {**names.labels(names.DRAIN_COMPONENT, "BookKeeperCluster", "bk"), names.BOOKIE_LABEL: str(number)}
    return {"name": name, "namespace": "demo", "uid": f"uid-{name}", "labels": labels, "ownerReferences": []}


def scan_of(ledgers: tuple[Ledger, ...], bookies: int) -> LedgerScan:
    """The ledgers' metadata, which tells nothing of what is on disks."""
    naming, shares = {}, {}
    for number in range(bookies):
        named = [each for each, ledger in enumerate(ledgers) if ledger.names(number)]
        shares[bookie_id(number)] = tuple(
            Share(each, (Place(0, 0),), not ledgers[each].open, ledgers[each].is_written_on(number)) for each in named
        )
        if named:
            still_open = sum(ledgers[each].open for each in named)
            naming[bookie_id(number)] = Naming(len(named) - still_open, still_open, COPIES)
    return LedgerScan(len(ledgers), COPIES, COPIES, shares, naming)


@dataclass(frozen=True)
class Planned:
    """`waits`: why the plan waits."""

    orders: tuple[Order, ...]
    waits: Reason | None = None


def seen(world: World) -> Seen:
    """What the operator reads of the bookies: not what is on their disks."""
    bookies = tuple(bookie._replace(disk=FRESH, read_only=False, rolled=False) for bookie in world.bookies)
    return Seen(bookies, world.declared, world.drain)


def named_by(world: World) -> tuple[Ledger, ...]:
    """What the operator reads of the ledgers."""
    return tuple(
        ledger._replace(segments=tuple(segment._replace(copies=frozenset()) for segment in ledger.segments)) for ledger in world.ledgers
    )


@cache
def planned(of: Seen, ledgers: tuple[Ledger, ...] | None) -> Planned:
    """By the operator's own plan. `ledgers` is None where they could not be read."""
    numbers = range(len(of.bookies))
    sessions = {mode: frozenset(bookie_id(each) for each in numbers if of.bookies[each].session == mode) for mode in (WRITABLE, READ_ONLY)}
    cookies = frozenset(bookie_id(each) for each in numbers if of.bookies[each].cookie)
    fleet = BookieFleet(
        declared(of.declared, of.drain, len(of.bookies)),
        objects(*(items_of(each, of.bookies[each]) for each in numbers)),
        STORE,
        # the auditor marks what lacks copies late, or never
        LedgersMetadata(INSTANCE, sessions[WRITABLE], sessions[READ_ONLY], cookies, "an-auditor", under_replicated=False),
        ("aaaaaa",) * 9,
        scan=Unknown("silent") if ledgers is None else scan_of(ledgers, len(of.bookies)),
    )
    plan = plan_bookkeeper(fleet, "herdkeeper/spark:0.2.0")
    orders = (_order(action) for action in plan.actions)
    told = (each._replace(detail=(of.bookies[each.number].runs,)) if each.what == "delete the Pod" else each for each in orders)
    return Planned(tuple(told), None if plan.wait is None else plan.wait.reason)


def _order(action: Action) -> Order:
    match action:
        case Create(manifest) | Apply(manifest):
            return _write(manifest, type(action).__name__)
        case Delete(kind=kind, name=name):
            return Order(f"delete the {kind}", _number(name), (name,))
        case Annotate(name=name, annotations=annotations):
            return Order("mark", _number(name), (annotations[names.DRAINING_ANNOTATION] is not None,))
        case SetBookieMode(bookie, _, read_only):
            return Order("set the mode", _number(bookie), (read_only,))
        case RemoveCookie(bookie_id=bookie):
            return Order("remove the cookie", _number(bookie))
        case RestoreCookie(cookie=cookie):
            return Order("restore the cookie", _number(cookie.bookie_id))
    raise AssertionError(f"{action} is not modelled")


def _write(manifest: Json, how: str) -> Order:
    name, kind = manifest["metadata"]["name"], manifest["kind"]
    number = _number(name)
    match kind:
        case "StatefulSet":
            return Order("apply the StatefulSet", number, (STOPPED if manifest["spec"]["replicas"] == 0 else RUNS,))
        case "ConfigMap":
            data = manifest["data"]
            record = tuple(int(line.split()[0]) for line in data[RECORD_KEY].splitlines())
            kept = KEPT_KEY in data
            return Order(
                "record", number, (Round(_round_of(name), record, written=frozenset(map(int, data[WRITTEN_KEY].split())), kept=kept),)
            )
        case "PersistentVolumeClaim" | "Job" if how == "Create":
            return Order(f"create the {kind}", number, (name,))
    raise AssertionError(f"{how} of {kind} {name} is not modelled")


def _number(name: str) -> int:
    return int(name.removeprefix("bk-bookie-").split("-")[0])


def _round_of(name: str) -> int:
    return int(name.rsplit("-", 1)[1])


def done(world: World, order: Order) -> World | None:  # noqa: PLR0911 - one line an order
    """The world after an order; None where it is refused."""
    number, bookie = order.number, world.bookies[order.number] if order.number < len(world.bookies) else Bookie()
    match order.what, order.detail:
        case "create the PersistentVolumeClaim", (str(name),):
            return _with_claim(world, number, name)
        case "apply the StatefulSet", (str(how),):
            return world.changed(number, stateful_set=how)
        case "delete the Pod", (bool(served),):
            return without_pod(world, number).changed(number, rolled=served)
        case "delete the PersistentVolumeClaim", (str(name),):
            state = GOING if bookie.pod else GONE
            claims = tuple(state if name.endswith(kind) else had for kind, had in zip(CLAIM_NAMES, bookie.claims, strict=True))
            left = world.changed(number, claims=claims)
            return left if state else left.without_data_of(number)
        case "delete the StatefulSet", _:
            return world.changed(number, stateful_set="")
        case "mark", (bool(marked),):
            return world.changed(number, marked=marked) if bookie.claims[0] else None
        case "set the mode", (bool(read_only),):
            mode = READ_ONLY if read_only else WRITABLE
            return world.changed(number, read_only=read_only, session=mode) if bookie.runs else None
        case "remove the cookie", _:
            return world.changed(number, cookie=False) if not bookie.session else None
        case "restore the cookie", _:
            return world.changed(number, cookie=True) if not bookie.session and not bookie.cookie else None
        case _:
            return _with_job(world, order)


def _with_job(world: World, order: Order) -> World | None:
    number, bookie = order.number, world.bookies[order.number]
    rounds = {begun.number: begun for begun in bookie.rounds}
    match order.what, order.detail:
        case "record", (Round() as begun,):
            rounds[begun.number] = begun._replace(job=rounds[begun.number].job if begun.number in rounds else JobState.ABSENT)
        case "create the Job" | "delete the Job", (str(name),) if name == NAMED.retire_job(number):
            begins = order.what == "create the Job"
            if begins and bookie.retirement is not JobState.ABSENT:
                return None
            return world.changed(number, retirement=JobState.RUNNING if begins else JobState.ABSENT)
        case "create the Job", (str(name),):
            begun = rounds[_round_of(name)]
            if begun.job is not JobState.ABSENT:
                return None
            rounds[begun.number] = begun._replace(job=JobState.RUNNING)
        case "delete the Job", (str(name),) if _round_of(name) in rounds:
            rounds[_round_of(name)] = rounds[_round_of(name)]._replace(job=JobState.ABSENT)
        case "delete the ConfigMap", (str(name),) if _round_of(name) in rounds:
            rounds[_round_of(name)] = rounds[_round_of(name)]._replace(record=None, written=frozenset(), kept=False)
    left = (rounds[each] for each in sorted(rounds) if rounds[each].record is not None or rounds[each].job is not JobState.ABSENT)
    return world.changed(number, rounds=tuple(left))


def _with_claim(world: World, number: int, name: str) -> World | None:
    if number == len(world.bookies):
        world = world._replace(bookies=(*world.bookies, Bookie()))
    bookie = world.bookies[number]
    which = CLAIM_NAMES.index(name.rsplit("-", 1)[1])
    if bookie.claims[which]:
        return None
    mistake = None if bookie.disk == FRESH else f"a claim of bookie {number} is made anew, which has had data"
    claims = (THERE, bookie.claims[1]) if which == 0 else (bookie.claims[0], THERE)
    return world.changed(number, claims=claims)._replace(mistake=mistake)


def without_pod(world: World, number: int) -> World:
    """An order to delete this pod is for no other one."""
    left = tuple(order for order in world.planned if (order.what, order.number) != ("delete the Pod", number))
    return world.changed(number, pod="", runs=False, refused="")._replace(planned=left)


def controllers(world: World) -> Steps:
    """Kubernetes makes and removes pods as they are declared, and volumes that are let go. No new pod gets a claim that is deleted."""
    for number, bookie in enumerate(world.bookies):
        if bookie.stateful_set == RUNS and not bookie.pod and GOING not in bookie.claims:
            yield f"the pod of bookie {number} is created", world.changed(number, pod=NEW)
        if bookie.stateful_set != RUNS and bookie.pod:
            yield f"the pod of bookie {number} ends", without_pod(world, number)
        if GOING in bookie.claims and not bookie.pod:
            claims = tuple(GONE if state == GOING else state for state in bookie.claims)
            yield f"the volumes of bookie {number} go", world.changed(number, claims=claims).without_data_of(number)


def processes(world: World) -> Steps:
    """Sessions end after their processes; bookies start, or refuse to."""
    for number, bookie in enumerate(world.bookies):
        if bookie.session and not bookie.runs:
            yield f"the session of bookie {number} ends", world.changed(number, session="")
        if bookie.runs or bookie.session or not bookie.pod or not all(bookie.claims):
            continue
        if bookie.disk == EMPTY:
            if not bookie.refused:
                yield f"bookie {number} finds its volumes empty", world.changed(number, refused=EMPTY)
        elif bookie.disk == OWN and not bookie.cookie:
            if not bookie.refused:
                yield f"bookie {number} finds no cookie", world.changed(number, refused="no cookie")
        else:
            mode = READ_ONLY if bookie.read_only else WRITABLE
            started = bookie._replace(disk=OWN, cookie=True, runs=True, session=mode, refused="", rolled=False)
            yield f"bookie {number} starts, {mode}", world.having(number, started)


def jobs(world: World) -> Steps:
    serving = world.those(lambda bookie: bookie.runs and bookie.disk == OWN)
    free = world.those(lambda bookie: bookie.takes_entries)
    for number, bookie in enumerate(world.bookies):
        if bookie.retirement is JobState.RUNNING and not bookie.session and not world.names(number):
            yield f"the Job removes the identity of bookie {number}", world.changed(number, retirement=JobState.DONE, cookie=False)
        for place, begun in enumerate(bookie.rounds):
            if begun.job is not JobState.RUNNING or begun.record is None:
                continue
            movable = [each for each in begun.record if world.ledgers[each].can_leave(number)]
            for each in movable:
                yield from _moved(world, each, number, (free, serving))
            read = (segment for each in begun.record for segment in world.ledgers[each].read_back(number))
            if not movable and all(segment.bookies <= segment.copies & serving for segment in read):
                rounds = (*bookie.rounds[:place], begun._replace(job=JobState.DONE), *bookie.rounds[place + 1 :])
                yield f"the Job of round {begun.number} of bookie {number} has read all back", world.changed(number, rounds=rounds)


def _moved(world: World, each: int, number: int, where: tuple[frozenset[int], frozenset[int]]) -> Steps:
    """The ledger's segments on the bookie that can be copied, at once."""
    ledger = world.ledgers[each]
    for place, segment in enumerate(ledger.segments):
        written = ledger.open and place == len(ledger.segments) - 1
        copied = elsewhere(segment, number, *where) if number in segment.bookies and not written else None
        if copied is not None:
            ledger = ledger.having(place, copied)
    if ledger != world.ledgers[each]:
        yield f"ledger {each} is copied away from bookie {number}", world.with_ledger(each, ledger)


def autorecovery(world: World) -> Steps:
    """At any time after a session has ended."""
    serving = world.those(lambda bookie: bookie.runs and bookie.disk == OWN)
    free = world.those(lambda bookie: bookie.takes_entries)
    for number in sorted(world.those(lambda bookie: not bookie.session)):
        for each, ledger in enumerate(world.ledgers):
            yield from _moved(world, each, number, (free, serving))
            if ledger.is_written_on(number) and ledger.segments[-1].copies & serving:
                yield f"autorecovery closes ledger {each}", world.with_ledger(each, ledger._replace(open=False))


def writers(world: World) -> Steps:
    takes = world.those(lambda bookie: bookie.takes_entries)
    for each, ledger in enumerate(world.ledgers):
        last = ledger.segments[-1]
        free = sorted(takes - last.bookies)
        gone = sorted(last.bookies - takes)
        if ledger.open and gone and len(free) >= len(gone):
            bookies = (last.bookies & takes) | set(free[: len(gone)])
            turned = Segment(bookies, bookies)
            before = tuple(segment for segment in ledger.segments if segment != turned)
            yield f"the writer of ledger {each} turns to {sorted(bookies)}", world.with_ledger(each, Ledger((*before, turned), open=True))
        if ledger.open:
            yield f"ledger {each} is closed", world.with_ledger(each, ledger._replace(open=False))


def opened(world: World) -> Steps:
    """A new ledger, on the first bookies or on the last ones."""
    takes = sorted(world.those(lambda bookie: bookie.takes_entries))
    if world.opens and len(takes) >= COPIES:
        for bookies in sorted({frozenset(takes[:COPIES]), frozenset(takes[-COPIES:])}, key=sorted):
            ledgers = (*world.ledgers, Ledger((Segment(bookies, bookies),), open=True))
            yield f"a ledger is opened on {sorted(bookies)}", world._replace(ledgers=ledgers, opens=world.opens - 1)


def _crash(world: World) -> Steps:
    for number, bookie in enumerate(world.bookies):
        if bookie.runs:
            yield f"bookie {number} crashes", world.changed(number, runs=False)


def _evicted(world: World) -> Steps:
    for number, bookie in enumerate(world.bookies):
        if bookie.pod and GOING not in bookie.claims:
            yield f"somebody deletes the pod of bookie {number}", without_pod(world, number)


def _disk_lost(world: World) -> Steps:
    """With its claims, and so with its pod."""
    for number, bookie in enumerate(world.bookies):
        if bookie.has_data and not world.lost:
            after = without_pod(world, number).changed(number, claims=(GONE, GONE)).without_data_of(number)
            yield f"the volumes of bookie {number} are lost", after._replace(lost=True)


def _one_volume_lost(world: World) -> Steps:
    for number, bookie in enumerate(world.bookies):
        if bookie.has_data and not world.lost:
            after = without_pod(world, number).changed(number, claims=(bookie.claims[0], GONE)).without_data_of(number)
            yield f"the ledger volume of bookie {number} is lost", after._replace(lost=True)


def _emptied(world: World) -> Steps:
    for number, bookie in enumerate(world.bookies):
        if bookie.has_data and not world.lost:
            after = world.changed(number, runs=False).without_data_of(number)
            yield f"the volumes of bookie {number} are emptied", after._replace(lost=True)


def _claims_deleted(world: World) -> Steps:
    """They stay as long as their pod does."""
    for number, bookie in enumerate(world.bookies):
        if bookie.has_data and bookie.runs and not world.lost:
            after = world.changed(number, claims=(GOING, GOING))
            yield f"somebody deletes the claims of bookie {number}", after._replace(lost=True)


def _cookie_lost(world: World) -> Steps:
    for number, bookie in enumerate(world.bookies):
        if bookie.cookie and bookie.disk == OWN:
            yield f"somebody deletes the cookie of bookie {number}", world.changed(number, cookie=False)


def _template_changed(world: World) -> Steps:
    if any(bookie.pod == NEW for bookie in world.bookies):
        bookies = tuple(bookie._replace(pod=OLD) if bookie.pod else bookie for bookie in world.bookies)
        yield "the template changes", world._replace(bookies=bookies)


FAULTS: Mapping[str, Callable[[World], Steps]] = {
    "crash": _crash,
    "evicted": _evicted,
    "disk lost": _disk_lost,
    "one volume lost": _one_volume_lost,
    "emptied": _emptied,
    "claims deleted": _claims_deleted,
    "cookie lost": _cookie_lost,
    "template": _template_changed,
}
