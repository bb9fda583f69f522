"""Each rule's page shows where it spoke, where it kept silent, and how often it was right."""

from __future__ import annotations

import pytest

from docs.build_track_records import DATA
from sageaudit.cli.support.rules.track_record import packaged, section, to_text
from sageaudit.rules import catalogue
from sageaudit.rules.card import RequestCase
from tests.labelled.track_records import track_records

NAMES = [rule.name.name for rule in catalogue.load() if rule.scope is not RequestCase]
"""Rules of requests are measured in test_before_run, on requests."""


def test_the_packaged_records_are_those_of_the_labelled_jobs() -> None:
    """`make docs` measures them anew."""
    assert DATA.read_text(encoding="utf-8") == to_text(track_records())


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_a_job_where_the_rule_speaks_and_one_where_it_is_silent(name: str) -> None:
    """A reader sees what it takes before any threshold."""
    record = packaged()[name]
    assert record.fires
    assert record.fires.says, "tell a story of it in tests/labelled/stories"
    assert record.silent
    assert record.silent.says is None
    shown = "\n".join(section(record))
    assert record.fires.says in shown
    assert record.silent.job in shown
