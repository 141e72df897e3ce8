"""The bookies' admin ports: a bookie that is told to change its mode registers itself anew, as BookKeeper 4.18 does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from played_ensemble import PlayedEnsemble

from herdkeeper.bookkeeper.execute import BookieAdmin
from herdkeeper.clients.kubernetes_writer import RefusedError


@dataclass
class PlayedBookies(BookieAdmin):
    """`silent` are ids of bookies that don't answer; `tokens` were shown; `written` is called after each change."""

    ensemble: PlayedEnsemble
    silent: set[str] = field(default_factory=set)
    asked: list[tuple[str, bool]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    written: Callable[[str], None] = lambda _: None

    def set_read_only(self, bookie_id: str, host: str, read_only: bool, token: str) -> None:
        registered = {path for path in self.ensemble.znodes if path.endswith(f"/{bookie_id}") and "/available/" in path}
        if bookie_id in self.silent or not registered:
            raise RefusedError(f"http://{host} did not answer")
        self.asked.append((bookie_id, read_only))
        self.tokens.add(token)
        for path in registered:
            self.ensemble.znodes.pop(path)
            root = path.partition("/available/")[0]
            self.ensemble.put(f"{root}/available/{'readonly/' if read_only else ''}{bookie_id}")
        self.written(f"set {bookie_id} {read_only}")
