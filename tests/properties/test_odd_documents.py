"""A stored document with one odd leaf is refused where it is read, or every reader can use it."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.files.exact_json import gzip_json
from sageaudit.adapters.history.record_steps import read_stored_bytes, to_stored_bytes
from sageaudit.adapters.history.rows import finding_rows, make_summary
from sageaudit.domain.alert.audit_figures import MessageAudit
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.sums import sums_from_document
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.reconcile.lines import lines_from_audit
from sageaudit.output.html.contents import JobReport
from sageaudit.output.html.job import job_body
from sageaudit.output.text import plain, slack, teams
from sageaudit.output.text.alert_card import job_line_card
from sageaudit.output.text.headline import headline
from sageaudit.workflows.recordings.run import audit_recording
from tests.fakes import sample_documents
from tests.fakes.entries import entry_of
from tests.fakes.messages import document_card
from tests.golden.regenerate import on_terminal
from tests.properties.odd_values import ABSENT, ODD_VALUES, paths, replaced, some_of

DOCUMENTS: dict[str, Callable[[], AuditDocument]] = {
    name.removesuffix("_document"): make
    for name, make in vars(sample_documents).items()
    if name.endswith("_document")
}


def read_everywhere(document: AuditDocument) -> None:
    """Uses a document as every message, page and list does."""
    audit = MessageAudit.parse(document)
    card = document_card(document)
    for channel in (plain, slack, teams):
        channel.make_payload(card)
        channel.make_payload(job_line_card(audit, 2))
    headline(document)
    on_terminal(document, 80)
    job_body(JobReport(document, None))
    sums_from_document(document)
    [*lines_from_audit(document, None)]
    entry = entry_of(document)
    make_summary(entry, 1, "")
    finding_rows(entry)


def stored(document: Any) -> AuditDocument | None:
    """Returns the document as it is read from a history; None if it is refused."""
    try:
        return read_stored_bytes(gzip_json(document))
    except ValueError:
        return None


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_sample_is_read(name: str) -> None:
    """The border refuses nothing that is written."""
    document = stored(DOCUMENTS[name]())
    assert document is not None
    read_everywhere(document)


def test_every_audit_of_a_recorded_job_is_read_back() -> None:
    """What an audit writes has the types that the border requires."""
    recordings = sorted((Path(__file__).parents[1] / "recorded" / "data" / "jobs").glob("*.json"))
    for recording in recordings:
        document = audit_recording(recording, Policy())
        assert read_stored_bytes(to_stored_bytes(document, 1))["job"] == document["job"]
    assert len(recordings) > 100


@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_odd_leaf_is_refused_or_read_by_everything(name: str) -> None:
    """Each part in turn is each odd value, or absent; nothing else fails than the border."""
    whole = stored(DOCUMENTS[name]())
    failed = list[tuple[object, object, str]]()
    for path, value in some_of(product(paths(whole), (*ODD_VALUES, ABSENT)), each=11):
        document = stored(replaced(whole, path, value))
        if document is None:
            continue
        try:
            read_everywhere(document)
        except Exception as error:  # noqa: BLE001 - each is a finding
            failed.append((path, value, f"{type(error).__name__}: {error}"))
    assert failed == []
