"""What Spark starts to fork the Python processes of its tasks from: its own program, with all that tasks need imported before.

Spark imports nothing before it forks, since an import may start threads, which a fork leaves behind. None of these does
(`spark_session` sees to it, the tests count them), and imported here they cost their time once, not in each process. Spark's own
sources come from where PySpark is installed: the archive of them that it puts in front of everything else is for machines without
PySpark, and Python keeps nothing of what it compiled from an archive. Behind each task the process collects garbage, for which it would
look at everything that was ever imported: what was there before the fork is frozen, and passed over.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys

TASK_MODULES = "HERDKEEPER_TASK_MODULES"
"""The variable with the names of the modules to import, between commas: those of ours that the driver has."""


def import_before_the_fork(modules: str) -> None:
    """Imports what tasks of all jobs need, and these modules."""
    for name in ("numpy", "pyarrow.compute", "pyspark.worker", *filter(None, modules.split(","))):
        with contextlib.suppress(Exception):  # whatever it is: a task that needs the module says so, and another one needs it not
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    sys.path[:] = [path for path in sys.path if not path.endswith("/pyspark.zip")]
    from pyspark.daemon import manager

    import_before_the_fork(os.environ.get(TASK_MODULES, ""))
    manager()
