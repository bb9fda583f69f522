"""A month of the history against AWS's lines, worked out by hand and as properties."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.reconcile.lines import (
    JOBS,
    MANAGED_SPOT,
    AuditedLine,
    AuditedMonth,
    AwsLine,
    AwsSpend,
    UsageType,
    job_usage_type,
    lines_from_audit,
    parse_usage_type,
)
from sageaudit.domain.reconcile.reconcile import (
    Presence,
    Reconciliation,
    UsageRow,
    percent,
    reconcile,
)
from sageaudit.structs import replace
from tests.fakes.documents import document, job, line

pytestmark = pytest.mark.money

ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-job/"


M5 = "USE1-Train:ml.m5.xlarge"


def metered(usage_type: str, quantity: str, usd: str, **changes: Any) -> AwsLine:
    """Returns one of AWS's lines about job "a", in us-east-1 and hours."""
    aws_line = AwsLine(usage_type, "us-east-1", "Hrs", Decimal(quantity), Decimal(usd), ARN + "a")
    return aws_line._replace(**changes)


def audited(
    usage_type: str | None, quantity: str | None, usd: str | None, **changes: Any
) -> AuditedLine:
    """Returns one line of job "a", in us-east-1."""
    usage = None if usage_type is None else parse_usage_type(usage_type)
    usage_quantity, cost = (None if text is None else Decimal(text) for text in (quantity, usd))
    audited_line = AuditedLine(
        ARN + "a",
        "a",
        "us-east-1",
        "compute",
        usage_type,
        usage,
        "instance-hours",
        usage_quantity,
        cost,
        is_metered=True,
        crosses_month=False,
    )
    return replace(audited_line, **changes)


OF_TYPE = audited(None, "2", "0.46", usage=job_usage_type("training", "ml.m5.xlarge"))
"""Its usage type is unknown, so kind and instance type decide."""


def reconciled(aws: list[AwsLine], history: list[AuditedLine]) -> Reconciliation:
    """Returns the comparison of both sides."""
    return reconcile(AwsSpend(tuple(aws)), AuditedMonth(tuple(history), jobs=1))


def only_row(rows: Sequence[UsageRow]) -> UsageRow:
    """Returns the only row."""
    [row] = rows
    return row


@pytest.mark.parametrize(
    ("aws", "history", "quantity", "usd"),
    [
        # 2 h + 1 h against 4 h: 1 h less, 25 %; $0.69 against $0.92: $0.23 less.
        pytest.param(
            metered(M5, "4", "0.92"),
            [audited(M5, "2", "0.46"), audited(M5, "1", "0.23")],
            ("-1", "-25"),
            ("-0.23", "-25"),
            id="the hours and dollars of two audits are compared as one sum",
        ),
        # $0.46 and something unknown do not add up to $0.46.
        pytest.param(
            metered(M5, "3", "0.69"),
            [audited(M5, "2", "0.46"), audited(M5, "1", None)],
            ("0", "0"),
            (None, None),
            id="a known and an unknown amount have no sum",
        ),
        pytest.param(
            metered(M5, "2", "0"),
            [audited(M5, "2", "0.46")],
            ("0", "0"),
            ("0.46", None),
            id="the free tier bills 0 for real hours a share of nothing is unknown",
        ),
        pytest.param(
            metered(M5, "7200", "0.46", unit="Second"),
            [audited(M5, "2", "0.46")],
            (None, None),
            ("0", "0"),
            id="seconds less hours is nothing",
        ),
        pytest.param(
            metered("USW2-Train:ml.m5.xlarge", "2", "0.46", region="us-west-2"),
            [OF_TYPE],
            ("0", "0"),
            ("0", "0"),
            id="without a usage type kind and instance type decide",
        ),
        pytest.param(
            metered(M5, "2", "0.46", region=None),
            [audited(M5, "2", "0.46")],
            ("0", "0"),
            ("0", "0"),
            id="if aws names no region the job decides",
        ),
    ],
)
def test_differences_have_their_percentages_of_awss_figure(
    aws: AwsLine,
    history: list[AuditedLine],
    quantity: tuple[str | None, str | None],
    usd: tuple[str | None, str | None],
) -> None:
    """Percentages are of AWS's figure. An unknown figure has no difference."""
    other = metered("USE2-Train:ml.m5.xlarge", "7", "1.61", resource=ARN + "other")
    result = reconciled([aws, other], history)
    row = only_row(result.rows_by_presence[Presence.MATCHED])
    assert (row.usage, row.region) == (aws.usage_type, aws.region)
    assert row.history.line_count == len(history)
    figures = row.quantity_difference, row.quantity_percent, row.usd_difference, row.usd_percent
    assert figures == tuple(None if text is None else Decimal(text) for text in (*quantity, *usd))
    assert result.unpriced_lines == sum(line.usd is None for line in history)
    assert result.history_usd() == sum(line.usd or 0 for line in history)


def test_what_no_audit_covers_has_its_share() -> None:
    """$2 of jobs, $5 of an endpoint, $2 of a notebook, $1 of Studio: $8 of $10 are not of jobs."""
    result = reconciled(
        [
            metered(M5, "8", "1.5"),
            metered("USE1-Processing:ml.m5.xlarge", "2", "0.5"),
            metered("USE1-Host:ml.m5.xlarge", "20", "5"),
            metered("USE1-Notebk:ml.t3.medium", "40", "2"),
            metered("USE1-Studio:KernelGateway-ml.t3.medium", "20", "1"),
        ],
        [audited(M5, "8", "1.84")],
    )
    areas = {row.area for row in result.rows}
    assert areas == {"endpoints", JOBS, "notebooks", "Studio"}
    assert result.aws_usd(jobs_only=False) == 8
    assert result.aws_usd(Presence.ONLY_IN_AWS, jobs_only=True) == Decimal("0.5")
    assert percent(result.aws_usd(jobs_only=False), result.aws_usd()) == 80


def test_a_row_on_one_side_only_has_no_difference() -> None:
    """What only AWS has, and what only the history has."""
    result = reconciled(
        [metered(M5, "4", "0.92")], [audited("USE1-Train:ml.p3.2xlarge", "1", "3.83")]
    )
    alone = only_row(result.rows_by_presence[Presence.ONLY_IN_AWS])
    history_only = only_row(result.rows_by_presence[Presence.ONLY_IN_HISTORY])
    assert (alone.usage, history_only.usage) == (M5, "USE1-Train:ml.p3.2xlarge")
    assert alone.quantity_difference is alone.usd_percent is history_only.usd_difference is None
    assert result.history_usd(Presence.ONLY_IN_HISTORY) == Decimal("3.83")


def test_rows_that_are_not_comparable_are_separate() -> None:
    """A warm pool has no usage type, so it is in no difference."""
    result = reconciled([], [audited(None, "1", "0.46", item="warm_pool")])
    assert only_row(result.rows_by_presence[Presence.NOT_COMPARABLE]).usage == "warm_pool"
    assert result.history_usd(Presence.NOT_COMPARABLE) == result.history_usd() == Decimal("0.46")


def test_each_job_is_compared_with_its_own_lines() -> None:
    """By resource id, with the job's name in lower case. Of three jobs, one is on both sides."""
    result = reconciled(
        [
            metered(M5, "2", "0.46", resource=ARN + "job-a"),
            metered(M5, "5", "1.15", resource=ARN + "by-hand"),
            metered("USE1-Host:ml.m5.xlarge", "9", "2", resource="arn:aws:sagemaker:x:endpoint/e"),
        ],
        [audited(M5, "2", "0.47", job=ARN + "Job-A"), audited(M5, "1", "0.23", job=ARN + "lost")],
    )
    assert only_row(result.rows_by_presence[Presence.MATCHED]).job == ARN + "job-a"
    assert only_row(result.rows_by_presence[Presence.ONLY_IN_HISTORY]).job == ARN + "lost"
    assert [row.job for row in result.rows_by_presence[Presence.ONLY_IN_AWS]] == [
        None,
        ARN + "by-hand",
    ]
    assert result.count_jobs() == dict.fromkeys(result.count_jobs(), 1)


def test_the_row_with_the_most_dollars_comes_first() -> None:
    """It matters most to a reader."""
    result = reconciled(
        [metered(f"USE1-Train:ml.m5.{n}xlarge", "1", str(n)) for n in (2, 12, 4)],
        [audited("USE1-Train:ml.p3.2xlarge", "2", "7.65")],
    )
    names = ["m5.12xlarge", "p3.2xlarge", "m5.4xlarge", "m5.2xlarge"]
    assert [row.usage.partition("ml.")[2] for row in result.rows] == names


def test_volumes_count_in_their_month_and_compute_in_the_month_of_the_end() -> None:
    """A job from October to November: October gets its first volume line, and nothing else."""
    ran = document(job=job(started_at="2026-10-31T20:00:00Z", ended_at="2026-11-01T04:00:00Z"))
    ran["bill"]["lines"] = [
        line(quantity=Decimal(8)),
        line(item="storage", note="30 GB x 1, 2026-10", quantity=Decimal("0.16")),
        line(
            item="storage",
            note="30 GB x 1, 2026-11 · the price of 2026-05-20",
            quantity=Decimal("0.17"),
        ),
    ]
    october, november = ([*lines_from_audit(ran, month)] for month in ("2026-10", "2026-11"))
    assert [row.quantity for row in october] == [Decimal("0.16")]
    assert [row.item for row in november] == ["compute", "storage"]
    assert all(row.crosses_month for row in (*october, *november))


def test_a_job_within_one_month_does_not_cross_it() -> None:
    """Up to its last second. Without a start, only the month of the end is known."""
    for started_at in ("2026-10-01T00:00:00Z", "2026-10-31T20:00:00Z", None):
        within = document(job=job(started_at=started_at, ended_at="2026-10-31T23:59:59Z"))
        assert not any(item.crosses_month for item in lines_from_audit(within, "2026-10"))
        assert [*lines_from_audit(within, "2026-10")]


def test_a_line_has_its_usage_type() -> None:
    """From its usage type, else from its note, else from the only type of the job.

    A cluster of several types is not guessed.
    """
    ran = document(job=job(instances="2 x ml.g5.2xlarge"))
    ran["bill"]["lines"] = [
        line(usage_type="USE1-Train:ml.g5.2xlarge"),
        line(usage_type=None, note="2 x ml.c5.xlarge"),
        line(usage_type=None, note=None),
        line(usage_type=None, item="storage", note="30 GB x 2, 2026-05"),
        line(usage_type=None, item="warm_pool", note="warm pool Terminated"),
    ]
    used = [row.usage for row in lines_from_audit(ran, "2026-05")]
    assert [usage.text if usage else None for usage in used] == [
        "Train:ml.g5.2xlarge",
        "Train:ml.c5.xlarge",
        "Train:ml.g5.2xlarge",
        "Train:VolumeUsage.gp2",
        None,
    ]
    ran = document(job=job(instances="1 x ml.g5.2xlarge + 2 x ml.c5.xlarge"))
    ran["bill"]["lines"] = [line(usage_type=None, note=None)]
    assert [row.usage for row in lines_from_audit(ran, "2026-05")] == [None]


def test_unused_and_prepaid_capacity_are_distinguished() -> None:
    """A job that never started has no line. Prepaid capacity has a line that is not paid per
    hour.
    """
    ran = document()
    ran["bill"]["lines"] = [
        line(quantity=Decimal(0), usd=Decimal(0), rate_usd=None),
        line(rate_usd=Decimal(0), usd=Decimal(0)),
        line(rate_usd=None, usd=None),
    ]
    assert [item.is_metered for item in lines_from_audit(ran, "2026-05")] == [False, True]
    ran["bill"]["lines"] = [line(price_kind="estimate"), line()]
    assert [item.is_estimated for item in lines_from_audit(ran, "2026-05")] == [True, False]


@pytest.mark.parametrize(
    ("usage_type", "usage", "area"),
    [
        ("USE1-Train:ml.m5.large", UsageType("Train", "ml.m5.large"), JOBS),
        ("EU-Processing:VolumeUsage.gp2", UsageType("Processing", "VolumeUsage.gp2"), JOBS),
        ("APS3-Tsform:ml.g4dn.xlarge", UsageType("Tsform", "ml.g4dn.xlarge"), JOBS),
        ("Tsform:ml.g4dn.xlarge", UsageType("Tsform", "ml.g4dn.xlarge"), JOBS),
        ("USE1-train:ml.m5.large", UsageType("train", "ml.m5.large"), JOBS),
        ("USE1-Host:ml.m5.large", UsageType("Host", "ml.m5.large"), "endpoints"),
        ("USE1-ServerlessInf:Mem-4GB", UsageType("ServerlessInf", "Mem-4GB"), "endpoints"),
        (
            "USE1-TrainDebugFreeTier:ml.m5.large",
            UsageType("TrainDebugFreeTier", "ml.m5.large"),
            "free Debugger and Monitor rules",
        ),
        (
            "USE1-TrainingPlanUpfrontFee:ml.p4d.24xlarge",
            UsageType("TrainingPlanUpfrontFee", "ml.p4d.24xlarge"),
            "training plans",
        ),
        ("Studio:KernelGateway-x", UsageType("Studio", "KernelGateway-x"), "Studio"),
        ("something new", UsageType("something new", ""), "other"),
        ("", UsageType("", ""), "other"),
    ],
)
def test_a_usage_type_is_a_prefix_a_role_and_a_resource(
    usage_type: str, usage: UsageType, area: str
) -> None:
    """The role shows the area of SageMaker. An unknown one is "other"."""
    assert parse_usage_type(usage_type) == usage
    assert parse_usage_type(usage_type).area == area


AMOUNTS = st.decimals(0, 10_000, places=6)
TYPES = st.sampled_from([M5, "USE1-Host:ml.m5.xlarge", "EU-Processing:ml.c5.xlarge", "odd", ""])
JOB_ARNS = st.sampled_from([ARN + "a", ARN + "B", ARN + "b", "arn:other", None])
REGIONS = st.sampled_from(["us-east-1", "eu-west-1", None])
AWS_LINES = st.builds(
    AwsLine, TYPES, REGIONS, st.sampled_from(["Hrs", "GB-Mo", ""]), AMOUNTS, AMOUNTS, JOB_ARNS
)
OUR_LINES = st.builds(
    lambda usage_type, region, job_arn, quantity, usd: replace(
        audited(usage_type, None, None), region=region, job=job_arn, quantity=quantity, usd=usd
    ),
    st.one_of(st.none(), TYPES),
    REGIONS,
    st.sampled_from([ARN + "a", ARN + "B", ARN + "b"]),
    st.one_of(st.none(), AMOUNTS),
    st.one_of(st.none(), AMOUNTS),
)


@given(st.lists(AWS_LINES, max_size=12), st.lists(OUR_LINES, max_size=12))
def test_totals_add_up_whatever_the_lines(aws: list[AwsLine], history: list[AuditedLine]) -> None:
    """Rows on both sides and only in AWS sum to AWS's total; likewise the three kinds of the
    history's rows, and the areas.
    """
    result = reconciled(aws, history)
    aws_total = sum((aws_line.usd for aws_line in aws), Decimal(0))
    assert result.aws_usd(Presence.MATCHED) + result.aws_usd(Presence.ONLY_IN_AWS) == aws_total
    of_jobs = sum((row.aws.known_usd for row in result.rows if row.area == JOBS), Decimal(0))
    assert result.aws_usd() == aws_total == of_jobs + result.aws_usd(jobs_only=False)
    assert result.history_usd() == sum(
        (aws_line.usd or Decimal(0) for aws_line in history), Decimal(0)
    )
    assert result.history_usd() == sum(
        result.history_usd(presence)
        for presence in Presence
        if presence is not Presence.ONLY_IN_AWS
    )


@given(st.lists(AWS_LINES, max_size=8), st.lists(OUR_LINES, max_size=8))
def test_the_order_of_lines_changes_nothing(aws: list[AwsLine], history: list[AuditedLine]) -> None:
    """Reports do not guarantee an order."""

    def sums(result: Reconciliation) -> list[str]:
        return sorted(
            f"{row.presence} {row.job} {row.usage.lower()} {row.aws.known_usd:f}"
            f" {row.aws.quantity} {row.history.quantity}"
            for row in result.rows
        )

    reversed_result = reconciled(aws, history)
    back = reconciled(aws[::-1], history[::-1])
    assert reversed_result.aws_usd(Presence.MATCHED) == back.aws_usd(Presence.MATCHED)
    assert len(reversed_result.rows) == len(back.rows)
    assert sums(reversed_result) == sums(back)


@given(st.lists(OUR_LINES, max_size=8))
def test_a_history_that_is_aws_line_by_line_agrees(history: list[AuditedLine]) -> None:
    """If both sides are equal, nothing differs and nothing is on one side only."""
    known = [
        replace(item, region="us-east-1", quantity=item.quantity or Decimal(1), usd=Decimal(1))
        for item in history
        if item.usage_type
    ]
    aws = [
        metered(item.usage_type or "", str(item.quantity or 0), "1", resource=item.job)
        for item in known
    ]
    result = reconciled(aws, known)
    assert all(row.presence is Presence.MATCHED for row in result.rows)
    assert all(row.quantity_difference == row.usd_difference == 0 for row in result.rows)


def test_lines_at_an_estimated_rate_are_compared_by_quantity_and_counted() -> None:
    """Their dollars are in the sums, with a mark on the row."""
    m6i = "USE1-Train:ml.m6i.large"
    result = reconciled(
        [metered(m6i, "4", "0.46"), metered(M5, "1", "1")],
        [audited(m6i, "4", "0.4608", is_estimated=True), audited(M5, "1", "1")],
    )
    assert {row.usage: row.is_estimated for row in result.rows} == {m6i: True, M5: False}
    assert (result.audited.estimated_lines, result.audited.estimated_usd) == (1, Decimal("0.4608"))
    assert result.history_usd() == Decimal("1.4608")


def test_a_managed_spot_usage_type_is_seen_and_compared_with_no_job() -> None:
    """AWS's dollars stay in its total. No line of the history matches it."""
    name = "USE1-TrSpt:ml.m5.xlarge"
    result = reconciled([metered(name, "4", "0.3")], [audited(M5, "4", "0.92")])
    assert result.spend.managed_spot == (name,)
    assert only_row(result.rows_by_presence[Presence.ONLY_IN_AWS]).usage == name
    assert only_row(result.rows_by_presence[Presence.ONLY_IN_AWS]).area == MANAGED_SPOT
    assert (result.aws_usd(), result.aws_usd(Presence.ONLY_IN_AWS, jobs_only=True)) == (
        Decimal("0.3"),
        0,
    )
    assert reconciled([metered(M5, "4", "1")], []).spend.managed_spot == ()
