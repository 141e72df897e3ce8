"""What mkdocs calls while it makes the site (`hooks` in mkdocs.yml).

Whatever is wrong is a warning: `mkdocs build --strict` fails on each.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from herdkeeper_e2e.site.addresses import loaded_by_html, loaded_by_styles
from herdkeeper_e2e.site.blocks import with_blocks_apart
from herdkeeper_e2e.site.nav import expanded
from herdkeeper_e2e.site.repository_files import SOURCE, page_of, shown_outside_docs, text_of, with_links_in_site

ROOT = Path(__file__).resolve().parents[4]
DOCS = ROOT / "docs"
MERMAID = "HERDKEEPER_MERMAID"
"""The variable that names the file of the program that draws pictures (e2e/bootstrap/site.sh)."""
log = logging.getLogger("mkdocs.hooks.site")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Folders in the navigation become their pages."""
    config.nav = expanded(config.nav or [], DOCS)
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Each file of the repository that a page leads to gets a page."""
    pages = sorted(path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md"))
    for path in shown_outside_docs(ROOT, pages):
        page = page_of(path, is_folder=_is_folder(path))
        text = with_links_in_site(path, text_of(ROOT, path), _is_folder) if path.endswith(".md") else text_of(ROOT, path)
        files.append(File.generated(config, page, content=text))
    if MERMAID in os.environ:
        files.append(File.generated(config, "assets/mermaid.min.js", abs_src_path=os.environ[MERMAID]))
    else:
        log.warning("%s names no file: have `make docs` call mkdocs", MERMAID)
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Links lead to pages of the site, and lists are read as lists."""
    source = page.file.src_uri
    if not source.startswith(f"{SOURCE}/"):
        markdown = with_links_in_site(f"docs/{source}", markdown, _is_folder)
    return with_blocks_apart(markdown)


def on_post_build(*, config: MkDocsConfig) -> None:
    """The site loads nothing from other hosts."""
    for path in sorted(Path(config.site_dir).rglob("*")):
        if path.suffix in {".html", ".css"}:
            find = loaded_by_html if path.suffix == ".html" else loaded_by_styles
            for address in find(path.read_text()):
                log.warning("%s loads %s from another host", path.relative_to(config.site_dir), address)


def _is_folder(path: str) -> bool:
    return (ROOT / path).is_dir()
