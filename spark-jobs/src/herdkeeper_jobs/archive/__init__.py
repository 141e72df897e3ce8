"""The archive of a tablespace's log: the ledgers' entries, in immutable segments outside of the bookies."""
