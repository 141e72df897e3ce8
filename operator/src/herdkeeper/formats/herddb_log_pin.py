"""What needs a tablespace's log, and from where on: `<herd root>/logPins/<tablespace uuid>/<name>`, where our node program runs.

JSON: ledgerId, entryId; the log is kept from that ledger on. `replica-<node>` is up to where that node's own disk has the tables, and
counts while the node is a replica; a pin of another name counts for as long as it is there.
Source: io.herdkeeper.node.release.LogPins (images/herddb). What it can't read keeps the whole log.
"""

from __future__ import annotations


def log_pins_path(herd_root: str, tablespace_uuid: str) -> str:
    """Path whose children are the pins of a tablespace."""
    return f"{herd_root}/logPins/{tablespace_uuid}"
