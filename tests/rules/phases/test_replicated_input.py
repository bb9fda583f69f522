from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.counterfactual import Severities, allocate
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.parts import DataSource, InputChannel
from tests.fakes.jobs import job, market, phases
from tests.fakes.judging import card, found, not_applicable, outcome, priced, unknown

RULE = "replicated-input"
TRAIN = InputChannel("train", DataSource.S3, "File", "FullyReplicated")


def loads(download_s: int, train_s: int, instances: int = 4, **changes: Any) -> Job:
    """A job on ml.g5.2xlarge at $1.515 that downloads and then trains."""
    seconds = Decimal(download_s + train_s)
    plain: dict[str, Any] = {
        "phases": phases(("Starting", -60), ("Downloading", download_s), ("Training", train_s)),
        "training_s": seconds,
        "billable_s": seconds,
        "channels": (TRAIN, InputChannel("validation", DataSource.S3, "File", "FullyReplicated")),
    }
    return job("ml.g5.2xlarge", instances, **plain | changes)


def test_the_same_data_on_four_instances_is_found() -> None:
    """Shards for the training channel, and not for the validation data."""
    what = found(RULE, loads(1200, 2400))
    assert what.summary == (
        "Each of 4 instances downloaded all of train: 20 min of 1 h billed (33%)."
    )
    [fix] = what.fix
    assert fix.path == "InputDataConfig[train].DataSource.S3DataSource.S3DataDistributionType"
    assert (fix.old, fix.new) == ("FullyReplicated", "ShardedByS3Key")
    assert (what.confidence, what.bucket) == (Confidence.HEURISTIC, Bucket.POSSIBLE)
    assert "hang" in (what.caution or "")


def test_at_best_each_instance_copies_a_quarter() -> None:
    """A third of an hour of 4 x $1.515 is $2.02; three quarters of it are $1.515."""
    finding = priced(RULE, loads(1200, 2400))
    assert (finding.saving_usd, finding.alone_usd) == (0, 0)
    assert list(finding.range_usd or ()) == [0, Decimal("1.515")]


def test_beside_download_dominates_nothing_is_counted_twice() -> None:
    """Both are about the same minutes; neither counts dollars before a run shows them."""
    run = loads(1200, 2400)
    both = [(card(rule).name, found(rule, run)) for rule in ("download-dominates", RULE)]
    savings = allocate(run, bill(run, market()), both, market(), Severities(), {})
    assert (savings.avoidable_usd, savings.possible_usd) == (0, 0)


def test_exactly_a_fifth_of_the_billed_time_is_long() -> None:
    """720 of 3600 s; one second less is not."""
    assert isinstance(outcome(RULE, loads(720, 2880)), Found)
    assert outcome(RULE, loads(719, 2881)) == Clear()


def test_exactly_five_minutes_are_not_long() -> None:
    """One second more is."""
    assert outcome(RULE, loads(300, 300)) == Clear()
    assert isinstance(outcome(RULE, loads(301, 300)), Found)


def test_two_instances_are_several_and_one_is_not() -> None:
    """One instance has none to share with."""
    assert isinstance(outcome(RULE, loads(1200, 2400, 2)), Found)
    assert "one instance" in not_applicable(RULE, loads(1200, 2400, 1))


@pytest.mark.parametrize(
    "channel",
    [
        replace(TRAIN, distribution="ShardedByS3Key"),
        replace(TRAIN, distribution=None),
        replace(TRAIN, mode="FastFile"),
        replace(TRAIN, mode="Pipe"),
        replace(TRAIN, source=DataSource.FSX),
        replace(TRAIN, name="validation"),
        replace(TRAIN, name="model"),
    ],
)
def test_only_a_replicated_copy_of_training_data_is_blamed(channel: InputChannel) -> None:
    """The advised job among them; validation data and models are wanted everywhere."""
    assert "no training channel" in not_applicable(RULE, loads(1200, 2400, channels=(channel,)))


def test_code_that_expects_all_data_keeps_it() -> None:
    """It picks its part itself."""
    sampled = Hints(distributed_sampler=True, distribution="ddp")
    assert "distributed sampler" in not_applicable(RULE, loads(1200, 2400, hints=sampled))


def test_a_mixed_cluster_is_unknown() -> None:
    """A channel may go to one of its groups only."""
    groups = (InstanceGroup("ml.g5.2xlarge", 1, "a"), InstanceGroup("ml.m5.xlarge", 2, "b"))
    assert unknown(RULE, loads(1200, 2400, groups=groups)) == "groups_unmapped"


def test_what_is_not_recorded_is_unknown() -> None:
    """The number of instances, or the phases."""
    assert unknown(RULE, loads(1200, 2400, groups=())) == "type_unknown"
    assert unknown(RULE, loads(1200, 2400, phases=())) == "phases_missing"


def test_serverless_jobs_are_not_its_concern() -> None:
    """They have no instances."""
    assert "serverless" in not_applicable(RULE, loads(1200, 2400, purchase=Purchase.SERVERLESS))
