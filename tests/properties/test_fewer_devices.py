"""Work of several devices on fewer devices takes no longer than is counted."""

from collections.abc import Sequence
from decimal import Decimal

from hypothesis import assume, example, given
from hypothesis import strategies as st

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.bill.change import SetType
from sageaudit.domain.prices.market import UNKNOWN_PRECISION, RuntimeRange, runtime_range
from sageaudit.structs import replace
from tests.labelled.machine import machine
from tests.properties.judged import Document, audited, property_settings
from tests.properties.programs import GPU_TYPES, SEVERAL_GPUS, Layout, Run, Spell, plain, runs

ONE_DEVICE_AT_WORK = (
    "the sum of a host's devices is at most that of one device (P95 from 90 to 100, never "
    "above): it counts as one device at work, but several lightly used ones look the same"
)
"""The only guess of the design; the property holds for every other run."""
_ROUNDED = Decimal("0.0001")


def moves(audit: Audit) -> list[SetType]:
    """Returns the counted moves to another type."""
    return [
        finding.detection.change
        for finding in audit.savings.findings
        if finding.is_standing and finding.detection.bucket.is_counted and finding.saving_usd
        if isinstance(finding.detection.change, SetType)
    ]


def fewer_of_the_same(run: Run, audit: Audit) -> list[SetType]:
    """Returns the counted moves to fewer devices of the same model."""
    return [
        change
        for change in moves(audit)
        if machine(change.instance_type).gpu_model == run.on.gpu_model
        if machine(change.instance_type).gpus < run.on.gpus
    ]


def gpu_points(job_recording: Document) -> list[list[float | None]]:
    """Returns each host's summed GPU points by minute, busiest host first."""
    series = job_recording["metrics"]["series"]
    return [line["values"] for line in series if line["metric"] == "GPUUtilization"]


def looks_like_one(job_recording: Document) -> bool:
    """Whether a host's points look like one device at work: see ONE_DEVICE_AT_WORK."""
    hosts = (
        sorted(value for value in points if value is not None)
        for points in gpu_points(job_recording)
    )
    return any(
        points and points[-1] <= 100.5 and points[len(points) * 95 // 100] >= 89.5
        for points in hosts
    )


def late(job_recording: Document) -> int:
    """Returns the minutes before the first GPU point of the busiest host."""
    first = next(iter(gpu_points(job_recording)), [0])
    return next(minute for minute, value in enumerate(first) if value is not None)


@st.composite
def steady(draw: st.DrawFn, layouts: Sequence[Layout]) -> Run:
    """Draws runs on several devices whose recorded figures are exact."""
    run = draw(runs(SEVERAL_GPUS, whole=True))
    layout = draw(st.sampled_from(list(layouts)))
    program = run.program
    if layout is Layout.COPIES and len(set(program.shares)) > 1:
        program = replace(program, shares=(program.shares[0],) * len(program.shares))
    return replace(run, program=replace(program, layout=layout), jitter=0.0, spot_share=None)


def check_run_time(run: Run, most: int = 8) -> None:
    """Checks that a counted move to at most `most` devices assumes at least the true run time."""
    job_recording = run.recording()
    at_work = sum(1 for share in run.program.shares if share)
    audit = audited(job_recording)
    for change in fewer_of_the_same(run, audit):
        assume(machine(change.instance_type).gpus <= most)
        assume(not (at_work > 1 and looks_like_one(job_recording)))
        truth = run.times_as_long(machine(change.instance_type).gpus, late(job_recording))
        assert change.time_factor >= Decimal(str(truth)) - _ROUNDED, (
            f"{run.instance} -> {change}: {truth:.4f} times as long in truth"
        )


@property_settings(120)
@given(steady([Layout.COPIES, Layout.TURNS]))
@example(plain("ml.g7e.12xlarge", 0.3, 0.3))
@example(plain("ml.p3.16xlarge", *[0.3] * 8))
@example(plain("ml.g5.12xlarge", *[0.2] * 4))
@example(plain("ml.g5.12xlarge", 0.95))
@example(plain("ml.g6.24xlarge", *[0.006] * 4, layout=Layout.TURNS, cores=47, gib=173))
def test_copies_and_parts_of_one_model_take_no_longer_than_counted(run: Run) -> None:
    """Copies split their step evenly over the remaining devices; model parts take turns."""
    check_run_time(run)


@property_settings(120)
@given(steady([Layout.PROCESSES]))
@example(plain("ml.g7e.12xlarge", 0.6, 0.89, layout=Layout.PROCESSES, spells=(Spell(69, 0.5),)))
@example(plain("ml.p3.8xlarge", 0.6, 0.6, 0.6, layout=Layout.PROCESSES))
def test_processes_that_cannot_be_split_take_no_longer_on_one_device_than_counted(run: Run) -> None:
    """On several devices the finding says that it assumes evenly spread work."""
    check_run_time(run, most=1)


@property_settings(120)
@given(steady([Layout.COPIES]), st.floats(0, 1))
@example(plain("ml.p4d.24xlarge", *[0.2] * 8), 1.0)
@example(plain("ml.p4d.24xlarge", *[0.02] * 8), 0.5)
@example(plain("ml.p3.2xlarge", 0.2), 1.0)
@example(plain("ml.p3.8xlarge", *[0.1] * 4), 0.0)
def test_another_gpu_takes_no_longer_than_counted_whatever_it_is_within_its_range(
    run: Run, position: float
) -> None:
    """One host moves to another GPU model, with the truth at any point of the measured range."""
    run = replace(run, paces=(1.0,))
    job_recording = run.recording()
    at_work = sum(1 for share in run.program.shares if share)
    for change in moves(audited(job_recording)):
        other = machine(change.instance_type)
        if other.gpu_model == run.on.gpu_model or not other.gpu_model:
            continue
        measured = runtime_range(
            run.on.gpu_model or "", other.gpu_model, run.on.gpu_ratios, UNKNOWN_PRECISION
        )
        assume(not (at_work > 1 and looks_like_one(job_recording)))
        if not isinstance(measured, RuntimeRange):
            assert not run.device_seconds, f"{run.instance} -> {change} was never measured"
            continue
        times = float(measured.low) + position * float(measured.high - measured.low)
        truth = run.times_as_long(other.gpus, late(job_recording), times)
        assert change.time_factor >= Decimal(str(truth)) - _ROUNDED, (
            f"{run.instance} -> {change}: {truth:.4f} times as long, each takes {times:.2f} times"
        )


@property_settings(120)
@given(runs(GPU_TYPES, whole=True))
@example(plain("ml.p5en.48xlarge", *[0.01] * 6, gpu_gib=134, cores=51, gib=880))
@example(plain("ml.g4dn.xlarge", 0.02))
def test_device_work_is_not_moved_to_a_type_without_devices(run: Run) -> None:
    """A CPU's time for a device's work is unknown, so no move to a type without GPUs is counted.

    Devices that together report at most 1% count as idle: a driver alone uses that.
    """
    job_recording = run.recording()
    cpu_moves = [
        change for change in moves(audited(job_recording)) if not machine(change.instance_type).gpus
    ]
    most = max((value or 0 for points in gpu_points(job_recording) for value in points), default=0)
    assert not (cpu_moves and most > 1), f"{run.instance} -> {cpu_moves}"


@property_settings(60)
@given(steady([Layout.TURNS, Layout.PROCESSES]))
@example(plain("ml.g5.12xlarge", *[0.0025] * 4, layout=Layout.TURNS, gpu_gib=5.59))
@example(plain("ml.g5.12xlarge", *[0.2] * 4, layout=Layout.TURNS, gpu_gib=20.0))
def test_the_remaining_devices_hold_the_memory_of_all(run: Run) -> None:
    """The remaining devices have memory for all, because nothing shows that these are copies."""
    audit = audited(run.recording())
    for change in fewer_of_the_same(run, audit):
        remaining = machine(change.instance_type)
        available_gib = float(remaining.gpu_memory_gib or 0) * remaining.gpus
        assert sum(run.program.gpu_gib) <= available_gib, (
            f"{run.instance} -> {change.instance_type}"
        )
