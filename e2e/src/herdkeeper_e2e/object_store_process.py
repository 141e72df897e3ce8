"""The S3 server of the scenarios without a pod: a plain process, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from herdkeeper_e2e.go_module import go_program
from herdkeeper_e2e.object_store import SERVING, Keys

SERVER = "object-store"
"""The server's name among the programs of the tests."""


@dataclass(frozen=True)
class StoreProcess:
    """A running server, which ends with its parent process at the latest."""

    process: subprocess.Popen[str]

    @staticmethod
    def start(folder: Path, port: int, keys: Keys, certificate: tuple[Path, Path] | None = None) -> StoreProcess:
        """Serve a folder's buckets at 127.0.0.1, with TLS if given a certificate and key (PEM). Raises SystemExit if it does not start."""
        serve = [sys.executable, "-m", "herdkeeper_e2e.object_store", "--program", str(go_program(SERVER)), "--folder", str(folder)]
        secure = ["--certificate", *map(str, certificate)] if certificate else []
        process = subprocess.Popen(
            [*serve, "--listen", f"127.0.0.1:{port}", *secure],
            env=os.environ | keys.variables | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        if process.stdout.readline().strip() != SERVING:
            raise SystemExit(f"no S3 server at port {port}: it ended with code {process.wait()}")
        return StoreProcess(process)

    def stop(self) -> None:
        """End it; stored data stays."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
