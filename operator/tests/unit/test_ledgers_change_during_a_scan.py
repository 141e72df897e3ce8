"""Ledgers are made and copied while all of them are scanned, also behind the scan. No bookie leaves that may hold the last copy of one.

Played: what writers, autorecovery and people do between any two pages. Writers and autorecovery choose writable bookies only, and a ledger
is marked while it is copied. Nobody holds up a person who makes the bookie writable for a moment.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_plan_bookkeeper import IDENTITIES, IDS
from test_plan_drain_pause import LEAVING, seen

from herdkeeper.bookkeeper.drain.procedure import Step, Stop
from herdkeeper.bookkeeper.observe import ledgers as module
from herdkeeper.bookkeeper.observe.bookies import read_ledgers_metadata
from herdkeeper.bookkeeper.observe.ledgers import LedgerScans, LedgersRead, ScanRequest
from herdkeeper.clients.paged_reads import PagedReads
from herdkeeper.clients.zookeeper import Znode
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, ledger_path
from herdkeeper.codecs.bookkeeper.underreplication import marks_path

ROOT = "/demo/bk/ledgers"
OTHERS = tuple(sorted(IDS - {LEAVING}))
BOOKIES = seen(scan=None)
LAYOUT = b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"


@dataclass
class Tree:
    """Znodes, each with the number of the change that last brought or took a child."""

    znodes: dict[str, bytes] = field(default_factory=dict)
    children_changed: dict[str, int] = field(default_factory=dict)
    changes: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def put(self, path: str, data: bytes = b"") -> None:
        parent = path.rpartition("/")[0]
        if path not in self.znodes:
            if parent:
                self.put(parent, self.znodes.get(parent, b""))
            self.children_changed[parent] = next(self.changes)
        self.znodes[path] = data

    def remove(self, path: str) -> None:
        if self.znodes.pop(path, None) is not None:
            self.children_changed[path.rpartition("/")[0]] = next(self.changes)

    def read(self, path: str) -> tuple[bytes, int] | None:
        return (self.znodes[path], 0) if path in self.znodes else None

    def read_changed(self, path: str) -> Znode | None:
        return Znode(self.znodes[path], 0, 0.0, 0, self.children_changed.get(path, 0)) if path in self.znodes else None

    def children(self, path: str, wake: object = None) -> tuple[str, ...] | None:
        found = (other.rpartition("/") for other in self.znodes)
        return tuple(sorted(name for parent, _, name in found if parent == path)) if path in self.znodes else None

    def read_many(self, paths: list[str]) -> list[bytes | None]:
        return [self.znodes.get(path) for path in paths]


class Reads(PagedReads):
    """Whose pages a test has read one by one."""

    def _have_it_read(self) -> None:
        pass

    def page(self) -> None:
        if (running := self._next()) is not None:
            self._read(running)


class World:
    """Four bookies. The last one is to leave and is read-only; closed ledgers have two copies on others. A page has two ledgers."""

    def __init__(self) -> None:
        self.tree, self.reads = Tree(), Reads(lambda: 0.0, wait_seconds=0.0)
        self.ledgers: dict[int, list[str]] = {}
        self.copying: dict[int, str] = {}
        self.decided: Step | None = None
        for path, data in (
            ("LAYOUT", LAYOUT),
            ("INSTANCEID", b"an-instance"),
            ("underreplication/auditorelection", b'bookieId: "bk-autorecovery-0"'),
            ("underreplication/auditorelection/V_1", b""),
            ("available/readonly", b""),
            *((f"cookies/{identity.bookie_id}", b"") for identity in IDENTITIES),
            *((f"available/{identity.bookie_id}", b"") for identity in IDENTITIES[:3]),
            (f"available/readonly/{LEAVING}", b""),
        ):
            self.tree.put(f"{ROOT}/{path}", data)
        for _ in range(5):
            self.make(*OTHERS[:2])

    @property
    def writable(self) -> bool:
        return f"{ROOT}/available/{LEAVING}" in self.tree.znodes

    def make(self, *bookies: str) -> None:
        """Ids from a random-like place: before, between and behind what was read."""
        ledger_id = (len(self.ledgers) * 7919) % 100_000
        self.ledgers[ledger_id] = list(bookies)
        self.write(ledger_id)

    def write(self, ledger_id: int) -> None:
        bookies = "".join(f'  ensembleMember: "{bookie_id}"\n' for bookie_id in self.ledgers[ledger_id])
        text = (
            f"quorumSize: 2\nensembleSize: 2\nackQuorumSize: 2\nlength: 10\nlastEntryId: 0\nstate: CLOSED\n"
            f'segment {{\n{bookies}  firstEntryId: 0\n}}\ndigestType: CRC32C\npassword: ""\n'
        )
        path = ledger_path(LedgerLayout.HIERARCHICAL, ledger_id)
        self.tree.put(f"{ROOT}{path}", f"BookieMetadataFormatVersion\t2\n{text}".encode())

    # what others do

    def new_ledger(self) -> None:
        self.make(OTHERS[0], LEAVING if self.writable else OTHERS[2])

    def begin_to_copy(self) -> None:
        """A worker marks a ledger and chooses where its copy goes."""
        free = [ledger_id for ledger_id in self.ledgers if ledger_id not in self.copying]
        if free:
            self.copying[free[0]] = LEAVING if self.writable else OTHERS[2]
            self.tree.put(f"{marks_path(ROOT)}/0000/0000/0000/0000/urL{free[0]:010d}")

    def end_to_copy(self) -> None:
        """The metadata names the new place, then the mark goes."""
        for ledger_id, to in [*self.copying.items()][:1]:
            self.ledgers[ledger_id] = [self.ledgers[ledger_id][0], to]
            self.write(ledger_id)
            self.tree.remove(f"{marks_path(ROOT)}/0000/0000/0000/0000/urL{ledger_id:010d}")
            del self.copying[ledger_id]

    def make_writable(self) -> None:
        self.tree.put(f"{ROOT}/available/{LEAVING}")
        self.tree.remove(f"{ROOT}/available/readonly/{LEAVING}")

    def make_read_only(self) -> None:
        self.tree.put(f"{ROOT}/available/readonly/{LEAVING}")
        self.tree.remove(f"{ROOT}/available/{LEAVING}")

    # what the operator does

    def page(self) -> None:
        self.reads.page()

    def reconcile(self) -> None:
        fleet = replace(BOOKIES, metadata=read_ledgers_metadata(self.tree, ROOT))
        scans = LedgerScans(self.reads, "zk", ROOT, lambda: self.tree)
        asked = ScanRequest((LEAVING,), (), fleet.placement_rule, fleet.seen_before_a_scan)
        (drain,) = replace(fleet, scan=scans.current(asked)).drains
        self.decided = drain.step


STEPS: tuple[Callable[[World], None], ...] = (
    *(World.page,) * 5,
    *(World.reconcile,) * 3,
    World.new_ledger,
    World.begin_to_copy,
    World.end_to_copy,
    World.make_writable,
    World.make_read_only,
)


@pytest.fixture(autouse=True, scope="module")
def small_pages():
    before, module.PAGE = module.PAGE, 2
    yield
    module.PAGE = before


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(STEPS), min_size=20, max_size=60))
def test_no_bookie_is_stopped_that_a_ledger_came_to_name_during_the_scan(steps):
    world = World()
    for step in steps:
        world.decided = None
        step(world)
        if isinstance(world.decided, Stop):
            assert [ledger_id for ledger_id, bookies in world.ledgers.items() if LEAVING in bookies] == []


def until_it_stops(world: World, *between: Callable[[World], None]) -> int:
    """The pages that it took."""
    for pages in range(100):
        world.reconcile()
        if isinstance(world.decided, Stop):
            return pages
        world.page()
        for step in between:
            step(world)
    return 0


@pytest.mark.parametrize("between", [(), (World.new_ledger,)])
def test_a_bookie_is_stopped_once_a_scan_found_no_ledger_of_it_though_others_are_made_meanwhile(between):
    assert until_it_stops(World(), *between) > 3


def behind_the_scan(*steps: Callable[[World], None]) -> World:
    """A scan that had read all folders and some ledgers when this happened, and then ended."""
    world = World()
    world.reconcile()
    running = world.reads._running["zk"].read
    while not running.progress.startswith("2 "):
        world.page()
    for step in steps:
        step(world)
    for _ in range(10):
        world.page()
    assert world.reads.last("zk") is not None
    world.reconcile()
    return world


def test_a_scan_behind_which_nothing_happened_to_the_bookie_is_acted_by():
    assert isinstance(behind_the_scan(World.new_ledger).decided, Stop)


@pytest.mark.parametrize(
    "steps",
    [
        (World.make_writable, World.new_ledger, World.make_read_only),
        (World.make_writable, World.begin_to_copy, World.make_read_only, World.end_to_copy),
        (World.make_writable, World.make_read_only),
    ],
    ids=["a new ledger", "a copy", "nothing that shows"],
)
def test_a_bookie_that_was_writable_for_a_moment_is_scanned_for_again(steps):
    world = behind_the_scan(*steps)
    assert not isinstance(world.decided, Stop)
    holds = any(LEAVING in bookies for bookies in world.ledgers.values())
    assert (until_it_stops(world) > 0) is not holds


def test_a_copy_that_was_under_way_before_the_bookie_became_read_only_is_waited_for():
    world = World()
    world.make_writable()
    world.begin_to_copy()
    world.make_read_only()
    world.reconcile()
    for _ in range(20):
        world.page()
    world.end_to_copy()
    world.reconcile()
    assert not isinstance(world.decided, Stop)
    assert until_it_stops(world) == 0


def test_a_scan_finds_the_ledgers_of_which_no_copy_is_left():
    """Both bookies of a ledger lost their disks at once."""
    world = World()
    world.make(OTHERS[0], OTHERS[2])
    (last,) = [ledger_id for ledger_id, bookies in world.ledgers.items() if OTHERS[2] in bookies]
    lost = frozenset({OTHERS[0], OTHERS[2]})
    read = LedgersRead(lambda: world.tree, ROOT, ScanRequest((), (), BOOKIES.placement_rule, lost=lost))
    found = next(answer for answer in (read.read_page() for _ in range(20)) if answer is not None)
    assert found.uncopied == (last,)
