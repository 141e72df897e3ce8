"""A BookKeeperCluster whose bookies serve, and the parts of bookies, Jobs and kubelets in a drain, played."""

from __future__ import annotations

from collections.abc import Callable

from played_ledgers import PlayedLedgers
from stage import CLAIM, ZOOKEEPER_ADDRESS, Json, Stage

from herdkeeper.shared.names import BookKeeperNames, ObjectKey

KIND = "BookKeeperCluster"


class Bookies:
    """The BookKeeperCluster bk. `settle` reconciles until nothing is written any more; another one may stand in for it."""

    def __init__(self, stage: Stage, count: int = 5) -> None:
        self.stage, self.named = stage, BookKeeperNames(ObjectKey(stage.namespace, "bk"))
        self.settle: Callable[[], None] = lambda: stage.settle(KIND, "bk")
        self.ledgers = PlayedLedgers(stage.ensemble, self.named.ledgers_root)
        stage.declare(KIND, "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": count})
        self.settle()
        for number in range(count):
            stage.serve_bookie(self.named, number)
        stage.elect_auditor(self.named)
        self.settle()
        stage.set_status("Deployment", "bk-autorecovery", {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1})
        self.settle()

    def want(self, **spec: object) -> None:
        self.stage.patch(KIND, "bk", {"spec": spec})
        self.settle()

    def id(self, number: int) -> str:
        return self.stage.bookie_id(self.named, number)

    def ids(self, *numbers: int) -> tuple[str, ...]:
        return tuple(self.id(number) for number in numbers)

    def registered(self, number: int) -> str:
        root, bookie_id = f"{self.named.ledgers_root}/available", self.id(number)
        found = [
            mode
            for mode, path in (("rw", f"{root}/{bookie_id}"), ("ro", f"{root}/readonly/{bookie_id}"))
            if path in self.stage.ensemble.znodes
        ]
        return "+".join(found)

    def end_job(self, name: str, how: str = "Complete") -> None:
        """What the Job controller says of a Job that ended."""
        began = {"startTime": "2026-01-01T00:00:00Z"}
        first = "SuccessCriteriaMet" if how == "Complete" else "FailureTarget"
        conditions = [{"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z"} for kind in (first, how)]
        if how == "Complete":
            began |= {"completionTime": "2026-01-01T00:01:00Z"}
        self.stage.set_status("Job", name, {**began, "conditions": conditions})
        self.settle()

    def leave(self, number: int) -> None:
        """A bookie's process ends, and the operator sees it."""
        self.vanish(number)
        self.settle()

    def vanish(self, number: int) -> None:
        """Its pod is gone and its registration too."""
        bookie_id = self.id(number)
        if self.stage.live("Pod", self.named.pod(number)) is not None:
            self.stage.delete("Pod", self.named.pod(number))
        for path in (f"available/{bookie_id}", f"available/readonly/{bookie_id}"):
            self.stage.ensemble.znodes.pop(f"{self.named.ledgers_root}/{path}", None)

    def come_back(self, number: int, mode: str) -> None:
        self.stage.serve(self.named.stateful_set(number))
        bookie_id = self.id(number)
        self.stage.ensemble.put(f"{self.named.ledgers_root}/available/{'readonly/' if mode == 'ro' else ''}{bookie_id}")
        self.settle()

    def retire(self, number: int) -> None:
        """What decommissionbookie does: the cookie goes."""
        self.stage.ensemble.delete_tree(f"{self.named.ledgers_root}/cookies/{self.id(number)}")
        self.end_job(self.named.retire_job(number))

    def status(self) -> Json:
        return dict(self.stage.found(KIND, "bk")["status"])

    def drain_of(self, number: int) -> Json:
        (found,) = [bookie for bookie in self.status()["bookies"] if bookie["number"] == number]
        return dict(found["drain"])

    def replicas(self, number: int) -> int:
        return int(self.stage.found("StatefulSet", self.named.stateful_set(number))["spec"]["replicas"])

    def claims(self) -> set[int]:
        return {int(claim["metadata"]["name"].split("-")[2]) for claim in self.stage.listed(CLAIM)}

    def waits(self) -> tuple[str, str]:
        return self.stage.condition(KIND, "bk", "Progressing")
