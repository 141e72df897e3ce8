"""Prints the newest checkpoint's rows of a writer's table: `python3 -m herdkeeper_e2e.checkpoint_rows --table T`, in a pod that mounts it.

The output is one JSON object: the ids (`rows`), and those with a changed payload (`altered`).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from herdkeeper_e2e.history import altered_in
from herdkeeper_e2e.tools_pod import CHECKPOINTS


def main() -> None:
    from herdkeeper_jobs.checkpoint.reading import open_latest  # pyarrow is in the Spark image only

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", required=True)
    rows = [(row["id"], row["payload"]) for row in open_latest(Path(CHECKPOINTS)).load(parser.parse_args().table).to_pylist()]
    print(json.dumps({"rows": [row for row, _ in rows], "altered": altered_in(rows)}))


if __name__ == "__main__":
    main()
