"""`kubectl herdkeeper logs`: the logs of a stack's pods, merged by time."""

from __future__ import annotations

import datetime
import heapq
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from herdkeeper.plugin.cluster import Cluster, ClusterError, Query
from herdkeeper.plugin.command import Answer, Argument, BadInputError, Call, Command, Takes, find_any
from herdkeeper.plugin.kinds import POD, RESOURCES
from herdkeeper.plugin.screen import Colour
from herdkeeper.plugin.stack_tree import label, parent_of
from herdkeeper.shared.objects import Json, is_made_for
from herdkeeper.shared.time import moment_of

_AGE = re.compile(r"([1-9][0-9]*)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
EARLIEST = datetime.datetime.min.replace(tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Line:
    """A line of a container's log. `time` is the kubelet's, unchanged; empty if there is none."""

    time: str
    source: str
    text: str


def run(call: Call) -> Answer:
    """Show the logs of the pods of a resource and of all that depends on it, or of all stacks."""
    query = [("timestamps", "true"), ("sinceSeconds", str(since_seconds(call.given.since)))]
    if call.given.tail is not None:
        query.append(("tailLines", tail_lines(call.given.tail)))
    pods = call.cluster.list(POD)
    if call.given.resource is not None:
        kind, item = find_any(call.cluster, call.given.resource, "RESOURCE")
        resources = [other for each in RESOURCES for other in call.cluster.list(each)]
        pods = tuple(pods_of(resources, pods, (kind.name, str(item["metadata"]["name"]))))
        if not pods:
            return Answer(without_pods(item), {"lines": []})
    logs = {source: _read(call.cluster, pod, container, query) for pod, container, source in containers(pods)}
    lines = list(merged(logs))
    if call.given.output == "text":
        widest = max((len(source) for source in logs), default=0)
        for line in lines:
            time, source = call.screen.paint(line.time, Colour.DIM), call.screen.paint(f"{line.source:<{widest}}", Colour.BOLD)
            call.screen.write(f"{time} {source} {line.text}".strip())
    return Answer("", {"lines": [asdict(line) for line in lines]})


def pods_of(resources: Sequence[Json], pods: Iterable[Json], top: tuple[str, str]) -> Iterator[Json]:
    """Yields the pods of a resource and of those that depend on it."""
    stack = {top}
    while True:
        more = {(str(item["kind"]), str(item["metadata"]["name"])) for item in resources if parent_of(item) in stack}
        if more <= stack:
            break
        stack |= more
    return (pod for pod in pods if any(is_made_for(pod, *owner) for owner in stack))


def without_pods(item: Json) -> str:
    """Why there is no log of a resource: a Tablespace, for example, is served by the pods of its HerdDBCluster."""
    below = parent_of(item)
    hint = f"; see `logs {below[0].lower()}/{below[1]}`, on which it rests" if below is not None else ""
    return f"{label(item)} has no pods, nor do the resources that depend on it{hint}"


def containers(pods: Iterable[Json]) -> Iterator[tuple[str, str, str]]:
    """Yields pod, container, and the log's name: only the pod's if it has one container. Init containers, such as a drain's, come first."""
    for pod in pods:
        every = (each for kind in ("initContainers", "containers") for each in pod["spec"].get(kind) or [])
        name, found = str(pod["metadata"]["name"]), [str(each["name"]) for each in every]
        for container in found:
            yield name, container, name if len(found) == 1 else f"{name}/{container}"


def since_seconds(written: str) -> int:
    """Returns the value of `--since` in seconds."""
    parts = _AGE.fullmatch(written)
    if parts is None:
        raise BadInputError(f"--since {written}: give a number with s, m, h or d, e.g. 30m")
    return int(parts[1]) * _SECONDS[parts[2]]


def tail_lines(written: str) -> str:
    if not written.isdecimal():
        raise BadInputError(f"--tail {written}: give a whole number, e.g. 100")
    return written


def _read(cluster: Cluster, pod: str, container: str, query: Query) -> Iterator[str]:
    """Yields the lines of a container's log, or that it can't be read."""
    try:
        yield from cluster.lines(POD, pod, "log", [*query, ("container", container)])
    except ClusterError as error:
        yield f"(no log: {error})"


def merged(logs: Mapping[str, Iterable[str]]) -> Iterator[Line]:
    """Yields the lines of all logs (by source), which begin with their times."""
    return (line for _, line in heapq.merge(*(_timed(source, lines) for source, lines in logs.items()), key=lambda pair: pair[0]))


def _timed(source: str, lines: Iterable[str]) -> Iterator[tuple[datetime.datetime, Line]]:
    """A line without a time stays with the previous one."""
    last = EARLIEST
    for line in lines:
        stamp, _, text = line.partition(" ")
        moment = moment_of(stamp)
        last = max(last, moment) if moment is not None else last
        yield last, Line(stamp, source, text) if moment is not None else Line("", source, line)


COMMAND = Command(
    "logs",
    "shows the logs of a stack's pods, merged by time",
    run,
    (
        Argument(
            "resource",
            "a resource as KIND/NAME: its pods, and those of all that depends on it; by default all of the namespace",
            Takes.OPTIONAL,
            kinds=RESOURCES,
        ),
        Argument("--since", "maximum age of lines, e.g. 30s, 10m, 2h, 1d", default="1h"),
        Argument("--tail", "maximum number of lines of each container"),
    ),
    description="Times are those of the nodes' kubelets. It shows existing lines and does not follow.",
)
