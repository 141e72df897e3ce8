"""Default images of servers and jobs, from the operator's settings, so that one value of the chart applies to a whole installation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from herdkeeper.api.bookkeeper_cluster import BookKeeperCluster
from herdkeeper.api.herddb_cluster import HerdDBCluster
from herdkeeper.api.resource import Resource
from herdkeeper.api.zookeeper_cluster import ZooKeeperCluster

ResourceType = TypeVar("ResourceType", bound=Resource)

VERSION = "0.2.0"
"""Of the operator and of the images that are built with it; pyproject.toml's."""


@dataclass(frozen=True)
class DefaultImages:
    """Images for resources without one. `spark` is for every job and archiver."""

    zookeeper: str = f"herdkeeper/zookeeper:{VERSION}"
    bookkeeper: str = f"herdkeeper/bookkeeper:{VERSION}"
    herddb: str = f"herdkeeper/herddb:{VERSION}"
    spark: str = f"herdkeeper/spark:{VERSION}"

    def completed(self, resource: ResourceType) -> ResourceType:
        """Returns the resource with its servers' image. The stored resource has none, so that a changed default applies to it."""
        images = {ZooKeeperCluster.KIND: self.zookeeper, BookKeeperCluster.KIND: self.bookkeeper, HerdDBCluster.KIND: self.herddb}
        image = images.get(resource.KIND)
        if image is None or resource.spec is None or resource.spec.image is not None:
            return resource
        return resource.model_copy(update={"spec": resource.spec.model_copy(update={"image": image})})


SHIPPED_IMAGES = DefaultImages()
"""Images that this version builds, if no registry is set."""


def image_of(cluster: ZooKeeperCluster | BookKeeperCluster | HerdDBCluster) -> str:
    """Returns the servers' image. Raises ValueError for a resource that was not completed: no pod may be made from it."""
    if cluster.spec.image is None:
        raise ValueError(f"{cluster.KIND} {cluster.metadata.name} has no image, and the operator's default was not filled in")
    return cluster.spec.image
