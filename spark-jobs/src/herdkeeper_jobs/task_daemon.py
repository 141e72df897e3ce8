"""The daemon from which Spark forks the Python processes of tasks: Spark's own program, with the tasks' modules already imported.

Spark imports nothing before it forks, since imports may start threads, which a fork loses. These modules start none (`spark_session` sees
to it, the tests count them). Imported here, they cost their time once, not per process. Spark's own sources are imported from the installed
PySpark. Spark puts a zip of them first in the path, for machines without PySpark, and Python caches no bytecode for it. After each task the
process collects garbage, which would scan everything ever imported. Freezing exempts what existed before the fork.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys

TASK_MODULES = "HERDKEEPER_TASK_MODULES"
"""The variable with the modules to import, comma-separated: those of ours that the driver has."""


def import_before_the_fork(modules: str) -> None:
    """Imports what tasks of all jobs need, and these modules."""
    for name in ("numpy", "pyarrow.compute", "pyspark.worker", *filter(None, modules.split(","))):
        with contextlib.suppress(Exception):  # a task that needs the module reports the error
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    sys.path[:] = [path for path in sys.path if not path.endswith("/pyspark.zip")]
    from pyspark.daemon import manager

    import_before_the_fork(os.environ.get(TASK_MODULES, ""))
    manager()
