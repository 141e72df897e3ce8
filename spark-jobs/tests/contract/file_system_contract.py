"""What checkpoints need of a file system: each test asks it of the `folder` that the module has which imports the test."""

from __future__ import annotations

from typing import Any

import pytest
from emptied_place import remove_below

from herdkeeper_jobs.storage.file_system_path import FileSystemPath
from herdkeeper_jobs.storage.stored_path import (
    create_if_absent,
    names_below,
    names_from,
    new_file,
    remove_empty_folder,
    replace_file,
    take_name,
    why_unusable,
)


def test_a_destination_is_usable_once_a_name_was_given_only_once(folder: FileSystemPath) -> None:
    assert why_unusable(folder, writes=True) is None
    assert why_unusable(folder, writes=False) is None
    assert set(names_below(folder)) == set()  # what was tried is gone


def test_a_file_is_created_once_and_whole(folder: FileSystemPath) -> None:
    path = folder / "manifests" / "1.json"
    assert create_if_absent(path, b"mine")
    assert not create_if_absent(path, b"another's")
    assert create_if_absent(path, b"mine")  # a retry whose first answer was lost
    assert path.read_bytes() == b"mine"
    assert set(names_below(folder)) == {"manifests/1.json"}


def test_a_rename_whose_answer_is_lost_is_known_by_what_is_left(folder: FileSystemPath, monkeypatch: pytest.MonkeyPatch) -> None:
    assert create_if_absent(folder / "before", b"in the way that is proven")
    opened = type(folder._opened)
    real = opened.mv

    def answer_is_lost(self: Any, path1: str, path2: str, **_: Any) -> None:
        real(self, path1, path2)
        raise ConnectionError("the connection ended")

    monkeypatch.setattr(opened, "mv", answer_is_lost)
    assert create_if_absent(folder / "a", b"mine")
    assert not (folder / "a").create(b"another's")

    def nothing_happens(self: Any, path1: str, path2: str, **_: Any) -> None:
        raise ConnectionError("the connection ended at http://host/?delegation=secret")

    monkeypatch.setattr(opened, "mv", nothing_happens)
    with pytest.raises(OSError, match=r"b: ConnectionError: the connection ended at http://host/\?…$"):
        create_if_absent(folder / "b", b"mine")
    assert set(names_below(folder)) == {"a", "before"}


def test_a_large_file_is_read_anywhere_in_it(folder: FileSystemPath) -> None:
    path, block = folder / "data" / "large", bytes(range(256)) * 4096
    file = new_file(path)
    for _ in range(12):
        file.write(block)
    file.close()
    assert path.size() == 12 << 20
    with path.open("rb") as stream:
        stream.seek(-5, 2)
        assert stream.read() == block[-5:]
        stream.seek((3 << 20) + 7)
        assert stream.read(1 << 20) == block[7:] + block[:7]
    assert path.read_bytes() == block * 12


def test_files_are_found_renamed_replaced_and_removed_with_their_folders(folder: FileSystemPath) -> None:
    for name in ("a/data/run/t/1", "a/data/run/u/2", "a/data/other/3", "a/manifests/1.json", "a/manifests/2.json"):
        assert (folder / name).create(name.encode())
    assert sorted(names_below(folder / "a/data")) == ["other/3", "run/t/1", "run/u/2"]
    assert list(names_from(folder / "a/manifests", "2")) == ["2.json"]
    assert [path.name for path in folder.glob("*/manifests/[0-9]*.json")] == ["1.json", "2.json"]
    assert list(folder.glob("none/*")) == []
    take_name(folder / "a/manifests/1.json", folder / "a/manifests/.1.json.removed")
    replace_file(folder / "a/manifests/2.json", b"new")
    assert (folder / "a/manifests/2.json").read_bytes() == b"new"
    assert (folder / "a/manifests/.1.json.removed").read_bytes() == b"a/manifests/1.json"
    remove_below(folder / "a/data/run")
    (folder / "a/data/other/3").unlink()
    (folder / "a/data/other/3").unlink()  # none is no fault
    remove_empty_folder(folder / "a/data/other")
    assert set(names_below(folder)) == {"a/manifests/.1.json.removed", "a/manifests/2.json"}
    assert [path.name for path in (folder / "a/data").children()] == []
    with pytest.raises(FileNotFoundError, match="other/3 does not exist"):
        (folder / "a/data/other/3").read_bytes()
    assert not (folder / "a/manifests").is_file()
