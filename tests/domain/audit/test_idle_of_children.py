from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

from sageaudit.domain.audit.document import AuditDocument, IdleCapacityDocument
from sageaudit.domain.audit.rollup import idle_of_children
from tests.fakes.documents import trial

NOTHING = Decimal(0)


def figure(**overrides: Any) -> IdleCapacityDocument:
    """8 of 10 GPU-hours idle, $8 at list price, $2 of it counted."""
    whole = {
        "unit": "gpu_hours",
        "paid": Decimal(10),
        "worked": Decimal(2),
        "idle": Decimal(8),
        "list_usd": Decimal(8),
        "counted_usd": Decimal(2),
        "look_at": ["batch_size", "profile"],
    }
    return cast("IdleCapacityDocument", whole | overrides)


def child(idle: IdleCapacityDocument | None) -> AuditDocument:
    """A trial of $12, of which $2 are avoidable."""
    made = trial(1, "12", "2")
    return cast("AuditDocument", {**made, "idle_capacity": idle})


def unpriced_child(idle: IdleCapacityDocument | None) -> AuditDocument:
    """The same on a type without a known price."""
    made = child(idle)
    return cast("AuditDocument", {**made, "bill": {**made["bill"], "total_usd": None}})


def test_hours_and_dollars_are_sums() -> None:
    """With all that may be the cause, a profile last."""
    summed, why = idle_of_children(
        [child(figure()), child(figure(look_at=["data_loader", "profile"]))], NOTHING
    )
    assert why is None
    assert summed is not None
    assert (summed.unit, summed.paid, summed.worked, summed.idle) == ("gpu_hours", 20, 4, 16)
    assert (summed.list_usd, summed.counted_usd) == (16, 4)
    assert summed.look_at == ("batch_size", "data_loader", "profile")


def test_gpus_and_vcpus_are_never_added() -> None:
    """A sum of both is neither."""
    summed, why = idle_of_children([child(figure()), child(figure(unit="vcpu_hours"))], NOTHING)
    assert summed is None
    assert why == "the training jobs ran on GPUs and on CPUs"


def test_a_job_without_a_figure_is_left_out_and_said() -> None:
    """The sum is then a lower bound."""
    cheap = cast("AuditDocument", {**trial(2, "5", None), "idle_capacity": None})
    summed, why = idle_of_children([child(figure()), cheap], NOTHING)
    assert summed is not None
    assert summed.paid == 10
    assert why == "1 of 2 training jobs have no figure"


def test_a_small_part_of_the_dollars_is_no_figure_of_the_whole() -> None:
    """Half of them, under the 70% that the points of one job need."""
    summed, why = idle_of_children([child(figure()), child(None)], NOTHING)
    assert summed is None
    assert why == "1 of 2 training jobs have no figure"


def test_without_dollars_the_jobs_are_counted() -> None:
    """Two of three are under 70%, three of four are not."""
    unpriced = [unpriced_child(figure(list_usd=None, counted_usd=None)) for _ in range(3)]
    few, _ = idle_of_children([*unpriced[:2], unpriced_child(None)], NOTHING)
    enough, _ = idle_of_children([*unpriced, unpriced_child(None)], NOTHING)
    assert few is None
    assert enough is not None


def test_one_unpriced_job_leaves_the_dollars_unknown() -> None:
    """As the sum of the bills is."""
    unpriced = figure(list_usd=None, counted_usd=None)
    summed, _ = idle_of_children([child(figure()), child(unpriced)], NOTHING)
    assert summed is not None
    assert (summed.paid, summed.list_usd, summed.counted_usd) == (20, None, None)


def test_a_trial_that_was_not_needed_takes_its_idle_share() -> None:
    """$10 are left of the child, $6 of them idle: of $5 for the tuning job $3 more are counted."""
    summed, _ = idle_of_children([child(figure())], Decimal(5))
    assert summed is not None
    assert summed.counted_usd == 5


def test_no_more_than_the_list_value_is_counted() -> None:
    """Whatever the tuning rules find."""
    summed, _ = idle_of_children([child(figure())], Decimal(500))
    assert summed is not None
    assert summed.counted_usd == summed.list_usd == 8


def test_a_tuning_job_without_jobs_has_none() -> None:
    """Nothing was paid, and nothing is to be said."""
    assert idle_of_children([], NOTHING) == (None, None)
