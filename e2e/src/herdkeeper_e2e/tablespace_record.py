"""Prints HerdDB's own record of the tablespace, inside the cluster: `python3 -m herdkeeper_e2e.tablespace_record`.

Unlike a status, it is also current without an operator. The output is one JSON object: `leader`, `replicas`, `version` (the znode's count
of changes), `changedAt` (last change in Unix seconds by ZooKeeper's clock), and `unchangedSeconds`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from kazoo.exceptions import KazooException

from herdkeeper.codecs.herddb.tablespace import decode_tablespace, tablespace_path
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper_e2e.session import SettingError, open_session


def main() -> int:
    """The command line."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    try:
        with open_session() as session:
            path = tablespace_path(session.finder.herd_root, session.tablespace)
            session.finder.zookeeper.sync(path)  # a follower may be behind its leader
            data, stat = session.finder.zookeeper.get(path)
        record = decode_tablespace(data)
    except (KazooException, MalformedDataError, SettingError) as error:
        print(f"tablespace_record failed: {error!r}", file=sys.stderr)
        return 1
    times = {"changedAt": stat.last_modified, "unchangedSeconds": time.time() - stat.last_modified}
    print(json.dumps({"leader": record.leader, "replicas": sorted(record.replicas), "version": stat.version, **times}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
