"""A key of a Secret: 32 random bytes as base64 in one line, as `openssl rand -base64 32` prints them.

Both alphabets of base64 are taken.
"""

from __future__ import annotations

import base64
import binascii

KEY_BYTES = 32


class NoKeyError(ValueError):
    """A text is no key; the message says what is wrong with it, and not what it is."""


def decode_key(text: str) -> bytes:
    """The bytes of a key. Raises NoKeyError."""
    try:
        content = base64.b64decode(text.strip().replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise NoKeyError("is no base64") from error
    if len(content) != KEY_BYTES:
        raise NoKeyError(f"has {len(content)} bytes instead of {KEY_BYTES}")
    return content
