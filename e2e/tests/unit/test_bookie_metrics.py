"""A bookie's page of metrics."""

from __future__ import annotations

import pytest

from herdkeeper_e2e.bookie_metrics import bytes_read

PAGE = """# TYPE bookie_READ_BYTES counter
bookie_WRITE_BYTES 812
bookie_READ_BYTES 70300558
bookie_read_entry_count{success="true"} 7
"""


def test_the_bytes_that_were_read_are_found() -> None:
    assert bytes_read(PAGE) == 70_300_558


def test_a_page_that_does_not_tell_is_no_zero() -> None:
    with pytest.raises(ValueError, match="no line bookie_READ_BYTES"):
        bytes_read("bookie_WRITE_BYTES 812\n")
