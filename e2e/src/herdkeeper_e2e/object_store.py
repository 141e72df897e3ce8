"""A real S3 server: `python3 -m herdkeeper_e2e.object_store --program FILE --folder FOLDER --listen HOST:PORT`, here or in a pod.

The program is versitygw (`e2e/bootstrap/go-program.sh`). It checks each request's signature with its one key pair, decides conditional
creates under a file system lock, and serves a folder: its subfolders are buckets, the files below are objects. Several servers may share a
folder. It ends with its standard input, so it does not outlive its caller. Its keys come from the same variables as a client's. `--list
BUCKET` prints the content of a bucket of the server at AWS_ENDPOINT_URL.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

SERVING = "serving"
"""Printed once requests are answered."""
ENDPOINT, ACCESS_KEY_ID, SECRET_ACCESS_KEY = "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
_START_SECONDS = 60


@dataclass(frozen=True)
class Keys:
    access_key_id: str
    secret_access_key: str

    @property
    def variables(self) -> dict[str, str]:
        """Returns the variables of the server and its clients."""
        return {ACCESS_KEY_ID: self.access_key_id, SECRET_ACCESS_KEY: self.secret_access_key}


@contextmanager
def serving(command: list[str], listen: str, keys: Keys) -> Iterator[None]:
    """The server answers within the block. Raises SystemExit with its last output if it does not start."""
    known = {"ROOT_ACCESS_KEY": keys.access_key_id, "ROOT_SECRET_KEY": keys.secret_access_key}
    if _listens(listen):
        raise SystemExit(f"another program listens at {listen}")
    with TemporaryFile() as said:
        server = subprocess.Popen(command, env=os.environ | known, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not _listens(listen):
                if server.poll() is not None or time.monotonic() > deadline:
                    said.seek(0)
                    words = said.read().decode(errors="replace")[-3000:]
                    raise SystemExit(f"the S3 server does not serve at {listen}; its last words: {words}")
                time.sleep(0.05)
            yield
        finally:
            server.kill()
            server.wait()


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def keys_in(bucket: str) -> list[str]:
    """Returns the keys in a bucket, as the server lists them."""
    import obstore  # in the Spark image only

    from herdkeeper_jobs.storage.object_store import StoreSettings

    return sorted(str(item["path"]) for page in obstore.list(StoreSettings.of("s3", os.environ).open(bucket)) for item in page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="the server's file")
    parser.add_argument("--folder", type=Path, help="what it serves")
    parser.add_argument("--listen", help="an address of this machine")
    parser.add_argument("--bucket", action="append", default=[], help="one to make unless it is there; may be given several times")
    parser.add_argument("--certificate", nargs=2, metavar=("CERTIFICATE", "KEY"), help="files (PEM): it speaks TLS")
    parser.add_argument("--list", metavar="BUCKET", help="print the keys of a bucket instead")
    given = parser.parse_args()
    if given.list:
        print("\n".join(keys_in(given.list)))
        return
    for bucket in given.bucket:
        (given.folder / bucket).mkdir(parents=True, exist_ok=True)
    secure = ["--cert", given.certificate[0], "--key", given.certificate[1]] if given.certificate else []
    with TemporaryDirectory() as accounts:
        # Without a folder for accounts, even an empty one, an unknown key is answered with 404 and a special code.
        options = ["--iam-dir", accounts, "--keep-alive", "--quiet", *secure]
        command = [given.program, "--port", given.listen, *options, "posix", str(given.folder)]
        with serving(command, given.listen, Keys(os.environ[ACCESS_KEY_ID], os.environ[SECRET_ACCESS_KEY])):
            print(SERVING, flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main()
