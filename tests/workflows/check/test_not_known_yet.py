"""A value that is not known yet, or has a misspelled name, is judged by no rule."""

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.adapters.aws.service_model import api_model
from sageaudit.adapters.prices import sources
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.request.recognise import FileFormat, ParsedFile, recognise, with_trials
from sageaudit.domain.request.request import Request, UnknownValue
from sageaudit.domain.request.validity import Fault
from sageaudit.structs import replace
from sageaudit.workflows.check.document import CheckFinding, document
from sageaudit.workflows.check.run import RequestChecker
from tests.labelled.before_run.cases import CASES

Path = tuple[str | int, ...]
Change = Callable[[Any, str | int], None]
CHECKER = RequestChecker(
    policy=Policy(),
    now=datetime(2026, 5, 20, tzinfo=UTC),
    form=None,
    pipeline=None,
    model=api_model(),
    markets=sources.offline_markets(),
    region="us-east-1",
    account=None,
    default_region=lambda: None,
    read_family=None,
)
REQUESTS = {
    f"{case.name}-{index}": request
    for case in CASES
    for index, request in enumerate(
        recognise(json.loads(case.file.read_text("utf-8")), api_model()).requests
    )
    if request.tuning_request is None
}


class Answer(dict[tuple[str, str], Decimal]):
    """The dollars of each finding, by label of the request and rule."""

    def __init__(self, request: Request) -> None:
        requests = with_trials((request,))
        checked = CHECKER._check_all(requests)
        parsed = ParsedFile(FileFormat.TRAINING, requests)
        jobs = document("request.json", parsed, "", checked, {})["jobs"]
        findings = [
            (job["label"], CheckFinding(**finding)) for job in jobs for finding in job["findings"]
        ]
        super().__init__(
            {(label, row.rule): row.saving_usd or Decimal(0) for label, row in findings}
        )
        self.refusals = Counter((label, row.rule) for label, row in findings if row.refused)
        self.at_most_usd = [job["cost"]["at_most_usd"] for job in jobs]


def places(value: Any, place: Path = ()) -> Iterator[Path]:
    """Yields the path of each value in a request."""
    if place:
        yield place
    items: Any = value.items() if isinstance(value, Mapping) else ()
    for key, item in enumerate(value) if isinstance(value, list) else items:
        yield from places(item, (*place, key))


def changed(request: Request, place: Path, change: Change) -> Request:
    """Returns the request after a change of the value under a path."""
    body = copy.deepcopy(request.body)
    inside: Any = body
    for step in place[:-1]:
        inside = inside[step]
    change(inside, place[-1])
    return replace(request, body=body)


def make_unknown(inside: Any, key: str | int) -> None:
    """Replaces a value by one that is not known yet."""
    inside[key] = UnknownValue("known after apply")


def misspell(inside: Any, key: str | int) -> None:
    """Doubles the last letter of a name."""
    rename(inside, key, f"{key}{str(key)[-1]}")


def begin_in_lower_case(inside: Any, key: str | int) -> None:
    """Writes a name as JavaScript does."""
    rename(inside, key, f"{str(key)[0].lower()}{str(key)[1:]}")


def rename(inside: Any, key: str | int, name: str) -> None:
    """Renames a key and keeps the order; an item of a list has no name."""
    if isinstance(key, str):
        items = [(name if other == key else other, value) for other, value in inside.items()]
        inside.clear()
        inside.update(items)


def is_section(request: Request, place: Path) -> bool:
    """Returns whether there is an object or a list under a path."""
    value: Any = request.body
    for step in place:
        value = value[step]
    return isinstance(value, Mapping | list)


def check_each(name: str, change: Change, *, only_sections: bool) -> None:
    """Compares a request's answer with the answer after each change of one value."""
    request = REQUESTS[name]
    before = Answer(request)
    for place in places(request.body):
        if only_sections and not is_section(request, place):
            continue
        after = Answer(changed(request, place, change))
        if change is not make_unknown:
            for key in [key for key in after.refusals if key[1] == Fault.UNKNOWN.value]:
                del after.refusals[key]
        assert not after.refusals - before.refusals, place
        assert all(usd <= before.get(key, Decimal(0)) for key, usd in after.items()), place
        if before.refusals:  # what AWS refuses costs nothing
            continue
        for old, new in zip(before.at_most_usd, after.at_most_usd, strict=False):
            assert new is None or (old is not None and new <= old), place


@pytest.mark.parametrize("name", REQUESTS)
def test_a_section_that_is_not_known_yet_adds_no_refusal_and_no_dollars(name: str) -> None:
    """As in a plan before apply, or as the output of another step."""
    check_each(name, make_unknown, only_sections=True)


@pytest.mark.more
@pytest.mark.parametrize("change", [make_unknown, misspell, begin_in_lower_case])
@pytest.mark.parametrize("name", REQUESTS)
def test_no_value_that_is_not_known_adds_a_refusal_or_dollars(name: str, change: Change) -> None:
    """A misspelled name is reported as misspelled, and nothing else."""
    check_each(name, change, only_sections=False)


@pytest.mark.parametrize("change", [misspell, begin_in_lower_case])
def test_a_section_with_a_misspelled_name_is_reported_as_misspelled_only(change: Change) -> None:
    """For every section of every kind of request."""
    for name in ("healthy_spot-0", "processing_sharded_healthy-0", "transform_healthy-0",
                 "tuning_healthy_spot-0", "healthy_groups-0"):  # fmt: skip
        check_each(name, change, only_sections=True)
