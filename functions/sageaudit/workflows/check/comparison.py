"""Compares the check of a file with that of its earlier version, job by job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from sageaudit.workflows.check.document import CheckedFile


class FileCheck(Struct, frozen=True):
    """The check of one file that was named, or `error`: why it cannot be checked.

    Without both, the file was removed. `base` is the check of its earlier version; None if there is
    none, or if `base_error` says why it cannot be checked. `is_compared`: whether the user asked
    for a comparison.
    """

    name: str
    checked: CheckedFile | None = None
    error: str | None = None
    base: CheckedFile | None = None
    base_error: str | None = None
    is_compared: bool = False

    def document(self) -> dict[str, Any] | None:
        """Returns the document of the file, with `base` if it was compared; None without one."""
        if self.checked is None:
            return None
        return {**self.checked, **({"base": self.base} if self.is_compared else {})}


class JobComparison(Struct, frozen=True):
    """A job of a file now and before, as in its document. One of them may be None.

    `is_base_unknown`: the earlier version of the file cannot be checked.
    """

    file: str
    now: dict[str, Any] | None
    before: dict[str, Any] | None
    is_base_unknown: bool = False

    @property
    def job(self) -> dict[str, Any]:
        """The job now, else the removed job."""
        return self.now or self.before or {}

    @property
    def earlier_name(self) -> str:
        """The earlier name of a renamed job; "" if it is the same or unknown."""
        earlier_name = self.before["name"] if self.now and self.before else None
        return "" if earlier_name in {None, self.job["name"]} else str(earlier_name)

    @property
    def new_findings(self) -> list[dict[str, Any]]:
        """The counted findings that the job did not have before."""
        return _findings_of_one_side(self.now, self.before)

    @property
    def fixed_findings(self) -> list[dict[str, Any]]:
        """The counted findings that the job no longer has."""
        return _findings_of_one_side(self.before, self.now)

    @property
    def unchanged_findings(self) -> list[dict[str, Any]]:
        """The counted findings that the job also had before."""
        new_findings = self.new_findings
        return [row for row in counted_findings(self.now) if row not in new_findings]


def counted_findings(job: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Returns the findings of a job that --fail-on regards."""
    return [row for row in (job or {}).get("findings", ()) if row["not_counted"] is None]


def compare_jobs(file_check: FileCheck) -> list[JobComparison]:
    """Returns the jobs of a file in their order, then the removed ones.

    Two jobs are the same if they have the same place and name, else the same place (such as a step
    of a pipeline), else if each is the only remaining one of its kind.
    """
    before = list(file_check.base["jobs"]) if file_check.base else []
    now = list(file_check.checked["jobs"]) if file_check.checked else []
    earlier_by_index: dict[int, dict[str, Any]] = {}
    for key in (_name_key, _label_key, _kind_key):
        pairs = list(_unique_pairs(now, before, earlier_by_index, key))
        for index, job in pairs:
            earlier_by_index[index] = job
            before.remove(job)
    return [
        *(
            JobComparison(
                file_check.name, job, earlier_by_index.get(index), file_check.base_error is not None
            )
            for index, job in enumerate(now)
        ),
        *(JobComparison(file_check.name, None, job) for job in before),
    ]


_Key = tuple[Any, ...]


def _name_key(job: dict[str, Any]) -> _Key:
    return job["kind"], job["trial"], job["label"], job["name"]


def _label_key(job: dict[str, Any]) -> _Key:
    return job["kind"], job["trial"], job["label"]


def _kind_key(job: dict[str, Any]) -> _Key:
    return job["kind"], job["trial"]


def _unique_pairs(
    now: list[dict[str, Any]],
    before: list[dict[str, Any]],
    paired_indexes: Iterable[int],
    key: Callable[[dict[str, Any]], _Key],
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields each unpaired job's index and its earlier job, if both are the only ones of a key."""
    paired = set(paired_indexes)
    indexes_by_key: dict[_Key, list[int]] = {}
    for index, job in enumerate(now):
        if index not in paired:
            indexes_by_key.setdefault(key(job), []).append(index)
    jobs_by_key: dict[_Key, list[dict[str, Any]]] = {}
    for job in before:
        jobs_by_key.setdefault(key(job), []).append(job)
    for job_key, indexes in indexes_by_key.items():
        earlier_jobs = jobs_by_key.get(job_key, [])
        if len(indexes) == len(earlier_jobs) == 1:
            yield indexes[0], earlier_jobs[0]


def _findings_of_one_side(
    job: dict[str, Any] | None, other_job: dict[str, Any] | None
) -> list[dict[str, Any]]:
    other_keys = {(row["rule"], row["path"]) for row in counted_findings(other_job)}
    return [row for row in counted_findings(job) if (row["rule"], row["path"]) not in other_keys]
