"""The archive of a tablespace's log: its entries as they are in the ledgers, in immutable segments outside of the bookies."""
