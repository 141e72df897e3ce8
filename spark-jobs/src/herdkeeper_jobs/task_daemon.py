"""What Spark starts to fork the Python processes of its tasks from: its own program, imported from where PySpark is installed.

Spark puts an archive of its Python sources in front of everything else, for machines without PySpark. Python keeps nothing of what it
compiles from an archive, so that each start compiled all of it again: most of what the first task cost.
"""

from __future__ import annotations

import sys

sys.path[:] = [path for path in sys.path if not path.endswith("/pyspark.zip")]

from pyspark.daemon import manager  # noqa: E402 - from the path as it is now

if __name__ == "__main__":
    manager()
