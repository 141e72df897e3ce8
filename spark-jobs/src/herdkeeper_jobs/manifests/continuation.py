"""The part of a manifest from which a later checkpoint continues: `wal.log_state.LogState` as JSON. Keys are camelCase."""

from __future__ import annotations

from dataclasses import asdict

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from herdkeeper.codecs.herddb.index import decode_index, encode_index
from herdkeeper.codecs.herddb.table import decode_table, encode_table
from herdkeeper_jobs.wal.log_state import LogState, StateIndex, StateTable, StateTransaction
from herdkeeper_jobs.wal.lsn import Lsn


class Part(BaseModel):
    """What a manifest's file has: immutable; fields of a later version are left out."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore")


class _Table(Part):
    definition: str
    maker: int | None
    altered: bool


class _Index(Part):
    definition: str
    table_uuid: str
    committed: bool
    maker: int | None
    """None if committed."""


class _Transaction(Part):
    """The fields of `StateTransaction`."""

    transaction_id: int
    begin: tuple[int, int]
    new_tables: tuple[str, ...]
    dropped_tables: tuple[str, ...]
    new_indexes: tuple[str, ...]
    dropped_indexes: tuple[str, ...]


class Continuation(Part):
    """Tables and indexes, also uncommitted ones, and what open transactions make and drop. Definitions are HerdDB's own, in hexadecimal;
    `begin` is (ledger, entry)."""

    tables: tuple[_Table, ...]
    indexes: tuple[_Index, ...]
    transactions: tuple[_Transaction, ...]

    @staticmethod
    def of(state: LogState) -> Continuation:
        return Continuation(
            tables=tuple(
                _Table(definition=encode_table(table.definition).hex(), maker=table.maker, altered=table.altered) for table in state.tables
            ),
            indexes=tuple(
                _Index(
                    definition=encode_index(index.definition).hex(),
                    table_uuid=index.table_uuid,
                    committed=index.maker is None,
                    maker=index.maker,
                )
                for index in state.indexes
            ),
            transactions=tuple(_Transaction(**asdict(transaction)) for transaction in state.transactions),
        )

    @property
    def state(self) -> LogState:
        """Converts to the walk's state. Raises MalformedDataError or ValueError for an undecodable definition."""
        return LogState(
            tuple(StateTable(decode_table(bytes.fromhex(table.definition)), table.maker, table.altered) for table in self.tables),
            tuple(StateIndex(decode_index(bytes.fromhex(index.definition)), index.table_uuid, index.maker) for index in self.indexes),
            tuple(StateTransaction(**one.model_dump() | {"begin": Lsn(*one.begin)}) for one in self.transactions),
        )
