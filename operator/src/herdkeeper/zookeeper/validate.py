"""Refuses an invalid ZooKeeperCluster."""

from __future__ import annotations

from collections.abc import Iterator

from herdkeeper.planning.refusal import Refusal, config_refusals, name_refusals, peer_refusals
from herdkeeper.shared import owned_config
from herdkeeper.shared.quorum import SAFE_SIZE
from herdkeeper.zookeeper.state import Ensemble


def zookeeper_refusals(ensemble: Ensemble) -> tuple[Refusal, ...]:
    """Returns what is invalid in a ZooKeeperCluster."""
    spec = ensemble.cluster.spec
    return (
        *_single_member(ensemble),
        *name_refusals(spec),
        *peer_refusals(spec.clients, "spec.clients"),
        *config_refusals(spec.config, owned_config.ZOOKEEPER, owned_config.ZOOKEEPER_PREFIXES),
    )


def _single_member(ensemble: Ensemble) -> Iterator[Refusal]:
    """A deleted and recreated resource finds the ensemble of its retained volumes. The rule on changes can't detect that."""
    spec, voters = ensemble.cluster.spec, len(ensemble.voters or ())
    if spec.replicas < SAFE_SIZE <= voters and not spec.allow_single_member:
        yield Refusal(
            "spec.replicas",
            str(spec.replicas),
            f"the ensemble has {voters} voters; the loss of a single member would stop everything, and its volume would be the only copy",
            f"set {SAFE_SIZE}, or set spec.allowSingleMember to true",
        )
