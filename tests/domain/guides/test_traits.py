"""The traits by which guides are selected: their values, and when they are unknown."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.family_runs import summary_of_run
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.guides import (
    TRAIT_RULES,
    TRAITS,
    TraitValue,
    traits_of_audit,
    traits_of_request,
)
from sageaudit.domain.job.course import failure_class
from sageaudit.domain.job.job import Hints, Job, Purchase
from sageaudit.domain.job.parts import DataSource, InputChannel, WarmPool
from sageaudit.rules.catalogue import load
from sageaudit.structs import replace
from tests.fakes import documents, jobs
from tests.fakes.documents import document, finding
from tests.fakes.families import run_summary

TYPES = jobs.TYPES | {
    "ml.p4d.24xlarge": jobs.gpu_type("ml.p4d.24xlarge", 96, 1152, 8, "A100"),
    "ml.p2.xlarge": jobs.gpu_type("ml.p2.xlarge", 4, 61, 1, "K80"),
}
ONE = jobs.job("ml.g5.2xlarge")
FOUR = jobs.job("ml.g4dn.12xlarge")
CPU = jobs.job("ml.m5.large")
NEW_TYPE = jobs.job("ml.x9.large")
NO_TYPE = jobs.job(groups=())
ISOLATION = "EnableNetworkIsolation"
FAILED: dict[str, Any] = {"status": "Failed", "failure": "AlgorithmError: Traceback"}


def job_with_hints(**hints: Any) -> Job:
    """Returns a job with these hints."""
    return replace(ONE, hints=Hints(**hints))


def job_with_channels(*channels: tuple[str, DataSource, str | None]) -> Job:
    """Returns a job with these channels: name, source and mode."""
    inputs = tuple(InputChannel(name, source, mode, None) for name, source, mode in channels)
    return replace(ONE, channels=inputs)


def audit_with_worked_hours(hours: str, unit: str = "gpu_hours") -> AuditDocument:
    """Returns an audit in which this many of ten hours were worked."""
    return document(
        idle_capacity={
            "unit": unit,
            "paid": Decimal(10),
            "worked": Decimal(hours),
            "idle": 10 - Decimal(hours),
            "list_usd": None,
            "counted_usd": None,
            "likely_causes": [],
        }
    )


def audit_with_phases(*phases: tuple[str, int | None]) -> AuditDocument:
    """Returns an audit with these billed phases."""
    phase_documents = [documents.phase(name, seconds, None) for name, seconds in phases]
    return document(phases=phase_documents)


def audit_with_rate(hourly_usd: str | None) -> AuditDocument:
    """Returns an audit whose instances cost this much an hour."""
    rate = None if hourly_usd is None else Decimal(hourly_usd)
    plain = document()
    return document(bill={**plain["bill"], "lines": [documents.line(rate_usd=rate)]})


def audit_with_findings(*rules: str, clear: Sequence[str] = ()) -> AuditDocument:
    """Returns an audit with findings of these rules; the rules in `clear` found nothing."""
    return document(findings=[finding(rule=rule) for rule in rules], clear=list(clear))


def run(waited_s: int | None, worked_s: int) -> AuditSummary:
    """Returns an earlier run that waited and ran for these seconds."""
    waits = {} if waited_s is None else {"Starting": Decimal(waited_s)}
    ended_at = jobs.START - timedelta(hours=1)
    return run_summary(ended_at=ended_at, elapsed_s=Decimal(worked_s), phase_s=waits)


def trait(
    name: str,
    job: Job | None = ONE,
    audit: AuditDocument | None = None,
    runs: Sequence[AuditSummary] = (),
) -> TraitValue | None:
    """Returns one trait of a job that ran."""
    facts = summary_of_run(job, reason=failure_class(job)) if job else None
    shown = audit or document()
    if job is not None:
        shown = {**shown, "job": {**shown["job"], "status": job.status}}
    return traits_of_audit(shown, job, facts, runs, TYPES)[name]


S3 = DataSource.S3
EFS = DataSource.EFS
FSX = DataSource.FSX
CASES: dict[str, list[tuple[TraitValue | None, dict[str, Any]]]] = {
    "kind": [
        ("training", {}),
        ("tuning", {"audit": document(job=documents.job(kind="tuning"))}),
    ],
    "deep_learning": [
        (True, {"job": job_with_hints(deep_learning=True)}),
        (False, {}),
        (None, {"job": None}),
    ],
    "mixed_precision": [
        (True, {"job": job_with_hints(mixed_precision=True)}),
        (False, {}),
        (None, {"job": None}),
    ],
    "training_compiler": [
        (True, {"job": job_with_hints(training_compiler=True)}),
        (False, {}),
        (None, {"job": None}),
    ],
    "pretrained": [
        (True, {"job": job_with_hints(pretrained=True)}),
        (True, {"job": job_with_channels(("Model", S3, "File"), ("train", S3, "File"))}),
        (False, {"job": job_with_channels(("model_inputs", S3, "File"))}),
        (None, {"job": None}),
    ],
    "distribution": [
        ("smddp", {"job": job_with_hints(distribution="smddp")}),
        ("none", {}),
        (None, {"job": None}),
    ],
    "purchase": [
        ("on_demand", {}),
        ("spot", {"job": replace(ONE, purchase=Purchase.SPOT)}),
        (None, {"job": None}),
    ],
    "warm_pool": [
        (True, {"job": replace(ONE, warm_pool=WarmPool(None, 600, None))}),
        (False, {}),
        (None, {"job": None}),
    ],
    "inputs": [
        ("none", {"job": replace(ONE, channels=())}),
        ("copied", {"job": job_with_channels(("train", S3, "File"), ("test", S3, "FastFile"))}),
        ("streamed", {"job": job_with_channels(("train", S3, "Pipe"), ("test", S3, "FastFile"))}),
        ("file_system", {"job": job_with_channels(("train", S3, "File"), ("test", EFS, None))}),
        ("file_system", {"job": job_with_channels(("train", FSX, None))}),
        (None, {"job": None}),
    ],
    "network_isolation": [
        (True, {"job": replace(ONE, settings={ISOLATION: {ISOLATION: True}})}),
        (False, {"job": replace(ONE, settings={ISOLATION: {ISOLATION: None}})}),
        (None, {}),
        (None, {"job": None}),
    ],
    "gpu": [
        ("g", {}),
        ("p", {"job": jobs.job("ml.p4d.24xlarge")}),
        ("none", {"job": CPU}),
        (None, {"job": NEW_TYPE}),
        (None, {"job": NO_TYPE}),
        (None, {"job": None}),
    ],
    "devices": [
        ("one", {}),
        ("one", {"job": CPU}),
        ("several", {"job": FOUR}),
        ("several", {"job": jobs.job("ml.m5.large", 2)}),
        (None, {"job": NEW_TYPE}),
        (None, {"job": None}),
    ],
    "tensor_cores": [
        (True, {}),
        (False, {"job": CPU}),
        (False, {"job": jobs.job("ml.p2.xlarge")}),
        (None, {"job": NEW_TYPE}),
    ],
    "volume_without_effect": [
        (True, {}),
        (False, {"job": replace(ONE, volume_gb=None)}),
        (False, {"job": CPU}),
        (None, {"job": jobs.job("ml.odd.xlarge")}),
        (None, {"job": NEW_TYPE}),
        (None, {"job": None}),
    ],
    "gpu_use": [
        ("busy", {"audit": audit_with_worked_hours("5")}),
        ("waits", {"audit": audit_with_worked_hours("4.999")}),
        (None, {"audit": audit_with_worked_hours("9", "vcpu_hours")}),
        (None, {"audit": document(idle_capacity=None)}),
    ],
    "download": [
        ("long", {"audit": audit_with_phases(("Downloading", 300), ("Training", 2700))}),
        ("short", {"audit": audit_with_phases(("Downloading", 299), ("Training", 60))}),
        ("short", {"audit": audit_with_phases(("Downloading", 300), ("Training", 2701))}),
        ("short", {"audit": audit_with_phases(("Training", 2701))}),
        (None, {"audit": audit_with_phases(("Downloading", None), ("Training", 60))}),
        (None, {"audit": audit_with_phases()}),
    ],
    "objective_flat": [
        (True, {"audit": audit_with_findings("metric-plateau")}),
        (False, {"audit": audit_with_findings(clear=["metric-plateau"])}),
        (None, {"audit": audit_with_findings("gpu-starved")}),
    ],
    "input_bound": [
        (True, {"audit": audit_with_findings("gpu-starved")}),
        (True, {"audit": audit_with_findings("cpu-bottleneck", clear=["gpu-starved"])}),
        (False, {"audit": audit_with_findings(clear=["cpu-bottleneck", "gpu-starved"])}),
        (None, {"audit": audit_with_findings(clear=["gpu-starved"])}),
    ],
    "failed_soon": [
        (True, {"job": jobs.ran(1799, **FAILED)}),
        (False, {"job": jobs.ran(1800, **FAILED)}),
        (False, {"job": jobs.ran(60, status="Failed", failure="CapacityError: none")}),
        (False, {"job": jobs.ran(60)}),
        (None, {"job": replace(jobs.ran(60, **FAILED), training_s=None, ended_at=None)}),
        (None, {"job": None}),
    ],
    "short_and_expensive": [
        (True, {"job": jobs.ran(899), "audit": audit_with_rate("5")}),
        (False, {"job": jobs.ran(900), "audit": audit_with_rate("5")}),
        (False, {"job": jobs.ran(899), "audit": audit_with_rate("4.99")}),
        (False, {"job": jobs.ran(899, **FAILED), "audit": audit_with_rate("5")}),
        (None, {"job": jobs.ran(899), "audit": audit_with_rate(None)}),
        (None, {"job": None, "audit": audit_with_rate("5")}),
    ],
    "long": [
        (True, {"job": jobs.ran(3600)}),
        (False, {"job": jobs.ran(3599)}),
        (None, {"job": None}),
    ],
    "waits_longer_than_it_works": [
        (True, {"runs": [run(6000, 60), run(6000, 60)]}),
        (False, {"runs": [run(60, 6000), run(60, 6000)]}),
        (None, {"runs": [run(6000, 60)]}),
        (None, {"runs": [run(6000, 60), run(None, 60)]}),
    ],
}


@pytest.mark.parametrize(
    ("name", "expected", "given"),
    [(name, expected, given) for name, rows in CASES.items() for expected, given in rows],
)
def test_a_trait_of_a_job_that_ran(
    name: str, expected: TraitValue | None, given: dict[str, Any]
) -> None:
    """None if nothing shows it."""
    assert trait(name, **given) == expected


def test_every_trait_has_cases_for_its_values() -> None:
    """Each yes and no, and each word, except for the many kinds, methods and purchases."""
    assert CASES.keys() == TRAITS.keys()
    of_requests = {"kind", "distribution", "purchase"}
    for name, row in TRAITS.items():
        tried = {expected for expected, _ in CASES[name]} - {None}
        assert tried <= row.values, name
        assert name in of_requests or tried == row.values - {"not_run"}, name


@pytest.mark.parametrize("isolated", [True, False, None])
def test_a_request_without_runs_has_only_its_own_traits(isolated: bool | None) -> None:
    """Its use is known to be "not run". How long it will take is unknown."""
    traits = traits_of_request(ONE, (), None, TYPES, is_isolated=isolated)
    assert traits["network_isolation"] is isolated
    assert (traits["gpu_use"], traits["download"]) == ("not_run", "not_run")
    unknown = {name for name, value in traits.items() if value is None}
    assert unknown - {"network_isolation"} == {
        "objective_flat",
        "input_bound",
        "failed_soon",
        "short_and_expensive",
        "long",
        "waits_longer_than_it_works",
    }


def test_a_request_has_what_its_familys_newest_run_shows() -> None:
    """Its failure, its length, and what its audit found."""
    failed = replace(
        run(10, 60),
        status="Failed",
        elapsed_s=Decimal(60),
        reason="code error",
    )
    traits = traits_of_request(
        ONE, [failed], audit_with_findings("gpu-starved"), TYPES, is_isolated=None
    )
    assert (traits["failed_soon"], traits["long"], traits["input_bound"]) == (True, False, True)


def test_the_rules_whose_outcomes_are_traits_exist() -> None:
    """If a rule were renamed, its guide would never be shown again."""
    assert set(TRAIT_RULES) <= {rule.info.name for rule in load()}


def test_guides_are_selected_after_the_description_is_deleted() -> None:
    """After 90 days the audit and the summary are left: how long the run took, and what was
    found.
    """
    facts = run_summary(Purchase.ON_DEMAND, elapsed_s=Decimal(3600))
    traits = traits_of_audit(audit_with_findings("metric-plateau"), None, facts, (), TYPES)
    assert (traits["long"], traits["objective_flat"], traits["failed_soon"]) == (True, True, False)
    assert (traits["deep_learning"], traits["gpu"]) == (None, None)
