"""A history, from Python: a file that `scan` writes, or the table of a deployment."""

from __future__ import annotations

import os
import warnings
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from sageaudit.api.audits import AuditResult
from sageaudit.api.rows import Rows
from sageaudit.cli.support.history.histories import HistorySource, open_history
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import BadUsage
from sageaudit.queries import answer, totals
from sageaudit.queries.lists import Lists
from sageaudit.queries.lookup import Wanted, find
from sageaudit.queries.question import Question, Sort
from sageaudit.queries.rows import AuditRow
from sageaudit.queries.totals import RuleTotal, Total, TrendPeriod
from sageaudit.queries.window import Window, window

_MONTH = "30d"
_WHOLE = "455d"


class AuditHistory:
    """An open history, to be used in a `with` block. Every question only reads.

    Times are texts such as `30d`, `2026-11-01` or `2026-11-01T10:00Z`, in UTC; `until` includes its
    day. A time that is none raises BadUsage; a table that does not answer raises AwsError.
    """

    def __init__(self, source: HistorySource) -> None:
        self._source = source

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        table: str | None = None,
        profile: str | None = None,
        region: str | None = None,
    ) -> Self:
        """Opens a file, or a DynamoDB table; without both, the file that `scan` writes.

        `profile` and `region` are those of the table. Raises a SageauditError where there is no
        such history.
        """
        file = None if path is None else Path(path)
        return cls(open_history(file, table, profile, region, warn=warnings.warn))

    def close(self) -> None:
        """Closes the file."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<history {self._source.name}>"

    def audits(
        self,
        since: str = _MONTH,
        until: str | None = None,
        *,
        rule: str | None = None,
        family: str | None = None,
        owner: str | None = None,
        account: str | None = None,
        region: str | None = None,
        kind: str | None = None,
        status: str | None = None,
        severity: str | None = None,
        min_usd: Decimal | int | str | None = None,
        sort: str = "newest",
    ) -> Rows[AuditRow]:
        """The newest audits of jobs that ended in this time; with `rule`, that rule's findings.

        `sort`: newest, waste, total, avoidable, lost, possible or idle. A roll-up (a tuning job)
        has only the dollars that it adds itself, so that columns add up to the sums.
        """
        question = Question(
            window=_window(since, until),
            rule=rule,
            family=family,
            owner=owner,
            account=account,
            region=region,
            kind=None if kind is None else word_of(JobKind, kind, "kind"),
            status=status,
            severity=None if severity is None else word_of(Severity, severity, "severity"),
            min_usd=None if min_usd is None else _usd(min_usd),
            sort=word_of(Sort, sort, "sort"),
        )
        lists = Lists(self._source.history, question.window)
        rows = answer.all_rows(lists, question, with_heads=rule is not None)
        return Rows(rows, AuditRow)

    def audit(
        self, job: AuditRow | str, *, version: int | None = None, since: str = _WHOLE
    ) -> AuditResult | None:
        """The audit of a row, or of a job by its name or ARN; None where there is none.

        `version`: an earlier one. Raises JobNotFound for a name that no job since then has.
        """
        key = job.key if isinstance(job, AuditRow) else find(self._lists(since), Wanted(job)).key
        document = self._source.history.audit(key, version)
        return None if document is None else AuditResult(document)

    def families(self, since: str = _MONTH, until: str | None = None) -> Rows[Total]:
        """The sums of each family, the most avoidable and lost dollars first."""
        return Rows(totals.families(self._lists(since, until)), Total)

    def owners(self, since: str = _MONTH, until: str | None = None) -> Rows[Total]:
        """The sums of each owner, in the same order; None is the owner of jobs without one."""
        return Rows(totals.owners(self._lists(since, until)), Total)

    def rules(self, since: str = _MONTH, until: str | None = None) -> Rows[RuleTotal]:
        """The findings of each rule with their dollars."""
        return Rows(totals.rules(self._lists(since, until)), RuleTotal)

    def trend(
        self, since: str = "90d", until: str | None = None, *, by: str = "week"
    ) -> Rows[Total]:
        """The sums of each week or month, the oldest first."""
        period, today = word_of(TrendPeriod, by, "by"), datetime.now(UTC).date()
        return Rows(totals.trend(self._lists(since, until), period, today=today), Total)

    def _lists(self, since: str, until: str | None = None) -> Lists:
        return Lists(self._source.history, _window(since, until))


Word = TypeVar("Word", bound=Enum)


def word_of(words: type[Word], text: str, name: str) -> Word:
    """The word of an enumeration. Raises BadUsage, which names all of them."""
    try:
        return words(text)
    except ValueError as error:
        known = ", ".join(str(word.value) for word in words)
        raise BadUsage(f"{name}={text!r} is none of {known}") from error


def _usd(amount: Decimal | int | str) -> Decimal:
    try:
        usd = Decimal(amount)
    except (InvalidOperation, TypeError) as error:
        raise BadUsage(f"min_usd={amount!r} is not an amount in USD") from error
    if not usd.is_finite():
        raise BadUsage(f"min_usd={amount!r} is not an amount in USD")
    return usd


def _window(since: str, until: str | None) -> Window:
    return window(since, until, datetime.now(UTC))
