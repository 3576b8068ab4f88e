"""Words of a page as HTML: the little Markdown of notes, and names for places in the page."""

from __future__ import annotations

import posixpath
import re
from html import escape

REPOSITORY = "https://github.com/ompb/ompb"
NOTES_STAND_IN = "docs"  # the folder that links of notes start from
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)\)")


def inline(text: str) -> str:
    """Code, bold, italics and links of Markdown; a link to a file of the repository leads to where that is public.

    >>> inline("**`a<b`** and [more](../x.md)")
    '<strong><code>a&lt;b</code></strong> and <a href="https://github.com/ompb/ompb/blob/main/x.md">more</a>'
    """
    html = escape(text, quote=False)
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", html)
    html = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html)
    html = re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*", r"<em>\1</em>", html)
    return _LINK.sub(lambda found: f'<a href="{escape(_address(found[2]), quote=True)}">{found[1]}</a>', html)


def _address(target: str) -> str:
    """Where a link of the notes leads to.

    >>> _address("../results/scores"), _address("https://example.org/")
    ('https://github.com/ompb/ompb/tree/main/results/scores', 'https://example.org/')
    """
    if re.match("https?://", target):
        return target
    path = posixpath.normpath(posixpath.join(NOTES_STAND_IN, target))
    return f"{REPOSITORY}/{'blob' if posixpath.splitext(path)[1] else 'tree'}/main/{path}"


def paragraphs(text: str) -> str:
    """Blocks between blank lines, headings left out."""
    blocks = (" ".join(block.split()) for block in text.split("\n\n"))
    return "\n".join(f"<p>{inline(block)}</p>" for block in blocks if block and not block.startswith("#"))


def plain(text: str) -> str:
    """Markdown without its marks.

    >>> plain("Where **`ompb`** loses")
    'Where ompb loses'
    """
    return re.sub(r"[`*]", "", text)


def anchor(text: str) -> str:
    """A name for a place in the page.

    >>> anchor("Where `ompb` loses")
    'where-ompb-loses'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
