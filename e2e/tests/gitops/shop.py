"""A team's namespace, its git repository, and Flux, which applies what is committed there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from conftest import EXPLAINED_BY, begin_anew, say

from herdkeeper_e2e import cluster, flux, git_server
from herdkeeper_e2e.flux import Flux
from herdkeeper_e2e.git_server import GitRepository
from herdkeeper_e2e.kubectl import Kubectl

ADDRESS = "https://git.example.com/team/shop"
"""Of the repository, in the examples."""


@dataclass(frozen=True)
class Shop:
    """A namespace, the repository of what is to be there, and Flux."""

    kubectl: Kubectl
    repository: GitRepository
    flux: Flux

    def commit(self, files: Mapping[str, str | None]) -> str:
        """Commits files, which Flux fetches at once."""
        commit = self.repository.commit(files)
        self.flux.fetch("shop")
        return commit


AnyShop = TypeVar("AnyShop", bound=Shop)


@contextmanager
def opened(kind: type[AnyShop], namespace: str, folder: Path, pytestconfig: pytest.Config) -> Iterator[AnyShop]:
    """An empty namespace and an empty repository, with Flux running. The namespace stays."""
    kubectl = Kubectl(namespace, cluster.prepare(say))
    pytestconfig.stash[EXPLAINED_BY] = kubectl
    say(f"Flux's logs: {folder}")
    with git_server.serving(folder / "shop") as repository, flux.running(kubectl, folder) as running:
        begin_anew(kubectl)
        yield kind(kubectl, repository, running)
