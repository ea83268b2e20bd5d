"""Equations as MathML, made when the site is built: browsers typeset it without any script.

In a page they are written as GitHub reads them: a block ```math, or $...$ within a line.
"""

from __future__ import annotations

import re

from latex2mathml.converter import convert

_BLOCK = re.compile(r"^```math\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"(?<![\w$`])\$([^\s$`](?:[^$`\n]*[^\s$`])?)\$(?![\w$`])")
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def with_equations(markdown: str) -> str:
    """The page with MathML in place of its equations; code stays as it is."""
    if "```math\n" not in markdown:
        return markdown
    markdown = _BLOCK.sub(lambda match: convert(match[1], display="block"), markdown)
    parts = _CODE.split(markdown)
    parts[::2] = [_LINE.sub(lambda match: convert(match[1]), part) for part in parts[::2]]
    return "".join(parts)
