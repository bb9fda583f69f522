"""Attacks that once counted, or hid, dollars that the recording does not show."""

import copy
import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sageaudit.adapters.prices import packaged
from sageaudit.cli.commands.audit import _exit_code
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy
from sageaudit.exits import Exit
from sageaudit.output.terminal.render import render
from sageaudit.workflows.recordings.run import audit_recording
from tests.properties.judged import MICRO, counted, findings_line, judged, with_series_changed
from tests.properties.programs import Layout, Spell, plain

Document = dict[str, Any]
IDLE = plain("ml.g5.12xlarge", 0.02, 0.02, 0.02, 0.02, hosts=8)


def _sum_of_gpus(instance: str, value: float, cores: float = 1.0) -> Document:
    run = plain(instance, 0.3, cores=cores).recording()

    def steady(line: Document) -> Document:
        if line["metric"] == "GPUUtilization":
            line["values"] = [value] * len(line["values"])
        return line

    return with_series_changed(run, steady)


@pytest.mark.parametrize(("busy", "share"), [(1, 0.8), (2, 0.7), (4, 0.6)])
def test_one_busy_gpu_of_eight_is_no_faster_on_a_weaker_one(busy: int, share: float) -> None:
    """An H100 at 80% takes 2.95 times as long on an A100, even if its seven neighbours are idle."""
    run = plain("ml.p5.48xlarge", *[share] * busy, layout=Layout.PROCESSES)
    audit = judged(run.recording())
    a_hundred = packaged.instance_types()["ml.p4d.24xlarge"]
    truth = Decimal(str(run.times_as_long(a_hundred.gpus, 0, 3.44)))
    total = audit["bill"]["total_usd"]
    assert total is not None
    hourly = Decimal("25.2512883")
    costs = total * hourly / Decimal("63.296") * truth
    assert counted(audit) <= max(total - costs, Decimal(0)) + Decimal(1), findings_line(audit)


@pytest.mark.parametrize("more", [{}, {"zero_stage": "3"}, {"tensor_parallel_size": "8"}])
def test_a_launcher_is_no_proof_that_each_gpu_holds_a_copy(more: dict[str, str]) -> None:
    """70 GiB on one GPU do not fit on one of 22 GiB, even if torchrun started the program."""
    run = plain("ml.p5.48xlarge", 0.05, layout=Layout.PROCESSES, gpu_gib=70)
    job_recording = run.recording()
    job_recording["describe"]["HyperParameters"] |= {
        "sagemaker_torch_distributed_enabled": "true",
        **more,
    }
    types = packaged.instance_types()
    for finding in judged(job_recording)["findings"]:
        for fix in finding["fix"]:
            if fix["parameter"].endswith("InstanceType") and finding["saving_usd"]:
                row = types[fix["new"]]
                assert float(row.gpu_memory_gib or 0) >= 70, (
                    f"{fix['new']}: ${finding['saving_usd']}"
                )


def test_a_gpu_at_eight_percent_works_however_many_stand_beside_it() -> None:
    """8% of one GPU of eight is 1% on average, but it is no idle tail."""
    audit = judged(_sum_of_gpus("ml.p5.48xlarge", 7.9, cores=0.19))
    assert not [
        finding["summary"] for finding in audit["findings"] if finding["rule"] == "idle-tail"
    ]


def test_two_series_of_one_metric_that_differ_are_not_judged_by_the_last() -> None:
    """A second series of zeros next to a real one does not prove idleness."""
    job_recording = plain("ml.g5.12xlarge", 0.3, 0.3, 0.3, 0.3, hosts=2, cores=5).recording()
    once = counted(judged(job_recording))
    zeros = [
        {**line, "values": [0.0] * len(line["values"])}
        for line in job_recording["metrics"]["series"]
    ]
    job_recording["metrics"]["series"] += zeros
    assert counted(judged(job_recording)) <= once + MICRO


def test_a_gpu_at_its_ceiling_beside_idle_ones_that_report_half_a_percent() -> None:
    """A sum of up to 101% is one device at work, which fits on one device."""
    at, above = (counted(judged(_sum_of_gpus("ml.g5.12xlarge", value))) for value in (100, 100.5))
    assert above >= at - Decimal("0.5")


def test_idle_capacity_counts_no_more_than_the_audit_does() -> None:
    """Idle capacity counts at most what the audit counts; a fix that adds storage saves less."""
    audit = judged(plain("ml.g5.4xlarge", cores=8, gib=32, hosts=8).recording())
    figure = audit["idle_capacity"]
    assert figure is not None
    assert figure["counted_usd"] is not None
    assert figure["counted_usd"] <= counted(audit) + MICRO


def _without(host: str) -> Callable[[Document], Document | None]:
    return lambda line: None if line["host"].endswith(host) else line


def _cut(line: Document) -> Document:
    line["values"] = line["values"][:70]
    return line


@pytest.mark.parametrize("change", [_without("algo-8"), _cut])
def test_a_run_that_no_rule_could_judge_does_not_pass_the_gate(
    change: Callable[[Document], Document | None],
) -> None:
    """The same run with all its points has $90.67 of $114.84 avoidable."""
    audit = judged(with_series_changed(IDLE.recording(), change))
    assert audit["avoidable_usd"] is None
    assert _exit_code(audit, Severity.MEDIUM) is Exit.NOT_JUDGED


def test_a_gpu_job_without_a_judgement_of_its_gpus_has_no_sum_of_zero() -> None:
    """If one host's GPU series is missing, the avoidable sum is unknown and not 0."""
    job_recording = IDLE.recording()
    job_recording["metrics"]["series"] = [
        line
        for line in job_recording["metrics"]["series"]
        if not (line["host"].endswith("algo-8") and line["metric"] == "GPUUtilization")
    ]
    assert judged(job_recording)["avoidable_usd"] is None


def test_a_set_of_which_a_cent_was_judged_has_no_sum_of_zero(tmp_path: Path) -> None:
    """If three large jobs were not judged, $613 are not called "none avoidable"."""
    small = plain("ml.m5.large", cores=1.6, gib=6).recording()
    large = plain("ml.p4d.24xlarge", *[0.02] * 8, hosts=4).recording()
    del large["metrics"]
    renamed = [json.loads(json.dumps(large).replace("made-up-0", f"b-{n}")) for n in range(3)]
    path = tmp_path / "set.json"
    path.write_text(json.dumps({"children": [small, *renamed]}))
    audit = audit_recording(path, Policy())
    assert audit["avoidable_usd"] is None


def test_a_set_of_upper_bounds_is_no_lower_bound(tmp_path: Path) -> None:
    """A sum of upper bounds (Spot without billable seconds) is not shown as a lower bound."""
    child = IDLE.recording()
    child["describe"]["EnableManagedSpotTraining"] = True
    del child["describe"]["BillableTimeInSeconds"]
    path = tmp_path / "set.json"
    path.write_text(json.dumps({"children": [child, copy.deepcopy(child)]}))
    assert "at least" not in _screen(audit_recording(path, Policy()))


def test_no_screen_says_zero_dollars_avoidable_beside_a_saving() -> None:
    """A failed run of an idle GPU is lost as a whole; no text says $0.00 next to a saving."""
    job_recording = plain("ml.g6.16xlarge", spells=(Spell(60),)).recording()
    job_recording["describe"] |= {
        "TrainingJobStatus": "Failed",
        "FailureReason": "AlgorithmError: x",
    }
    del job_recording["describe"]["ModelArtifacts"]
    screen = _screen(judged(job_recording))
    assert "$0.00 avoidable" not in screen
    assert "saves $0.00" not in screen


def test_no_change_is_certain_is_not_shown_next_to_a_certain_change() -> None:
    """The text "No change is certain" is not shown if g5.xlarge certainly fits."""
    job_recording = IDLE.recording()
    job_recording["describe"]["EnableManagedSpotTraining"] = True
    del job_recording["describe"]["BillableTimeInSeconds"]
    screen = _screen(judged(job_recording))
    assert "ml.g5.xlarge" in screen
    assert "No change is certain" not in screen


def _screen(document: Any) -> str:
    out = io.StringIO()
    render(document, Console(file=out, width=200))
    return out.getvalue()
