"""BookKeeper's bytes: what its own classes wrote is read, and damaged bytes are refused."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress, decode_bookie_address
from herdkeeper.codecs.bookkeeper.entry import DigestMismatchError, Entry, entry_digest, master_key
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, decode_layout, inner_levels, ledger_id_of, ledger_path
from herdkeeper.codecs.bookkeeper.metadata import DigestType, LedgerState, Segment, decode_ledger_metadata
from herdkeeper.codecs.bookkeeper.protocol import (
    AddResponse,
    BatchRead,
    BatchReadResponse,
    ReadCode,
    ReadResponse,
    batch_read_request,
    decode_length,
    decode_response,
    read_request,
    recovery_add_request,
)
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.codecs.protobuf_text import read_text_fields
from herdkeeper.codecs.protobuf_wire import write_field

_LINES = [line.split() for line in (Path(__file__).parent / "data" / "bookkeeper_golden.txt").read_text().splitlines() if line[0] != "#"]
METADATA = {(int(line[1]), LedgerState[line[2]]): bytes.fromhex(line[3]) for line in _LINES if line[0] == "META"}
ENTRIES = {DigestType[line[1]]: bytes.fromhex(line[2]) for line in _LINES if line[0] == "ENTRY"}
SEGMENTS = (Segment(0, ("bookie-0", "bookie-1", "bookie-2")), Segment(100, ("bookie-0", "bookie-3", "bookie-2")))
INT64 = st.integers(-(2**63), 2**63 - 1)


def test_the_golden_file_has_every_version_state_and_digest() -> None:
    assert set(METADATA) == {(version, state) for version in (1, 2, 3) for state in LedgerState}
    assert set(ENTRIES) == set(DigestType)


@pytest.mark.parametrize(("version", "state"), list(METADATA))
def test_metadata_of_every_format_version_and_state_is_read(version: int, state: LedgerState) -> None:
    metadata = decode_ledger_metadata(7, METADATA[version, state])
    assert (metadata.ledger_id, metadata.state) == (7, state)
    assert (metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum) == (3, 2, 2 if version == 1 else 1)
    assert metadata.segments == SEGMENTS
    closed = state is LedgerState.CLOSED
    assert (metadata.last_entry_id, metadata.length) == ((149, 30000) if closed else (None, None))


@pytest.mark.parametrize("version", [2, 3])
def test_what_version_1_cannot_say_is_read_from_2_and_3(version: int) -> None:
    metadata = decode_ledger_metadata(7, METADATA[version, LedgerState.OPEN])
    assert metadata.digest_type is DigestType.CRC32C
    assert metadata.password == 'her"d\ndèb'.encode()
    assert metadata.custom("application") == b"herddb"


def test_a_password_of_any_bytes_is_read_and_not_shown_with_the_rest() -> None:
    """A log's ledgers have random ones."""
    password = bytes([0, 10, 34, 92, 127, 128, 200, 254, 255, 13])
    metadata = decode_ledger_metadata(7, METADATA[3, LedgerState.OPEN].replace('her"d\ndèb'.encode(), password))
    assert metadata.password == password
    assert repr(password)[2:-1] not in repr(metadata)


def test_version_1_leaves_the_digest_type_open() -> None:
    assert decode_ledger_metadata(7, METADATA[1, LedgerState.OPEN]).digest_type is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "ledger 7: expected it to begin with"),
        (b"BookieMetadataFormatVersion\t9\n", "format version 9 is unknown"),
        (b"BookieMetadataFormatVersion\t1\n3\n2\n0\n0\ta\tb\n", "expected E >= Wq >= Aq >= 1, found E=2, Wq=3"),
        (b"BookieMetadataFormatVersion\t1\n2\n3\n0\n0\ta\tb\n", "names 2 bookies, E is 3"),
        (b"BookieMetadataFormatVersion\t1\n2\n2\n0\n5\ta\tb\n", "segments that start at 0"),
        (b"BookieMetadataFormatVersion\t1\n2\nx\n0\n", "version 1: invalid literal"),
        (b"BookieMetadataFormatVersion\t3\n\x02\x10\x03", "field quorumSize is missing"),
        (b"BookieMetadataFormatVersion\t2\nquorumSize: many", "quorumSize has the value 'many'"),
    ],
)
def test_damaged_metadata_is_refused_with_the_ledger_and_the_fault(data: bytes, message: str) -> None:
    with pytest.raises(MalformedDataError, match=message):
        decode_ledger_metadata(7, data)


@given(st.data())
def test_metadata_that_ends_too_early_is_never_read_as_another_ledger(data: st.DataObject) -> None:
    whole = METADATA[3, LedgerState.CLOSED]
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(MalformedDataError):
        decode_ledger_metadata(7, whole[:cut])


def test_the_text_form_reads_every_kind_of_escape() -> None:
    (field,) = read_text_fields(rb'value: "a\n\"\\\001\x41\303\250"')
    assert field.value == b'a\n"\\\x01A\xc3\xa8'


@pytest.mark.parametrize("digest_type", list(DigestType))
def test_an_entry_that_bookkeeper_packed_is_verified_and_packed_the_same(digest_type: DigestType) -> None:
    digest = entry_digest(digest_type, b"herddb")
    entry = digest.verify_as(5, 9, ENTRIES[digest_type])
    assert entry == Entry(ledger_id=5, entry_id=9, lac=8, length=30, payload=b"hello")
    assert digest.pack(entry) == ENTRIES[digest_type]


@pytest.mark.parametrize("digest_type", [DigestType.CRC32, DigestType.CRC32C, DigestType.HMAC])
@given(data=st.data())
def test_any_flipped_bit_of_an_entry_is_noticed(digest_type: DigestType, data: st.DataObject) -> None:
    packed = bytearray(ENTRIES[digest_type])
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(DigestMismatchError):
        entry_digest(digest_type, b"herddb").verify(bytes(packed))


def test_an_entry_of_another_place_is_noticed_even_with_a_right_digest() -> None:
    with pytest.raises(DigestMismatchError, match="it is entry 9 of ledger 5"):
        entry_digest(DigestType.CRC32C).verify_as(5, 10, ENTRIES[DigestType.CRC32C])


def test_a_wrong_password_is_noticed_by_hmac() -> None:
    with pytest.raises(DigestMismatchError, match="HMAC digest is"):
        entry_digest(DigestType.HMAC, b"other").verify(ENTRIES[DigestType.HMAC])


@pytest.mark.parametrize("digest_type", list(DigestType))
def test_an_entry_shorter_than_its_header_is_noticed(digest_type: DigestType) -> None:
    with pytest.raises(DigestMismatchError, match="alone take"):
        entry_digest(digest_type).verify(ENTRIES[digest_type][:31])


@pytest.mark.parametrize("digest_type", list(DigestType))
def test_a_digest_travels_to_an_executor(digest_type: DigestType) -> None:
    assert pickle.loads(pickle.dumps(entry_digest(digest_type, b"herddb"))).verify(ENTRIES[digest_type]).entry_id == 9


@pytest.mark.parametrize(
    ("layout", "ledger_id", "path"),
    [
        (LedgerLayout.FLAT, 12, "/L0000000012"),
        (LedgerLayout.HIERARCHICAL, 1, "/00/0000/L0001"),
        (LedgerLayout.LEGACY_HIERARCHICAL, 1234567890, "/12/3456/L7890"),
        (LedgerLayout.HIERARCHICAL, 2**31 - 2, "/21/4748/L3646"),
        (LedgerLayout.HIERARCHICAL, 2**31 - 1, "/000/0000/0021/4748/L3647"),
        (LedgerLayout.LONG_HIERARCHICAL, 1, "/000/0000/0000/0000/L0001"),
    ],
)
def test_a_ledger_lies_where_its_layout_says(layout: LedgerLayout, ledger_id: int, path: str) -> None:
    assert ledger_path(layout, ledger_id) == path
    assert ledger_id_of(path) == ledger_id


@given(st.sampled_from(LedgerLayout), st.integers(0, 2**31 - 2) | st.integers(0, 2**63 - 1))
def test_a_path_leads_back_to_its_ledger_and_its_root_child_is_known(layout: LedgerLayout, ledger_id: int) -> None:
    if layout in (LedgerLayout.FLAT, LedgerLayout.LEGACY_HIERARCHICAL):
        ledger_id %= 10**10
    path = ledger_path(layout, ledger_id)
    assert ledger_id_of(path) == ledger_id
    assert inner_levels(layout, path.split("/")[1]) == path.count("/") - 1


@pytest.mark.parametrize("name", ["available", "cookies", "idgen", "idgen-long", "underreplication", "LAYOUT", "INSTANCEID"])
@pytest.mark.parametrize("layout", list(LedgerLayout))
def test_what_else_lies_below_the_root_is_no_ledger(layout: LedgerLayout, name: str) -> None:
    assert inner_levels(layout, name) is None


def test_the_layout_that_initnewcluster_writes_is_read() -> None:
    assert decode_layout(b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1") is LedgerLayout.HIERARCHICAL


def test_an_unknown_layout_is_refused_with_what_is_known() -> None:
    with pytest.raises(MalformedDataError, match="expected a version and one of"):
        decode_layout(b"2\norg.apache.bookkeeper.metadata.etcd.EtcdLedgerManagerFactory:1")


def test_a_registration_written_by_a_bookie_gives_its_address() -> None:
    registration = bytes.fromhex("32230a06626f6f6b6965108cb5011a093132372e302e302e31220a626f6f6b69652d727063")
    assert decode_bookie_address("bookie-0", registration) == BookieAddress("127.0.0.1", 23180)


def test_an_old_registration_without_content_is_addressed_by_its_id() -> None:
    assert decode_bookie_address("10.0.0.7:3181", b"") == BookieAddress("10.0.0.7", 3181)


@pytest.mark.parametrize("port", [-1, 0, 65536, 2**31 - 1])
def test_a_registration_whose_port_is_none_is_refused_with_the_bookie_and_the_port(port: int) -> None:
    endpoint = write_field(1, b"bookie") + write_field(2, port) + write_field(3, b"127.0.0.1")
    with pytest.raises(MalformedDataError, match=f"registration of bookie b-1: {port} is no port"):
        decode_bookie_address("b-1", write_field(6, endpoint))


@pytest.mark.parametrize("port", ["0", "65536", "99999"])
def test_an_id_whose_port_is_none_is_no_address(port: str) -> None:
    with pytest.raises(MalformedDataError, match=f"registration of bookie b-1:{port}: {port} is no port"):
        decode_bookie_address(f"b-1:{port}", b"")


def test_a_registration_without_an_address_is_refused_with_the_bookie() -> None:
    with pytest.raises(MalformedDataError, match="registration of bookie b-1: no endpoint 'bookie'"):
        decode_bookie_address("b-1", b"")


def test_a_read_request_has_the_documented_bytes_and_no_flag() -> None:
    assert read_request(5, -1).hex() == "00000014" + "02020000" + "0000000000000005" + "ffffffffffffffff"


def test_a_batch_request_has_the_documented_bytes_and_no_flag() -> None:
    expected = "00000028" + "02070000" + "0000000000000005" + "0000000000000009" + "0000000000000003" + "00000064" + "0000000000001000"
    assert batch_read_request(BatchRead(5, 9, 100, 4096), request_id=3).hex() == expected


def test_responses_are_read_whatever_their_code() -> None:
    ok = bytes.fromhex("02020000" + "00000000" + "0000000000000005" + "0000000000000009") + b"data"
    absent = bytes.fromhex("02020000" + "00000002" + "0000000000000005" + "0000000000000009")
    assert decode_response(ok) == ReadResponse(ReadCode.OK, 5, 9, b"data")
    assert decode_response(absent) == ReadResponse(ReadCode.NO_ENTRY, 5, 9, b"")


def test_a_response_of_more_bytes_than_any_entry_has_is_refused() -> None:
    with pytest.raises(MalformedDataError, match="a response of 2147483647 bytes is refused"):
        decode_length(b"\x7f\xff\xff\xff")


@given(st.lists(st.binary(max_size=50), max_size=20))
def test_a_batch_response_is_split_into_its_entries(entries: list[bytes]) -> None:
    body = b"".join(len(entry).to_bytes(4, "big") + entry for entry in entries)
    frame = bytes.fromhex("02070000" + "00000000" + "0000000000000005" + "0000000000000009" + "0000000000000003") + body
    assert decode_response(frame) == BatchReadResponse(ReadCode.OK, 5, 9, tuple(entries))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ("02050000" + "00000000" + "00" * 16, "response to operation 5, expected READ, BATCH_READ or ADD"),
        ("02020000" + "0000004d" + "00" * 16, "response code 77 is unknown"),
        ("02070000" + "00000000" + "00" * 24 + "00000009" + "aa", "an entry of 9 bytes, 1 are left"),
    ],
)
def test_a_response_that_makes_no_sense_is_refused(frame: str, message: str) -> None:
    with pytest.raises(MalformedDataError, match=message):
        decode_response(bytes.fromhex(frame))


def test_an_add_of_recovery_carries_its_flag_the_master_key_and_the_entry_as_it_is() -> None:
    key = master_key(b"herddb")
    assert key == hashlib.sha1(b"ledgerherddb").digest()
    assert recovery_add_request(key, b"entry").hex() == "0000001d" + "02010002" + key.hex() + b"entry".hex()
    with pytest.raises(ValueError, match="master key of 3 bytes: expected 20"):
        recovery_add_request(b"key", b"entry")


def test_the_answer_to_an_add_names_the_entry() -> None:
    fenced = bytes.fromhex("02010000" + "00000068" + "0000000000000005" + "0000000000000009")
    assert decode_response(fenced) == AddResponse(ReadCode.FENCED, 5, 9)


def test_a_digest_that_is_not_checked_still_says_whose_entry_it_is() -> None:
    entry = Entry(5, 9, 8, 100, b"data")
    digest = entry_digest(DigestType.CRC32C)
    damaged = digest.pack(entry)[:-1] + b"?"
    with pytest.raises(DigestMismatchError):
        digest.verify_as(5, 9, damaged)
    unchecked = replace(digest, checked=False)
    assert unchecked.verify_as(5, 9, damaged).payload == b"dat?"
    with pytest.raises(DigestMismatchError, match="it is entry 9 of ledger 5"):
        unchecked.verify_as(5, 8, damaged)


def test_a_frame_shorter_than_a_header_is_refused() -> None:
    with pytest.raises(MalformedDataError, match="shorter than its header"):
        decode_length((3).to_bytes(4, "big"))


def test_only_two_codes_mean_that_an_entry_is_absent() -> None:
    assert {code for code in ReadCode if code.means_absent} == {ReadCode.NO_LEDGER, ReadCode.NO_ENTRY}


@given(INT64, INT64, INT64, INT64, st.binary(max_size=100), st.sampled_from(DigestType))
def test_every_entry_that_is_packed_is_verified(
    ledger: int, entry_id: int, lac: int, length: int, payload: bytes, kind: DigestType
) -> None:
    digest = entry_digest(kind, b"pw")
    entry = Entry(ledger, entry_id, lac, length, payload)
    assert digest.verify(digest.pack(entry)) == entry
