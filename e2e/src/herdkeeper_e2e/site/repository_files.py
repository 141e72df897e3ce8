"""Files of the repository to which pages lead, outside of docs/: each gets a page of its own in the site.

So the site needs no address of the repository, and each of its links can be checked. Paths are relative to the repository's root. A page of
the site is named by its path in docs/, or in `source/` where it is made of such a file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from herdkeeper_e2e.site.fences import outside_fences

SOURCE = "source"
_DOCS = "docs/"
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".java": "java", ".sh": "sh", ".xml": "xml", ".toml": "toml", ".go": "go"}


def page_of(path: str, *, is_folder: bool) -> str:
    """The page of the site that shows a file or folder of the repository."""
    if path.startswith(_DOCS):
        return path.removeprefix(_DOCS)
    if is_folder:
        return f"{SOURCE}/{path}/index.md"
    return f"{SOURCE}/{path}" if path.endswith(".md") else f"{SOURCE}/{path}.md"


def led_to(page: str, text: str) -> Iterator[str]:
    """Paths that a page of the repository leads to, in their order, the page's own left out."""
    for part, is_fence in outside_fences(text):
        if not is_fence:
            for _, target, _ in _LINK.findall(part):
                if ":" not in target:
                    yield posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def with_links_in_site(page: str, text: str, is_folder: Callable[[str], bool]) -> str:
    """The text of a page of the repository, with its links as the site has them."""
    own = page_of(page, is_folder=is_folder(page))

    def link(found: re.Match[str]) -> str:
        before, target, behind = found.groups()
        if ":" in target:
            return found.group()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        return before + posixpath.relpath(page_of(path, is_folder=is_folder(path)), posixpath.dirname(own) or ".") + behind

    return "".join(part if is_fence else _LINK.sub(link, part) for part, is_fence in outside_fences(text))


def shown_outside_docs(root: Path, pages: Iterable[str]) -> tuple[str, ...]:
    """Files and folders outside of docs/ that these pages lead to, and those that their pages lead to in turn; sorted."""
    found: set[str] = set()
    waiting = list(pages)
    while waiting:
        page = waiting.pop()
        for path in led_to(page, (root / page).read_text()):
            if path not in found and not path.startswith(_DOCS) and (root / path).exists():
                found.add(path)
                if path.endswith(".md"):
                    waiting.append(path)
    return tuple(sorted(found))


def text_of(root: Path, path: str) -> str:
    """Markdown that shows a file or folder of the repository: a Markdown page as it is, another file as code, a folder as its names."""
    target = root / path
    front = f"---\ntitle: {path}\nsearch:\n  exclude: true\n---\n"
    if path.endswith(".md"):
        return front + target.read_text()
    if target.is_dir():
        names = sorted(f"{each.name}/" if each.is_dir() else each.name for each in target.iterdir() if each.name != "__pycache__")
        return f"{front}# {path}/\n\n" + "".join(f"- `{name}`\n" for name in names)
    text = target.read_text()
    fence = "`" * max(4, *(len(run) + 1 for run in re.findall(r"`+", text)), 4)
    return f"{front}# {path}\n\n{fence}{_LANGUAGES.get(PurePosixPath(path).suffix, 'text')}\n{text.rstrip()}\n{fence}\n"
