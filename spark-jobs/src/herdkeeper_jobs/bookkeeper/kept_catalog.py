"""One session with ZooKeeper for whoever looks again and again: a session costs the ensemble more than a look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress

from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog


class KeptCatalog:
    """Opens the catalog when it is first used, and again after it was lost. Not for several threads. `close` it."""

    def __init__(self, connect: Callable[[], AbstractContextManager[LedgerCatalog]]) -> None:
        self._connect = connect
        self._open = ExitStack()
        self._catalog: LedgerCatalog | None = None

    @contextmanager
    def use(self) -> Iterator[LedgerCatalog]:
        """The catalog. Whatever goes wrong with it, the next one gets a new session. Raises as `metadata.open_catalog`."""
        try:
            # One that has lost its connection would wait for it without an end; a new one waits for some seconds, and says so.
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
        with suppress(Exception):  # one that can't be ended now, since ZooKeeper is away, ends by itself
            opened.close()
