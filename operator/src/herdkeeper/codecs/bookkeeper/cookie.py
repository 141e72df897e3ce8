"""The cookie of a bookie: the same text in ZooKeeper (`cookies/<id>`) and in the file VERSION of each directory.

A line with the version of the layout, then the message CookieFormat in protobuf text form. Directories are one string: their number, then
the paths, separated by tabs. Source: Cookie.java and CookieFormat of BookKeeper 4.18.0.
"""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.codecs.protobuf_text import read_text_fields

LAYOUT_VERSION = 5


@dataclass(frozen=True)
class Cookie:
    """`journal` has several directories separated by commas. `indexes` is None if the ledger directories hold them."""

    bookie_id: str
    journal: str
    ledgers: tuple[str, ...]
    instance_id: str
    indexes: tuple[str, ...] | None = None


def cookie_path(root: str, bookie_id: str) -> str:
    return f"{root}/cookies/{bookie_id}"


def decode_cookie(data: bytes) -> Cookie:
    """Raises MalformedDataError for other layouts and missing fields."""
    version, _, text = data.partition(b"\n")
    if version.strip() != str(LAYOUT_VERSION).encode():
        raise MalformedDataError(f"a cookie begins with {version[:40]!r}, expected the layout version {LAYOUT_VERSION}")
    found = {field.name: field.value.decode(errors="replace") for field in read_text_fields(text) if isinstance(field.value, bytes)}
    missing = [name for name in ("bookieHost", "journalDir", "ledgerDirs", "instanceId") if not found.get(name)]
    if missing:
        raise MalformedDataError(f"a cookie has no {', '.join(missing)}")
    indexes = found.get("indexDirs")
    return Cookie(
        found["bookieHost"],
        found["journalDir"],
        _directories(found["ledgerDirs"]),
        found["instanceId"],
        _directories(indexes) if indexes else None,
    )


def encode_cookie(cookie: Cookie) -> bytes:
    """Returns what a bookie writes at its first start. No value may have a quote, a backslash or an unprintable character."""
    fields = {
        "bookieHost": cookie.bookie_id,
        "journalDir": cookie.journal,
        "ledgerDirs": _joined(cookie.ledgers),
        "instanceId": cookie.instance_id,
        **({} if cookie.indexes is None else {"indexDirs": _joined(cookie.indexes)}),
    }
    lines = [str(LAYOUT_VERSION), *(f'{name}: "{value}"' for name, value in fields.items())]
    return "".join(f"{line}\n" for line in lines).encode()


def _joined(paths: tuple[str, ...]) -> str:
    """Escapes tabs as the text form does."""
    return "\\t".join((str(len(paths)), *paths))


def _directories(text: str) -> tuple[str, ...]:
    count, *paths = text.split("\t")
    if count != str(len(paths)):
        raise MalformedDataError(f"a cookie's directories are {text!r}, expected their number and then as many paths")
    return tuple(paths)
