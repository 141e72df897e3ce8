"""Whoever reads a file stands still there, for as long as this runs: `python3 -m herdkeeper_e2e.held_file PATH`.

PATH is a FIFO (`os.mkfifo`). Nothing is written into it. On standard output it says each time that somebody has come how many have come so
far, as the writers say of rows (`acknowledged`). It ends with a line of its standard input, or with its end; whoever stands there then
reads an empty file, so kill it before.
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
    """Holds all who come, one after the other, and tells how many have come. It ends once the name is gone, and whoever came last."""
    count = 0
    while True:
        try:
            held = os.open(path, os.O_WRONLY)  # comes back when somebody opens it to read
        except FileNotFoundError:
            return
        count += 1
        came(count)
        left = select.poll()
        left.register(held, 0)  # an error is always told: that nobody reads any more
        left.poll()
        os.close(held)


def say(count: int) -> None:
    """One line for who steers this."""
    print(json.dumps({"acknowledged": count}), flush=True)


def main() -> int:
    """The command line; 0 after an order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    threading.Thread(target=hold, args=(parser.parse_args().path, say), daemon=True).start()
    sys.stdin.readline()
    return 0


if __name__ == "__main__":
    sys.exit(main())
