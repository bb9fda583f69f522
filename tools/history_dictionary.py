"""Writes the dictionary of packed values: `python -m tools.history_dictionary`.

It is made of the audits of our made-up stories: of each kind of value the one that packs worst,
then the one that packs worst beside it, and so on. So it has the words of the rules, and nothing
of anybody's job. A dictionary that a release has never changes, since histories need it: raise
`VERSION` in `adapters/history/packed.py` for the next one.
"""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from sageaudit.adapters.files.exact_json import to_json
from sageaudit.adapters.history import packed
from sageaudit.adapters.history.codec import to_item
from sageaudit.adapters.history.rows import finding_rows, head_of
from sageaudit.adapters.history.stored_document import digest_of, stored_text
from sageaudit.domain.audit.record import Entry
from tests.labelled.audits import every_rule_on
from tests.labelled.story import labelled
from tools.bench.history import recorded_as

FILE = (
    Path(__file__).parents[1]
    / "functions"
    / "sageaudit"
    / "data"
    / f"history-{packed.VERSION}.zdict"
)
BUDGET_BYTES = {"document": 25_000, "detail": 1_700, "finding": 900, "head": 4_900}
"""Together less than the 32,506 bytes that zlib can refer to; the last is what it finds soonest."""


def told() -> Iterator[Entry]:
    """The audit of each story on its first day, every rule on."""
    with tempfile.TemporaryDirectory() as folder:
        for story in labelled():
            paths = []
            for number, recording in enumerate(story.tell(1)):
                paths.append(Path(folder, f"{story.name}-{number}.json"))
                paths[-1].write_text(json.dumps(recording), encoding="utf-8")
            yield recorded_as(paths, every_rule_on())[-1]


def texts(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """What is packed of these audits, by kind."""
    heads = [head_of(one, 1, digest_of(one.document)) for one in entries]
    details = [one.detail for one in entries if one.detail]
    return {
        "document": [stored_text(one.document, 1) for one in entries],
        "detail": [to_json({"describe": one.describe, "tags": one.tags}) for one in details],
        "finding": [to_json(to_item(row)) for one in entries for row in finding_rows(one)],
        "head": [to_json(to_item(head)) for head in heads],
    }


def chosen(kind: Sequence[str], budget: int) -> bytes:
    """The texts that pack worst, each beside those before it."""
    found = b""
    left = sorted({text.encode() for text in kind})
    while fitting := [text for text in left if len(found) + len(text) <= budget]:
        worst = max(fitting, key=lambda text: _packed_bytes(text, found))
        left.remove(worst)
        found += worst
    return found


def _packed_bytes(text: bytes, beside: bytes) -> int:
    packer = zlib.compressobj(zdict=beside)
    return len(packer.compress(text) + packer.flush())


if __name__ == "__main__":
    made = texts([*told()])
    FILE.write_bytes(b"".join(chosen(made[kind], most) for kind, most in BUDGET_BYTES.items()))
    print(f"{FILE.name}: {FILE.stat().st_size} bytes")
