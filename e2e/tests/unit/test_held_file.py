"""Whoever reads a held file stands still there until it is killed, and is counted: run here, on processes of this test's own. And which
steps of a checkpoint's job come to such a file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_checkpoint_watch import FILE, IDENTITY, checkpoint

from herdkeeper_e2e.steered_process import acknowledged_in
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_jobs.checkpoint.history_files import read_listing
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.manifests.manifest import manifest_path, tablespace_folder
from herdkeeper_jobs.wal.lsn import Lsn

READ = "import pathlib, sys; print('comes', flush=True); pathlib.Path(sys.argv[1]).read_bytes()"
Process = subprocess.Popen[str]


@pytest.fixture
def held(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000001-00000000000000000002.json"
    os.mkfifo(path)
    return path


@contextmanager
def started(*command: str) -> Iterator[Process]:
    with subprocess.Popen([sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def next_count(holder: Process) -> int | None:
    assert holder.stdout is not None
    return acknowledged_in(holder.stdout.readline())


def test_each_one_who_comes_is_counted_and_held(held: Path) -> None:
    with started("-m", "herdkeeper_e2e.held_file", str(held)) as holder:
        for number in (1, 2):
            with started("-c", READ, str(held)) as reader:
                assert next_count(holder) == number
                assert reader.poll() is None


def test_who_came_before_the_program_is_held_too(held: Path) -> None:
    with started("-c", READ, str(held)) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "comes\n"
        with started("-m", "herdkeeper_e2e.held_file", str(held)) as holder:
            assert next_count(holder) == 1
            assert reader.poll() is None


def test_who_is_held_stays_when_the_name_is_gone_and_a_new_one_finds_no_file(held: Path) -> None:
    with started("-m", "herdkeeper_e2e.held_file", str(held)) as holder, started("-c", READ, str(held)) as reader:
        assert next_count(holder) == 1
        held.unlink()
        with pytest.raises(FileNotFoundError):
            held.read_bytes()
        assert reader.poll() is None


def test_an_order_ends_the_program_whether_somebody_came_or_not(held: Path) -> None:
    with started("-m", "herdkeeper_e2e.held_file", str(held)) as holder:
        holder.communicate("stop\n", timeout=60)
        assert holder.returncode == 0


def who_reads(path: Path) -> int:
    """A descriptor that holds who stands at a FIFO, which is waited for."""

    def ask() -> int | Pending:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            return Pending(f"nobody reads it: {error}")

    return wait_for(f"a reader of {path}", ask, Limit(120, 0.01))


def test_a_checkpoint_is_held_at_the_name_of_its_manifest_with_all_files_written(tmp_path: Path) -> None:
    folder = tablespace_folder(tmp_path, IDENTITY)
    name = manifest_path(folder, Lsn(1, 2))
    name.parent.mkdir(parents=True)
    os.mkfifo(name)
    with ThreadPoolExecutor(1) as pool:
        committed = pool.submit(checkpoint, tmp_path)
        held = who_reads(name)
        assert (folder / FILE).is_file()
        assert not committed.done()
        os.close(held)
        with pytest.raises(InvariantViolated, match="is not a manifest"):
            committed.result()


def test_a_report_is_held_at_any_name_among_the_manifests(tmp_path: Path) -> None:
    manifest = checkpoint(tmp_path)
    folder = tablespace_folder(tmp_path, IDENTITY)
    name = manifest_path(folder, Lsn(0, 0))
    os.mkfifo(name)
    with ThreadPoolExecutor(1) as pool:
        listed = pool.submit(read_listing, folder, IDENTITY, 10)
        held = who_reads(name)
        assert not listed.done()
        os.close(held)
        assert listed.result().names == (name.name, manifest.name)
