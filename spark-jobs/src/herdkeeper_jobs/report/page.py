"""A page for people: one HTML file with inline style, which loads and runs nothing. Pure.

It follows the reader's light or dark setting, and prints in light colours. `content` is HTML already; all other text is escaped here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first box. `style`: good, doubtful or bad; then the result in a sentence, its subject, and steps for a person."""

    style: str
    sentence: str
    subject: str
    steps: tuple[str, ...]


def page(title: str, when: str, content: str) -> str:
    """The whole file; `when` follows the title in the window's name."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">{_NOTHING_ELSE}<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}, {escape(when)}</title><style>{_STYLE}</style></head><body><main>{content}</main></body></html>\n"
    )


def header(title: str, words: str) -> str:
    """The title, and a line about the report itself."""
    return f"<header><h1>{escape(title)}</h1><p>{escape(words)}</p></header>"


def verdict(box: Verdict) -> str:
    """The box that is read first."""
    todo = "".join(f"<li>{escape(each)}</li>" for each in box.steps)
    steps = f"<h3>What to do</h3><ul>{todo}</ul>" if todo else "<p>There is nothing to do.</p>"
    return f'<section class="verdict {box.style}"><h2>{escape(box.sentence)}</h2><p>{escape(box.subject)}</p>{steps}</section>'


def tiles(named: Iterable[tuple[str, str]]) -> str:
    """Figures, each as (name, value)."""
    shown = "".join(f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for name, value in named)
    return f'<section class="tiles">{shown}</section>'


def section(title: str, content: str) -> str:
    """A part of the page."""
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """The meaning of colours, each as (style, words)."""
    return '<p class="key">' + "".join(f'<span><i class="{style}"></i>{escape(words)}</span>' for style, words in entries) + "</p>"


def table(style: str, names: Sequence[str], rows: Iterable[str]) -> str:
    """A table; `rows` are HTML already."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    return f'<div class="wide"><table class="{style}"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def many(count: int, noun: str) -> str:
    """1 run, 2 runs."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def in_bytes(count: float) -> str:
    """Formats bytes in the largest unit not above them."""
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= limit:
            return f"{count / limit:,.1f} {unit}"
    return f"{count:,.0f} B"


_NOTHING_ELSE = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">"""
"""A browser loads and runs nothing, whatever got into the page."""
_STYLE = """
:root{--paper:#fff;--ink:#1c2530;--soft:#5c6875;--line:#dde3ea;--panel:#f5f7fa;--verified:#2f6fb0;--unread:#b9d2ea;--ok:#9fd3b4;
--missing:#d9480f;--damaged:#7b3fc4;--unknown:#9aa3ad;--critical:#c92a2a;--under:#ee7a30;--atrisk:#e0aa1f;--pending:#6bbcf9;--low:#7d6b4e;--good:#2b8a4e;
--on:#fff;--onlight:#1c2530}
@media screen and (prefers-color-scheme:dark){:root{--paper:#14191f;--ink:#e4e9ef;--soft:#9aa7b4;--line:#2c3641;--panel:#1c232b;
--verified:#4a86c5;--unread:#2f4d6b;--ok:#2f6b48;--missing:#ff7a3d;--damaged:#b088f0;--unknown:#7f8a96;--critical:#f05252;--under:#f08c45;--atrisk:#e3b341;
--pending:#9ccdf8;--low:#a8926b;--good:#4fbf7b;--on:#10151a;--onlight:#10151a}}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
main{max-width:980px;margin:0 auto;padding:28px 24px 60px}h1{font-size:24px;margin:0}h2{font-size:18px;margin:0 0 8px}
h3{font-size:14px;margin:18px 0 4px}header p,footer p,.note,.key{color:var(--soft)}header p{margin:4px 0 18px}section{margin:0 0 34px}
.verdict{background:var(--panel);border-left:6px solid var(--good);padding:16px 20px;border-radius:4px}.verdict h2{font-size:20px}
.verdict.bad{border-color:var(--critical)}.verdict.doubtful{border-color:var(--atrisk)}.verdict ul{margin:4px 0 0;padding-left:20px}
.verdict p{margin:0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(180px,1fr));gap:10px}.tiles div{background:var(--panel);
border-radius:4px;padding:10px 12px}
.tiles b{display:block;font-size:18px;font-variant-numeric:tabular-nums;white-space:nowrap}.tiles span{color:var(--soft);font-size:12px}
svg{display:block;width:100%;height:auto}svg text{font-size:12px;fill:var(--ink)}svg .note{fill:var(--soft)}
svg .on{fill:var(--on);font-weight:700}
.badge{color:var(--on);border-radius:3px;padding:1px 6px;font-size:12px;white-space:nowrap}
svg .under+.on,svg .atrisk+.on,svg .pending+.on,svg .unknown+.on{fill:var(--onlight)}
.badge.under,.badge.atrisk,.badge.pending,.badge.unknown{color:var(--onlight)}
.axis{stroke:var(--soft)}.grid{stroke:var(--line)}.key{font-size:12px;margin:2px 0 8px}.key span{margin-right:14px;white-space:nowrap}
.key i{display:inline-block;width:11px;height:11px;border-radius:2px;margin-right:5px;vertical-align:-1px}
.verified{fill:var(--verified);background:var(--verified)}.unread{fill:var(--unread);background:var(--unread)}
.ok{fill:var(--ok);background:var(--ok)}.missing{fill:var(--missing);background:var(--missing)}.damaged{fill:var(--damaged);background:var(--damaged)}
.unknown{fill:var(--unknown);background:var(--unknown)}.critical{fill:var(--critical);background:var(--critical)}
.under{fill:var(--under);background:var(--under)}.atrisk{fill:var(--atrisk);background:var(--atrisk)}
.pending{fill:var(--pending);background:var(--pending)}.low{fill:var(--low);background:var(--low)}.absent{fill:var(--line);background:var(--line)}
.line{fill:none;stroke:var(--verified);stroke-width:1.6}.dot{fill:var(--verified)}details summary{cursor:pointer;white-space:nowrap}
.checkpoints td{white-space:nowrap}.checkpoints td.text{white-space:normal;min-width:110px}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:12px}
.findings td:nth-child(4),.findings td:nth-child(5){white-space:nowrap}th{text-align:left;color:var(--soft);font-weight:600}
th,td{padding:5px 10px 5px 0;border-bottom:1px solid var(--line);vertical-align:top;font-variant-numeric:tabular-nums}
footer{font-size:13px}
@page{margin:14mm}
@media print{*{-webkit-print-color-adjust:exact;print-color-adjust:exact}body{font-size:12px}main{max-width:none;padding:0}
section{margin:0 0 22px}.verdict,.tiles,svg,tr{break-inside:avoid}h2,h3,.key,section>p{break-after:avoid}footer{break-before:avoid}
svg{max-height:240mm}.wide{overflow:visible}table{font-size:10px}
.wide td,.wide th{white-space:normal;padding-right:6px;overflow-wrap:break-word}
.wide td.text{min-width:0}.badge{font-size:9px}}
"""
