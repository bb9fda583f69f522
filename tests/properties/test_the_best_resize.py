"""The audit counts at least the best certain saving of `what-if`, and at most the bill."""

from decimal import Decimal

from hypothesis import example, given

from tests.properties.judged import (
    MICRO,
    counted,
    findings_line,
    judged,
    property_settings,
    savings,
)
from tests.properties.programs import Run, Spell, plain, runs


@property_settings(200)
@given(runs())
@example(plain("ml.g5.24xlarge", 0.3, 0.3, 0.3, 0.3))
@example(plain("ml.g6e.8xlarge", 0.07, gpu_gib=4.5, cores=6.4, gib=25.6))
@example(plain("ml.g5.8xlarge", 0.82, gpu_gib=17.9))
@example(plain("ml.c7i.2xlarge", cores=7.6, gib=13.4))
@example(plain("ml.r5d.12xlarge", cores=20, gib=157, spells=(Spell(67), Spell(12, 0.0))))
@example(plain("ml.p5en.48xlarge", *[0.01] * 6, gpu_gib=134, cores=51, gib=880))
@example(plain("ml.g6.24xlarge", cores=43, gib=153, hosts=2))
def test_the_audit_counts_no_less_than_the_best_certain_saving_of_what_if(run: Run) -> None:
    """Avoidable, lost and exempt dollars are at least the low end of the best type's saving."""
    job_recording = run.recording()
    audit, certain = judged(job_recording), savings(job_recording)
    best = max(certain, key=lambda name: certain[name], default=None)
    if best is not None:
        assert counted(audit) >= certain[best] - MICRO, (
            f"{best}: ${certain[best]}; {findings_line(audit)}"
        )


@property_settings(120)
@given(runs())
def test_no_saving_is_more_than_the_bill(run: Run) -> None:
    """No saving exceeds the bill: alone, together, or at the counted end of its range."""
    audit = judged(run.recording())
    total = audit["bill"]["total_usd"]
    assert total is not None
    assert (audit["avoidable_usd"] or 0) + (audit["lost_usd"] or 0) <= total + MICRO
    for finding in audit["findings"]:
        assert Decimal(0) <= (finding["saving_usd"] or 0) <= total, finding["summary"]
        assert (finding["saving_alone_usd"] or 0) <= total, finding["summary"]
        if finding["saving_range_usd"]:
            low, high = finding["saving_range_usd"]
            assert Decimal(0) <= low <= high <= total, finding["summary"]
            assert (finding["saving_usd"] or 0) <= high + MICRO, finding["summary"]
