"""Ledgers in a played ensemble: their metadata as BookKeeper writes it (format version 2, protobuf text), and what moves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from played_ensemble import PlayedEnsemble

from herdkeeper.codecs.bookkeeper.layout import decode_layout, ledger_path
from herdkeeper.engine.execute_metadata import LAYOUT


@dataclass
class PlayedLedgers:
    """The ledgers below a root, all with E = Wq = the size of their ensembles."""

    ensemble: PlayedEnsemble
    root: str

    def put(self, ledger_id: int, *segments: tuple[int, Sequence[str]], last_entry_id: int | None = None, tablespace: str = "") -> None:
        """A ledger of these segments (first entry, bookies); open unless its last entry is given. db-herddb-0 writes a tablespace's."""
        size = len(segments[0][1])
        closed = last_entry_id is not None
        entries = {"tablespacename": tablespace, "leader": "db-herddb-0"} if tablespace else {}
        custom = "".join(f'customMetadata {{ key: "{key}" value: "{value}" }}\n' for key, value in entries.items())
        told = "".join(
            "segment {\n" + "".join(f'  ensembleMember: "{bookie}"\n' for bookie in bookies) + f"  firstEntryId: {first}\n}}\n"
            for first, bookies in segments
        )
        text = (
            f"quorumSize: {size}\nensembleSize: {size}\nackQuorumSize: {size}\n"
            f"length: {(last_entry_id + 1) * 100 if last_entry_id is not None else 0}\nlastEntryId: {last_entry_id if closed else -1}\n"
            f'state: {"CLOSED" if closed else "OPEN"}\n{told}digestType: CRC32C\npassword: "herddb"\n{custom}'
        )
        self.ensemble.put(self.root + ledger_path(decode_layout(LAYOUT), ledger_id), f"BookieMetadataFormatVersion\t2\n{text}".encode())

    def move(self, old: str, new: str, ledger_id: int | None = None) -> None:
        """What a move leaves in the metadata of closed ledgers, of one or of all."""
        folder = f"{self.root}/0" if ledger_id is None else self.root + ledger_path(decode_layout(LAYOUT), ledger_id)
        for path, (data, version) in self.ensemble.znodes.items():
            if path.startswith(folder) and b"state: CLOSED" in data:
                self.ensemble.znodes[path] = (data.replace(f'"{old}"'.encode(), f'"{new}"'.encode()), version + 1)
