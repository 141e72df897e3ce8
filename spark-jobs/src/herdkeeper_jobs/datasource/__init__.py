"""The data source `spark.read.format("bookkeeper")` and `spark.readStream` for users' programs: ledgers, and a tablespace's log as
changes."""

from herdkeeper_jobs.datasource.data_source import BookKeeperDataSource, register
from herdkeeper_jobs.datasource.pin import remove_pin

__all__ = ["BookKeeperDataSource", "register", "remove_pin"]
