from __future__ import annotations

from sageaudit.adapters.history.stored_document import read_text, stored_text
from tests.fakes.documents import document


def test_a_stored_judgement_is_read_as_it_was_written() -> None:
    """What an audit says of itself is not changed."""
    written = document(judged="partly", not_judged=["It was too short."])
    read = read_text(stored_text(written, 1))
    assert (read["judged"], read["not_judged"]) == ("partly", ["It was too short."])
