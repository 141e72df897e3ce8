"""An S3 server for scenarios: `python3 -m herdkeeper_e2e.object_store`, in a pod into which moto was copied.

It serves one request after the other, so that a conditional create is decided at once, and keeps all objects in memory until its standard
input ends. `--list` prints the keys of the bucket of one that serves.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import threading
import urllib.request
from typing import Any

PORT = 9000
BUCKET = "backups"
_BUCKET_HERE = f"http://127.0.0.1:{PORT}/{BUCKET}"


def serve() -> None:
    """Serves until standard input ends; says `serving` once the bucket is there."""
    moto: Any = __import__("moto.server", fromlist=["server"])  # in the pod only, and without types
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # not a line for each request
    server = make_server("0.0.0.0", PORT, moto.DomainDispatcherApplication(moto.create_backend_app), threaded=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with urllib.request.urlopen(urllib.request.Request(_BUCKET_HERE, method="PUT"), timeout=60):
        print("serving", flush=True)
    sys.stdin.read()


def keys() -> list[str]:
    """What is in the bucket, up to 1,000 keys."""
    with urllib.request.urlopen(f"{_BUCKET_HERE}?list-type=2", timeout=60) as answer:
        return re.findall(r"<Key>([^<]*)</Key>", answer.read().decode())


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the keys instead")
    if parser.parse_args().list:
        print("\n".join(keys()))
    else:
        serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
