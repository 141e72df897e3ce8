"""Certificates of a stack: what is made, and when it is made anew."""

from __future__ import annotations

import re
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from herdkeeper.certificates.authority import (
    Authority,
    RenewalReason,
    authority_data,
    first_authority,
    read_authority,
    renewal_time,
    why_renew,
)
from herdkeeper.certificates.holders import Holder, due_changes, due_secrets
from herdkeeper.certificates.issue import KeyPair, Subject, Validity, fresh_key, is_pair, issue
from herdkeeper.certificates.settings import member_lines
from herdkeeper.codecs.authorities import client_context
from herdkeeper.tls.context import load_certificate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=365)
HOSTS = ("*.zk-members.demo.svc", "zk-client.demo.svc")
BOOKIE = Subject("bookie.log", "log")
KEYS = [fresh_key() for _ in range(2)]


def at(now: datetime, life: timedelta = YEAR) -> Validity:
    return Validity(now, life)


def founded(life: timedelta = 5 * YEAR) -> Authority:
    return first_authority("zk", KEYS[0], at(NOW, life))


def issued(authority: Authority, now: datetime = NOW, subject: Subject = BOOKIE) -> KeyPair:
    return issue(authority.signing, subject, HOSTS, KEYS[1], at(now))


def test_a_server_is_verified_under_each_of_its_names_and_no_other_one() -> None:
    now = datetime.now(UTC)
    authority = first_authority("zk", KEYS[0], at(now))
    pair = issue(authority.signing, BOOKIE, HOSTS, KEYS[1], at(now))
    for host, why in (("zk-0.zk-members.demo.svc", None), ("zk-client.demo.svc", None), ("zk-0.other.demo.svc", "Hostname mismatch")):
        assert verified(authority.trusted, pair, host) == why


def verified(trusted: str, pair: KeyPair, host: str) -> str | None:
    """What keeps a client from it, in OpenSSL's strictest reading (RFC 5280)."""
    client, server = client_context(trusted), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    load_certificate(client, pair.certificate, pair.key)
    load_certificate(server, pair.certificate, pair.key)
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(cadata=trusted)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(to_client, to_server, server_hostname=host), server.wrap_bio(to_server, to_client, server_side=True)]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return re.sub(",.*", "", error.verify_message)
    return None


def test_a_subject_is_what_zookeeper_and_bookkeeper_read() -> None:
    assert BOOKIE.x500.rfc4514_string() == "OU=0:log,CN=bookie.log"
    assert Subject("operator").x500.rfc4514_string() == "CN=operator"


def test_the_name_of_an_authority_tells_its_generation() -> None:
    assert x509.load_pem_x509_certificate(founded().trusted.encode()).subject.rfc4514_string() == "CN=zk 1"


def test_a_certificate_does_not_outlive_its_authority() -> None:
    authority = founded(YEAR / 2)
    ends = [
        x509.load_pem_x509_certificate(each.encode()).not_valid_after_utc for each in (issued(authority).certificate, authority.trusted)
    ]
    assert ends[0] == ends[1]


def test_a_certificate_is_made_anew_for_each_reason_and_for_none_else() -> None:
    authority, hosts = founded(), frozenset(HOSTS)
    held = issued(authority)
    other = first_authority("zk", KEYS[1], at(NOW))
    assert why_renew(held, authority, BOOKIE, hosts, NOW) is None
    assert why_renew(held, authority, BOOKIE, hosts, renewal_time(held.certificate, YEAR) - timedelta(seconds=1)) is None
    assert why_renew(held, authority, BOOKIE, hosts, renewal_time(held.certificate, YEAR)) is RenewalReason.AGE
    assert why_renew(KeyPair("", ""), authority, BOOKIE, hosts, NOW) is RenewalReason.MISSING
    assert why_renew(KeyPair("no certificate", held.key), authority, BOOKIE, hosts, NOW) is RenewalReason.MISSING
    assert why_renew(held, other, BOOKIE, hosts, NOW) is RenewalReason.AUTHORITY
    assert why_renew(held, authority, BOOKIE, frozenset(), NOW) is RenewalReason.HOSTS
    assert why_renew(held, authority, Subject("bookie.log"), hosts, NOW) is RenewalReason.SUBJECT


@pytest.mark.parametrize("before_the_end", [timedelta(days=40), timedelta(minutes=20), timedelta(0), timedelta(hours=-2)])
def test_a_certificate_that_ends_with_its_authority_is_not_made_anew_again_and_again(before_the_end: timedelta) -> None:
    authority, holder = founded(YEAR / 2), Holder("a-secret", BOOKIE, frozenset(HOSTS))
    (made,) = due_changes([holder], {}, authority, fresh_key, at(NOW))
    due = due_secrets([holder], {holder.secret: made.data}, authority, fresh_key, at(NOW + YEAR / 2 - before_the_end))
    assert (due.changes, due.next_seconds) == ((), None)


def test_two_thirds_of_its_life_are_counted_from_when_it_is_valid() -> None:
    held = issued(founded()).certificate
    assert abs(renewal_time(held, YEAR) - (NOW + YEAR * 2 / 3)) < timedelta(hours=1)


def unasked() -> str:
    raise AssertionError("no key is needed")


def test_what_is_kept_is_read_again() -> None:
    authority = founded()
    assert read_authority("zk", authority_data(authority)) == authority


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"signing.key": ""}, "signing.crt or signing.key is missing"),
        ({"signing.crt": "x"}, "signing.crt is no certificate in PEM"),
        ({"generation": "x"}, "generation is 'x', expected a number"),
    ],
)
def test_a_damaged_secret_is_named_and_makes_no_authority(change: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        read_authority("zk", {**authority_data(founded()), **change})


MEMBER = Holder("zk-zookeeper-clients", Subject("zookeeper"), frozenset(HOSTS))
LOG = Holder("log-bookies", BOOKIE)


def held_by(*holders: Holder, authority: Authority) -> dict[str, dict[str, str]]:
    changes = due_changes(holders, {}, authority, fresh_key, at(NOW))
    assert [change.new for change in changes] == [True] * len(holders)
    return {change.holder.secret: dict(change.data) for change in changes}


def test_secrets_are_written_once_and_then_left_alone() -> None:
    authority = founded()
    held = held_by(MEMBER, LOG, authority=authority)
    assert due_changes((MEMBER, LOG), held, authority, unasked, at(NOW + YEAR / 2)) == ()
    assert {secret["ca.crt"] for secret in held.values()} == {authority.trusted}
    assert all(secret["keystore.pem"] == secret["tls.key"] + secret["tls.crt"] for secret in held.values())


@pytest.mark.parametrize("key", ["another", "no key", ""])
def test_a_certificate_whose_key_somebody_changed_is_made_anew(key: str) -> None:
    authority = founded()
    held = held_by(MEMBER, authority=authority)
    held[MEMBER.secret]["tls.key"] = fresh_key() if key == "another" else key
    (made,) = due_changes((MEMBER,), held, authority, fresh_key, at(NOW))
    assert is_pair(made.data["tls.crt"], made.data["tls.key"])


def test_whoever_has_a_certificate_of_another_authority_gets_one_of_this() -> None:
    held, authority = held_by(MEMBER, authority=first_authority("before", KEYS[1], at(NOW))), founded()
    (signed,) = due_changes((MEMBER,), held, authority, fresh_key, at(NOW))
    assert (signed.new, signed.data["ca.crt"]) == (False, authority.trusted)
    assert signed.data["tls.crt"] != held[MEMBER.secret]["tls.crt"]


def test_members_trust_other_authorities_than_their_client_port_does() -> None:
    lines = member_lines("/tls/clients", "/tls/members", 2281)
    assert (lines["sslQuorum"], lines["portUnification"]) == ("true", "false")
    stores = {key: value for key, value in lines.items() if key.endswith("trustStore.location")}
    assert stores == {"ssl.trustStore.location": "/tls/clients/ca.crt", "ssl.quorum.trustStore.location": "/tls/members/ca.crt"}


@pytest.mark.parametrize("held", [True, False])
def test_an_authority_that_has_expired_signs_nothing_and_is_named(held: bool) -> None:
    authority, holder = founded(YEAR / 2), Holder("a-secret", BOOKIE, frozenset(HOSTS))
    (made,) = due_changes([holder], {}, authority, fresh_key, at(NOW))
    later = NOW + YEAR / 2 + timedelta(hours=2)
    due = due_secrets([holder], {holder.secret: made.data} if held else {}, authority, fresh_key, at(later))
    assert (due.changes, due.next_seconds) == ((), None)
    assert due.obstacle is not None
    assert due.obstacle.startswith(
        "the authority in the Secret zk expired at 2026-07-02T12:00:00Z, and servers refuse what it has signed: "
    )
    assert "the condition AuthoritiesRolled of the ZooKeeperCluster shows what takes its place" in due.obstacle
