"""Which store is opened, with what, and what it is asked: S3, Google and Azure, by a Secret's keys and by the identity of the pod."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from obstore.store import AzureStore, GCSStore, S3Store
from own_certificate import own_certificate
from played_cloud import TOKEN, PlayedCloud

from herdkeeper.shared.names import ARCHIVE_VARIABLES, DESTINATION_VARIABLES, STORE_AUTHORITIES_VARIABLE, STORE_ENDPOINTS, STORE_KEYS
from herdkeeper_jobs.storage import object_store
from herdkeeper_jobs.storage.object_path import ObjectPath
from herdkeeper_jobs.storage.object_store import StoreNotConfiguredError, StoreSettings
from herdkeeper_jobs.storage.stored_path import create_if_absent, why_unusable

AMAZON = {"AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "a-secret"}
_RSA = rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
GOOGLE = {
    "GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(
        {"type": "service_account", "client_email": "backups@project", "private_key_id": "1", "private_key": _RSA}
    )
}
AZURE = {"AZURE_STORAGE_ACCOUNT_NAME": "account", "AZURE_STORAGE_ACCOUNT_KEY": base64.b64encode(b"k" * 32).decode()}


@pytest.fixture(autouse=True)
def nothing_is_open(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """And nothing is told by variables, as the other tests have them."""
    for prefix in ("", DESTINATION_VARIABLES, ARCHIVE_VARIABLES):
        for name in (*AMAZON, STORE_ENDPOINTS["s3"]):
            monkeypatch.delenv(f"{prefix}{name}")
    object_store.opened.cache_clear()
    yield
    object_store.opened.cache_clear()


def destination(scheme: str, address: str, monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> ObjectPath:
    """A bucket there, opened with these variables."""
    for name, value in {**variables, STORE_ENDPOINTS[scheme]: address}.items():
        monkeypatch.setenv(f"{DESTINATION_VARIABLES}{name}", value)
    return ObjectPath(scheme, "bucket", variables=DESTINATION_VARIABLES)


def require_created_once(bucket: ObjectPath) -> None:
    """Of two that create one object the first is told that it did, and its bytes are there."""
    assert create_if_absent(bucket / "manifest", b"mine")
    assert not create_if_absent(bucket / "manifest", b"another's")
    assert (bucket / "manifest").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("scheme", "kind", "given"),
    [("s3", S3Store, AMAZON | {"AWS_REGION": "eu-central-1"}), ("gs", GCSStore, GOOGLE), ("az", AzureStore, AZURE)],
)
def test_a_store_gets_what_has_its_prefix_and_is_of_its_kind(scheme: str, kind: type, given: dict[str, str]) -> None:
    environment = {f"{ARCHIVE_VARIABLES}{name}": value for name, value in given.items()}
    of_another = {f"{DESTINATION_VARIABLES}{name}": "another's" for name in (*AMAZON, *GOOGLE, *AZURE)}
    settings = StoreSettings.of(scheme, {**environment, **of_another, "AWS_REGION": "nowhere"}, ARCHIVE_VARIABLES)
    assert settings.config == given
    opened = settings.open("bucket")
    assert isinstance(opened, kind)
    assert {f"{value}" for value in opened.config.values()} == {*given.values(), "bucket"}
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("scheme", "given", "shown"),
    [("s3", AMAZON, "AWS4-HMAC-SHA256 Credential=an-id/"), ("gs", GOOGLE, "Bearer eyJ"), ("az", AZURE, "SharedKey account:")],
)
def test_an_object_is_created_once_with_the_keys_of_the_secret(
    scheme: str, given: dict[str, str], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = PlayedCloud(scheme)
    with cloud.serving() as address:
        require_created_once(destination(scheme, f"http://{address}", monkeypatch, given))
    assert all(asked.startswith(shown) and TOKEN not in asked for asked in cloud.asked)
    assert cloud.identities == []


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_a_store_is_usable_once_it_has_shown_that_it_creates_only_once(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud, given = PlayedCloud(scheme), {"s3": AMAZON, "gs": GOOGLE, "az": AZURE}[scheme]
    with cloud.serving() as address:
        bucket = destination(scheme, f"http://{address}", monkeypatch, given)
        assert why_unusable(bucket, writes=True) is None
        cloud.heeds_conditions = False
        condition = "x-goog-if-generation-match: 0" if scheme == "gs" else r"If-None-Match: \*"
        assert re.match(f"the object store ignores `{condition}`", why_unusable(bucket, writes=True) or "")


def of_pod(scheme: str, address: str, token: Path) -> dict[str, str]:
    """What the cloud, or its webhook, puts into a pod; addresses only so that they lead here."""
    token.write_text("of-kubernetes")
    azure = {"AZURE_CLIENT_ID": "client", "AZURE_TENANT_ID": "tenant", "AZURE_FEDERATED_TOKEN_FILE": str(token)}
    return {
        "s3": {"AWS_METADATA_ENDPOINT": f"http://{address}"},
        "gs": {"GCE_METADATA_HOST": address},
        "az": {**azure, "AZURE_AUTHORITY_HOST": f"http://{address}"},
    }[scheme]


@pytest.mark.parametrize(
    ("scheme", "shown", "named"),
    [
        ("s3", f"AWS4-HMAC-SHA256 Credential={TOKEN}/", "/latest/meta-data/iam/security-credentials/a-role"),
        ("gs", f"Bearer {TOKEN}", "/service-accounts/default/token"),
        ("az", f"Bearer {TOKEN}", "client_assertion=of-kubernetes"),
    ],
)
def test_without_a_secret_the_cloud_says_who_the_pod_is(
    scheme: str, shown: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud, account = PlayedCloud(scheme), {"AZURE_STORAGE_ACCOUNT_NAME": "account"}
    with cloud.serving() as address:
        for name, value in of_pod(scheme, address, tmp_path / "token").items():
            monkeypatch.setenv(name, value)
        require_created_once(destination(scheme, f"http://{address}", monkeypatch, account if scheme == "az" else {}))
    assert all(asked.startswith(shown) for asked in cloud.asked)
    assert any(named in identity for identity in cloud.identities)


def test_on_eks_the_token_of_the_service_account_is_exchanged_for_a_role(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, certificate, key = own_certificate()
    (tmp_path / "store.pem").write_bytes(certificate)
    (tmp_path / "key.pem").write_bytes(key)
    (tmp_path / "token").write_text("of-kubernetes")
    cloud = PlayedCloud("s3")
    with cloud.serving((tmp_path / "store.pem", tmp_path / "key.pem")) as address:
        monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/backups")
        monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"https://{address}")
        require_created_once(destination("s3", f"https://{address}", monkeypatch, {STORE_AUTHORITIES_VARIABLE: authority}))
    assert all(asked.startswith(f"AWS4-HMAC-SHA256 Credential={TOKEN}/") and asked.endswith("a-session") for asked in cloud.asked)
    assert "WebIdentityToken=of-kubernetes" in cloud.identities[0]
    assert "backups" in cloud.identities[0]


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_keys_of_one_place_are_not_taken_for_another_that_has_none(scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A destination with a Secret, and an archive in the same cloud that is opened as the pod."""
    cloud, account = PlayedCloud(scheme), {"AZURE_STORAGE_ACCOUNT_NAME": "account"} if scheme == "az" else {}
    with cloud.serving() as address:
        for name, value in of_pod(scheme, address, tmp_path / "token").items():
            monkeypatch.setenv(name, value)
        destination(scheme, f"http://{address}", monkeypatch, {"s3": AMAZON, "gs": GOOGLE, "az": AZURE}[scheme])
        for name, value in {**account, STORE_ENDPOINTS[scheme]: f"http://{address}"}.items():
            monkeypatch.setenv(f"{ARCHIVE_VARIABLES}{name}", value)
        require_created_once(ObjectPath(scheme, "bucket", variables=ARCHIVE_VARIABLES))
    assert all(TOKEN in asked for asked in cloud.asked)


@pytest.mark.parametrize(
    ("scheme", "given", "words"),
    [
        ("az", {}, "Account must be specified"),
        ("az", AZURE | {"AZURE_STORAGE_ACCOUNT_KEY": "no base64"}, ""),
        ("gs", {"GOOGLE_SERVICE_ACCOUNT_KEY": "no json of a key"}, ""),
    ],
)
def test_what_a_store_can_not_be_opened_with_is_told_without_the_key(scheme: str, given: dict[str, str], words: str) -> None:
    fix = "correct its Secret or fields$"
    with pytest.raises(StoreNotConfiguredError, match=f"^{scheme}://bucket can't be opened: .*{words}.*; {fix}") as told:
        StoreSettings.of(scheme, given).open("bucket")
    assert "no base64" not in str(told.value)
    assert "no json" not in str(told.value)


@pytest.mark.parametrize("scheme", sorted(STORE_KEYS))
def test_a_store_whose_secret_was_emptied_is_not_asked_by_the_identity_of_the_machine(scheme: str) -> None:
    """obstore takes that one where it is given no key."""
    keys = STORE_KEYS[scheme]
    with pytest.raises(StoreNotConfiguredError, match=f"^the Secret with the store's credentials has an empty {' and '.join(keys)}: fill"):
        StoreSettings.of(scheme, {f"{ARCHIVE_VARIABLES}{key}": "" for key in keys}, ARCHIVE_VARIABLES)
