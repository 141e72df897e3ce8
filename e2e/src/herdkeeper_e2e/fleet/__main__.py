"""Measures the operator against fleets of played stacks, and prints a table: `python -m herdkeeper_e2e.fleet --stacks 10 100`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from herdkeeper_e2e.fleet.bench import FIGURES, measure
from herdkeeper_e2e.fleet.figures import table


def main(arguments: Sequence[str]) -> None:
    """One fleet after the other; what was measured is printed at once, and all of it at the end."""
    parser = argparse.ArgumentParser(prog="make bench-fleet", description=__doc__)
    parser.add_argument("--stacks", type=int, nargs="+", default=[10, 100, 250])
    parser.add_argument("--only", type=int, nargs="+", choices=sorted(FIGURES), default=sorted(FIGURES))
    options = parser.parse_args(arguments)
    columns: dict[str, dict[str, str]] = {}
    for count in options.stacks:
        folder = Path(tempfile.mkdtemp(prefix=f"herdkeeper-fleet-{count}-"))
        print(f"{count} stacks; logs are in {folder} until all is measured", flush=True)
        columns[f"{count} stacks"] = measure(count, folder, frozenset(options.only))
        shutil.rmtree(folder)
        print(table(columns), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
