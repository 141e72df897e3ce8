"""What is said of several who create one name at once."""

from __future__ import annotations

import threading

import pytest
from herdkeeper_jobs.storage.race import why_not_one


class _Place:
    """One name, and who has written it last. It gives the name to whoever comes first."""

    def __init__(self) -> None:
        self.content: bytes | None = None
        self.deciding = threading.Lock()

    def create(self, content: bytes) -> bool:
        with self.deciding:
            created, self.content = self.content is None, self.content or content
        return created

    def read(self) -> bytes:
        assert self.content is not None
        return self.content


def test_a_place_that_decides_gives_the_name_to_one_whoever_answers_with_an_error() -> None:
    place = _Place()

    def lost(content: bytes) -> bool:
        raise ConnectionError("no answer")

    assert why_not_one([place.create, lost, place.create], place.read) is None


def test_each_who_is_told_that_the_name_is_theirs_is_counted() -> None:
    place, all_looked = _Place(), threading.Barrier(3)

    def look_first(content: bytes) -> bool:
        taken = place.content is not None
        all_looked.wait(60)
        place.content = content
        return not taken

    assert why_not_one([look_first] * 3, place.read) == "of 3 concurrent creates 3 succeeded"


def test_one_that_is_refused_may_not_have_written() -> None:
    place, created = _Place(), threading.Event()

    def first(content: bytes) -> bool:
        place.content = content
        created.set()
        return True

    def refused(content: bytes) -> bool:
        assert created.wait(60)
        place.content = content
        return False

    assert why_not_one([first, refused], place.read) == "of 2 concurrent creates one that was refused has written"


def test_that_nobody_was_told_so_says_nothing_of_the_place_and_is_tried_again() -> None:
    def lost(content: bytes) -> bool:
        raise ConnectionError("no answer")

    with pytest.raises(ConnectionError, match="no answer"):
        why_not_one([lost, lambda content: False], bytes)
    with pytest.raises(OSError, match="of 2 concurrent creates none succeeded"):
        why_not_one([lambda content: False] * 2, bytes)
