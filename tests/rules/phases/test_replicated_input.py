from functools import partial
from typing import Any

from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.structs import replace
from tests.fakes.jobs import phased_job
from tests.fakes.judging import answer, savings_of
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "replicated-input"
TRAIN = InputChannel("train", DataSource.S3, "File", "FullyReplicated")


def loads(download_s: int, train_s: int, instances: int = 4, **changes: Any) -> Job:
    """A job on ml.g5.2xlarge at $1.515 an hour that downloads and then trains."""
    validation = InputChannel("validation", DataSource.S3, "File", "FullyReplicated")
    plain: dict[str, Any] = {"channels": (TRAIN, validation), "instances": instances}
    parts = (("Downloading", download_s), ("Training", train_s))
    return phased_job(*parts, **plain | changes)


verdict = partial(answer, RULE)


def test_the_same_data_on_four_instances_is_found() -> None:
    # Shards for the training channel, and not for the validation data.
    assert verdict(loads(download_s=1200, train_s=2400)) == finds(
        "Each of 4 instances downloaded all of train: 20 min of the 1 h billed (33%).",
        builder="possible",
        caution="…hang…",
        fix=[
            (
                "InputDataConfig[train].DataSource.S3DataSource.S3DataDistributionType",
                "FullyReplicated",
                "ShardedByS3Key",
            )
        ],
    )


def test_at_best_each_instance_copies_a_quarter() -> None:
    # A third of an hour of 4 x $1.515 is $2.02; three quarters of it are $1.515.
    assert verdict(loads(download_s=1200, train_s=2400)) == finds(
        usd="0.000000", alone="0.000000", span=("0.000000", "1.515000")
    )


def test_720_of_3600_billed_seconds_a_fifth_are_long_and_one_second_less_is_not() -> None:
    assert verdict(loads(download_s=720, train_s=2880)) == FOUND
    assert verdict(loads(download_s=719, train_s=2881)) == CLEAR


def test_a_download_of_300_s_is_not_long_and_of_301_s_it_is() -> None:
    assert verdict(loads(download_s=300, train_s=300)) == CLEAR
    assert verdict(loads(download_s=301, train_s=300)) == FOUND


def test_two_instances_are_several_and_one_is_not() -> None:
    """One instance has none to share with."""
    assert verdict(loads(download_s=1200, train_s=2400, instances=2)) == FOUND
    assert verdict(loads(download_s=1200, train_s=2400, instances=1)) == does_not_apply(
        "…one instance…"
    )


def test_only_a_replicated_copy_of_training_data_is_blamed() -> None:
    # The advised job among them; validation data and models are wanted everywhere.
    for changes in (
        {"distribution": "ShardedByS3Key"},
        {"distribution": None},
        {"mode": "FastFile"},
        {"mode": "Pipe"},
        {"source": DataSource.FSX},
        {"name": "validation"},
        {"name": "model"},
    ):
        run = loads(download_s=1200, train_s=2400, channels=(replace(TRAIN, **changes),))
        assert verdict(run) == does_not_apply("…no training channel…")


def test_code_that_expects_all_data_keeps_it() -> None:
    """It picks its part itself."""
    result = verdict(
        loads(
            download_s=1200, train_s=2400, hints=Hints(distributed_sampler=True, distribution="ddp")
        )
    )
    assert result == does_not_apply("…distributed sampler…")


def test_a_mixed_cluster_is_unknown() -> None:
    """A channel may go to one of its groups only."""
    result = verdict(
        loads(
            download_s=1200,
            train_s=2400,
            groups=(InstanceGroup("ml.g5.2xlarge", 1, "a"), InstanceGroup("ml.m5.xlarge", 2, "b")),
        )
    )
    assert result == cannot_judge("groups_unmapped")


def test_what_is_not_recorded_is_unknown() -> None:
    """The number of instances, or the phases."""
    assert verdict(loads(download_s=1200, train_s=2400, groups=())) == cannot_judge("type_unknown")
    assert verdict(loads(download_s=1200, train_s=2400, phases=())) == cannot_judge(
        "phases_missing"
    )


def test_serverless_jobs_are_not_judged() -> None:
    """They have no instances."""
    result = verdict(loads(download_s=1200, train_s=2400, purchase=Purchase.SERVERLESS))
    assert result == does_not_apply("…serverless…")


def test_beside_download_dominates_nothing_is_counted_twice() -> None:
    """Both are about the same minutes: the possible dollars are those of the copy."""
    savings = savings_of(("download-dominates", RULE), loads(download_s=1200, train_s=2400))
    without_rule = savings_of(("download-dominates",), loads(download_s=1200, train_s=2400))
    assert (savings.avoidable_usd, savings.possible_usd) == (0, without_rule.possible_usd)
