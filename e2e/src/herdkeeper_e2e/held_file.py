"""Blocks every reader of a file while it runs: `python3 -m herdkeeper_e2e.held_file PATH`.

PATH is a FIFO (`os.mkfifo`). Nothing is written into it. For each reader it prints how many have come so far, like the writers
(`acknowledged`). It ends with a line, or the end, of its standard input. A blocked reader then reads an empty file, so kill it first.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import sys
import threading
from collections.abc import Callable


def hold(path: str, came: Callable[[int], object]) -> None:
    """Block all readers, one after the other, and report their number. It ends once the name is gone and the last reader has come."""
    count = 0
    while True:
        try:
            held = os.open(path, os.O_WRONLY)  # returns when somebody opens it to read
        except FileNotFoundError:
            return
        count += 1
        came(count)
        left = select.poll()
        left.register(held, 0)  # always an error: nobody reads any more
        left.poll()
        os.close(held)


def say(count: int) -> None:
    print(json.dumps({"acknowledged": count}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    threading.Thread(target=hold, args=(parser.parse_args().path, say), daemon=True).start()
    sys.stdin.readline()


if __name__ == "__main__":
    main()
