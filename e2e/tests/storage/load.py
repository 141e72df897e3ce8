"""What goes on while a scenario disturbs the stack: SQL that writes row by row, and striped ledgers of a plain client of BookKeeper."""

from __future__ import annotations

from typing import Self

from conftest import Stack
from stops import CountedStops

from herdkeeper_e2e.ledger_clients import Place, StripedClient, Striping
from herdkeeper_e2e.steered_process import SOME
from herdkeeper_e2e.writer_process import WriterProcess

STRIPING = Striping(ensemble_size=3)
"""Over three bookies, two copies of each entry: four bookies can lose one for a while."""


class Load:
    """Both, steered together, from the machine of the stack's tools where they have one. `name` is the SQL table's, with underscores."""

    def __init__(self, stack: Stack, name: str, bookies: str = "bk") -> None:
        self.stack = stack
        self.writer = WriterProcess(stack.tools, name)
        place = Place(stack.kubectl, bookies, stack.tools.machine)
        self.striped = StripedClient(place, name.replace("_", "-"), STRIPING)
        self.stops = CountedStops(stack, self.writer, self.striped)

    def acknowledges(self, more: int = SOME) -> Self:
        """Waits until each has got that many further answers. Returns itself."""
        self.writer.acknowledges(more)
        self.striped.acknowledges(more)
        return self

    def order(self, line: str) -> None:
        """Tells both, e.g. `mark a bookie lost`."""
        self.writer.order(line)
        self.striped.order(line)

    def marked(self, name: str) -> None:
        """Announces a fault to both; the writer has recorded it then."""
        self.striped.order(f"mark {name}")
        self.writer.marked(name)
