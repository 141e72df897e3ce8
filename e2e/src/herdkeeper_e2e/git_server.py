"""A git repository that is served over HTTP on this machine, read only."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

SERVICE = "git-upload-pack"
"""The half of git's protocol that fetches."""
_ADVERTISED = f"# service={SERVICE}\n"


def _git(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    identity = ("-c", "user.name=team", "-c", "user.email=team@example.com")
    return subprocess.run(["git", *identity, *arguments], cwd=folder, input=stdin, check=True, stdout=subprocess.PIPE).stdout


@dataclass(frozen=True)
class GitRepository:
    """A work tree with the branch `main`, and the URL from which it is fetched."""

    folder: Path
    url: str

    def commit(self, files: Mapping[str, str | None]) -> str:
        """Write these files, or remove those that are None; returns the commit's hash."""
        for name, text in files.items():
            path = self.folder / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        _git(self.folder, "add", "--all")
        _git(self.folder, "commit", "--quiet", "--message", f"Change {', '.join(files)}")
        return _git(self.folder, "rev-parse", "HEAD").decode().strip()


@contextmanager
def serving(folder: Path) -> Iterator[GitRepository]:
    """A new repository in a folder that does not exist yet, served at 127.0.0.1."""
    folder.mkdir()
    _git(folder, "init", "--quiet", "--initial-branch", "main")

    class UploadPack(BaseHTTPRequestHandler):
        """Git's smart protocol: what there is, and what a client lacks of it."""

        def do_GET(self) -> None:
            if not self.path.endswith(f"/info/refs?service={SERVICE}"):
                self.send_error(404)
                return
            first = f"{len(_ADVERTISED) + 4:04x}{_ADVERTISED}0000".encode()
            self._answer("advertisement", first + _git(folder, "upload-pack", "--stateless-rpc", "--advertise-refs", "."))

        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer("result", _git(folder, "upload-pack", "--stateless-rpc", ".", stdin=asked))

        def _answer(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", f"application/x-{SERVICE}-{kind}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), UploadPack)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield GitRepository(folder, f"http://127.0.0.1:{server.server_address[1]}/{folder.name}")
    finally:
        server.shutdown()
        server.server_close()
