"""Observes a restore: its Checkpoint, its Job, and how many rows are loaded, by SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.job import Destination
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.kubernetes import JOBS
from herdkeeper.herddb.state.tls import TlsUsable, why_no_login
from herdkeeper.herddb.tablespace.state import RestoreProgress, TablespaceObserved
from herdkeeper.protocol.restore_bookkeeping import HEADER_STEP, RESTORE_TABLE, ROWS_KEY
from herdkeeper.shared import names
from herdkeeper.shared.names import HERDDB_SQL_PORT, ObjectKey
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.object_store import why_two_accounts
from herdkeeper.spark.observe_places import observe_destination, observe_work
from herdkeeper.sql.connection import Address, Connection, Credentials
from herdkeeper.sql.encryption import Encryption
from herdkeeper.sql.errors import SqlError
from herdkeeper.sql.frames import Value

ANSWER_SECONDS = 2.0
"""Progress is only informative: a busy leader is asked again later."""
MOST_BYTES = 256 << 10
"""Of an answer. The row has some hundred bytes, and each byte may be a value that takes fifty."""
_ROWS = f"SELECT `step`, `loaded`, `detail` FROM `{RESTORE_TABLE}` WHERE `step` = ?"  # noqa: S608 - a name of our own
_LOADED = f"SELECT SUM(`loaded`) AS `total` FROM `{RESTORE_TABLE}`"  # noqa: S608


def observe_restore(seen: TablespaceObserved, reader: ClusterReader) -> TablespaceObserved:
    """Returns the observation with the restore added."""
    tablespace = seen.tablespace
    if not tablespace.is_restoring:
        return seen
    key = tablespace.key
    reference = tablespace.spec.bootstrap.checkpoint if tablespace.spec.bootstrap is not None else None
    checkpoint = reader.kubernetes.readable(Checkpoint, ObjectKey(key.namespace, reference.name)) if reference is not None else None
    objects = Objects({**seen.objects.items, **reader.kubernetes.owned(tablespace.KIND, key, JOBS).items})
    runs = objects.get("Job", names.job_name(key, names.RESTORE_COMPONENT)) is not None
    progress = _progress(seen) if runs else None
    bootstrap, makes_one = tablespace.spec.bootstrap, tablespace.restored_moment is not None
    field, source = _source(tablespace, checkpoint)
    unusable = observe_destination(source, field, reader, namespace=key.namespace, writes=makes_one)
    if bootstrap is not None and unusable is None:
        archive, of_archive = bootstrap.archive, "spec.bootstrap.archive."
        unusable = observe_destination(archive, of_archive, reader, namespace=key.namespace, writes=False)
        unusable = unusable or why_two_accounts(source, archive, of_archive)
    work = observe_work(key.namespace, reader) if makes_one and not runs else ()
    return replace(seen, objects=objects, checkpoint=checkpoint, progress=progress, store_unusable=unusable, work=work)


def _source(tablespace: Tablespace, checkpoint: Checkpoint | None) -> tuple[str, Destination | None]:
    """Returns the prefix of the fields that locate the checkpoint, and the place. A noted place wins over that of a reference."""
    bootstrap, begun = tablespace.spec.bootstrap, tablespace.restore
    if bootstrap is not None and bootstrap.archive is not None and bootstrap.archive.folder is not None:
        return "spec.bootstrap.archive.", bootstrap.archive
    if bootstrap is not None and bootstrap.files is not None:
        return "spec.bootstrap.files.", bootstrap.files
    named = (begun.source if begun is not None else None, checkpoint.spec.destination if checkpoint is not None else None)
    place = next((destination for destination in named if destination is not None), None)
    reference = bootstrap.checkpoint if bootstrap is not None else None
    return f"the Checkpoint {reference.name if reference is not None else ''}: spec.destination.", place


def _progress(seen: TablespaceObserved) -> RestoreProgress | Unknown:
    """Asks the leader by SQL: what is committed, by whichever driver."""
    record = seen.known_record
    if record is None or seen.herddb is None or seen.credentials is None:
        return Unknown("the tablespace has no leader to ask")
    host = seen.herddb.names.host_of(record.leader)
    if (unencrypted := why_no_login(seen.tls, seen.herddb)) is not None:
        return Unknown(unencrypted.message)
    address = Address(host, HERDDB_SQL_PORT, Encryption(host, seen.tls.authorities) if isinstance(seen.tls, TlsUsable) else None)
    login = Credentials(seen.credentials.username, seen.credentials.password)
    try:
        with Connection.connect(address, login, record.name, timeout_seconds=ANSWER_SECONDS) as connection:
            return told_progress(connection)
    except (SqlError, ValueError, KeyError, OverflowError) as error:
        return Unknown(str(error))


def told_progress(connection: Connection) -> RestoreProgress | Unknown:
    """Takes two rows, of however many a node sends: any SQL user may write this table. Raises SqlError, ValueError and KeyError."""
    connection.piece_bytes = MOST_BYTES
    header = _first(connection, _ROWS, [HEADER_STEP])
    if header is None:
        return Unknown("it has not started to load")
    return progress_of(header["detail"], (_first(connection, _LOADED) or {})["total"])


def _first(connection: Connection, sql: str, parameters: Sequence[Value] = ()) -> dict[str, Value] | None:
    return next(next(connection.pieces(sql, parameters)).records(), None)


def progress_of(detail: Any, loaded: Any) -> RestoreProgress:
    """Computes the progress from the header's detail and the sum over the steps. Raises ValueError for invalid data."""
    try:
        return RestoreProgress(int(loaded or 0), int(json.loads(detail)[ROWS_KEY]))
    except (TypeError, KeyError, OverflowError, RecursionError) as error:
        raise ValueError(f"the restore's bookkeeping can't be read: {error!r}") from error
