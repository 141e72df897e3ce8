"""Keys of a Secret: which one is used, and the messages for missing, wrong and invalid ones."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from secret_keys import MountedSecret

from herdkeeper.protocol.encryption_key import NoKeyError, decode_key
from herdkeeper_jobs.encryption.keys import FOLDERS, Key, Keyring, SealedBy, key_at, keyring
from herdkeeper_jobs.errors import InvariantViolated, KeyUnusable


@given(st.binary(min_size=32, max_size=32))
def test_a_key_is_read_in_both_alphabets_of_base64_and_with_the_line_s_end(content: bytes) -> None:
    assert decode_key(base64.b64encode(content).decode() + "\n") == content
    assert decode_key(base64.urlsafe_b64encode(content).decode()) == content


@pytest.mark.parametrize(("text", "words"), [("secret!", "is not base64"), ("", "has 0 bytes instead of 32"), ("c2hvcnQ=", "has 5 bytes")])
def test_what_is_no_key_is_refused_without_being_repeated(text: str, words: str) -> None:
    with pytest.raises(NoKeyError, match=words) as refused:
        decode_key(text)
    assert not text or text not in str(refused.value)


@given(st.binary(max_size=300))
def test_what_a_key_sealed_only_that_key_opens(content: bytes) -> None:
    key, other = Key("a", "s", b"1" * 32), Key("a", "s", b"2" * 32)
    assert key.open(key.seal(content)) == content
    assert other.open(key.seal(content)) is None
    assert repr(key) == "Key(name='a', secret='s')"


def test_an_old_key_opens_what_it_sealed_as_long_as_it_is_in_the_secret_under_whatever_name(keys: MountedSecret) -> None:
    old = keys.add("2026-11")
    token, sealed_by = old.seal(b"content"), SealedBy.of(old)
    keys.add("2027-05")
    assert keyring().open(token, sealed_by, "the file") == b"content"
    keys.remove("2026-11")
    keys.put(old, "retired")
    assert keyring().open(token, sealed_by, "the file") == b"content"


def test_a_key_that_is_missing_is_named_with_its_secret_and_what_to_do(keys: MountedSecret, monkeypatch: pytest.MonkeyPatch) -> None:
    old = keys.add("2026-11")
    token, sealed_by = old.seal(b"content"), SealedBy.of(old)
    keys.remove("2026-11")
    with pytest.raises(KeyUnusable, match=r"^the file is encrypted with the key '2026-11' .*: the Secret backup-keys has no key; put that"):
        keyring().open(token, sealed_by, "the file")
    keys.add("2027-05")
    with pytest.raises(KeyUnusable, match=r"the Secret backup-keys has '2027-05'; put that key back"):
        keyring().open(token, sealed_by, "the file")
    keys.add("2026-11")
    with pytest.raises(KeyUnusable, match=r"the Secret backup-keys has another key of this name; put the old one back"):
        keyring().open(token, sealed_by, "the file")
    monkeypatch.delenv(FOLDERS)
    with pytest.raises(KeyUnusable, match=r"this job was given no keys\. Name the Secret with the key in .*encryption\.keysSecretRef"):
        keyring().open(token, sealed_by, "the file")


def test_a_token_that_was_changed_is_no_missing_key(keys: MountedSecret) -> None:
    key = keys.add("a")
    with pytest.raises(InvariantViolated, match="the file was changed: the key 'a' of the Secret backup-keys did not seal"):
        keyring().open(key.seal(b"content")[:-8] + "AAAAAAA=", SealedBy.of(key), "the file")


def test_the_only_key_of_a_secret_needs_not_be_named_and_one_of_several_has_to_be(keys: MountedSecret) -> None:
    with pytest.raises(KeyUnusable, match="the Secret backup-keys has no key: add one; make one with: openssl rand"):
        key_at(keys.folder)
    first = keys.add("a")
    assert key_at(keys.folder) == first
    second = keys.add("b")
    with pytest.raises(KeyUnusable, match=r"has the keys 'a', 'b': name the key for new files in encryption.currentKey"):
        key_at(keys.folder)
    assert key_at(keys.folder / "b") == second
    with pytest.raises(KeyUnusable, match="the Secret backup-keys has no key 'c': add it"):
        key_at(keys.folder / "c")


def test_the_kubelets_own_files_are_no_keys(keys: MountedSecret, tmp_path: Path) -> None:
    """A mounted Secret: links to files in a folder that is swapped as a whole."""
    key = keys.add("a")
    mount = tmp_path / "mounted"
    (mount / "..2026_11_22").mkdir(parents=True)
    (mount / "..2026_11_22" / "a").write_text((keys.folder / "a").read_text())
    (mount / "..data").symlink_to("..2026_11_22")
    (mount / "a").symlink_to("..data/a")
    assert [(found.name, found.secret, found.content) for found in Keyring.of({FOLDERS: str(mount)}).keys] == [
        ("a", "mounted", key.content)
    ]


def test_a_folder_or_a_value_that_is_no_key_is_named(keys: MountedSecret) -> None:
    (keys.folder / "bad").write_bytes(b"\xff\xfe")
    with pytest.raises(KeyUnusable, match="the key 'bad' of the Secret backup-keys is no text; make one with"):
        keyring()
    (keys.folder / "bad").write_text("tooshort")
    with pytest.raises(KeyUnusable, match="the key 'bad' of the Secret backup-keys has 6 bytes instead of 32"):
        keyring()
    with pytest.raises(KeyUnusable, match="ENCRYPTION_KEYS names /nowhere, which is not a folder: mount the Secret there"):
        Keyring.of({FOLDERS: "/nowhere"})
