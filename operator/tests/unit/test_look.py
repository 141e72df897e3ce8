"""The limits of an observation, as their refusals tell them."""

from __future__ import annotations

import pytest

from herdkeeper.clients.look import look, require_room


def test_an_observation_that_reads_too_much_tells_the_limit_that_it_was_given() -> None:
    with look(most_bytes=10):
        require_room(10)
        with pytest.raises(OSError, match=r"it read more than 10 bytes$"):
            require_room(1)
