"""The id of a run, which names a folder."""

from __future__ import annotations

import re

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def why_no_run_id(text: str) -> str | None:
    """Returns why this is no id of a run (--run-id); None if it is."""
    if _RUN_ID.fullmatch(text) is not None:
        return None
    return f"--run-id is {text!r}: it names a folder, take at most 100 letters, digits, '.', '_' and '-', with a letter or digit first"
