"""The scenarios' S3 server serves what a pod gives it, to who has its keys, and ends with who started it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest

from herdkeeper_e2e.free_ports import free_port
from herdkeeper_e2e.go_module import go_program
from herdkeeper_e2e.object_store import SERVING, Keys
from herdkeeper_e2e.object_store_process import SERVER
from herdkeeper_jobs.storage.object_store import StoreSettings

KEYS = Keys("an-id", "a-secret")
BUCKET = "backups"


def program(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    """As `kubectl exec` starts it."""
    command = [sys.executable, "-m", "herdkeeper_e2e.object_store", *arguments]
    environment = os.environ | KEYS.variables | {"PYTHONPATH": os.pathsep.join(sys.path)} | variables
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def serve(folder: Path, port: int, *more: str) -> subprocess.Popen[str]:
    where = ("--program", str(go_program(SERVER)), "--folder", str(folder), "--listen", f"0.0.0.0:{port}")
    return program(*where, "--bucket", BUCKET, *more)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Its code and what it said, once its standard input has ended."""
    said, _ = process.communicate(timeout=60)
    return process.returncode, said


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Where a server serves."""
    port = free_port()
    process = serve(tmp_path / "buckets", port)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == SERVING
    yield port
    assert ended(process)[0] == 0
    with pytest.raises(obstore.exceptions.BaseError):
        obstore.put(opened(port, KEYS), "late", b"")


def opened(port: int, keys: Keys) -> obstore.store.S3Store:
    found = StoreSettings.of("s3", {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", **keys.variables}).open(BUCKET)
    assert isinstance(found, obstore.store.S3Store)
    return found


def test_its_bucket_is_there_and_its_keys_are_printed(port: int) -> None:
    address = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    assert ended(program("--list", BUCKET, **address)) == (0, "\n")
    for key in ("flights/manifests/1.json", "flights/.creates-once"):
        opened(port, KEYS).put(key, b"content")
    assert ended(program("--list", BUCKET, **address))[1].split() == ["flights/.creates-once", "flights/manifests/1.json"]


def test_other_keys_are_refused(port: int) -> None:
    for other, code in ((Keys("another-id", "a-secret"), "InvalidAccessKeyId"), (Keys("an-id", "another"), "SignatureDoesNotMatch")):
        with pytest.raises(obstore.exceptions.PermissionDeniedError, match=code):
            opened(port, other).put("a", b"")


def test_a_server_that_does_not_start_says_why(tmp_path: Path, port: int) -> None:
    code, said = ended(serve(tmp_path / "others", port))
    assert (code, said.strip()) == (1, f"another program listens at 0.0.0.0:{port}")
    nothing = str(tmp_path / "nothing")
    code, said = ended(serve(tmp_path / "others", free_port(), "--certificate", nothing, nothing))
    assert code == 1
    assert "its last words: " in said
    assert f"open {nothing}: no such file or directory" in said
