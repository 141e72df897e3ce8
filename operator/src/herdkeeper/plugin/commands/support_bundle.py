"""`kubectl herdkeeper support-bundle`: a file for support, without Secrets."""

from __future__ import annotations

import datetime
import io
import json
import zipfile
from collections.abc import Callable, Iterator

from herdkeeper.plugin.cluster import Cluster, ClusterError
from herdkeeper.plugin.command import Answer, Argument, Call, Command, new_file, write_new
from herdkeeper.plugin.commands.doctor import OPERATOR_NAMESPACE, diagnosis
from herdkeeper.plugin.commands.logs import containers, since_seconds
from herdkeeper.plugin.commands.plan import LAST_APPLIED
from herdkeeper.plugin.kinds import OBJECTS, OPERATOR, POD, RESOURCES, Kind
from herdkeeper.plugin.redaction import HIDDEN, redacted, redacted_text
from herdkeeper.shared import names
from herdkeeper.shared.counted import counted
from herdkeeper.shared.objects import Json


def run(call: Call) -> Answer:
    """Write the bundle."""
    now = datetime.datetime.now(datetime.UTC)
    path = new_file(call.given.file or f"herdkeeper-{call.cluster.namespace}-{now:%Y%m%d-%H%M%S}.zip")
    files = dict(contents(call.cluster, call.given.operator_namespace, since_seconds(call.given.since)))
    write_new(path, packed(files))
    return Answer(f"{path}: {counted(len(files), 'file')}; review it before you send it", {"file": str(path), "files": sorted(files)})


def contents(cluster: Cluster, operator_namespace: str, seconds: int) -> Iterator[tuple[str, str]]:
    """Yields the bundle's files: name and text. An unreadable part is replaced by the error."""
    yield "doctor.txt", redacted_text(_read(lambda: diagnosis(cluster, operator_namespace).text))
    for kind in (*RESOURCES, *OBJECTS):
        yield f"{kind.plural}.json", _objects(cluster, kind)
    yield from _logs(cluster, POD, seconds)
    yield from _logs(cluster.in_namespace(operator_namespace), OPERATOR, seconds, "operator/")


def packed(files: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


def _objects(cluster: Cluster, kind: Kind) -> str:
    return _read(lambda: json.dumps([redacted(_shown(item)) for item in cluster.list(kind)], indent=1, ensure_ascii=False))


def _shown(item: Json) -> Json:
    """Returns an object without irrelevant parts, and without kubectl's copy of it in an annotation. Of other programs' workloads
    neither spec nor annotations: a secret in an argument or a variable may have any name.
    """
    metadata = {name: value for name, value in item["metadata"].items() if name != "managedFields"}
    if "template" in (item.get("spec") or {}) and (metadata.get("labels") or {}).get(names.MANAGED_BY_LABEL) != names.MANAGER:
        return {**item, "metadata": {**metadata, "annotations": HIDDEN}, "spec": HIDDEN}
    annotations = {name: value for name, value in (metadata.get("annotations") or {}).items() if name != LAST_APPLIED}
    return {**item, "metadata": {**metadata, "annotations": annotations}}


def _logs(cluster: Cluster, kind: Kind, seconds: int, folder: str = "") -> Iterator[tuple[str, str]]:
    try:
        pods = cluster.list(kind)
    except ClusterError as error:
        yield f"{folder}logs/unreadable.txt", str(error)
        return
    for pod, container, _ in containers(pods):
        query = [("container", container), ("timestamps", "true"), ("sinceSeconds", str(seconds))]
        yield f"{folder}logs/{pod}/{container}.txt", _log(cluster, pod, query)


def _log(cluster: Cluster, pod: str, query: list[tuple[str, str]]) -> str:
    return redacted_text(_read(lambda: "\n".join(cluster.lines(POD, pod, "log", query))))


def _read(read: Callable[[], str]) -> str:
    try:
        return read()
    except ClusterError as error:
        return f"(can't be read: {error})"


COMMAND = Command(
    "support-bundle",
    "writes a zip file with resources, pods, events and logs for support, without Secrets",
    run,
    (
        Argument("--file", "the zip file; by default herdkeeper-NAMESPACE-TIME.zip"),
        Argument("--since", "maximum age of log lines, e.g. 30s, 10m, 2h, 1d", default="24h"),
        OPERATOR_NAMESPACE,
    ),
    description="Secrets and ConfigMaps are never read. Of other programs' Deployments, StatefulSets and Jobs, spec and annotations are "
    "left out. Anything that looks like a password, token or key is removed from logs and objects, too. Logs of failed statements may "
    "contain rows of tables: review the file before you send it.",
)
