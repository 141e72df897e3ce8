"""A fleet of played stacks on a real control plane, and what a user, a person with bad luck and an observer do with it."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3
import yaml
from kazoo.client import KazooClient

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, Tablespace, ZooKeeperCluster
from herdkeeper.api.resource import GROUP, VERSION
from herdkeeper.codecs.herddb.tablespace import decode_tablespace, tablespace_path
from herdkeeper.shared.names import HerdDBNames, ObjectKey
from herdkeeper.shared.objects import is_ready
from herdkeeper_e2e.audit_log import AuditLog
from herdkeeper_e2e.control_plane import HOME, REPOSITORY, ControlPlane, apply_crds, apply_rules, make_namespace, rendered, running
from herdkeeper_e2e.fleet.addresses import namespaces_of_a_run
from herdkeeper_e2e.fleet.api_client import MERGE_PATCH
from herdkeeper_e2e.fleet.figures import Change
from herdkeeper_e2e.fleet.processes import Operator, Player
from herdkeeper_e2e.server_processes import servers
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

MAKING_SECONDS = 3600.0
STILL_SECONDS = 4.0
"""A stack gets its next change so long after the operator's answer to the last one: what is written next is the answer to this one."""
TABLESPACE = "flights"
PLURALS = {kind.KIND: kind.PLURAL for kind in (ZooKeeperCluster, BookKeeperCluster, HerdDBCluster, Tablespace)}


@dataclass
class Fleet:
    """What runs. `processes` are the ids of those beside the operator, by what they are."""

    plane: ControlPlane
    namespaces: list[str]
    audit: AuditLog
    player: Player
    znodes: KazooClient
    processes: dict[str, int]
    operator: Operator
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _chances: random.Random = field(default_factory=lambda: random.Random(1))  # the same stacks each time
    _changed: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._administrator = self.plane.dynamic_client()

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """An administrator's. Raises ApiException, and HTTPError while the API server is away."""
        content = {"content_type": MERGE_PATCH} if method == "patch" else {}
        return dict(json.loads(self._administrator.request(method, path, body=body, serialize=False, **content).data))

    def make(self) -> None:
        """All stacks, Ready. Nothing but events brings anything back to the operator meanwhile, so that it has time for what is new."""
        manifests = list(yaml.safe_load_all((REPOSITORY / "examples/quickstart.yaml").read_text()))
        for manifest in manifests:
            if manifest["kind"] == ZooKeeperCluster.KIND:
                manifest["spec"]["security"] = {"mode": "Insecure"}  # the played servers speak no TLS
            if manifest["kind"] == Tablespace.KIND:
                manifest["spec"]["fullCheck"] = {"suspend": True}  # nor do they check tables

        def make(namespace: str) -> None:
            make_namespace(self.plane, namespace)
            for manifest in manifests:
                self.request("post", _path(manifest["kind"], namespace), manifest)

        making = Operator(self.plane, self.plane.folder / "making.log", {"HERDKEEPER_RESYNC_SECONDS": "3600"})
        making.start()
        try:
            with ThreadPoolExecutor(8) as makers:
                list(makers.map(make, self.namespaces))
            wait_for("that all stacks are Ready", self._missing, Limit(MAKING_SECONDS, 5.0))
        finally:
            making.stop()

    def _missing(self) -> Pending | None:
        self.player.order("go", "on")
        lists = (self.request("get", f"/apis/{GROUP}/{VERSION}/{plural}")["items"] for plural in PLURALS.values())
        unready = [item for found in lists for item in found if not is_ready(item)]
        return Pending(f"{len(unready)} resources, of them {[_told(item) for item in unready[:2]]}") if unready else None

    def change(self, namespace: str) -> Change:
        """A harmless change of one value: the delay of autorecovery, which makes one Deployment anew."""
        delay = {"lostBookieRecoveryDelaySeconds": 300 + next(self._numbers)}
        self.request("patch", f"{_path('BookKeeperCluster', namespace)}/bk", {"spec": {"autoRecovery": delay}})
        self._changed[namespace] = time.time()
        return Change(namespace, self._changed[namespace])

    def change_somewhere(self, without: Collection[str]) -> Change | None:
        """The same in a stack in which nothing goes on; None when there is none, or while the API server is away."""
        self.audit.read()

        def is_still(namespace: str) -> bool:
            last, changed = self.audit.last_write.get(namespace, 0.0), self._changed.get(namespace, 0.0)
            return changed <= last < time.time() - STILL_SECONDS

        still = [namespace for namespace in self.namespaces if namespace not in without and is_still(namespace)]
        try:
            return self.change(self._chances.choice(still)) if still else None
        except urllib3.exceptions.HTTPError:
            return None

    def some(self, count: int, without: Collection[str] = ()) -> list[str]:
        return self._chances.sample([each for each in self.namespaces if each not in without], count)

    def leader(self, namespace: str) -> str:
        """Who leads the tablespace, by the record."""
        root = HerdDBNames(ObjectKey(namespace, "db")).herd_root
        return decode_tablespace(self.znodes.get(tablespace_path(root, TABLESPACE))[0]).leader

    def roll(self, namespace: str) -> None:
        """All SQL nodes of a stack get another template."""
        annotations = {"example.org/roll": str(next(self._numbers))}
        self.request("patch", f"{_path('HerdDBCluster', namespace)}/db", {"spec": {"pods": {"annotations": annotations}}})

    def touch(self, namespace: str) -> None:
        """Somebody annotates a pod."""
        annotations = {"example.org/noise": str(next(self._numbers))}
        self.request("patch", f"/api/v1/namespaces/{namespace}/pods/db-herddb-0", {"metadata": {"annotations": annotations}})

    def annotate(self, kind: str, namespace: str, name: str) -> None:
        """Somebody annotates a resource."""
        annotations = {"example.org/noise": str(next(self._numbers))}
        self.request("patch", f"{_path(kind, namespace)}/{name}", {"metadata": {"annotations": annotations}})

    @contextmanager
    def meanwhile(self, deed: Any, seconds: float) -> Iterator[list[float]]:
        """Do something each so many seconds, from a thread; its times."""
        over, times = threading.Event(), list[float]()

        def work() -> None:
            moment = time.monotonic()
            while not over.wait(max(0.0, moment - time.monotonic())):
                deed()
                times.append(time.time())
                moment += seconds

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield times
        finally:
            over.set()
            thread.join()


@contextmanager
def made(count: int, folder: Path) -> Iterator[Fleet]:
    """A fleet whose stacks are Ready, with an operator that has yet to be started."""
    urllib3.disable_warnings()  # the API server signs its own certificate
    with ExitStack() as running_processes:
        plane = running_processes.enter_context(running(folder, flags=()))
        apply_crds(plane, REPOSITORY / "crds")
        make_namespace(plane, HOME)
        apply_rules(plane, rendered())
        ensemble = running_processes.enter_context(servers(java_options=()))
        address = ensemble.start_zookeeper({"maxSessionTimeout": 120_000})
        znodes = running_processes.enter_context(ensemble.client())
        player = Player(plane.address, address, folder / "player.log")
        running_processes.callback(player.end)
        processes = {
            "API server": plane.api_server.process.pid,
            "etcd": plane.etcd.process.pid,
            "ZooKeeper": ensemble.process_ids()[0],
            "player": player.process.pid,
        }
        operator = Operator(plane, folder / "operator.log")
        fleet = Fleet(plane, namespaces_of_a_run(count), AuditLog(plane.audit_log), player, znodes, processes, operator)
        fleet.make()
        running_processes.callback(operator.stop)
        yield fleet


def _path(kind: str, namespace: str) -> str:
    return f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{PLURALS[kind]}"


def _told(item: dict[str, Any]) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}: {(item.get('status') or {}).get('message', 'not looked at')}"
