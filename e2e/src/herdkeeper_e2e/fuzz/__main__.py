"""Plays stories until the time is over, or those of given seeds; prints each seed and its violations. Exits with 1 if there are any."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from herdkeeper_e2e.fuzz import world
from herdkeeper_e2e.fuzz.conversation import Note
from herdkeeper_e2e.fuzz.judgement import Kind, Violation
from herdkeeper_e2e.fuzz.story import STORIES_OF_A_WORLD, draw, world_of
from herdkeeper_e2e.fuzz.telling import tell

_UNUSABLE = (Kind.NO_LEADER, Kind.NO_ANSWER, Kind.ENDED)


def main(arguments: Sequence[str]) -> int:
    """Returns 0 without violations."""
    options = _options(arguments)
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # ZooKeeper is meant to end
    jars = {"herddb": options.herddb_jars} if options.herddb_jars else {}
    folder = Path(tempfile.mkdtemp(prefix="herdkeeper-stories-"))
    print(f"what each story said is in {folder}", flush=True)
    end = time.monotonic() + 60 * options.minutes
    found: dict[int, list[Violation]] = {}
    told = 0
    seeds = _seeds(options.seed, options.first_seed)
    seed = next(seeds, None)
    while seed is not None and (told == 0 or time.monotonic() < end):
        place = seed // STORIES_OF_A_WORLD
        with world.running(world_of(seed), jars) as cluster:
            # The next story gets another cluster, even if this one no longer serves: each story has its own tablespaces.
            whole = True
            while seed is not None and seed // STORIES_OF_A_WORLD == place and whole and (told == 0 or time.monotonic() < end):
                began = time.monotonic()
                story = draw(seed)
                found[seed] = tell(replace(story, acts=story.acts[: options.acts]), cluster, _note(folder, seed))
                told += 1
                print(f"seed {seed}: {len(found[seed])} violations, {time.monotonic() - began:.0f} s", flush=True)
                for violation in found[seed]:
                    print(f"    {violation}", flush=True)
                whole = not any(violation.kind in _UNUSABLE for violation in found[seed])
                if found[seed]:
                    _keep_words(cluster, folder, seed)
                seed = next(seeds, None)
    _sum_up(found, told)
    return 1 if any(found.values()) else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="for how long stories are begun")
    parser.add_argument("--seed", type=int, nargs="+", help="tell the stories of these seeds again, to a brand new cluster")
    parser.add_argument("--acts", type=int, help="only so many acts of each story, to find how little it takes")
    parser.add_argument("--first-seed", type=int, default=int(time.time()), help="the seed of the first story")
    parser.add_argument("--herddb-jars", type=Path, help="a folder with the SQL node's jars, instead of this checkout's")
    return parser.parse_args(arguments)


def _seeds(only: Sequence[int] | None, first: int) -> Iterator[int]:
    if only is not None:
        yield from only
        return
    seed = first - first % STORIES_OF_A_WORLD
    while True:
        yield seed
        seed += 1


def _note(folder: Path, seed: int) -> Note:
    began = time.monotonic()

    def note(words: str) -> None:
        # A hanging script may print after its story's end.
        with (folder / f"{seed}.txt").open("a") as file:
            print(f"{time.monotonic() - began:8.3f} {words}", file=file)

    return note


def _keep_words(cluster: world.World, folder: Path, seed: int) -> None:
    for node in cluster.nodes:
        (folder / f"{seed}-{node}.log").write_text(cluster.words(node))


def _sum_up(found: dict[int, list[Violation]], told: int) -> None:
    print(f"{told} stories, {sum(bool(violations) for violations in found.values())} of them with violations")
    for kind in Kind:
        seeds = [seed for seed, violations in found.items() if any(violation.kind is kind for violation in violations)]
        if seeds:
            print(f"  {kind.value}: seeds {', '.join(map(str, seeds[:8]))}{' …' if len(seeds) > 8 else ''}")


if __name__ == "__main__":
    # The servers end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main(sys.argv[1:]))
