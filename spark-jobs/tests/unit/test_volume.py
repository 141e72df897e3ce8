"""What a volume has to promise before checkpoints are put on it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from places import all_files

from herdkeeper_jobs.storage.stored_path import why_unusable


@pytest.mark.parametrize("error", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK])
def test_a_volume_without_hard_links_is_refused_before_there_is_any_work(
    error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise OSError(error, os.strerror(error))

    assert why_unusable(tmp_path, writes=True) is None
    monkeypatch.setattr(os, "link", link)
    why = why_unusable(tmp_path, writes=True) or ""
    assert why.startswith("files can't be committed in this folder without hard links")
    assert os.strerror(error) in why
    assert why_unusable(tmp_path, writes=False) is None
    assert all_files(tmp_path) == set()
