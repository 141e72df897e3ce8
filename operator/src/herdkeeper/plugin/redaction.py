"""Removes whatever looks like a password, token or key. Pure."""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "(left out)"
_WORDS = (
    r"passw(?:or)?d|passphrase|secret|token|credentials?|signature|[?&]sig|"
    r"(?:api|access|account|private|secret|signing|encryption)[._-]?key(?:[._-]?id)?"
)
_QUOTED = r"""(?P<escapes>\\{0,31})(?P<quote>["'])[\s\S]*?(?<!\\)(?P=escapes)(?P=quote)"""
"""A quoted text. Within another quoted text its quotes are escaped, as in JSON within a line of JSON."""
_NAMED = re.compile(rf"""((?:{_WORDS})\\*["']?\s*[=:]\s*)(?:{_QUOTED}|[^\s,;&}})\]]+)""", re.IGNORECASE)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_IN_URL = re.compile(r"(://[^\s:/@]+:)[^\s@/]+(@)")
_JWT = re.compile(r"(?<![\w-])((?>[\w-]*?(?=eyJ)))[\w-]++\.eyJ[\w-]{8,}+\.[\w-]*")
"""A token, and what stands before it in its word: header and claims are JSON in base64. Each word is read once."""
_PEM = re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END|\Z)", re.DOTALL)
_SECRET_NAME = re.compile(rf"(?:{_WORDS}|digest)", re.IGNORECASE)
NAMES_OF_OBJECTS = ("secretName", "credentialsSecret", "connectionSecret", "imagePullSecrets", "automountServiceAccountToken")
"""Fields with such a word that name an object, or are booleans."""


def redacted_text(text: str) -> str:
    """Returns a log or message without secrets."""
    text = _NAMED.sub(rf"\1{HIDDEN}", text)
    text = _JWT.sub(rf"\1{HIDDEN}", text)
    text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    text = _IN_URL.sub(rf"\1{HIDDEN}\2", text)
    return _PEM.sub(rf"\1{HIDDEN}\2", text)


def redacted(value: Any, name: str = "") -> Any:
    """Returns a document without secrets: texts are searched, and texts in fields with such a name are removed as a whole."""
    if isinstance(value, dict):
        # `{name: X, value: Y}` is an environment variable
        called = str(value["name"]) if "value" in value and "name" in value else None
        return {key: redacted(each, called if called is not None and key == "value" else key) for key, each in value.items()}
    if isinstance(value, list):
        return [redacted(each, name) for each in value]
    if isinstance(value, str):
        is_secret = _SECRET_NAME.search(name) is not None and name not in NAMES_OF_OBJECTS and not name.endswith(("Ref", "Name"))
        return HIDDEN if is_secret else redacted_text(value)
    return value
