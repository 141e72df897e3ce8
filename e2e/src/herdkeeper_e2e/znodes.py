"""Lists an ensemble's znodes, inside the cluster: `python3 -m herdkeeper_e2e.znodes`; one path per line, without ZooKeeper's own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError

from herdkeeper_e2e.session import SettingError, open_session


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


def main() -> int:
    """The command line."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    try:
        with open_session() as session:
            for path in znodes(session.finder.zookeeper):
                print(path)
    except (KazooException, SettingError) as error:
        print(f"znodes failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
