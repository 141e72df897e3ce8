"""An encryption key in a Secret: 32 random bytes as base64 in one line, as printed by `openssl rand -base64 32`.

Both base64 alphabets are accepted.
"""

from __future__ import annotations

import base64
import binascii
from hashlib import sha256

KEY_BYTES = 32


class NoKeyError(ValueError):
    """An invalid key. The message says what is wrong without the text itself."""


def decode_key(text: str) -> bytes:
    """Returns the bytes of a key. Raises NoKeyError."""
    try:
        content = base64.b64decode(text.strip().replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise NoKeyError("is not base64") from error
    if len(content) != KEY_BYTES:
        raise NoKeyError(f"has {len(content)} bytes instead of {KEY_BYTES}")
    return content


def fingerprint_of(content: bytes) -> str:
    """Identifies a key without revealing it, whatever its name: the first 16 hexadecimal digits of a SHA-256."""
    return sha256(b"herdkeeper key:" + content).hexdigest()[:16]
