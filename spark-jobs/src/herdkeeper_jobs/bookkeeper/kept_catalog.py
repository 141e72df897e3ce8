"""A ZooKeeper session that stays open between reads: a new session costs the ensemble more than a read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress

from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog


class KeptCatalog:
    """Opens the catalog on first use, and again after a loss. Not thread-safe. Call `close` when done."""

    def __init__(self, connect: Callable[[], AbstractContextManager[LedgerCatalog]]) -> None:
        self._connect = connect
        self._open = ExitStack()
        self._catalog: LedgerCatalog | None = None

    @contextmanager
    def use(self) -> Iterator[LedgerCatalog]:
        """Gives the catalog. After any error the next use gets a new session. Raises as `metadata.open_catalog`."""
        try:
            # A session without a connection would wait for it forever; a new one fails after some seconds.
            if self._catalog is not None and not self._catalog.client.connected:
                self.close()
            if self._catalog is None:
                self._catalog = self._open.enter_context(self._connect())
            yield self._catalog
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the session, if there is one."""
        opened, self._open, self._catalog = self._open, ExitStack(), None
        with suppress(Exception):  # without ZooKeeper it expires by itself
            opened.close()
