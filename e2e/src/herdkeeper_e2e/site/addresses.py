"""What an HTML page loads from other hosts. Links that a reader may follow are not loaded."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urlsplit

_LOADED_BY = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "link": "href"}
_LINKS_THAT_LOAD = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "modulepreload", "manifest"}
_IN_STYLES = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


class _Loaded(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and not _LINKS_THAT_LOAD & set((given.get("rel") or "").split()):
            return
        address = given.get(_LOADED_BY.get(tag, ""))
        if address and urlsplit(address).netloc:
            self.addresses.append(address)


def loaded_by_html(text: str) -> list[str]:
    """Addresses with a host that a browser would load to show this page, in their order."""
    parser = _Loaded()
    parser.feed(text)
    return parser.addresses


def loaded_by_styles(text: str) -> list[str]:
    """The same of a style sheet."""
    return _IN_STYLES.findall(text)
