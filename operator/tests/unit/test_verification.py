"""Which words of a manifest say that somebody else had the same rows."""

from __future__ import annotations

import pytest

from herdkeeper.protocol.verification import ALONE, REREAD, is_proof

COUNTED = "; rows of each table counted at the leader db-herddb-0:9845"


@pytest.mark.parametrize("counted", ["", COUNTED])
def test_a_follower_is_a_proof_and_files_read_again_or_a_follower_s_own_tables_are_not_whatever_was_counted(counted: str) -> None:
    assert is_proof(f"compared with follower db-herddb-1:9845{counted}")
    assert not is_proof(f"{REREAD}{counted}")
    assert not is_proof(f"compared with follower db-herddb-1:9845 {ALONE}{counted}")


def test_a_checkpoint_that_does_not_say_how_it_was_verified_proves_nothing() -> None:
    assert not is_proof(None)
    assert not is_proof("")
