from __future__ import annotations

import json

from sageaudit.adapters.history.stored_document import read_text, stored_text
from tests.fakes.documents import document, rollup_document


def before(text: str) -> str:
    """The text as it was stored before audits said how much was judged."""
    old = json.loads(text)
    for part in (old, *(old["children"] or ())):
        del part["judged"], part["not_judged"]
    return json.dumps(old)


def test_an_audit_stored_before_there_was_the_key_has_it_as_unknown() -> None:
    """It is neither taken for judged nor for unjudged, and says what to do."""
    read = read_text(before(stored_text(document(), 1)))
    assert read["judged"] is None
    assert read["not_judged"] == [
        "It was audited before audits said how much was judged: audit it again."
    ]


def test_the_training_jobs_of_an_old_roll_up_have_the_keys_too() -> None:
    """Each of them is a whole document."""
    read = read_text(before(stored_text(rollup_document(), 1)))
    assert [child["judged"] for child in read["children"] or ()] == [None] * 3


def test_a_stored_judgement_is_read_as_it_was_written() -> None:
    """What an audit says of itself is not changed."""
    written = document(judged="partly", not_judged=["It was too short."])
    read = read_text(stored_text(written, 1))
    assert (read["judged"], read["not_judged"]) == ("partly", ["It was too short."])
