"""A ledger's mark is where BookKeeper's auditor makes it, and the operator looks for it."""

from __future__ import annotations

from herdkeeper.codecs.bookkeeper.underreplication import MARK, MARK_DEPTH, marks_path
from herdkeeper_e2e.marked_ledger import mark_of


def test_a_mark_is_in_folders_of_the_ledger_s_hexadecimal_digits() -> None:
    mark = mark_of("/ledgers", 0x12345678)
    assert mark == "/ledgers/underreplication/ledgers/0000/0000/1234/5678/urL0305419896"
    *folders, name = mark.removeprefix(f"{marks_path('/ledgers')}/").split("/")
    assert (len(folders), MARK.fullmatch(name) is not None) == (MARK_DEPTH, True)
