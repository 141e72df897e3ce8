"""A manifest is the commit: it exists once per LSN, with one content."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import all_files, write

from herdkeeper_jobs.checkpoint.reading import CheckpointNotFoundError, open_latest
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.manifests.manifest import (
    Identity,
    Manifest,
    ManifestColumn,
    ManifestFile,
    ManifestIndex,
    ManifestTable,
    ManifestTransaction,
    Position,
    Verification,
    commit_manifest,
    manifest_path,
    manifests,
    manifests_in,
    tablespace_folder,
)
from herdkeeper_jobs.storage.object_path import ObjectPath
from herdkeeper_jobs.storage.stored_path import StoredPath
from herdkeeper_jobs.wal.lsn import Lsn

IDENTITY = Identity(
    instance_id="cluster-1", tablespace_uuid="ts-1", tablespace="demo", ledgers_root="/ns/bk/ledgers", herd_root="/ns/db/herd"
)
COLUMN = ManifestColumn(name="k", type="INTEGER", serial_position=0, nullable=False)


def table(digest: str = "0" * 32, files: tuple[ManifestFile, ...] = ()) -> ManifestTable:
    return ManifestTable(
        name="t",
        uuid="u",
        columns=(COLUMN,),
        primary_key=("k",),
        auto_increment=False,
        highest_auto_increment=None,
        rows=sum(file.rows for file in files),
        digest=digest,
        files=files,
        definition="00",
    )


def manifest(run_id: str = "run-1", entry_id: int = 7, content: ManifestTable | None = None, identity: Identity = IDENTITY) -> Manifest:
    return Manifest(
        identity=identity,
        lsn=Position(ledger_id=3, entry_id=entry_id),
        lsn_timestamp_millis=1,
        run_id=run_id,
        entries_read=8,
        tables=(content or table(),),
        indexes=(),
        open_transactions=(),
        restart_lsn=Position(ledger_id=3, entry_id=entry_id),
        verified=Verification(how="Reread", by="the checkpoint job"),
        versions={},
    )


def test_the_path_holds_cluster_tablespace_and_an_lsn_that_sorts(place: StoredPath) -> None:
    folder = tablespace_folder(place, IDENTITY)
    path = manifest_path(folder, Lsn(3, 7))
    assert path.relative_to(place).as_posix() == "cluster-1/ts-1/manifests/00000000000000000003-00000000000000000007.json"
    assert path.name < manifest_path(folder, Lsn(3, 10)).name < manifest_path(folder, Lsn(20, 0)).name


def test_a_manifest_is_written_whole_and_leaves_nothing_beside_it(place: StoredPath) -> None:
    committed = commit_manifest(manifest(), place)
    assert not committed.existed
    assert all_files(place) == {f"manifests/{committed.path.name}"}
    document = json.loads(committed.path.read_bytes())
    assert document["schemaVersion"] == 1
    assert document["identity"]["instanceId"] == "cluster-1"
    assert document["tables"][0]["primaryKey"] == ["k"]


def test_a_second_run_with_the_same_content_finds_the_first_ones_manifest(place: StoredPath) -> None:
    commit_manifest(manifest("run-1"), place)
    second = commit_manifest(manifest("run-2"), place)
    assert second.existed
    assert second.manifest.run_id == "run-1"


def test_of_many_runs_at_once_one_commits_and_all_others_find_its_manifest(place: StoredPath) -> None:
    runs = [f"run-{number}" for number in range(12)]
    with ThreadPoolExecutor(len(runs)) as pool:
        committed = list(pool.map(lambda run: commit_manifest(manifest(run), place), runs))
    (winner,) = (one.manifest.run_id for one in committed if not one.existed)
    assert {one.manifest.run_id for one in committed} == {winner}
    assert len(all_files(place)) == 1


def test_another_content_at_the_same_lsn_violates_an_invariant_and_the_first_stays(place: StoredPath) -> None:
    first = commit_manifest(manifest("run-1"), place)
    with pytest.raises(InvariantViolated, match="table 't'"):
        commit_manifest(manifest("run-2", content=table("1" * 32)), place)
    assert json.loads(first.path.read_bytes())["runId"] == "run-1"
    assert len(all_files(place)) == 1


INDEX = ManifestIndex(name="by_k", table="t", type="hash", unique=False, columns=("k",))
OPEN = ManifestTransaction(transaction_id=4, begin=Position(ledger_id=3, entry_id=2))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"tables": (table().model_copy(update={"definition": "01"}),)}, "the definition of table 't' is .*00.* there and .*01"),
        ({"indexes": (INDEX,)}, "the list of indexes is .* there and .*by_k"),
        ({"open_transactions": (OPEN,)}, "the list of open transactions"),
        ({"restart_lsn": Position(ledger_id=3, entry_id=2)}, "the list of open transactions"),
        ({"tables": ()}, "table 't' is .* there and None"),
    ],
    ids=["definition", "indexes", "open transactions", "where to read again", "tables"],
)
def test_a_checkpoint_with_the_same_rows_and_another_structure_is_not_taken_for_the_same(
    place: StoredPath, other: dict[str, object], words: str
) -> None:
    commit_manifest(manifest("run-1"), place)
    with pytest.raises(InvariantViolated, match=words):
        commit_manifest(manifest("run-2").model_copy(update=other), place)


def test_a_manifest_of_another_log_in_the_same_place_violates_an_invariant(place: StoredPath) -> None:
    commit_manifest(manifest(), place)
    with pytest.raises(InvariantViolated, match="belongs to"):
        commit_manifest(manifest(identity=IDENTITY.model_copy(update={"herd_root": "/other"})), place)


def test_a_manifest_of_a_newer_schema_is_not_guessed_at(place: StoredPath) -> None:
    committed = commit_manifest(manifest(), place)
    write(committed.path, json.dumps(json.loads(committed.path.read_bytes()) | {"schemaVersion": 3}).encode())
    with pytest.raises(InvariantViolated, match="schemaVersion 3"):
        commit_manifest(manifest("run-2"), place)


def test_the_latest_checkpoint_is_the_one_with_the_highest_lsn(place: StoredPath) -> None:
    folder = tablespace_folder(place, IDENTITY)
    for entry_id in (9, 100, 10):
        commit_manifest(manifest(entry_id=entry_id), folder)
    opened = open_latest(place)
    assert opened.manifest.lsn.lsn == Lsn(3, 100)
    assert opened.load("t").schema.names == ["k"]
    assert opened.load("t").num_rows == 0
    with pytest.raises(CheckpointNotFoundError, match="'nothing'"):
        opened.load("nothing")


@pytest.mark.parametrize("name", ["{} copy.json", "{}-copy.json", "{}_copy.json", "{} (1).json", "1.json"])
def test_a_copy_of_a_manifest_under_another_name_is_no_checkpoint(place: StoredPath, name: str) -> None:
    folder = tablespace_folder(place, IDENTITY)
    older, newer = (commit_manifest(manifest(entry_id=entry_id), folder).path for entry_id in (9, 10))
    for each in (older, newer):
        write(each.with_name(name.format(each.stem)), each.read_bytes())
    assert manifests(place) == manifests_in(folder) == [older, newer]
    assert open_latest(place).manifest.lsn.lsn == Lsn(3, 10)


def test_manifests_that_may_not_be_listed_are_not_taken_for_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore would say that there is no checkpoint, and a Checkpoint begin a new chain, perhaps with a follower's tables."""
    path = commit_manifest(manifest("run-1"), tablespace_folder(tmp_path, IDENTITY)).path

    def refusing(real: Callable[..., Any]) -> Callable[..., Any]:
        def listed(place: Any = ".") -> Any:
            if Path(place) == path.parent:
                raise PermissionError(13, "Permission denied", str(place))
            return real(place)

        return listed

    monkeypatch.setattr(os, "scandir", refusing(os.scandir))
    monkeypatch.setattr(os, "listdir", refusing(os.listdir))
    with pytest.raises(PermissionError):
        manifests_in(path.parent.parent)


def test_a_table_is_loaded_from_all_its_files(place: StoredPath) -> None:
    folder = tablespace_folder(place, IDENTITY)
    files = []
    for number in (1, 2):
        path = f"data/run-1/t/p-{number}.parquet"
        content = pa.BufferOutputStream()
        pq.write_table(pa.table({"k": pa.array([number], pa.int32())}), content)
        write(folder / path, content.getvalue().to_pybytes())
        files.append(ManifestFile(path=path, rows=1, size=1, hash=""))
    commit_manifest(manifest(content=table(files=tuple(files))), folder)
    assert open_latest(place, "ts-1").load("t").to_pydict() == {"k": [1, 2]}


@pytest.mark.parametrize("absolute", [False, True])
def test_a_manifest_that_names_a_file_elsewhere_hands_out_nothing(place: StoredPath, absolute: bool) -> None:
    """Who may write below one prefix of a bucket may not be allowed to read the others, as the reader is."""
    other = place / "other/t.parquet"
    content = pa.BufferOutputStream()
    pq.write_table(pa.table({"k": pa.array([1], pa.int32())}), content)
    write(other, content.getvalue().to_pybytes())
    path = f"/{other.key if isinstance(other, ObjectPath) else other}".replace("//", "/") if absolute else "../../../other/t.parquet"
    commit_manifest(
        manifest(content=table(files=(ManifestFile(path=path, rows=1, size=1, hash=""),))), tablespace_folder(place / "mine", IDENTITY)
    )
    with pytest.raises(InvariantViolated, match="leads out of"):
        open_latest(place / "mine").load("t")


def test_lsns_of_two_tablespaces_are_not_compared(place: StoredPath) -> None:
    for uuid in ("ts-1", "ts-2"):
        identity = IDENTITY.model_copy(update={"tablespace_uuid": uuid})
        commit_manifest(manifest(identity=identity), tablespace_folder(place, identity))
    with pytest.raises(CheckpointNotFoundError, match="several tablespaces"):
        open_latest(place)
    assert open_latest(place, "ts-2").manifest.identity.tablespace_uuid == "ts-2"


def test_a_missing_checkpoint_is_reported_with_the_searched_place(place: StoredPath) -> None:
    with pytest.raises(CheckpointNotFoundError, match=str(place)):
        open_latest(place)
