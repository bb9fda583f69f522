"""Reads a month's SageMaker usage, or the prices paid for usage, from cost reports.

DuckDB sums decimals with 18 places. AWS writes ten places.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from sageaudit.adapters.billing.report_lines import ReportLines, open_report_lines
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.prices.known_prices import RateBasis
from sageaudit.domain.reconcile.lines import (
    JOBS,
    AwsLine,
    AwsSpend,
    ExcludedLines,
    PaidReport,
    PaidUsage,
    UnlistedJobs,
    parse_usage_type,
)
from sageaudit.errors import BadUsage
from sageaudit.structs import replace

_USAGE = """
CREATE TABLE usage AS
SELECT coalesce(usage_type, '') AS usage_type, region, coalesce(unit, '') AS unit,
    sum(amount(quantity)) AS quantity, sum(amount(cost)) AS usd, resource
FROM line WHERE is_usage(kind) AND amount(quantity) >= 0 AND amount(cost) >= 0
GROUP BY ALL;
CREATE TABLE unlisted (job VARCHAR, rows BIGINT, usd DECIMAL(38, 18));
"""
"""Sums SageMaker's usage, with several rows per job."""
_SPEND = """
SELECT usage_type, region, unit, short(quantity), short(usd), resource
FROM usage ANTI JOIN unlisted ON lower(resource) = job
ORDER BY 6, 1, 2, 3
"""
"""Selects the usage to list. The sums become text, since DuckDB takes twice as long for decimals.
"""
_UNLISTED = """
INSERT INTO unlisted
WITH usage_of_job AS MATERIALIZED (
    SELECT lower(resource) AS job, key, sum(usd) AS usd
    FROM usage
    LEFT JOIN (SELECT unnest($types::VARCHAR[]) AS usage_type, unnest($keys::VARCHAR[]) AS key)
        USING (usage_type)
    WHERE split_part(lower(resource), '/', 1) IN (SELECT unnest($arns::VARCHAR[]))
        AND lower(resource) NOT IN (SELECT unnest($listed::VARCHAR[]))
    GROUP BY ALL
)
SELECT job, count(*), sum(usd) FROM usage_of_job GROUP BY job
HAVING bool_and(key IS NOT NULL) AND max(usd) < (SELECT min(usd) FROM
    (SELECT usd FROM usage_of_job WHERE key IS NOT NULL ORDER BY usd DESC LIMIT $count))
"""
"""Finds the jobs of which no row is one of the most expensive.

`$types` are the usage types of jobs, with their `$keys`. A job with other usage is always listed.
"""
_EXCLUDED = """
SELECT if(is_usage(kind), kind || ' below zero', kind), count(*), coalesce(sum(amount(cost)), 0)
FROM line WHERE NOT is_usage(kind) OR amount(quantity) < 0 OR amount(cost) < 0
GROUP BY 1 ORDER BY 1
"""
_PRICED = """
CREATE MACRO decimals(t) AS
    CASE WHEN contains(lower(t), 'e') THEN 10 ELSE least(length(split_part(t, '.', 2)), 10) END;
CREATE MACRO last_day(t) AS CASE WHEN is_time(t)
    THEN CAST(try_cast(left(t, 19) AS TIMESTAMP) - INTERVAL 1 SECOND AS DATE) END;
CREATE VIEW priced AS
SELECT *, amount(paid) AS usd, amount(quantity) AS used, is_covered(kind) AS covered,
    kind = 'Usage' OR covered AS is_paid, is_paid AND usd >= 0 AND used > 0 AS at_price
FROM (SELECT *,
    if({amortised} AND is_covered(kind), plan_cost, coalesce(net_cost, cost)) AS paid FROM line)
"""
_PAID = """
SELECT account, coalesce(usage_type, ''), region, coalesce(unit, ''),
    first_day(start) AS first, greatest(first_day(start), last_day(ended)) AS last,
    max(decimals(paid)),
    count(*) FILTER (usd > 0), coalesce(sum(used) FILTER (usd > 0), 0), sum(usd),
    if(covered, sum(used), 0),
    max(amount(list_rate)) FILTER (amount(list_rate) > 0),
    max(usd), arg_max([file, number], usd)
FROM priced WHERE at_price
GROUP BY account, usage_type, region, unit, first, last, covered ORDER BY ALL
"""
_OMITTED_SQL = """
SELECT CASE WHEN NOT is_paid THEN kind WHEN usd < 0 OR used < 0 THEN 'Usage below zero'
    ELSE 'Usage without a quantity' END, count(*), coalesce(sum(usd), 0)
FROM priced WHERE NOT coalesce(at_price, false) GROUP BY 1 ORDER BY 1
"""
_GROSS_DISCOUNTS = """
SELECT kind FROM line
WHERE kind LIKE '%Discount' AND amount(cost) <> 0 AND coalesce(payer, '') NOT IN
        (SELECT coalesce(payer, '') FROM line WHERE is_usage(kind) AND net_cost IS NOT NULL)
"""
"""Selects discounts that have lines of their own and are in no cost of the payer's usage.

A net cost would include them, but the payer's usage has none.
"""


def read_spend(
    path: Path,
    month: str,
    account: str,
    listed_jobs: Collection[str] | None = None,
    *,
    most_expensive: int = 1,
) -> AwsSpend:
    """Returns an account's SageMaker usage in a month (YYYY-MM) at on-demand cost, by resource.

    `path` is a cost report, or a folder or ZIP file with its files. `listed_jobs`: ARNs
    of jobs whose lines are all returned. Of other jobs, only those with one of the `most_expensive`
    rows, or with usage of an unknown type, are returned; the rest are summed in `unlisted`. None
    returns all lines. Raises BadUsage that names the file, also if the report names no jobs.
    """
    with open_report_lines([path]) as report:
        report.check_unchanged()
        report.keep_only(account, month)
        report.drop_duplicates()
        report.check_readable(amortised=False)
        if not report.count():
            _check_month_and_account(report, path, month, account)
        report.connection.execute(_USAGE)
        if listed_jobs is not None:
            _find_unlisted_jobs(report, listed_jobs, most_expensive)
        lines = tuple(
            AwsLine(usage_type, region, unit, Decimal(quantity), Decimal(usd), resource)
            for usage_type, region, unit, quantity, usd, resource in report.connection.execute(
                _SPEND
            ).fetchall()
        )
        excluded = tuple(ExcludedLines(*row) for row in report.query(_EXCLUDED))
        [unlisted] = report.query(
            "SELECT count(*), coalesce(sum(rows), 0), coalesce(sum(usd), 0) FROM unlisted"
        )
    job_lines = [line for line in lines if parse_usage_type(line.usage_type).area == JOBS]
    if job_lines and not any(line.resource for line in job_lines):
        raise BadUsage(
            f"{path}: the report names no jobs: only usage types can be compared, as `sageaudit"
            " report --coverage` does; to compare jobs, export it with resource ids"
        )
    return AwsSpend(lines, excluded, UnlistedJobs(*unlisted))


def _find_unlisted_jobs(report: ReportLines, listed_jobs: Collection[str], count: int) -> None:
    """Adds the jobs to the table `unlisted` that are neither listed nor among the most expensive.

    Python recognizes the few usage types and kinds of ARN.
    """
    usage_types = [text for [text] in report.query("SELECT DISTINCT usage_type FROM usage")]
    arn_starts = [
        text
        for [text] in report.query("SELECT DISTINCT split_part(lower(resource), '/', 1) FROM usage")
        if text and JobRef.from_arn(f"{text}/name")
    ]
    job_types = [text for text in usage_types if parse_usage_type(text).area == JOBS]
    report.connection.execute(
        _UNLISTED,
        {
            "types": job_types,
            "keys": [parse_usage_type(text).key for text in job_types],
            "arns": arn_starts,
            "listed": [job.lower() for job in listed_jobs],
            "count": count,
        },
    )


def _check_month_and_account(report: ReportLines, path: Path, month: str, account: str) -> None:
    """Raises BadUsage if the report lacks the month, or lacks the account in this month."""
    report_months = report.months()
    if not report_months:
        raise BadUsage(f"{path}: has no lines below its header")
    months = sorted({name or "no month" for name, _ in report_months})
    if month not in months:
        raise BadUsage(f"{path}: is a report of {', '.join(months[:6])}, not of {month}")
    if (month, account) not in report_months:
        raise BadUsage(f"{path}: has no line of account {account} in {month}")


def read_paid_usage(paths: Sequence[Path], account: str | None, basis: RateBasis) -> PaidReport:
    """Returns what was paid for SageMaker usage, by account and period.

    `paths` are the files of one report, or folders or ZIP files with them. `account` (12 digits)
    limits the report to its lines. Raises BadUsage for an unreadable file, which it names. Also
    raises BadUsage for discounts that are in no usage's cost.
    """
    with open_report_lines(paths) as report:
        report.check_unchanged()
        if account is not None:
            report.keep_only(account)
        amortised = basis is RateBasis.AMORTISED
        duplicate_count = report.drop_duplicates()
        report.check_readable(amortised=amortised)
        if not report.count():
            account_text = "" if account is None else f" of account {account}"
            names = ", ".join(path.name for path in paths)
            raise BadUsage(f"{names}: has no SageMaker line{account_text}")
        for [kind] in report.query(_GROSS_DISCOUNTS):
            raise BadUsage(
                f"the report has discounts ({kind}) as separate lines, which no rate includes:"
                " export it with net costs (line_item_net_unblended_cost)"
            )
        report.connection.execute(_PRICED.format(amortised=amortised))
        return PaidReport(
            tuple(_usage(row, report.files) for row in report.query(_PAID)),
            tuple(ExcludedLines(*row) for row in report.query(_OMITTED_SQL)),
            duplicate_count,
        )


def _usage(row: Sequence[Any], files: Sequence[str]) -> PaidUsage:
    [file, number] = row[-1]
    return replace(PaidUsage(*row[:-1]), largest_line=f"{files[file]}: line {number}")
