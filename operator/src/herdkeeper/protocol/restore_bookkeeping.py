"""The table in which a running restore notes its progress: the job writes it, the operator reads it."""

from __future__ import annotations

RESTORE_TABLE = "herdkeeper_restore"
"""Columns: `step` (key), `loaded` (rows that the step loaded), `detail`."""
HEADER_STEP = "restore"
"""The step whose `detail` identifies the restore, as a JSON object; its ROWS_KEY is the checkpoint's number of rows."""
ROWS_KEY = "rows"
