"""A scan of the ledgers of an ensemble that answers anything: its address may be anybody's."""

from __future__ import annotations

from itertools import repeat
from typing import Any, cast

import pytest
from test_bookkeeper_formats import METADATA

from herdkeeper.bookkeeper.observe import ledgers
from herdkeeper.bookkeeper.observe.ledgers import LedgersRead, ScanRequest
from herdkeeper.bookkeeper.state.bookies import LedgerScan
from herdkeeper.codecs.bookkeeper.metadata import LedgerState
from herdkeeper.codecs.bookkeeper.placement import PlacementRule
from herdkeeper.shared.unknown import Unknown

LAYOUT = b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"


class FoldersOnly:
    """Each znode has so many children, and none is a ledger."""

    def __init__(self, children: int) -> None:
        self._children = children

    def read(self, path: str) -> tuple[bytes, int]:
        return LAYOUT, 0

    def children(self, path: str) -> tuple[str, ...]:
        return tuple(f"{number:02d}" for number in range(self._children))

    def read_many(self, paths: list[str]) -> tuple[bytes | None, ...]:
        return tuple(repeat(None, len(paths)))


def scanned(children: int, pages: int) -> LedgerScan | Unknown | None:
    znodes = cast("Any", FoldersOnly(children))
    read = LedgersRead(lambda: znodes, "/root", ScanRequest((), (), PlacementRule({}, 1, 1)))
    return next((answer for answer in (read.read_page() for _ in range(pages)) if answer is not None), None)


def test_a_scan_ends_though_each_folder_has_another_one() -> None:
    found = scanned(children=1, pages=20)
    assert isinstance(found, LedgerScan)
    assert found.ledgers == 0


def test_a_scan_of_folders_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "MOST_LEDGERS", 150)
    assert isinstance(scanned(children=90, pages=20), Unknown)


class OneFolder(FoldersOnly):
    """So many ledgers of two segments each, on four bookies in all."""

    def children(self, path: str) -> tuple[str, ...]:
        return {"/root": ("00",), "/root/00": ("0000",)}.get(path, tuple(f"L{number:04d}" for number in range(self._children)))

    def read_many(self, paths: list[str]) -> tuple[bytes | None, ...]:
        return tuple(repeat(METADATA[3, LedgerState.CLOSED], len(paths)))


@pytest.mark.parametrize("ledgers_there", [48, 49])
def test_of_ledgers_with_segments_without_end_no_more_is_kept_than_fits(ledgers_there: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "MOST_KEPT", 100)
    znodes = cast("Any", OneFolder(ledgers_there))
    read = LedgersRead(lambda: znodes, "/root", ScanRequest(("bookie-0",), (), PlacementRule({}, 1, 1)))
    found = next(answer for answer in (read.read_page() for _ in range(9)) if answer is not None)
    assert isinstance(found, LedgerScan if ledgers_there == 48 else Unknown)
