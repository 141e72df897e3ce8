"""Lists an ensemble's znodes, inside the cluster: `python3 -m herdkeeper_e2e.znodes`; one path per line, without ZooKeeper's own."""

from __future__ import annotations

from collections.abc import Iterator

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from herdkeeper_e2e.session import open_session


def znodes(zookeeper: KazooClient, path: str = "/") -> Iterator[str]:
    """Yields all paths below one, parents first; znodes that vanish meanwhile are left out."""
    try:
        children = sorted(zookeeper.get_children(path))
    except NoNodeError:
        return
    for child in children:
        found = f"{path.rstrip('/')}/{child}"
        if found != "/zookeeper":
            yield found
            yield from znodes(zookeeper, found)


def main() -> None:
    with open_session() as session:
        for path in znodes(session.finder.zookeeper):
            print(path)


if __name__ == "__main__":
    main()
