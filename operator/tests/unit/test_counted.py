"""Numbers in messages."""

from __future__ import annotations

import pytest

from herdkeeper.shared.counted import counted


@pytest.mark.parametrize(("count", "told"), [(0, "0 ledgers"), (1, "1 ledger"), (2, "2 ledgers")])
def test_one_thing_is_told_as_one(count, told):
    assert counted(count, "ledger") == told
    assert counted(count, "ledger is", "ledgers are") == told + (" is" if count == 1 else " are")
