"""What writes the pages, and parts of pages, of docs/ that are made: `make docs`."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
