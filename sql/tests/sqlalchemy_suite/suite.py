"""All of SQLAlchemy's tests of a dialect, but for those that `lacking` leaves out."""

from __future__ import annotations

from sqlalchemy.testing.suite import *  # noqa: F403 - pytest collects them here
