"""The earlier runs of an audit are read with only the fields that audits compare."""

from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from sageaudit.adapters.history.deferred import DeferredHistory
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import COMPARED_FIELDS, AuditSummary
from sageaudit.domain.audit.sums import Scope
from sageaudit.ports import History
from sageaudit.structs import replace
from tests.fakes.entries import NOON, entry_ending_at
from tests.fakes.families import run_summary
from tests.fakes.random_history import ACCOUNTS, FAMILIES, NOW, REGIONS, audits

FAMILY_QUERIES = [
    (account, region, f"{kind}/{family}")
    for account in ACCOUNTS
    for region in REGIONS
    for kind in ("training", "processing", "tuning")
    for family in FAMILIES
]


def compared_part(run: AuditSummary) -> dict[str, Any]:
    """Returns the fields that audits of later runs compare."""
    return {name: getattr(run, name) for name in sorted(COMPARED_FIELDS)}


def test_earlier_runs_have_the_compared_fields_of_the_whole_summaries(history: History) -> None:
    for entry in audits(80):
        history.record(entry)
    for names in FAMILY_QUERIES:
        whole = [*history.runs(RunQuery.for_family(*names), ended_before=NOW)]
        part = [
            *history.runs(RunQuery.for_family(*names), ended_before=NOW, fields=COMPARED_FIELDS)
        ]
        assert [*map(compared_part, part)] == [*map(compared_part, whole)]
        assert all(run.owner is None and not run.finding_ids for run in part)


def test_the_next_audit_reads_what_another_process_has_changed(tmp_path: Path) -> None:
    """Rows that were read before are cached, by all of their columns."""
    path, first = tmp_path / "history.db", entry_ending_at("run-1", NOON)
    facts = run_summary(instance_type="ml.g5.xlarge")
    query = RunQuery.for_family(
        *(first.document["job"][name] or "" for name in ("account", "region", "family"))
    )
    with SqliteHistory(path) as own, SqliteHistory(path) as other:
        own.record(replace(first, run_summary=facts))
        [before] = own.runs(query, fields=COMPARED_FIELDS)
        smaller = replace(facts, instance_type="ml.g4dn.xlarge")
        other.record(replace(first, run_summary=smaller, force_new_version=True))
        [after] = own.runs(query, fields=COMPARED_FIELDS)
    assert (before.instance_type, after.instance_type) == ("ml.g5.xlarge", "ml.g4dn.xlarge")


def test_a_deferred_history_answers_like_one_that_stores_at_once() -> None:
    """Also after each audit, and if a run is audited twice."""
    deferred, plain, entries = DeferredHistory(), SqliteHistory(), [*audits(40)]
    later = [replace(entry, force_new_version=True) for entry in entries[::5]]
    for number, entry in enumerate((*entries, *later)):
        deferred.record(entry)
        plain.record(entry)
        query = RunQuery.for_family(*FAMILY_QUERIES[number % len(FAMILY_QUERIES)])
        end = NOW - timedelta(days=number % 9)
        assert [*deferred.runs(query, ended_before=end)] == [*plain.runs(query, ended_before=end)]
    keys = [entry.key for entry in entries]
    assert [*map(deferred.summary, keys)] == [*map(plain.summary, keys)]
    assert [*map(deferred.audit, keys)] == [*map(plain.audit, keys)]
    days = NOW.date() - timedelta(days=60), NOW.date()
    assert [*deferred.daily_sums(Scope.FAMILY, *days)] == [*plain.daily_sums(Scope.FAMILY, *days)]
    owners = [RunQuery.for_owner(owner) for owner in ("ana", "bo")]
    assert [[*islice(deferred.runs(query), 9)] for query in owners] == [
        [*islice(plain.runs(query), 9)] for query in owners
    ]
