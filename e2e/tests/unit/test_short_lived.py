"""What the scenario of certificates puts into a Secret stays until it is due, and is renewed for its age then, and for nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from herdkeeper.certificates.authority import Authority, RenewalReason, authority_data, first_authority, why_renew
from herdkeeper.certificates.holders import secret_data
from herdkeeper.certificates.issue import AUTHORITY_LIFE, CERTIFICATE_LIFE, KeyPair, Subject, Validity, fresh_key, issue
from herdkeeper_e2e.short_lived import Span, short_lived

HOSTS = frozenset({"*.bk-bookie.demo.svc"})
SPAN = Span(timedelta(minutes=2), timedelta(minutes=5))
A_MINUTE = timedelta(minutes=1)


@pytest.fixture
def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def authority(now: datetime) -> Authority:
    return first_authority("zk clients", fresh_key(), Validity(now, AUTHORITY_LIFE))


@pytest.mark.parametrize("hosts", [HOSTS, frozenset()])
@pytest.mark.parametrize("subject", [Subject("bookies.bk", "bk"), Subject("operator")])
def test_it_is_renewed_for_its_age_when_it_is_due(now: datetime, authority: Authority, subject: Subject, hosts: frozenset[str]) -> None:
    held = secret_data(issue(authority.signing, subject, sorted(hosts), fresh_key(), Validity(now, CERTIFICATE_LIFE)), authority)
    short = short_lived(held, authority_data(authority), SPAN)
    assert short.keys() == held.keys()
    reasons = [
        why_renew(KeyPair(short["tls.crt"], short["tls.key"]), authority, subject, hosts, now + SPAN.due + more)
        for more in (-A_MINUTE, A_MINUTE)
    ]
    assert reasons == [None, RenewalReason.AGE]


def test_it_is_valid_now_and_ends_when_it_shall(now: datetime, authority: Authority) -> None:
    held = secret_data(issue(authority.signing, Subject("member"), [], fresh_key(), Validity(now, CERTIFICATE_LIFE)), authority)
    short = x509.load_pem_x509_certificate(short_lived(held, authority_data(authority), SPAN)["tls.crt"].encode())
    assert short.not_valid_before_utc <= now
    assert abs(short.not_valid_after_utc - (now + SPAN.end)) < A_MINUTE
