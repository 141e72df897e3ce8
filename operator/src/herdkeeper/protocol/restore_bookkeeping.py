"""The table in which a restore notes what it has done, while it runs: written by the job, read by the operator for its progress."""

from __future__ import annotations

RESTORE_TABLE = "herdkeeper_restore"
"""Columns: `step` (key), `loaded` (rows that the step loaded), `detail`."""
HEADER_STEP = "restore"
"""The step whose `detail` says which restore this is, as a JSON object; ROWS_KEY there is the number of rows of the checkpoint."""
ROWS_KEY = "rows"
