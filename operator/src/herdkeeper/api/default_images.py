"""Images of the servers and jobs that name none: settings of the operator, so that one value of the chart serves a whole installation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from herdkeeper.api.bookkeeper_cluster import BookKeeperCluster
from herdkeeper.api.herddb_cluster import HerdDBCluster
from herdkeeper.api.resource import Resource
from herdkeeper.api.zookeeper_cluster import ZooKeeperCluster

ResourceType = TypeVar("ResourceType", bound=Resource)


@dataclass(frozen=True)
class DefaultImages:
    """What runs where a resource names no image. `spark` is that of every job and archiver."""

    zookeeper: str = "herdkeeper/zookeeper:0.1.0"
    bookkeeper: str = "herdkeeper/bookkeeper:0.1.0"
    herddb: str = "herdkeeper/herddb:0.1.0"
    spark: str = "herdkeeper/spark:0.1.0"

    def completed(self, resource: ResourceType) -> ResourceType:
        """The resource with the image that its servers run. It is stored without one, so that another default reaches it."""
        image = self._image_of(resource)
        if image is None or resource.spec is None or resource.spec.image is not None:
            return resource
        return resource.model_copy(update={"spec": resource.spec.model_copy(update={"image": image})})

    def _image_of(self, resource: Resource) -> str | None:
        match resource:
            case ZooKeeperCluster():
                return self.zookeeper
            case BookKeeperCluster():
                return self.bookkeeper
            case HerdDBCluster():
                return self.herddb
            case _:
                return None


SHIPPED_IMAGES = DefaultImages()
"""Those that this version builds, where no registry is set."""


def image_of(cluster: ZooKeeperCluster | BookKeeperCluster | HerdDBCluster) -> str:
    """The image that the servers run. ValueError for a resource that was not completed: no pod may be made from it."""
    if cluster.spec.image is None:
        raise ValueError(f"{cluster.KIND} {cluster.metadata.name} names no image, and was not completed with the operator's")
    return cluster.spec.image
