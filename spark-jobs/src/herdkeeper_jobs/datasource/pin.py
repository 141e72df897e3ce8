"""Keeps a tablespace's log for a stream that is down or slow: the znode `logPins/<tablespace uuid>/stream-<name>` (protocol/log_pin.py).

The leading SQL node releases no ledger from the pin on, also after the retention, until the pin exceeds its own maximum age. Otherwise the
pin of an abandoned stream would fill the bookies forever.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, KazooException, NoAuthError, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.protocol.log_pin import StreamPin, decode_stream_pin, encode_stream_pin, log_pin_path, stream_pin
from herdkeeper_jobs.bookkeeper.metadata import open_catalog
from herdkeeper_jobs.bookkeeper.znode import put_znode
from herdkeeper_jobs.datasource.options import PIN, OptionError, PinOptions, parse_options
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable
from herdkeeper_jobs.log_source import LogSource, open_log
from herdkeeper_jobs.wal.lsn import Lsn

_MOVES_SECONDS = 30.0
"""How often a pin moves within a ledger. Ledgers are released whole, so that only shows people the stream's position."""


class HeldLog:
    """The pin of one stream, in the process that plans its batches. `clock` gives seconds."""

    def __init__(self, options: PinOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._clock = clock
        self._held: Lsn | None = None
        self._moved_at = 0.0

    @property
    def stream(self) -> str:
        return self._options.stream

    @property
    def is_held(self) -> bool:
        """Whether this process has set the pin."""
        return self._held is not None

    def begin(self, log: LogSource, needed: Lsn) -> None:
        """Sets the pin before this process's first read, unless it is there or further back already. A query that restarts from an earlier
        place takes its pin back there.

        Raises:
            CheckpointRetryable: ZooKeeper does not answer.
            CheckpointRefused: it refuses.
        """
        if self._held is None:
            before = _held_from(log, self._options)
            self._set(log, needed if before is None else min(before, needed))

    def is_due(self, needed: Lsn) -> bool:
        """Whether it is time to move the pin to `needed`."""
        if self._held is None or needed.ledger_id != self._held.ledger_id:
            return True
        return self._clock() - self._moved_at >= _MOVES_SECONDS

    def keep(self, log: LogSource, needed: Lsn) -> None:
        """Moves the pin: the log is kept from there on only. Raises as `begin`."""
        self._set(log, needed)

    def renew(self, log: LogSource) -> None:
        """Shows that the stream lives: writes the pin again, unchanged. So a renewal never moves the pin, even by another thread or by the
        process of an ended query. A missing pin is not created. Raises as `begin`."""
        path = _path(log, self._options.stream)
        try:
            data, stat = log.catalog.client.get(path)
            log.catalog.client.set(path, data, stat.version)
        except (NoNodeError, BadVersionError):
            # Missing, removed by hand, or just moved, which renews it as well.
            return
        except (KazooException, KazooTimeoutError) as error:
            raise _failed(path, error) from error

    def _set(self, log: LogSource, needed: Lsn) -> None:
        pin = StreamPin(needed, self._options.max_age_seconds)
        _write(log.catalog.client, _path(log, self._options.stream), encode_stream_pin(pin))
        self._held, self._moved_at = needed, self._clock()


def remove_pin(options: Mapping[str, str]) -> bool:
    """Removes the pin of a stream that is never started again; `options` are the stream's. Returns whether there was a pin.

    Raises:
        OptionError: one of them is missing or wrong.
        CheckpointRetryable: ZooKeeper does not answer.
        CheckpointRefused: it refuses, or there is no such tablespace.
    """
    parsed = parse_options(options)
    if parsed.pin is None:
        raise OptionError(f"{PIN} is missing: give the name of the pin to remove")
    with open_catalog(parsed.zookeeper, parsed.ledgers_root) as catalog:
        return remove_from(open_log(catalog, parsed.herd_root, parsed.tablespace), parsed.pin.stream)


def remove_from(log: LogSource, stream: str) -> bool:
    """Removes a stream's pin of a log. Raises as `remove_pin`."""
    path = _path(log, stream)
    try:
        log.catalog.client.delete(path)
    except NoNodeError:
        return False
    except (KazooException, KazooTimeoutError) as error:
        raise _failed(path, error) from error
    return True


def _held_from(log: LogSource, options: PinOptions) -> Lsn | None:
    """The LSN of the stream's current pin; None without a readable one."""
    path = _path(log, options.stream)
    try:
        return Lsn(*decode_stream_pin(log.catalog.client.get(path)[0]).lsn)
    except (NoNodeError, MalformedDataError):
        return None
    except (KazooException, KazooTimeoutError) as error:
        raise _failed(path, error) from error


def _path(log: LogSource, stream: str) -> str:
    return log_pin_path(log.herd_root, log.tablespace.uuid, stream_pin(stream))


def _write(client: KazooClient, path: str, data: bytes) -> None:
    try:
        put_znode(client, path, data)
    except NodeExistsError as error:
        raise CheckpointRetryable(f"{path} was made just now by another stream with this {PIN}; give each its own") from error
    except (KazooException, KazooTimeoutError) as error:
        raise _failed(path, error) from error


def _failed(path: str, error: Exception) -> CheckpointRefused | CheckpointRetryable:
    if isinstance(error, NoAuthError):
        return CheckpointRefused(f"ZooKeeper refuses {path}: a stream with a {PIN} needs the right to write there")
    return CheckpointRetryable(f"ZooKeeper did not answer about {path}: {type(error).__name__} {error}")
