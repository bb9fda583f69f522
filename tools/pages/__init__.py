"""What writes the pages, and parts of pages, of docs/ that are made: `make docs`.

A part of a page that people write stands between two marks: `<!-- made: alarms -->` begins the part
`alarms`, and `<!-- end -->` ends it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_PART = re.compile(r"(<!-- made: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_parts(page: str, parts: Mapping[str, str]) -> str:
    """The page with each of its marked parts made afresh; the names on both sides must agree."""
    names = [name for _, name, _ in _PART.findall(page)]
    if sorted(names) != sorted(parts):
        raise ValueError(f"the page has the parts {names}, and made are {[*parts]}")
    return _PART.sub(lambda found: f"{found[1]}{parts[found[2]]}\n{found[3]}", page)
