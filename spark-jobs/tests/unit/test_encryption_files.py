"""Encrypted files: read back as written; a change of any part is found, and names the file."""

from __future__ import annotations

import io
import pickle
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import secret_keys
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places import write
from secret_keys import MountedSecret
from xxhash import xxh3_128_hexdigest

from herdkeeper_jobs.encryption.parquet_folder import FileKey, ParquetFolder
from herdkeeper_jobs.errors import InvariantViolated, KeyUnusable
from herdkeeper_jobs.storage.stored_path import StoredPath, file_hash

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string()), ("x", pa.binary())])
NAME = "data/run/t/p-0.parquet"
SECRET = "the plain text of a row"


def rows(count: int, size: int = 20) -> pa.Table:
    return pa.table(
        {"k": list(range(count)), "v": [f"{SECRET} {number}" for number in range(count)], "x": [bytes([7]) * size] * count}, schema=SCHEMA
    )


def written(folder: ParquetFolder, content: pa.Table, rows_per_group: int = 1000) -> bytes:
    """Writes the file into its place; returns its bytes."""
    sink = io.BytesIO()
    with folder.writer(NAME, sink, SCHEMA) as writer:
        for batch in content.to_batches(rows_per_group):
            writer.write_batch(batch)
    write(folder / NAME, sink.getvalue())
    return sink.getvalue()


@pytest.fixture
def folder(place: StoredPath, keys: MountedSecret) -> ParquetFolder:
    return ParquetFolder(place, FileKey.new(keys.add("2026-11")))


def test_an_encrypted_file_is_read_as_it_was_written_and_holds_no_plain_text(folder: ParquetFolder) -> None:
    content = written(folder, rows(2500))
    assert folder.read_parquet(NAME) == rows(2500)
    with folder.parquet_file(NAME) as file:
        assert file.num_row_groups == 3
        assert file.read_row_group(2) == rows(2500).slice(2000)
    for plain in (SECRET.encode(), b"plain text", b"parquet-cpp", bytes([7]) * 20):
        assert plain not in content
    with pytest.raises(OSError, match="no decryption found"):
        pq.read_table(io.BytesIO(content))


def test_a_file_key_that_is_handed_around_is_no_secret(folder: ParquetFolder) -> None:
    assert folder.key is not None
    opened = folder.key.open(folder / NAME)
    assert len(opened) == 32
    assert opened not in pickle.dumps(folder)
    assert pickle.loads(pickle.dumps(folder)) == folder


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(0, 3000), per_group=st.sampled_from([1, 7, 1000, 1024]), size=st.sampled_from([0, 1, 15, 16, 17, 4096]))
def test_any_number_of_rows_of_any_size_comes_back(count: int, per_group: int, size: int) -> None:
    count = min(count, 40 * per_group)
    with tempfile.TemporaryDirectory() as place:
        for secret in secret_keys.mounted():
            folder = ParquetFolder(Path(place), FileKey.new(secret.add("k")))
            written(folder, rows(count, size), per_group)
            assert folder.read_parquet(NAME) == rows(count, size)
            with folder.parquet_file(NAME) as file:
                assert sum(file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)) == count


def test_a_change_of_any_byte_never_gives_other_rows_and_is_found_unless_nobody_reads_it(tmp_path: Path, keys: MountedSecret) -> None:
    """Changes each byte of a small file. Readers skip the first four (the file's magic) and copies of column metadata; the hash in the
    manifest covers these, too."""
    folder = ParquetFolder(tmp_path, FileKey.new(keys.add("k")))
    content = written(folder, rows(3), 2)
    unread = []
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 0x41
        write(folder / NAME, bytes(changed))
        assert file_hash(folder / NAME) != xxh3_128_hexdigest(content)
        try:
            assert folder.read_parquet(NAME) == rows(3), position
            unread.append(position)
        except InvariantViolated as found:
            assert f"{NAME} does not decrypt with the key of its manifest" in str(found)  # noqa: PT017 - some are not found
    assert unread[:4] == [0, 1, 2, 3]
    assert len(unread) < len(content) / 2


@pytest.mark.parametrize("left", [0, 1, 4, 100, -1, -4, -8, -100])
def test_a_file_that_was_cut_off_is_found(folder: ParquetFolder, left: int) -> None:
    content = written(folder, rows(100))
    write(folder / NAME, content[:left])
    with pytest.raises(InvariantViolated, match=NAME):
        folder.read_parquet(NAME)


def test_row_groups_that_changed_places_are_found(folder: ParquetFolder) -> None:
    """Of equal size, so that each is exactly in the other's place."""
    same = pa.table({"k": [1, 1], "v": ["a", "a"], "x": [b"x", b"x"]}, schema=SCHEMA)
    content = written(folder, same, 1)
    with folder.parquet_file(NAME) as file:
        groups = [file.metadata.row_group(number) for number in range(2)]
        starts = [min(column.dictionary_page_offset or column.data_page_offset for column in _columns(group)) for group in groups]
        ends = [starts[1], starts[1] * 2 - starts[0]]
    first, second = content[starts[0] : ends[0]], content[starts[1] : ends[1]]
    assert len(first) == len(second)
    write(folder / NAME, content[: starts[0]] + second + first + content[ends[1] :])
    with pytest.raises(InvariantViolated, match=NAME):
        folder.read_parquet(NAME)


def _columns(group: pq.RowGroupMetaData) -> list[pq.ColumnChunkMetaData]:
    return [group.column(number) for number in range(group.num_columns)]


def test_a_file_in_the_place_of_another_one_does_not_decrypt(folder: ParquetFolder, keys: MountedSecret) -> None:
    """First one of the same manifest, and so of the same key; then one of another manifest."""
    content = written(folder, rows(10))
    other = "data/run/t/p-1.parquet"
    write(folder / other, content)
    with pytest.raises(InvariantViolated, match=f"{other} does not decrypt"):
        folder.read_parquet(other)
    with pytest.raises(InvariantViolated, match=f"{NAME} does not decrypt"):
        ParquetFolder(folder.place, FileKey.new(keys.add("another"))).read_parquet(NAME)


def test_a_plain_file_in_the_place_of_an_encrypted_one_is_not_read(folder: ParquetFolder) -> None:
    written(ParquetFolder(folder.place), rows(10))
    with pytest.raises(InvariantViolated, match=NAME):
        folder.read_parquet(NAME)


def test_without_its_key_a_file_is_neither_read_nor_written(folder: ParquetFolder, keys: MountedSecret) -> None:
    written(folder, rows(10))
    keys.remove("2026-11")
    for attempt in (lambda: folder.read_parquet(NAME), lambda: folder.writer(NAME, io.BytesIO(), SCHEMA)):
        with pytest.raises(KeyUnusable, match=f"{NAME} is encrypted with the key '2026-11'.*the Secret backup-keys has no key"):
            attempt()


def test_a_missing_file_does_not_count_as_changed(folder: ParquetFolder) -> None:
    with pytest.raises(FileNotFoundError):
        folder.read_parquet(NAME)


def test_files_in_the_clear_are_read_as_before(place: StoredPath) -> None:
    written(ParquetFolder(place), rows(10))
    assert ParquetFolder(place).read_parquet(NAME) == rows(10)
    assert pq.read_table(io.BytesIO((place / NAME).read_bytes())) == rows(10)
