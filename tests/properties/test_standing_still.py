"""Compares counted idle time with what the simulated machine knows about its minutes."""

from decimal import Decimal

from hypothesis import assume, given
from hypothesis import strategies as st

from sageaudit.structs import replace
from tests.properties.judged import Document, findings_line, judged, property_settings, with_values
from tests.properties.programs import GPU_TYPES, Layout, Run, Spell, plain, runs

IDLE_RULES = {"idle-start", "idle-middle", "idle-tail"}
ONE_CORE = 1.2
"""One core, and the host's operating system."""
_MICRO = Decimal("0.00001")


def counted(job_recording: Document) -> Decimal:
    """Returns the avoidable dollars of idle-time findings."""
    return sum(
        (
            finding["saving_usd"] or Decimal(0)
            for finding in judged(job_recording)["findings"]
            if finding["rule"] in IDLE_RULES and finding["bucket"] == "avoidable"
        ),
        Decimal(0),
    )


def stands_still(run: Run, spell: Spell) -> bool:
    """Whether in these minutes no device works, and at most one core of each host."""
    if spell.loading:
        return run.program.loader_cores * max(run.paces) <= ONE_CORE
    return spell.pace == 0


def truly_idle_usd(run: Run, job_recording: Document) -> Decimal:
    """Returns the bill's share of the idle minutes, and of one partial minute after them."""
    still = sum(spell.minutes for spell in run.program.spells if stands_still(run, spell))
    total = judged(job_recording)["bill"]["total_usd"]
    assert total is not None
    return total * (60 * still + 60) / Decimal(job_recording["describe"]["TrainingTimeInSeconds"])


def shows_its_work(run: Run) -> bool:
    """Whether CloudWatch shows the program's work, on every host that works."""
    lowest_pace = min(pace for pace in run.paces if pace)
    return all(
        stands_still(run, spell) or spell.loading or spell.pace * lowest_pace * share >= 0.03
        for spell in run.program.spells
        for share in (sum(run.program.shares),)
        if run.program.shares
    )


@property_settings(150)
@given(runs(GPU_TYPES))
def test_idle_dollars_are_never_above_the_truth(run: Run) -> None:
    """Idle dollars are at most 5% above the truth, for idleness at the start, middle or end."""
    assume(shows_its_work(run))
    job_recording = run.recording()
    truth = truly_idle_usd(run, job_recording)
    assert counted(job_recording) <= truth * Decimal("1.05") + _MICRO, (
        f"{truth} true; {findings_line(judged(job_recording))}"
    )


@property_settings(80)
@given(runs(GPU_TYPES, pauses=False))
def test_a_run_that_always_works_has_no_idle_dollars(run: Run) -> None:
    """A run that always works has no idle dollars, slow or fast, on some or all devices."""
    assume(shows_its_work(run))
    job_recording = run.recording()
    assert counted(job_recording) == 0, findings_line(judged(job_recording))


@st.composite
def hung(draw: st.DrawFn) -> Run:
    """Draws runs that work, wait on at most one core, then work or end; all hosts alike."""
    waits = Spell(draw(st.integers(1, 200)), 0.0, loading=draw(st.booleans()))
    after = draw(st.sampled_from(((), (Spell(60),))))
    return plain(
        draw(st.sampled_from(("ml.g4dn.xlarge", "ml.g5.12xlarge", "ml.p4d.24xlarge"))),
        *(0.9,) * draw(st.sampled_from((1, 4))),
        layout=Layout.COPIES,
        loader_cores=1.0,
        spells=(Spell(60), waits, *after),
        hosts=draw(st.sampled_from((1, 3))),
    )


@property_settings(60)
@given(hung().filter(lambda run: len(run.program.shares) <= run.on.gpus))
def test_a_wait_of_half_an_hour_is_found_in_full(run: Run) -> None:
    """A wait above 30 minutes counts except its last, partial minute; shorter ones do not."""
    job_recording = run.recording()
    waits = run.program.spells[1]
    most = truly_idle_usd(run, job_recording)
    if waits.minutes > 30:
        lowest = most * (waits.minutes - 1) / (waits.minutes + 1)
        assert lowest - _MICRO <= counted(job_recording) <= most + _MICRO
    elif waits.minutes < 30 and (waits.loading or len(run.program.spells) == 3):
        assert counted(job_recording) == 0


@property_settings(60)
@given(hung(), st.integers(1, 90))
def test_a_longer_wait_counts_no_fewer_dollars(run: Run, minutes: int) -> None:
    """A longer wait in the same run counts no fewer dollars."""
    assume(len(run.program.shares) <= run.on.gpus)
    first, waits, *rest = run.program.spells
    longer = (first, replace(waits, minutes=waits.minutes + minutes), *rest)
    slower = replace(run, program=replace(run.program, spells=longer))
    assert counted(slower.recording()) >= counted(run.recording())


@property_settings(80)
@given(runs(GPU_TYPES, whole=True), st.integers(1, 400), st.integers(1, 200))
def test_more_idle_minutes_count_no_fewer_dollars(run: Run, first: int, minutes: int) -> None:
    """Idle minutes of all hosts after the first GPU work do not reduce the dollars."""
    job_recording = run.recording()
    work = [
        at
        for line in job_recording["metrics"]["series"]
        if line["metric"] == "GPUUtilization"
        for at, value in enumerate(line["values"])
        if value is not None and value > 1
    ]
    assume(work)
    asleep = range(min(work) + first, min(work) + first + minutes)

    sleeps = with_values(
        job_recording,
        lambda line: line["metric"] in {"CPUUtilization", "GPUUtilization"},
        lambda at, value: min(value, 0.5) if at in asleep else value,
    )
    before, after = counted(job_recording), counted(sleeps)
    assert after >= before - _MICRO, f"{before}, then {after}"
