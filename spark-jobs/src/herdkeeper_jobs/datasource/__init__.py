"""The data source `spark.read.format("bookkeeper")` and `spark.readStream` for users' programs: ledgers, and a tablespace's log as
changes."""

from herdkeeper_jobs.datasource.pin import remove_pin
from herdkeeper_jobs.datasource.source import BookKeeperDataSource, register

__all__ = ["BookKeeperDataSource", "register", "remove_pin"]
