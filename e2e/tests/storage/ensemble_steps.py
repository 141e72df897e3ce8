"""What the storage scenarios do with an ensemble of ZooKeeper, and wait for."""

from __future__ import annotations

from dataclasses import dataclass

from conftest import say

from herdkeeper_e2e.conditions import message_of, unsettled_reason
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

CHANGE = Limit(900, 1)


@dataclass(frozen=True)
class Ensemble:
    """A ZooKeeperCluster by its name."""

    kubectl: Kubectl
    name: str

    def seen(self) -> Object:
        """The resource as it is now."""
        return self.kubectl.existing("zookeepercluster", self.name)

    def want(self, **spec: object) -> None:
        """Changes its spec."""
        self.kubectl.want("zookeepercluster", self.name, **spec)

    def waits_for(self, reason: str) -> None:
        """Until the operator says that this is what it does, or waits for."""
        wait_for(reason, lambda: message_of(self.seen(), "Progressing", reason), Limit(CHANGE.seconds, 0.3), say)

    def takes_a_step(self, voters: int) -> None:
        """Until not so many members vote any more, whatever is left to do."""

        def ask() -> bool | Pending:
            now = self.seen()["status"].get("voters")
            return Pending(f"{now} voters") if now in (None, voters) else True

        wait_for(f"another number of voters than {voters}", ask, Limit(CHANGE.seconds, 0.3), say)

    def settled_on(self, members: int) -> None:
        """Until so many members vote and serve, and nothing is left to do."""

        def ask() -> bool | Pending:
            found = self.seen()
            voters, unsettled = found.get("status", {}).get("voters"), unsettled_reason(found)
            return True if voters == members and unsettled is None else Pending(f"{voters} voters; {unsettled}")

        wait_for(f"{members} members", ask, CHANGE, say)

    def pods(self) -> dict[str, str]:
        """The members' pods and their uids."""
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.kubectl.list("pods", self._selector())}

    def marks(self) -> list[str]:
        """What its claims say of their members, in the members' order."""
        claims = sorted(self.kubectl.list("persistentvolumeclaims", self._selector()), key=lambda each: str(each["metadata"]["name"]))
        return [claim["metadata"]["annotations"]["herdkeeper.io/founded"] for claim in claims]

    def has_pods(self, wanted: int) -> None:
        """Until so many pods are there."""
        wait_for(f"{wanted} pods", lambda: True if len(self.pods()) == wanted else Pending(str(sorted(self.pods()))), CHANGE)

    def _selector(self) -> str:
        return f"app.kubernetes.io/name=zookeeper,app.kubernetes.io/instance={self.name}"
