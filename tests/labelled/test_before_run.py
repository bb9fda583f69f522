"""Compares `check` with requests that an expert labelled without knowing the rules.

See `before_run/`. Tables translate rules to the expert's words. DIFFERS lists intended differences
with their reasons; an entry fails if there is no difference.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.aws.service_model import api_model
from sageaudit.adapters.files.request_edit import Edit, edit_json
from sageaudit.adapters.prices import sources
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.request.recognise import recognise
from sageaudit.domain.request.request import split_path
from sageaudit.workflows.check.document import CheckedFile
from sageaudit.workflows.check.request import FamilyHistory, PlannedJob
from sageaudit.workflows.check.run import RequestChecker
from sageaudit.workflows.check_files import check_file, make_checker
from tests.fakes.families import run_summary
from tests.labelled.before_run.cases import CASES, SEVERITIES, Case

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)
"""The day of the packaged prices that the expert's figures use."""
BY_NAME = {case.name: case for case in CASES}
EVERY = pytest.mark.parametrize("name", BY_NAME)

WORDS = {
    "spot-without-checkpoint": "spot-no-checkpoint",
    "spot-not-used": "spot-candidate",
    "max-runtime-loose": "run-limit-high",
    "tuning-limits": "run-limit-high",
    "limit-short": "run-limit-short",
    "processing-replicated": "replicated-input",
    "file-mode-large": "file-mode-large-data",
    "one-object": "more-instances-than-objects",
    "one-instance-algorithm": "single-instance-algorithm",
    "one-gpu-of-several": "gpus-not-used",
    "image-refuses-type": "gpu-not-used",
    "volume-large": "volume-too-big",
    "keep-alive-cost": "warm-pool-idle",
    "tuning-strategy": "tuning-parallel-high",
    "transform-split": "transform-batch-strategy",
    "transform-one-request": "transform-serial",
}
"""The expert's word by rule; other rules have the same name."""
PARTS = {
    "spot-wait": {
        "without CheckpointConfig": "spot-builtin-wait",
        "without MaxWaitTimeInSeconds": "spot-max-wait-missing",
        "is less than": "spot-max-wait-short",
        "set without managed spot": "max-wait-without-spot",
    },
    "limit-cost": {"is not set": "run-limit-default", "allows": "run-limit-high"},
    "spot-conflict": {
        "a warm pool": "spot-with-warm-pool",
        "a list of preferred types": "preferences-conflict",
        "instance groups": "type-and-groups",
    },
    "request-conflict": {
        "InstanceType and InstanceGroups": "type-and-groups",
        "InstancePreferences": "preferences-conflict",
        "a warm pool": "groups-with-warm-pool",
        "unknown instance group": "unknown-group",
        "Hyperband": "tuning-early-stop-conflict",
        "requests at a time": "transform-payload-limit",
    },
    "debugger-closed": {
        "closed": "debugger-closed",
        "has not supported": "retired-rule",
        "of its own": "custom-rule-cost",
    },
    "volume-over-local": {
        "AWS refuses": "volume-over-local",
        "adds no volume": "local-volume-ignored",
    },
}
"""By rule: a part of its summary, and the expert's word for it."""
AS_MISSING = {
    ("request-conflict", "VolumeSizeInGB is missing"),
    ("request-conflict", "neither"),
    ("request-conflict", "no instance type"),
}
"""What the expert counts as a missing parameter: AWS requires it only in its documentation."""
FAULTS = {
    "unknown-parameter": "unknown",
    "missing-parameter": "missing",
    "unknown-value": "enum",
    "outside-limits": "range",
    "wrong-type": "type",
}

DIFFERS = {
    ("spot_built_in_short", "ceiling"): "the expert rounds both ends to one cent",
    ("limit_left_out_cheap", "ceiling"): "the expert left the volume of 30 GB for a day out",
    ("groups_and_type", "ceiling"): "AWS refuses type beside groups: the type is priced here",
    ("typo_in_limit", "ceiling"): "nothing is concluded from a limit whose name is misspelled",
    ("family_growing", "prediction"): "no trend is followed: the median of the runs is given,"
    " and limit-short warns by the newest",
}
"""By case and aspect: why the code's answer differs."""


def history_of(case: Case) -> FamilyHistory | None:
    """Returns the expert's runs as a family history."""
    if not case.verdict.get("history"):
        return None
    spot = json.loads(case.file.read_text(encoding="utf-8")).get("EnableManagedSpotTraining")
    runs = [
        run_summary(
            Purchase.SPOT if spot else Purchase.ON_DEMAND,
            job=f"run-{number}",
            status=run["status"],
            family="family",
            ended_at=datetime.fromisoformat(run["ended"]).replace(tzinfo=UTC),
            total_usd=Decimal(str(run["usd"])),
            elapsed_s=Decimal(run["billable_seconds"]),
            billable_s=Decimal(run["billable_seconds"]),
            instance_type=run["instance_type"],
            instance_count=run["instances"],
        )
        for number, run in enumerate(case.verdict["history"]["runs"])
    ]
    return FamilyHistory(tuple(sorted(runs, key=lambda run: run.ended_at, reverse=True)), ())


@cache
def checked(name: str) -> CheckedFile:
    """Returns the result of `check` for a case's file."""
    case = BY_NAME[name]
    history = history_of(case)

    def read(_: PlannedJob) -> FamilyHistory:
        assert history is not None
        return history

    checks = RequestChecker(
        policy=Policy(),
        now=NOW,
        form=None,
        pipeline=None,
        model=api_model(),
        markets=sources.offline_markets(),
        region=case.region,
        account=None,
        default_region=lambda: None,
        read_family=read if history else None,
    )
    return check_file(checks, str(case.file))


def rows(name: str) -> Iterator[dict[str, Any]]:
    """Yields all counted findings of a file."""
    for job in checked(name)["jobs"]:
        yield from (row for row in job["findings"] if row["not_counted"] is None)


def is_missing(row: dict[str, Any]) -> bool:
    """Whether the finding is what the expert counts as a missing parameter."""
    return any(row["rule"] == rule and part in row["summary"] for rule, part in AS_MISSING)


def reported_words(name: str) -> dict[str, list[str]]:
    """Returns the expert's words for the findings, each with its severities."""
    words = defaultdict(list)
    for row in rows(name):
        rule = row["rule"]
        if row["source"] == "api" or is_missing(row):
            continue
        parts = [word for part, word in PARTS.get(rule, {}).items() if part in row["summary"]]
        for word in parts or [WORDS.get(rule, rule)]:
            words[word].append(row["severity"])
    for job in checked(name)["jobs"]:
        why = job["cost"]["why_not_known"] or ""
        for part, word in (("training plan", "training-plan"), ("price", "price-unknown")):
            if part in why and "serverless" not in why:
                words[word].append("info")
        if job["not_known"]:
            words["value-unknown"].append("info")
    return words


def rank(severity: str) -> int:
    """Returns the severity's rank; 0 is the least severe."""
    return SEVERITIES.index(severity)


def last_part(path: str) -> str:
    """Returns the path inside its request, in one notation for the API and Terraform."""
    inside = (
        path.rsplit("|", maxsplit=1)[-1]
        .rsplit(".Arguments.", maxsplit=1)[-1]
        .rsplit("change.after.", maxsplit=1)[-1]
    )
    return re.sub(r"\[[^\]]*\]|_", "", inside).lower()


def test_every_request_has_its_case_and_the_list_of_rules_their_numbers() -> None:
    """Each request has a case, and the list of rules has the right numbers."""
    assert {path.stem for path in CASES[0].file.parent.iterdir()} == set(BY_NAME)
    page = (Path(__file__).parents[2] / "docs" / "rules" / "README.md").read_text("utf-8")
    assert f"labelled {len(CASES)} requests" in page
    assert f"{sum(len(case.verdict['must']) for case in CASES)} issues" in page


@EVERY
def test_the_form_is_recognised(name: str) -> None:
    """The form is recognised from the file's contents."""
    assert checked(name)["form"] == BY_NAME[name].form


@EVERY
def test_required_issues_are_reported_without_false_alarms(name: str) -> None:
    """What must be reported is, within one step of the expert's severity; without false alarms.

    Remarks are no alarm, and Spot is an opinion. What the expert bans at one path may be right at
    another.
    """
    words, verdict = reported_words(name), BY_NAME[name].verdict
    for issue in verdict["must"]:
        assert issue["word"] in words, issue
        steps = (abs(rank(s) - rank(issue["severity"])) for s in words[issue["word"]])
        assert min(steps) <= 1, issue
    must = {issue["word"] for issue in verdict["must"]}
    loudest = {issue["word"]: rank(issue["severity"]) for issue in verdict["may"]}
    banned = {ban["word"] for ban in verdict["must_not"] if not ban.get("path")}
    assert not (banned - must - loudest.keys() - {"value-unknown"}) & set(words)
    loudest.setdefault("spot-candidate", rank("low"))
    for word, severities in words.items():
        most = max(map(rank, severities))
        assert word in must or most <= loudest.get(word, rank("info")), (word, severities)


@EVERY
def test_parameters_are_compared_with_the_api(name: str) -> None:
    """Validation finds each problem with its path and kind, and no other."""
    problems_found = sorted(
        (last_part(row["path"]), FAULTS.get(row["rule"], "missing"))
        for row in rows(name)
        if row["source"] == "api" or is_missing(row)
    )
    problems = BY_NAME[name].verdict["problems"]
    assert problems_found == sorted(
        (last_part(problem["path"]), problem["kind"]) for problem in problems
    )


@EVERY
def test_the_most_that_it_costs_is_the_experts(name: str) -> None:
    """The highest cost is within the expert's bounds, except in DIFFERS."""
    costs = [
        job["cost"]["at_most_usd"]
        for job in checked(name)["jobs"]
        if not job["trial"] and job["kind"] != "transform"
    ]
    expected = BY_NAME[name].verdict["ceiling_usd"]
    total = None if None in costs else sum(costs, Decimal(0))
    agrees = total is None or not costs
    if expected is not None:
        agrees = total is not None and expected[0] <= float(total) <= expected[1]
    assert agrees is ((name, "ceiling") not in DIFFERS)


@pytest.mark.parametrize("name", [case.name for case in CASES if case.verdict.get("history")])
def test_the_prediction_is_the_experts(name: str) -> None:
    """The prediction is the expert's: none without comparable runs, and no range for one run."""
    [job] = [job for job in checked(name)["jobs"] if not job["trial"]]
    usd = job["history"]["usd"]
    expected = (BY_NAME[name].verdict["history"]["predict"] or {}).get("usd")
    if expected is None or usd is None:
        assert usd is None
        assert expected is None
        return
    near = abs(float(usd["median"]) - expected["median"]) <= 0.05 * expected["median"]
    assert near is ((name, "prediction") not in DIFFERS)


@EVERY
def test_aws_takes_a_request_that_follows_a_fix(name: str) -> None:
    """A fix removes its refusal and causes no other. Placeholders are left to the user."""
    document = json.loads(BY_NAME[name].file.read_text(encoding="utf-8"))
    checker = make_checker(Policy(), None, region=BY_NAME[name].region)
    requests = recognise(document, checker.model).requests
    refused = refused_keys(checked(name))
    for job, request in zip(checked(name)["jobs"], requests, strict=True):
        body = (request.tuning_request or request).body
        for row in job["findings"]:
            for fix in (row["fix"], *row["alternatives"]):
                is_open = any("<" in str(parameter["new"]) for parameter in fix)
                if not fix or is_open or row["source"] == "api" or not request.origin.is_inline:
                    continue
                edits = []
                for parameter in fix:
                    place = split_path(body, parameter["parameter"])
                    assert place is not None
                    place = (request.tuning_request or request).origin.path_in_file(place)
                    edits.append(Edit(place, parameter["new"]))
                text = edit_json(BY_NAME[name].file.read_text(encoding="utf-8"), edits)
                after = checker.check_file(name, json.loads(text), lambda: ({}, ()))
                own_key = {(job["label"], row["rule"], row["path"])} if row["refused"] else set()
                assert refused_keys(after) <= refused - own_key, (row["rule"], fix)


def refused_keys(file: CheckedFile) -> set[tuple[str, str, str]]:
    """Returns the findings of a file about what AWS refuses."""
    return {
        (job["label"], row["rule"], row["path"])
        for job in file["jobs"]
        for row in job["findings"]
        if row["refused"]
    }
