"""A NameNode and a DataNode in the tests' own process, as WebHDFS speaks: what fsspec asks of them, with files of a temporary folder.

Like HDFS it makes folders by itself, answers a rename to a name that is taken with `false`, and deletes no folder that has something in it.
`test_checkpoints_in_hdfs.py` asks the same of a real one.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import uuid
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from herdkeeper.shared.names import FILE_SYSTEM_OPTIONS_VARIABLE
from herdkeeper_jobs.storage.file_system_path import FileSystemPath

USER = "checkpoints"
_OPTIONS = Path(tempfile.mkdtemp(prefix="file-system-options-"))
_PREFIX = "/webhdfs/v1"
_replace, _rmdir, _unlink = os.replace, os.rmdir, os.unlink
"""As they are while a test lets its own process die at a change of a folder: this one lives on."""


def announce() -> None:
    """Tells processes that are started from now on where the options are: a Secret with the user."""
    (_OPTIONS / "user").write_text(USER)
    os.environ[FILE_SYSTEM_OPTIONS_VARIABLE] = str(_OPTIONS)


@dataclass
class PlayedHdfs:
    """What is served: the files of a folder. `renames_over`: a rename replaces what is there, as HDFS never does; `loses_blocks`: the
    DataNode answers with an error instead of what is in a file."""

    folder: Path
    renames_over: bool = False
    loses_blocks: bool = False
    asked: list[str] = field(default_factory=list)
    """Operation and path of each request to the NameNode."""
    changing: threading.Lock = field(default_factory=threading.Lock)

    def serve(self) -> FileSystemPath:
        """Its root; it serves until the process ends."""
        handler = type("_OfThisOne", (_Handler,), {"hdfs": self})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return FileSystemPath(f"webhdfs://127.0.0.1:{server.server_port}")


@cache
def _shared() -> FileSystemPath:
    return PlayedHdfs(Path(tempfile.mkdtemp(prefix="played-hdfs-"))).serve()


def new_folder() -> FileSystemPath:
    """A folder that is not there yet, as one is that a URL names."""
    return _shared() / f"folder-{uuid.uuid4().hex}"


class _Handler(BaseHTTPRequestHandler):
    hdfs: PlayedHdfs
    protocol_version = "HTTP/1.1"
    # Answers in one piece: else each waits for the client's kernel to acknowledge its head.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = urlsplit(self.path)
        given = {name: values[0] for name, values in parse_qs(asked.query).items()}
        path = self.hdfs.folder / unquote(asked.path.removeprefix(_PREFIX)).strip("/")
        operation = given["op"]
        if given.get("user.name") != USER:
            self._refuse(403, "AccessControlException", f"user {given.get('user.name')} may not {operation} {path.name}")
            return
        if operation in ("CREATE", "APPEND", "OPEN") and "datanode" not in given:
            self.hdfs.asked.append(f"{operation} {path.name}")
            self.send_response(307)
            self.send_header("Location", f"http://{self.headers['Host']}{self.path}&datanode=1")
            self._send(b"")
            return
        with self.hdfs.changing:
            try:
                getattr(self, f"_{operation.lower()}")(path, given, body)
            except FileNotFoundError:
                self._refuse(404, "FileNotFoundException", f"File {path.name} does not exist.")
            except OSError as error:
                self._refuse(403, "PathIsNotEmptyDirectoryException", str(error))

    def _create(self, path: Path, given: dict[str, str], body: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            file.write(body)
        self.send_response(201)
        self._send(b"")

    def _append(self, path: Path, given: dict[str, str], body: bytes) -> None:
        with open(path, "r+b") as file:
            file.seek(0, os.SEEK_END)
            file.write(body)
        self.send_response(200)
        self._send(b"")

    def _open(self, path: Path, given: dict[str, str], body: bytes) -> None:
        if self.hdfs.loses_blocks:
            self._refuse(403, "IOException", f"Could not obtain a block of http://datanode/{path.name}?delegation=secret")
            return
        first = int(given.get("offset", 0))
        with open(path, "rb") as file:
            file.seek(first)
            content = file.read(int(given["length"]))
        self.send_response(200)
        self._send(content)

    def _getfilestatus(self, path: Path, given: dict[str, str], body: bytes) -> None:
        self._tell({"FileStatus": _status(path, "")})

    def _liststatus(self, path: Path, given: dict[str, str], body: bytes) -> None:
        found = [_status(child, child.name) for child in sorted(path.iterdir())] if path.is_dir() else [_status(path, "")]
        self._tell({"FileStatuses": {"FileStatus": found}})

    def _mkdirs(self, path: Path, given: dict[str, str], body: bytes) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self._tell({"boolean": True})

    def _rename(self, path: Path, given: dict[str, str], body: bytes) -> None:
        other = self.hdfs.folder / given["destination"].strip("/")
        renames = path.exists() and (self.hdfs.renames_over or not other.exists())
        if renames:
            _replace(path, other)
        self._tell({"boolean": renames})

    def _delete(self, path: Path, given: dict[str, str], body: bytes) -> None:
        there = path.exists()
        if there:
            (_rmdir if path.is_dir() else _unlink)(path)
        self._tell({"boolean": there})

    def _tell(self, answer: dict[str, object]) -> None:
        self.send_response(200)
        self._send(json.dumps(answer).encode())

    def _refuse(self, status: int, exception: str, message: str) -> None:
        self.send_response(status)
        self._send(json.dumps({"RemoteException": {"exception": exception, "message": message}}).encode())

    def _send(self, body: bytes) -> None:
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _status(path: Path, suffix: str) -> dict[str, object]:
    is_folder = path.is_dir()
    return {"pathSuffix": suffix, "type": "DIRECTORY" if is_folder else "FILE", "length": 0 if is_folder else path.stat().st_size}
