"""A stack whose authorities come from Secrets of its user, such as cert-manager writes for a Certificate with `isCA: true`."""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from rolled_stack import BOOKIE, BOOKKEEPER, MEMBERS, NAMED, SECURE, Stack
from situations import member_claims, with_spec

from herdkeeper.api.zookeeper_cluster import GivenAuthority, Security
from herdkeeper.certificates.given_authority import given_authority
from herdkeeper.certificates.issue import CERTIFICATE_LIFE, KeyPair, Subject, Validity, fresh_key, is_pair, issue
from herdkeeper.clients.kubernetes import values_of_secret
from herdkeeper.planning.actions import Plan
from herdkeeper.planning.identities import secret_of
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.reason import Reason
from herdkeeper.tls.context import load_certificate, mutual_context
from herdkeeper.tls.identity import Identity
from herdkeeper.zookeeper.authority_roll import TIME_TO_LOAD
from herdkeeper.zookeeper.observe_given_authorities import observe_given_authorities
from herdkeeper.zookeeper.observe_security import kept_authorities, observe_security
from herdkeeper.zookeeper.plan import plan_zookeeper
from herdkeeper.zookeeper.state import Ensemble

NOW = datetime.now(UTC)
YEARS = timedelta(days=5 * 365)
MINUTES = TIME_TO_LOAD.total_seconds() / 60
IDENTITY = BOOKKEEPER.names.identity_secret
GIVEN = with_spec(
    SECURE,
    security=Security(
        mode="TLS", authority=GivenAuthority(secret_name="company"), quorum_authority=GivenAuthority(secret_name="company-quorum")
    ),
)
ROOT_KEY = ec.generate_private_key(ec.SECP384R1())
ROOT_KEY_OF_QUORUM = ec.generate_private_key(ec.SECP256R1())
KEY = ec.generate_private_key(ec.SECP256R1())
IS_AUTHORITY = x509.BasicConstraints(ca=True, path_length=None)

UNKNOWN = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00")


def usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(True, False, True, False, False, signs, False, False, False)


def intermediate(
    name: str,
    *extensions: x509.ExtensionType,
    key: Any = KEY,
    begin: datetime = NOW - timedelta(hours=1),
    life: timedelta = YEARS,
    critical: bool = False,
) -> dict[str, str]:
    """A Secret's values: an authority that another one has signed, with the chain above it, as cert-manager writes it."""
    above = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "company root")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else [])
    builder = x509.CertificateBuilder(above, subject, key.public_key(), x509.random_serial_number(), begin, begin + life)
    for extension in extensions or (IS_AUTHORITY, usage(signs=True)):
        builder = builder.add_extension(extension, critical)
    certificate = builder.sign(ROOT_KEY, hashes.SHA384()).public_bytes(serialization.Encoding.PEM).decode()
    root = x509.CertificateBuilder(above, above, ROOT_KEY.public_key(), x509.random_serial_number(), begin, begin + life)
    text = root.add_extension(IS_AUTHORITY, critical=True).sign(ROOT_KEY, hashes.SHA384()).public_bytes(serialization.Encoding.PEM).decode()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    return {"tls.crt": certificate + text, "tls.key": pem.decode(), "ca.crt": text}


def fresh() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def named(name: str, data: Mapping[str, str]) -> dict[tuple[str, str], Any]:
    return {("Secret", name): secret_of({"name": name, "resourceVersion": "1"}, dict(data))}


def work(stack: Stack, looks: int = 12) -> None:
    """Everybody does what there is to do now; no time passes."""
    for _ in range(looks):
        stack.look()
        stack.look_at_bookies()
        assert stack.strangers() == []


def founded() -> Stack:
    """A new stack whose authorities were in the Secrets from the beginning."""
    return Stack(GIVEN, named("company", intermediate("company 1")) | named("company-quorum", intermediate("members 1", key=fresh())))


def planned(items: Mapping[tuple[str, str], Any], *clusters: Any) -> Plan:
    """The first plan of an ensemble in a namespace with these Secrets, and with these ZooKeeperClusters."""
    held = {name: values_of_secret(document) for (_, name), document in items.items()}
    kubernetes = SimpleNamespace(
        recent_secret=lambda key: held.get(key.name), secret=lambda key: held.get(key.name), documents=lambda *_: clusters
    )
    kept = kept_authorities(GIVEN, Objects(items))
    given = observe_given_authorities(GIVEN, kept, kubernetes, NOW)  # type: ignore[arg-type]
    return plan_zookeeper(Ensemble(GIVEN, Objects(items), given=given, security=observe_security(GIVEN, Objects(items), kept, given, NOW)))


# which ones can sign


def test_what_cert_manager_issues_can_sign_and_its_own_issuers_are_not_trusted() -> None:
    pair = given_authority(intermediate("company 1"), NOW)
    assert len(x509.load_pem_x509_certificates(pair.certificate.encode())) == 1
    assert pair.key.startswith("-----BEGIN PRIVATE KEY-----"), "PKCS#8, whatever the Secret has"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "lacks tls.crt and tls.key"),
        ({**intermediate("one"), "tls.key": ""}, "lacks tls.key"),
        ({**intermediate("one"), "tls.crt": "damaged"}, "no readable certificate in tls.crt"),
        ({**intermediate("one"), "tls.key": "damaged"}, "no readable key in tls.key"),
        ({**intermediate("one"), "tls.key": intermediate("one", key=fresh())["tls.key"]}, "is not that of tls.crt"),
        (intermediate("one", key=rsa.generate_private_key(65537, 2048)), "not of the curve P-256"),
        (intermediate("one", key=ec.generate_private_key(ec.SECP384R1())), "not of the curve P-256"),
        (intermediate("one", usage(signs=True)), "isCA: true"),
        (intermediate("one", x509.BasicConstraints(ca=False, path_length=None)), "isCA: true"),
        (intermediate("one", IS_AUTHORITY, usage(signs=False)), "must not sign others"),
        (intermediate("one", IS_AUTHORITY, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])), "not for servers and clients"),
        (intermediate("one", IS_AUTHORITY, x509.NameConstraints([x509.DNSName("example.org")], None)), "constrains names"),
        (intermediate(""), "no common name"),
        (intermediate("one", IS_AUTHORITY, UNKNOWN, critical=True), r"critical extensions that not all servers check \(1.2.3.4\)"),
        (intermediate("one", begin=NOW - YEARS, life=YEARS - timedelta(days=1)), "and must be valid now and for another day: renew it"),
        (intermediate("one", begin=NOW - YEARS, life=YEARS + timedelta(hours=23)), "and must be valid now and for another day: renew it"),
        (intermediate("one", begin=NOW + timedelta(days=1)), "and must be valid now and for another day: renew it"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_can_not_sign_is_told_with_the_key_and_the_remedy(values: Mapping[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        given_authority(values, NOW)


def rewritten(values: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """With other bytes (in hex) in the certificate, of the same length."""
    certificate = x509.load_pem_x509_certificate(values["tls.crt"].encode()).public_bytes(serialization.Encoding.DER)
    assert bytes.fromhex(old) in certificate
    assert len(old) == len(new)
    text = base64.encodebytes(certificate.replace(bytes.fromhex(old), bytes.fromhex(new))).decode()
    return {**values, "tls.crt": f"-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\n"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("06032a0305", "06032a0304", "Duplicate 1.2.3.4 extension found"),
        ("a003020102", "a003020104", "4 is not a valid X509 version"),
        ("06082a8648ce3d030107", "06082a8648ce3d03010a", "Curve .* is not supported"),
    ],
    ids=["extensions", "version", "curve"],
)
def test_a_certificate_that_can_not_be_read_is_told_and_stops_nothing(old: str, new: str, words: str) -> None:
    another = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.5"), b"\x05\x00")
    values = rewritten(intermediate("one", IS_AUTHORITY, UNKNOWN, another), old, new)
    with pytest.raises(ValueError, match=rf"no readable certificate in tls.crt \({words}"):
        given_authority(values, NOW)


def test_a_key_that_java_does_not_read_is_told() -> None:
    """Here a point in hybrid form, elsewhere a curve that is spelled out: OpenSSL reads both."""
    hybrid = f"0342000{6 + KEY.public_key().public_numbers().y % 2}"
    with pytest.raises(ValueError, match=r"has its key in a form that Java does not read"):
        given_authority(rewritten(intermediate("one"), "03420004", hybrid), NOW)


def test_a_key_with_a_password_is_told() -> None:
    locked = KEY.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x"))
    with pytest.raises(ValueError, match=r"no readable key in tls.key .*without a password"):
        given_authority({**intermediate("one"), "tls.key": locked.decode()}, NOW)
    assert not is_pair(intermediate("one")["tls.crt"], locked.decode())


def long_key(numbers: int) -> str:
    """An RSA key whose numbers are no primes, and have no small divisor: to find that out takes the cube of their length."""
    prime = (2**61 - 1) ** numbers
    fields = (0, prime**2, 65537, 3, prime, prime, 3, 3, 3)
    text = base64.encodebytes(_der(0x30, b"".join(_der(2, value.to_bytes(value.bit_length() // 8 + 1)) for value in fields))).decode()
    return f"-----BEGIN RSA PRIVATE KEY-----\n{text}-----END RSA PRIVATE KEY-----\n"


def _der(tag: int, content: bytes) -> bytes:
    size = len(content).to_bytes((len(content).bit_length() + 7) // 8)
    return bytes([tag, *([len(content)] if len(content) < 128 else [0x80 + len(size), *size])]) + content


@pytest.mark.parametrize("numbers", [20, 2000])
def test_a_key_of_another_kind_is_told_before_its_numbers_are_looked_at(numbers: int) -> None:
    """No other thread runs meanwhile, and with 2000 it takes hours."""
    began = time.thread_time()
    with pytest.raises(ValueError, match="not of the curve P-256"):
        given_authority({**intermediate("one"), "tls.key": long_key(numbers)}, NOW)
    assert not is_pair(intermediate("one")["tls.crt"], long_key(numbers))
    assert time.thread_time() - began < 5


def shake_hands(pair: KeyPair) -> None:
    """A client and a server with certificates of an authority, which both trust."""
    issued = issue(pair, Subject("zookeeper"), ["zk.demo"], fresh_key(), Validity(NOW, CERTIFICATE_LIFE))
    client = mutual_context(Identity(issued.certificate, issued.key, pair.certificate))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_certificate(server, issued.certificate, issued.key)
    one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (client.wrap_bio(one, other, server_hostname="zk.demo"), server.wrap_bio(other, one, server_side=True))
    for end in ends * 2:
        with suppress(ssl.SSLWantReadError):
            end.do_handshake()
    assert ends[0].version() is not None


@pytest.mark.parametrize("identifier", [None, b"not of SHA-1", b""])
def test_whoever_trusts_an_authority_accepts_its_certificates_however_it_names_its_key(identifier: bytes | None) -> None:
    """As Go has done since 1.25, and so cert-manager: of SHA-256."""
    named_so = () if identifier is None else (x509.SubjectKeyIdentifier(identifier),)
    shake_hands(given_authority(intermediate("one", IS_AUTHORITY, usage(signs=True), *named_so), NOW))


# a new stack


def test_a_new_stack_has_its_certificates_of_the_given_authorities() -> None:
    stack = founded()
    assert stack.strangers() == []
    assert stack.authorities()[IDENTITY] == ["company 1", "company 1"]
    assert stack.authorities()[NAMED.members_secret] == ["members 1", "members 1"]
    assert stack.rolled() is None
    assert stack.look().actions == ()


@pytest.mark.parametrize("there", [{}, named("company", intermediate("company 1"))])
def test_nothing_is_made_while_a_given_authority_is_missing(there: dict[tuple[str, str], Any]) -> None:
    plan = planned(there)
    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.reason is Reason.WAITING_FOR_SECRET
    assert "does not exist: create it, or leave the field out" in plan.wait.message


def test_an_ensemble_that_lost_its_authority_tells_also_that_the_given_one_is_missing() -> None:
    """Else the second is told only when the first is mended."""
    plan = planned({**member_claims(*[names.FOUNDED] * 3), **named("company-quorum", intermediate("members 1"))})
    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.reason is Reason.INVALID_SECRET
    assert f"the Secret {NAMED.authority_secret} of the authority is missing: restore it from a backup" in plan.wait.message
    assert "the Secret company of spec.security.authority does not exist: create it, or leave the field out" in plan.wait.message


def test_one_key_for_clients_and_members_is_refused_since_every_client_would_be_a_member() -> None:
    plan = planned(named("company", intermediate("company 1")) | named("company-quorum", intermediate("members 1")))
    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.message.startswith(
        "the Secret company of spec.security.authority and the Secret company-quorum have one key, or one has signed the other, so every "
        "client could be a member"
    )


def test_an_authority_that_the_quorums_has_signed_is_refused_since_every_client_could_be_a_member() -> None:
    """A client could show the certificate of its authority besides its own."""
    root, key = intermediate("root", key=ROOT_KEY_OF_QUORUM), fresh()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "root")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "company 1")])
    builder = x509.CertificateBuilder(name, subject, key.public_key(), 7, NOW - timedelta(hours=1), NOW + YEARS)
    signed = builder.add_extension(IS_AUTHORITY, critical=True).sign(ROOT_KEY_OF_QUORUM, hashes.SHA256())
    below = {**intermediate("any", key=key), "tls.crt": signed.public_bytes(serialization.Encoding.PEM).decode()}
    plan = planned(named("company", below) | named("company-quorum", root))
    assert plan.actions == ()
    assert plan.wait is not None
    assert "or one has signed the other" in plan.wait.message


OTHER = {"metadata": {"name": "other"}, "spec": {"security": {"quorumAuthority": {"secretName": "company"}}}}
OF_OTHER = (
    "the Secret company is an authority of the ZooKeeperCluster other, too, so a certificate for one of them would count at the other one: "
    "make an authority for each"
)


def test_an_authority_that_another_ensemble_of_the_namespace_names_founds_none() -> None:
    both = named("company", intermediate("company 1")) | named("company-quorum", intermediate("members 1", key=fresh()))
    plan = planned(both, {"metadata": {"name": "zk"}, "spec": GIVEN.spec.model_dump(by_alias=True)}, OTHER)
    assert plan.actions == ()
    assert plan.wait is not None
    assert (plan.wait.reason, plan.wait.message) == (Reason.INVALID_SECRET, OF_OTHER)
    assert planned(both, {"metadata": {"name": "insecure"}, "spec": {}}).actions != ()


# a running one


def test_an_authority_that_another_ensemble_names_takes_over_from_none_and_that_is_told() -> None:
    """The rolls of both would wait for each other's Secrets for ever."""
    stack = founded()
    stack.others.append(OTHER)
    stack.hold("company", intermediate("company 2", key=fresh()))
    work(stack)
    assert stack.events == []
    found = stack.rolled()
    assert found is not None
    assert (found.reason, found.message) == (Reason.INVALID_SECRET, OF_OTHER)


def test_another_authority_in_the_secret_takes_over_in_three_steps() -> None:
    stack = founded()
    stack.hold("company", intermediate("company 2", key=fresh()))
    work(stack)
    assert stack.events[0] == "company 2 follows company 1: it is created, and every server must trust both"
    assert stack.authorities()[IDENTITY] == ["company 1", "company 2", "company 1"]
    for expected in (["company 1", "company 2", "company 2"], ["company 2"] * 2, ["company 2"] * 2):
        stack.passes(MINUTES + 0.1)
        work(stack)
        assert stack.authorities()[IDENTITY] == expected
    assert stack.authorities()[NAMED.members_secret] == ["members 1"] * 2
    assert stack.rolled() is None
    assert stack.look().actions == ()


def test_a_renewed_certificate_of_the_same_key_takes_over_and_no_certificate_is_made_anew() -> None:
    """cert-manager with rotationPolicy Never: ZooKeeper keeps one of the two, and either verifies what both have signed."""
    stack = founded()
    before = stack.secret_of_bookie()
    stack.hold("company", intermediate("company 1", life=2 * YEARS))
    for _ in range(4):
        work(stack)
        stack.passes(MINUTES + 0.1)
    assert stack.rolled() is None
    after = stack.secret_of_bookie()
    assert (before["tls.crt"], before["ca.crt"] == after["ca.crt"]) == (after["tls.crt"], False)


def test_a_stack_of_the_operators_authorities_moves_to_given_ones_and_back() -> None:
    stack = Stack(items=named("company", intermediate("company 1")))
    stack.declared = stack.cluster = with_spec(SECURE, security=Security(mode="TLS", authority=GivenAuthority(secret_name="company")))
    for _ in range(4):
        work(stack)
        stack.passes(MINUTES + 0.1)
    assert stack.authorities()[IDENTITY] == ["company 1"] * 2
    stack.declared = stack.cluster = SECURE
    work(stack)
    assert stack.rolled() is None, "the authority stays until its age or a person asks for another one"
    stack.ask()
    for _ in range(4):
        work(stack)
        stack.passes(MINUTES + 0.1)
    assert stack.authorities()[IDENTITY] == ["zk clients 3"] * 2
    assert stack.answers == ["done: zk clients 3 takes over and zk quorum 2 takes over"]


def test_two_authorities_never_change_places_since_every_client_would_be_a_member_meanwhile() -> None:
    stack = founded()
    before = {name: stack.secret(ObjectKey("demo", name)) or {} for name in ("company", "company-quorum")}
    stack.hold("company", before["company-quorum"])
    stack.hold("company-quorum", before["company"])
    work(stack)
    assert stack.events == []
    found = stack.rolled()
    assert found is not None
    assert found.message.count("so every client could be a member") == 2


def test_what_a_secret_had_minutes_ago_never_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = founded()
    wrong = intermediate("a mistake", key=fresh())
    monkeypatch.setattr(stack, "recent_secret", lambda key: wrong if key.name == "company" else stack.secret(key))
    work(stack)
    assert stack.events == []
    stack.hold("company", intermediate("company 2", key=fresh()))
    work(stack)
    assert stack.events[0].startswith("company 2 follows company 1")


def test_an_authority_of_the_operator_does_not_take_the_name_of_a_given_one() -> None:
    """As that of an earlier stack may have: ZooKeeper keeps one of two with the same subject."""
    stack = Stack(GIVEN, named("company", intermediate("zk clients 2")) | named("company-quorum", intermediate("members 1", key=fresh())))
    stack.declared = stack.cluster = SECURE
    stack.ask()
    work(stack)
    assert stack.authorities()[IDENTITY] == ["zk clients 2", "zk clients 2 again", "zk clients 2"]


@pytest.mark.parametrize("steps", range(4))
def test_the_authority_of_members_never_becomes_that_of_clients_while_anything_trusts_it(steps: int) -> None:
    """Neither when no field names it any more, nor while another one follows it."""
    stack = founded()
    members = stack.secret(ObjectKey("demo", "company-quorum")) or {}
    if steps:
        stack.hold("company-quorum", intermediate("members 2", key=fresh()))
    for _ in range(steps):
        work(stack)
        stack.passes(MINUTES + 0.1)
    stack.hold("company", members)
    stack.declared = stack.cluster = with_spec(SECURE, security=Security(mode="TLS", authority=GIVEN.spec.security.authority))
    found = stack.rolled()
    assert found is not None
    assert f"and the Secret {NAMED.quorum_authority_secret} have one key" in found.message


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "does not exist"),
        ({"tls.crt": "damaged", "tls.key": "damaged"}, "has no readable certificate in tls.crt"),
        (
            intermediate("company 1", IS_AUTHORITY, usage(signs=True), x509.SubjectKeyIdentifier(b"of SHA-256")),
            "has another key, or identifier of it, under the subject of the authority that signs now",
        ),
        (intermediate("Company  1", key=fresh()), "has another key, or identifier of it, under the subject"),
        (intermediate("company 1", key=fresh()), "has another key, or identifier of it, under the subject of the authority that signs now"),
    ],
)
def test_a_secret_that_can_no_longer_sign_changes_nothing_and_is_told(data: dict[str, str] | None, words: str) -> None:
    stack = founded()
    if data is None:
        del stack.items["Secret", "company"]
    else:
        stack.hold("company", data)
    work(stack)
    found = stack.rolled()
    assert found is not None
    assert (found.status, found.reason) == ("False", Reason.WAITING_FOR_SECRET if data is None else Reason.INVALID_SECRET)
    assert f"the Secret company of spec.security.authority {words}" in found.message
    assert stack.authorities()[IDENTITY] == ["company 1", "company 1"]
    assert stack.events == []
    stack.start(BOOKIE, [IDENTITY], "BookKeeperCluster", "bk")
    stack.is_ready(MEMBERS[0], "False")
    assert stack.look().wait is None, "what else the stack needs is still done"


def test_another_authority_that_waits_for_the_ensemble_is_told() -> None:
    stack = founded()
    stack.is_ready(MEMBERS[0], "False")
    stack.hold("company", intermediate("company 2", key=fresh()))
    work(stack, 3)
    found = stack.rolled()
    assert found is not None
    assert found.message == "company 2 follows company 1: it begins once nothing else of the ensemble changes"


def test_an_authority_that_was_put_there_by_mistake_never_signs_if_the_secret_is_put_right_in_the_first_step() -> None:
    stack = founded()
    stack.hold("company", intermediate("by mistake", key=fresh()))
    work(stack)
    assert stack.authorities()[IDENTITY] == ["company 1", "by mistake", "company 1"]
    stack.passes(MINUTES / 2)
    stack.hold("company", intermediate("company 2", key=fresh()))
    work(stack)
    assert stack.authorities()[IDENTITY] == ["company 1", "company 2", "company 1"]
    stack.passes(MINUTES / 2 + 0.1)
    work(stack)
    assert stack.authorities()[IDENTITY][-1] == "company 1", "pods get the whole time to load the other one"
    for _ in range(4):
        stack.passes(MINUTES + 0.1)
        work(stack)
    assert stack.authorities()[IDENTITY] == ["company 2"] * 2
    assert stack.rolled() is None


def test_a_roll_is_given_up_in_its_first_step_if_the_secret_has_the_authority_that_signs_again() -> None:
    stack = founded()
    before = stack.items["Secret", "company"]
    stack.hold("company", intermediate("by mistake", key=fresh()))
    work(stack)
    stack.put(before)
    stack.ask()
    work(stack)
    assert stack.authorities()[IDENTITY] == ["company 1"] * 2
    assert stack.rolled() is None
    assert stack.events[-1] == "by mistake follows company 1 no more: its Secret has the one that signs"
    assert stack.answers[0].startswith("refused: the authorities in the Secrets company and company-quorum sign already")
    stack.hold("company", intermediate("company 2", key=fresh()))
    for _ in range(4):
        work(stack)
        stack.passes(MINUTES + 0.1)
    assert stack.authorities()[IDENTITY] == ["company 2"] * 2


def test_in_the_second_step_another_authority_in_the_secret_waits_for_the_end() -> None:
    stack = founded()
    stack.hold("company", intermediate("company 2", key=fresh()))
    work(stack)
    stack.passes(MINUTES + 0.1)
    work(stack)
    stack.hold("company", intermediate("company 3", key=fresh()))
    work(stack)
    assert stack.authorities()[IDENTITY] == ["company 1", "company 2", "company 2"]
    for _ in range(8):
        stack.passes(MINUTES + 0.1)
        work(stack)
    assert stack.authorities()[IDENTITY] == ["company 3"] * 2


def test_age_alone_makes_no_successor_of_a_given_authority() -> None:
    stack = founded()
    stack.now += YEARS * 2 / 3 + timedelta(days=1)
    work(stack, 4)
    assert [event for event in stack.events if "follows" in event] == []


def test_a_request_says_that_given_authorities_are_followed_by_what_their_secrets_get() -> None:
    stack = founded()
    stack.ask()
    work(stack)
    assert stack.answers == [
        "refused: the authorities in the Secrets company and company-quorum sign already: put others there, and they take over"
    ]


def test_a_request_rolls_the_authority_that_is_the_operators() -> None:
    declared = with_spec(SECURE, security=Security(mode="TLS", authority=GivenAuthority(secret_name="company")))
    stack = Stack(declared, named("company", intermediate("company 1")))
    stack.ask()
    work(stack)
    assert stack.answers == [
        "done: zk quorum 2 takes over; the authority in the Secret company signs already: put another one there, and it takes over"
    ]


def test_a_request_says_why_what_a_secret_has_takes_over_from_none() -> None:
    """The authority that signs is still the operator's."""
    stack = Stack()
    stack.declared = with_spec(SECURE, security=Security(mode="TLS", authority=GivenAuthority(secret_name="company")))
    stack.ask()
    work(stack)
    missing = "the Secret company of spec.security.authority does not exist: create it, or leave the field out"
    assert stack.answers == [f"done: zk quorum 2 takes over; {missing}"]
