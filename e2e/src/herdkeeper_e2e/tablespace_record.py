"""Prints HerdDB's own record of the tablespace, inside the cluster: `python3 -m herdkeeper_e2e.tablespace_record`.

Unlike a status, it is also current without an operator. The output is one JSON object: `leader`, `replicas`, `version` (the znode's count
of changes), `changedAt` (last change in Unix seconds by ZooKeeper's clock), and `unchangedSeconds`.
"""

from __future__ import annotations

import json
import time

from herdkeeper.codecs.herddb.tablespace import decode_tablespace, tablespace_path
from herdkeeper_e2e.session import open_session


def main() -> None:
    with open_session() as session:
        path = tablespace_path(session.finder.herd_root, session.tablespace)
        session.finder.zookeeper.sync(path)  # a follower may be behind its leader
        data, stat = session.finder.zookeeper.get(path)
    record = decode_tablespace(data)
    times = {"changedAt": stat.last_modified, "unchangedSeconds": time.time() - stat.last_modified}
    print(json.dumps({"leader": record.leader, "replicas": sorted(record.replicas), "version": stat.version, **times}))


if __name__ == "__main__":
    main()
