"""Who still deletes data with the help of a resource that is being deleted itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from herdkeeper.api.resource import Resource
from herdkeeper.domain import names
from herdkeeper.observe.world import World

Dependent = TypeVar("Dependent", bound=Resource)


def deleting_dependents(
    owner: Resource, kind: type[Dependent], refers_to: Callable[[Dependent], str | None], world: World
) -> tuple[str, ...]:
    """`Kind name` of each; `refers_to` is the name that a dependent's reference has. Only an owner that is being deleted needs to know."""
    if owner.metadata.deletion_timestamp is None:
        return ()
    return tuple(
        f"{other.KIND} {other.metadata.name}"
        for other in world.kubernetes.resources(kind, owner.metadata.namespace)
        if other.metadata.deletion_timestamp is not None
        and names.FINALIZER in other.metadata.finalizers
        and refers_to(other) == owner.metadata.name
    )
