"""Long reads beside the reconciles: they hold up nobody, go on where they stopped, and end."""

from __future__ import annotations

import threading
import time

import pytest

from herdkeeper.clients import paged_reads as module
from herdkeeper.clients.paged_reads import FORGOTTEN_SECONDS, THREADS, PagedReads, Question
from herdkeeper.clients.zookeeper import EnsembleError
from herdkeeper.shared.unknown import Unknown

PATIENCE_SECONDS = 60.0
ASKED = Question("all ledgers", "as they were")


class Pages:
    """So many pages; `on_page` is called with the number of each before it is read."""

    def __init__(self, pages, on_page=lambda _: None):
        self.pages, self.on_page, self.read = pages, on_page, 0

    @property
    def progress(self):
        return f"{self.read} of {self.pages}"

    def read_page(self):
        self.on_page(self.read)
        self.read += 1
        return "all of it" if self.read == self.pages else None


class Woken(threading.Event):
    def __call__(self, _):
        self.set()


def begun(reads, place, read, asked=ASKED):
    """How far a read is that was begun, and what tells of its end."""
    woken = Woken()
    progress = reads.ask(place, asked, lambda: read, woken)
    if progress is None:  # it was waited for
        woken.set()
    return progress, woken


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.01)


def test_a_short_read_is_waited_for():
    reads = PagedReads(wait_seconds=PATIENCE_SECONDS)
    assert begun(reads, "a", Pages(3))[0] is None
    found = reads.take("a", ASKED)
    assert found is not None
    assert found.answer == "all of it"


def test_a_long_read_holds_up_neither_who_asks_for_it_nor_another_read():
    reads, goes_on = PagedReads(wait_seconds=0.01), threading.Event()
    endless = [Pages(1_000_000_000, lambda _: goes_on.wait(0.0001)) for _ in range(3 * THREADS)]
    for number, read in enumerate(endless):
        assert begun(reads, f"long-{number}", read)[0] is not None
    _, woken = begun(reads, "short", Pages(3))
    assert woken.wait(PATIENCE_SECONDS)
    until = time.monotonic() + PATIENCE_SECONDS
    while not all(read.read > 0 for read in endless):  # the last one may still be at its first page
        assert time.monotonic() < until
        threading.Event().wait(0.01)
    reads.stop()


def test_a_read_goes_on_with_the_page_that_failed():
    failing, tried = {2: 3, 4: 1}, []

    def on_page(page):
        tried.append(page)
        if failing.get(page, 0) > 0:
            failing[page] -= 1
            raise EnsembleError("the session was lost")

    reads = PagedReads(wait_seconds=0.0)
    _, woken = begun(reads, "a", Pages(6, on_page))
    assert woken.wait(PATIENCE_SECONDS)
    assert tried == [0, 1, 2, 2, 2, 2, 3, 4, 4, 5]


def test_who_asks_is_told_how_far_a_read_is_and_why_it_does_not_get_on():
    failed = threading.Event()

    def on_page(page):
        if page == 2:
            failed.set()
            raise EnsembleError("ZooKeeper did not answer")

    reads = PagedReads(wait_seconds=0.0)
    begun(reads, "a", Pages(6, on_page))
    assert failed.wait(PATIENCE_SECONDS)
    for _ in range(10_000):
        if begun(reads, "a", Pages(6))[0] == "2 of 6; ZooKeeper did not answer":
            break
        threading.Event().wait(0.01)
    else:
        pytest.fail("nobody was told")
    reads.stop()


def test_one_read_answers_all_who_ask_for_the_same_meanwhile():
    reads, goes_on = PagedReads(wait_seconds=0.0), threading.Event()
    _, first = begun(reads, "a", Pages(2, lambda _: goes_on.wait(PATIENCE_SECONDS)))
    _, second = begun(reads, "a", None, Question(ASKED.what, "otherwise"))
    goes_on.set()
    assert first.wait(PATIENCE_SECONDS)
    assert second.wait(PATIENCE_SECONDS)
    assert reads.take("a", Question(ASKED.what, "otherwise")) is None, "it began before that was seen"
    assert reads.take("a", ASKED) is not None


def test_who_asks_for_something_else_gets_that():
    reads = PagedReads(wait_seconds=0.0)
    begun(reads, "a", Pages(1_000_000_000))
    asked = Question("what another bookie holds", "as it was")
    _, woken = begun(reads, "a", Pages(2), asked)
    assert woken.wait(PATIENCE_SECONDS)
    assert reads.take("a", asked) is not None
    assert reads.take("a", ASKED) is None


def test_a_read_that_nobody_asks_for_any_more_is_given_up(monkeypatch):
    monkeypatch.setattr(module, "FORGOTTEN_SECONDS", 0.05)
    reads, read = PagedReads(wait_seconds=0.0), Pages(1_000_000_000)
    begun(reads, "a", read)
    for _ in range(10_000):
        if reads._threads == 0:
            break
        threading.Event().wait(0.01)
    assert reads._threads == 0
    assert reads.last("a") is None


def test_an_error_that_nobody_expected_ends_the_read_and_no_thread():
    def on_page(page):
        raise RuntimeError("something that nobody expected")

    reads = PagedReads(wait_seconds=PATIENCE_SECONDS)
    begun(reads, "a", Pages(3, on_page))
    found = reads.last("a")
    assert found is not None
    assert found.answer == Unknown("RuntimeError: something that nobody expected")
    assert begun(reads, "b", Pages(3))[0] is None


def test_an_error_of_who_is_told_of_the_end_ends_no_thread():
    def fails(_):
        raise RuntimeError("something that nobody expected")

    reads, goes_on = PagedReads(wait_seconds=0.0), threading.Event()
    told = Woken()
    for number in range(THREADS):
        reads.ask(str(number), ASKED, lambda: Pages(1, lambda _: goes_on.wait(PATIENCE_SECONDS)), fails)
        reads.ask(str(number), ASKED, lambda: None, told)
    goes_on.set()
    _, woken = begun(reads, "later", Pages(3))
    assert told.wait(PATIENCE_SECONDS)
    assert woken.wait(PATIENCE_SECONDS)


def test_an_old_answer_is_dropped_so_that_those_of_deleted_clusters_take_no_memory():
    seconds = [0.0]
    reads = PagedReads(lambda: seconds[0], wait_seconds=PATIENCE_SECONDS)
    begun(reads, "deleted", Pages(1))
    seconds[0] += FORGOTTEN_SECONDS + 1.0
    begun(reads, "another", Pages(1))
    assert reads.last("deleted") is None
    assert reads.last("another") is not None


def test_a_read_whose_pages_are_slow_delays_another_one_by_one_of_them():
    class ByHand(PagedReads):
        def _have_it_read(self):
            """The test is the thread."""

    def takes(page_seconds):
        def on_page(_):
            seconds[0] += page_seconds

        return on_page

    seconds = [0.0]
    reads = ByHand(lambda: seconds[0], wait_seconds=0.0)
    begun(reads, "slow", Pages(1_000_000_000, takes(59.0)))
    begun(reads, "other", Pages(10, takes(0.1)))
    while reads.last("other") is None:
        reads._read(reads._next())
    assert seconds[0] == pytest.approx(60.0)
