"""Two BookKeeperClusters, each with a database of its own, share an ensemble of ZooKeeper. Each keeps its own ledgers; one goes with all
that it had, and the other's rows, striped ledgers, metadata and volumes stay; the ensemble, deleted first, waits for both and says so."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

import yaml
from conftest import QUICKSTART, START, Stack, say
from load import STRIPING, Load
from proof import both_lost_nothing, found_nothing_in

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.conditions import all_ready, condition
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

ENSEMBLE = "shared-zk"
LEDGER = re.compile(r"/L\d{4}$")
ROWS = 100


@dataclass(frozen=True)
class Half:
    """One of the two: its resources are named after it."""

    kubectl: Kubectl
    name: str

    @property
    def bookkeeper(self) -> str:
        """Its BookKeeperCluster."""
        return f"{self.name}-bk"

    def stack(self) -> Stack:
        """What speaks SQL to it, once it is Ready."""
        database = Database.of(self.kubectl, f"{self.name}-db", self.bookkeeper, self.name)
        tools = ToolsPod(self.kubectl, f"{self.name}-tools", database).start()
        return Stack(self.kubectl, tools)

    def claims(self) -> dict[str, str]:
        """Its volume claims and their uids."""
        found = self.kubectl.list("persistentvolumeclaims")
        return {item["metadata"]["name"]: item["metadata"]["uid"] for item in found if f"{self.name}-" in item["metadata"]["name"]}

    def znodes(self, every: list[str]) -> set[str]:
        """Those of all paths that are below its roots."""
        roots = (f"/{self.kubectl.namespace}/{self.bookkeeper}/", f"/{self.kubectl.namespace}/{self.name}-db/")
        return {path for path in every if path.startswith(roots)}

    def ledgers(self, every: list[str]) -> set[str]:
        """The ledgers among them."""
        return {path for path in self.znodes(every) if "/ledgers/" in path and LEDGER.search(path)}

    def delete(self) -> None:
        """All its resources, from the top."""
        resources = (f"tablespace/{self.name}", f"herddbcluster/{self.name}-db", f"bookkeepercluster/{self.bookkeeper}")
        self.kubectl.run("delete", *resources, "--timeout=300s", timeout_seconds=310)


def declared(halves: tuple[Half, Half]) -> list[Object]:
    """The throwaway stack twice, on one ensemble, with bookies enough for striped ledgers."""
    text = (REPOSITORY / "examples/throwaway.yaml").read_text()
    copies = [yaml.safe_load_all(text.replace("temporary", half.name).replace(f"{half.name}-zk", ENSEMBLE)) for half in halves]
    documents = {(item["kind"], item["metadata"]["name"]): item for copy in copies for item in copy}
    for half in halves:
        documents["BookKeeperCluster", half.bookkeeper]["spec"]["bookies"] = STRIPING.ensemble_size
    return list(documents.values())


def waits_for(kubectl: Kubectl, *users: str) -> None:
    """Until the ensemble, which is being deleted, says that it waits for exactly these BookKeeperClusters."""

    def ask() -> bool | Pending:
        found = kubectl.get("zookeepercluster", ENSEMBLE)
        progressing = condition(found or {}, "Progressing")
        if progressing is None or progressing["reason"] != "WaitingForDependents":
            return Pending(str(progressing))
        named = set(re.findall(r"BookKeeperCluster ([\w-]+)", progressing["message"]))
        return True if named == set(users) else Pending(progressing["message"])

    wait_for(f"the deletion that waits for {users}", ask, Limit(120), say)


def test_one_of_two_clusters_on_an_ensemble_goes_and_the_other_keeps_everything(kubectl: Kubectl) -> None:
    halves = going, staying = Half(kubectl, "going"), Half(kubectl, "staying")
    kubectl.apply_all(declared(halves))
    names = {ENSEMBLE, *(half.name + suffix for half in halves for suffix in ("-bk", "-db", ""))}
    wait_for(
        "both clusters",
        lambda: all_ready([item for item in kubectl.list(QUICKSTART) if item["metadata"]["name"] in names], len(names)),
        START,
        say,
    )
    stacks = {half.name: half.stack() for half in halves}
    loads = {half.name: Load(stacks[half.name], "written", half.bookkeeper) for half in halves}
    for load in loads.values():
        load.acknowledges(ROWS)
    every = stacks[staying.name].tools.znodes()
    for half in halves:
        assert half.ledgers(every)
        status = found_nothing_in(stacks[half.name], half.bookkeeper, f"of-{half.name}")
        meanwhile = stacks[half.name].tools.znodes()
        assert len(half.ledgers(every)) <= status["ledgers"] <= len(half.ledgers(meanwhile)), f"{half.name} sees its own ledgers only"
    claims = staying.claims()

    began = time.monotonic()
    kubectl.run("delete", "zookeepercluster", ENSEMBLE, "--wait=false")
    waits_for(kubectl, going.bookkeeper, staying.bookkeeper)
    both_lost_nothing(loads[going.name])
    loads[staying.name].order("mark the neighbour deleted")
    going.delete()
    say(f"one of the two was gone after {time.monotonic() - began:.0f} s")
    waits_for(kubectl, staying.bookkeeper)
    loads[staying.name].acknowledges(ROWS)
    after = stacks[staying.name].tools.znodes()
    assert (going.znodes(after), going.claims()) == (set(), {})
    assert staying.ledgers(every) <= staying.ledgers(after)
    assert staying.claims() == claims
    both_lost_nothing(loads[staying.name])
    found_nothing_in(stacks[staying.name], staying.bookkeeper, "of-staying-alone")

    for half in halves:
        kubectl.run("delete", "pods", f"{half.name}-tools", f"clients-of-{half.bookkeeper}")
    staying.delete()
    kubectl.run("wait", "--for=delete", f"zookeepercluster/{ENSEMBLE}", "--timeout=300s", timeout_seconds=310)
