"""Starts Spark from a job's arguments: in this process, or with executor pods.

With `--master local[N]` driver and tasks share this machine. With `--master k8s://https://kubernetes.default.svc` this process, a Job's
pod, is the driver (client mode). Executors are pods of its own image, which Kubernetes collects with it by owner reference. Speculation is
off: a second attempt would only double the load on a bookie.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypeVar

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from herdkeeper_jobs.task_daemon import TASK_MODULES

Default = TypeVar("Default")
# Variables of the Python processes of tasks. Arrow and NumPy keep their memory instead of returning each batch's: the kernel clears memory
# that it hands out again, which took half of a fold's time.
_WORKER_ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    # NumPy and Arrow would start threads at import. Tasks don't use them, and a fork loses them.
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "MALLOC_MMAP_THRESHOLD_": str(32 * 1024 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(256 * 1024 * 1024),
}
# The JVM only plans and passes on results. That is over before the optimizing compiler would pay.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CLASS_ARCHIVE = "HERDKEEPER_CLASS_ARCHIVE"
"""The variable that names an archive of Spark's Java classes. The image has one."""
_LOCAL = re.compile(r"local\[(\d+)\]")


_JVM_ENDS_SECONDS = 10
"""How long after broken connections a JVM's end may become visible."""


class SparkEnded(RuntimeError):  # noqa: N818 - what happened, not a fault of the program
    """Spark's JVM ended before the work was done."""


class SparkConfigurationError(ValueError):
    """An argument or a variable of Spark is missing or wrong; the message names it and the fix."""


AUTHENTICATED = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
}
"""Peers of the driver and of executors must know the job's secret; traffic is encrypted with it. With executor pods Spark makes one secret
per job and passes it in a variable of their pods (SecurityManager, Spark 4.3)."""


def _argument(default: Default, words: str) -> Default:
    """A field of SparkSettings; `words` are the argument's help."""
    return field(default=default, metadata={"help": words})


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Where the tasks of a job run."""

    master: str = _argument("local[2]", "local[N], or k8s://https://kubernetes.default.svc")
    executors: int = _argument(2, "executor pods, with a k8s:// master")
    executor_cores: int = _argument(1, "tasks at once per executor")
    executor_memory: str = _argument("512m", "heap of an executor")
    executor_image: str = _argument("", "image of the executors, needed with a k8s:// master")
    executor_cpu_request: str = _argument("200m", "CPU request of a pod")
    executor_volume: str = _argument("", "claims that executors mount as well, claim:/path,…")
    executor_pod: str = _argument("", "manifest that executors' pods are made from, with their user and node, as JSON")
    image_pull_policy: str = _argument("IfNotPresent", "of the executors")
    driver_memory: str = _argument("768m", "heap of the driver, which with local[N] also runs the tasks")

    @property
    def cores(self) -> int:
        """Tasks that run at the same time. Raises SparkConfigurationError for another kind of master."""
        if self.on_kubernetes:
            return self.executors * self.executor_cores
        match = _LOCAL.fullmatch(self.master)
        if match is None or int(match.group(1)) < 1:
            raise SparkConfigurationError(f"--master is {self.master!r}: give local[N] with N >= 1, or k8s://https://<API server>")
        return int(match.group(1))

    @property
    def on_kubernetes(self) -> bool:
        return self.master.startswith("k8s://")


def add_spark_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds an argument for each field of SparkSettings; `spark_settings` converts their values."""
    group = parser.add_argument_group("spark")
    for each in fields(SparkSettings):
        words = each.metadata["help"] + (" (default: %(default)s)" if each.default else "")
        group.add_argument(f"--{each.name.replace('_', '-')}", type=type(each.default), default=each.default, help=words)


def spark_settings(arguments: argparse.Namespace) -> SparkSettings:
    """Converts parsed arguments. Raises SparkConfigurationError, naming the argument."""
    settings = SparkSettings(**{each.name: getattr(arguments, each.name) for each in fields(SparkSettings)})
    if settings.cores < 1:
        raise SparkConfigurationError("--executors and --executor-cores: both must be at least 1")
    return settings


def start_spark(application: str, settings: SparkSettings) -> SparkSession:
    """Starts a session. Raises SparkConfigurationError if something for Kubernetes is missing."""
    # Workers must use this interpreter, not the first python3 in the PATH.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    configuration = spark_configuration(settings, os.environ) | _pod_template(settings.executor_pod) | class_archive(os.environ)
    configuration[f"spark.executorEnv.{TASK_MODULES}"] = ",".join(
        sorted(name for name in sys.modules if name.startswith("herdkeeper_jobs."))
    )
    builder = SparkSession.builder.appName(application).master(settings.master)
    for key, value in configuration.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    return session


@contextmanager
def session_on_demand(application: str, settings: SparkSettings) -> Iterator[Callable[[], SparkSession]]:
    """Gives a function that starts the job's session on its first call. The session ends with the block.

    Raises SparkEnded instead of a consequential error if the JVM ended first; the function raises as `start_spark`.
    """
    started: list[SparkSession] = []

    @cache
    def start() -> SparkSession:
        started.append(start_spark(application, settings))
        return started[0]

    try:
        yield start
    except Exception as error:
        if started and (code := _exit_code_of_jvm(error)) is not None:
            end = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
            why = "most likely since memory ran out: raise the job's resources"
            raise SparkEnded(f"Spark's JVM {end} before its work was done, {why}") from error
        raise
    finally:
        for session in started:
            with suppress(Py4JError, OSError):  # a JVM that is gone needs no stop
                session.stop()


def _exit_code_of_jvm(error: Exception) -> int | None:
    """None while it runs. After a broken connection it waits for the JVM, since the connection breaks first."""
    jvm = getattr(SparkContext._gateway, "proc", None)
    if jvm is None:
        return None
    broken = isinstance(error, Py4JError | OSError) and not isinstance(error, Py4JJavaError)
    with suppress(subprocess.TimeoutExpired):
        return int(jvm.wait(_JVM_ENDS_SECONDS if broken else 0))
    return None


def _pod_template(manifest: str) -> dict[str, str]:
    """Writes the manifest to a file in this process's temporary folder, and configures its path."""
    if not manifest:
        return {}
    with NamedTemporaryFile("w", prefix="executor-", suffix=".json", delete=False) as file:
        file.write(manifest)
    return {"spark.kubernetes.executor.podTemplateFile": file.name}


def class_archive(environment: Mapping[str, str]) -> dict[str, str]:
    """Configures the driver to use the class archive of CLASS_ARCHIVE; empty without one.

    Java only accepts it with the class path that it was made for (images/spark/archive_classes.py). Spark's own class path has the jars in
    directory order.
    """
    file = environment.get(CLASS_ARCHIVE, "")
    if not Path(file).is_file():
        return {}
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    return {
        "spark.driver.extraJavaOptions": f"{_JAVA_OPTIONS} -XX:SharedArchiveFile={file}",
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
    }


def spark_configuration(settings: SparkSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """The configuration for these settings. Pure, so that tests need no JVM."""
    configuration = {
        "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
        "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
        "spark.driver.memory": _java_size("--driver-memory", settings.driver_memory),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.speculation": "false",
        # Otherwise it is the cores of those executors that registered in time, for the whole job.
        "spark.default.parallelism": str(settings.cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.python.daemon.module": "herdkeeper_jobs.task_daemon",
        # Saves about 20 ms per task against the loopback socket.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # A task gets batches of 10,000 rows, however large, unless this limit ends them.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(16 * 1024 * 1024),
        # Off, so that all planned tasks run, each with its planned bookie.
        "spark.sql.adaptive.enabled": "false",
    }
    configuration |= {f"spark.executorEnv.{name}": value for name, value in _WORKER_ENVIRONMENT.items()}
    # On one machine nobody else connects to the driver, and its host name may not resolve.
    local = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    return configuration | (_kubernetes(settings, environment) if settings.on_kubernetes else local)


def _kubernetes(settings: SparkSettings, environment: Mapping[str, str]) -> dict[str, str]:
    if not settings.executor_image:
        raise SparkConfigurationError("--executor-image is empty: executors as pods need an image; give the driver's own")
    pod_ip, pod_name, namespace = (_variable(environment, name) for name in ("POD_IP", "POD_NAME", "POD_NAMESPACE"))
    _check_pod(settings.executor_pod)
    return (AUTHENTICATED | _volume(settings.executor_volume)) | {
        # The pod has no Service, so executors need the driver's address.
        "spark.driver.bindAddress": pod_ip,
        "spark.driver.host": pod_ip,
        "spark.kubernetes.namespace": namespace,
        # Makes the driver's pod the owner of the executors.
        "spark.kubernetes.driver.pod.name": pod_name,
        "spark.kubernetes.executor.podNamePrefix": pod_name[:47].rstrip("-."),
        "spark.kubernetes.container.image": settings.executor_image,
        "spark.kubernetes.container.image.pullPolicy": settings.image_pull_policy,
        "spark.kubernetes.authenticate.serviceAccountName": environment.get("SERVICE_ACCOUNT", "default"),
        "spark.kubernetes.executor.request.cores": settings.executor_cpu_request,
        # Spark makes neither claims nor Services here, so the driver needs no right to list or delete them.
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.executor.instances": str(settings.executors),
        "spark.executor.cores": str(settings.executor_cores),
        "spark.executor.memory": _java_size("--executor-memory", settings.executor_memory),
        # Python workers use memory outside of the heap.
        "spark.executor.memoryOverheadFactor": "0.4",
        # Work starts with all executors, or after a while with those present.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
    }


def _volume(text: str) -> dict[str, str]:
    """Parses `claim:/path,…` into configuration."""
    if not text:
        return {}
    found: dict[str, str] = {}
    for number, volume in enumerate(text.split(",")):
        claim, _, path = volume.partition(":")
        if not claim or not path.startswith("/"):
            raise SparkConfigurationError(f"--executor-volume is {text!r}: give claim:/path, e.g. checkpoints:/checkpoints")
        prefix = f"spark.kubernetes.executor.volumes.persistentVolumeClaim.{'destination' if number == 0 else f'volume-{number}'}"
        found |= {f"{prefix}.options.claimName": claim, f"{prefix}.mount.path": path, f"{prefix}.mount.readOnly": "false"}
    return found


def _check_pod(manifest: str) -> None:
    try:
        kind = json.loads(manifest)["kind"] if manifest else "Pod"
    except (ValueError, KeyError, TypeError) as error:
        raise SparkConfigurationError(f"--executor-pod is {manifest!r}: give the manifest of a Pod as JSON ({error!r})") from error
    if kind != "Pod":
        raise SparkConfigurationError(f"--executor-pod has the kind {kind!r}: give the manifest of a Pod as JSON")


def _java_size(argument: str, size: str) -> str:
    """Converts Kubernetes' `512Mi` and `1Gi` to Java's `512m` and `1g`, which are also accepted."""
    match = re.fullmatch(r"(\d+)(?:([mg])|([MG])i)", size)
    if match is None:
        raise SparkConfigurationError(f"{argument} is {size!r}: give whole mebibytes or gibibytes, like 512m, 1g, 512Mi or 1Gi")
    return match.group(1) + (match.group(2) or match.group(3).lower())


def _variable(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise SparkConfigurationError(f"the variable {name} is not set: pass it to the pod by a fieldRef")
    return value
