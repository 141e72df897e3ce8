"""`kubectl herdkeeper support-bundle`: a file with all that somebody needs who helps, and no Secret."""

from __future__ import annotations

import datetime
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from herdkeeper.plugin.cluster import Cluster, ClusterError
from herdkeeper.plugin.command import Answer, Argument, BadInputError, Call, Command
from herdkeeper.plugin.commands.doctor import OPERATOR_NAMESPACE, diagnosis
from herdkeeper.plugin.commands.logs import containers, since_seconds
from herdkeeper.plugin.commands.plan import LAST_APPLIED
from herdkeeper.plugin.kinds import OBJECTS, OPERATOR, POD, RESOURCES, Kind
from herdkeeper.plugin.redaction import redacted, redacted_text
from herdkeeper.shared.objects import Json


def run(call: Call) -> Answer:
    """Writes the bundle."""
    now = datetime.datetime.now(datetime.UTC)
    path = Path(call.given.file or f"herdkeeper-{call.cluster.namespace}-{now:%Y%m%d-%H%M%S}.zip")
    if path.exists():
        raise BadInputError(f"--file {path}: there is such a file; name another")
    files = dict(contents(call.cluster, call.given.operator_namespace, since_seconds(call.given.since)))
    try:
        path.write_bytes(packed(files))
    except OSError as error:
        raise BadInputError(f"--file {path}: it can't be written ({error.strerror})") from error
    return Answer(f"{path}: {len(files)} files; look through it before you send it", {"file": str(path), "files": sorted(files)})


def contents(cluster: Cluster, operator_namespace: str, seconds: int) -> Iterator[tuple[str, str]]:
    """The bundle's files: name and text. What can't be read says so in its place."""
    yield "doctor.txt", redacted_text(_read(lambda: diagnosis(cluster, operator_namespace)[2]))
    for kind in (*RESOURCES, *OBJECTS):
        yield f"{kind.plural}.json", _objects(cluster, kind)
    yield from _logs(cluster, POD, seconds)
    yield from _logs(cluster.in_namespace(operator_namespace), OPERATOR, seconds, "operator/")


def packed(files: dict[str, str]) -> bytes:
    """A zip archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


def _objects(cluster: Cluster, kind: Kind) -> str:
    return _read(lambda: json.dumps([redacted(_shown(item)) for item in cluster.list(kind)], indent=1, ensure_ascii=False))


def _shown(item: Json) -> Json:
    """An object without what nobody reads, and without the copy of it that kubectl keeps in an annotation."""
    metadata = {name: value for name, value in item["metadata"].items() if name != "managedFields"}
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
    "writes a file with resources, pods, events and logs for somebody who helps; no Secret is in it",
    run,
    (
        Argument("--file", "the zip file; herdkeeper-NAMESPACE-TIME.zip when absent"),
        Argument("--since", "how old lines of logs may be, e.g. 30s, 10m, 2h, 1d", default="24h"),
        OPERATOR_NAMESPACE,
    ),
    description="Secrets and ConfigMaps are never read. What looks like a password, token or key is left out of logs and objects, too. "
    "Rows of tables may stand in logs of failed statements: look through it before you send it.",
)
