"""A family's recommendations and their outcome, derived from the family's runs; no I/O.

Their state is not stored, so late, repeated or newly judged runs always give the same result.
docs/advice.md has the states as a table, docs/decisions/0025 the reasons.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.advice.comparison import (
    CLOSED_AFTER,
    Comparison,
    Effect,
    compare_runs,
    compare_with_other_fix,
    recommended_amount,
    split_episodes,
    started_at,
)
from sageaudit.domain.audit.finding_document import AmountKind, RunRecommendation
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Severity
from sageaudit.structs import replace

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ID_LETTERS = 8
MAX_FAMILY_RUNS = 1_000
"""The most runs of a family that are read for its recommendations, newest first. Our choice."""


class State(enum.StrEnum):
    """The state of a recommendation, which decides whether messages include it."""

    OPEN = "open"
    SILENCED = "silenced"
    """Accepted, snoozed or exempt; `FamilyRecommendation.silence` says by whom and why."""
    FOLLOWED = "followed"
    CLOSED = "closed"
    """Replaced, not seen for long, fixed another way, or withdrawn because of later runs."""


MEASURED = "measured"
"""The outcome of a recommendation if later bills show the saving."""
NOT_COMPARABLE = "not comparable"
"""The outcome if later bills cannot show what the recommendation saved."""
WITHDRAWN = "withdrawn"
"""The outcome if later runs cost more or failed."""
_OUTCOMES = {
    Effect.CHEAPER: MEASURED,
    Effect.CONFOUNDED: NOT_COMPARABLE,
    Effect.WORSE: WITHDRAWN,
}


class DecisionAction(enum.StrEnum):
    """What a person decided about a recommendation."""

    ACCEPT = "accept"
    SNOOZE = "snooze"
    EXEMPT = "exempt"
    REOPEN = "reopen"


_SILENCED_STATUS = {
    DecisionAction.ACCEPT: "accepted",
    DecisionAction.SNOOZE: "snoozed",
    DecisionAction.EXEMPT: "exempt",
}
STATUS_LABELS = (
    "open",
    *_SILENCED_STATUS.values(),
    "followed",
    MEASURED,
    NOT_COMPARABLE,
    WITHDRAWN,
)
"""All values of `FamilyRecommendation.status_label`, by which reports count recommendations."""


class Silence(Struct, frozen=True):
    """Why no message includes a recommendation.

    `label`: accepted, snoozed or exempt. `decided_by`: the person; None if a policy or tag accepts
    the recommendation, and `reason` says more. `last_day`: the last day; None without an end.
    """

    label: str
    decided_by: str | None
    last_day: date | None
    reason: str | None

    @property
    def ends_if_worse(self) -> bool:
        """Whether the silence ends if the amount grows; False for an exemption."""
        return self.label != _SILENCED_STATUS[DecisionAction.EXEMPT]


class Decision(Struct, frozen=True):
    """A person's decision about a recommendation. The newest decision counts.

    It also applies to other values of the same parameter. `until`: the last day of the decision
    (UTC); None without an end.
    """

    recommendation_id: str
    action: DecisionAction
    by: str
    at: datetime
    until: date | None = None
    reason: str | None = None

    @property
    def ends_at(self) -> datetime | None:
        """When the decision ends; None if it has no end."""
        if self.action is DecisionAction.REOPEN:
            return self.at
        if self.until is None:
            return None
        return datetime.combine(self.until, time(), UTC) + timedelta(days=1)


class FamilyRecommendation(Struct, frozen=True):
    """One recommendation for a family. Amounts are in USD; None is unknown.

    `amount`: that of the newest run with the recommendation. `since`: when the recommendation last
    appeared anew. `occurrences`: the end and amount of each run with it since then, oldest first.
    `all_amounts`: those of all runs with it. `appearances`: 1, plus how often it came back after it
    was followed. `silence`: set if a decision or the policy silences it now. `comparison`: the runs
    before and after it was followed. `earlier_comparisons`: the savings that were measured before
    it came back.
    """

    id: str
    account: str
    region: str
    family: str
    owner: str | None
    rule: str
    parameter: str
    old: str | None
    new: str
    state: State
    severity: Severity
    amount_kind: AmountKind
    amount: Decimal | None
    occurrences: tuple[tuple[datetime, Decimal | None], ...]
    all_amounts: tuple[Decimal | None, ...]
    appearances: int
    first_at: datetime
    since: datetime
    last_at: datetime
    decision: Decision | None = None
    exempt: str | None = None
    silence: Silence | None = None
    comparison: Comparison | None = None
    earlier_comparisons: tuple[Comparison, ...] = ()

    @property
    def runs(self) -> int:
        """The number of runs that had this recommendation."""
        return len(self.all_amounts)

    @property
    def is_open(self) -> bool:
        """Whether a message may include the recommendation."""
        return self.state is State.OPEN

    @property
    def is_sent_if_worse(self) -> bool:
        """Whether the recommendation is silenced, but is sent again if its amount grows."""
        return self.silence is not None and self.silence.ends_if_worse

    @property
    def state_label(self) -> str:
        """The state for people: `accepted`, `snoozed` or `exempt` if silenced."""
        return self.silence.label if self.silence else self.state.value

    @property
    def outcome(self) -> str | None:
        """`measured`, `not comparable` or `withdrawn`; None until bills show an outcome."""
        return _OUTCOMES.get(self.comparison.effect) if self.comparison else None

    @property
    def status_label(self) -> str:
        """The outcome, or the state if there is no outcome yet."""
        return self.outcome or self.state_label

    @property
    def was_followed(self) -> bool:
        """Whether later runs followed the recommendation or fixed its finding another way."""
        return self.outcome is not None or self.state is State.FOLLOWED

    @property
    def measured(self) -> tuple[Comparison, ...]:
        """The comparisons of all measured savings, the newest last."""
        newest = self.comparison
        is_measured = newest is not None and newest.effect is Effect.CHEAPER
        return (
            (*self.earlier_comparisons, newest)
            if newest and is_measured
            else self.earlier_comparisons
        )

    @property
    def line(self) -> tuple[str, str, AmountKind]:
        """A key that is equal for recommendations with the same rule, parameter and amount kind."""
        return self.rule, self.parameter or self.new, self.amount_kind

    def has_same_parameter(self, other: FamilyRecommendation) -> bool:
        """Returns whether both are for the same parameter of the same family, with any value."""
        return (self.family, self.line) == (other.family, other.line)

    def recent_amounts(self, now: datetime, days: int) -> list[Decimal | None]:
        """Returns the amounts of the last `days`, but none from before `since`."""
        return [amount for at, amount in self.occurrences if at > now - timedelta(days)]

    def recent_total(self, now: datetime, days: int) -> Decimal:
        """Returns the sum of the known amounts of the last `days`, but none from before `since`."""
        return known_sum(self.recent_amounts(now, days))


def known_sum(amounts: Iterable[Decimal | None]) -> Decimal:
    """Returns the sum of the amounts that are not None."""
    return sum((amount for amount in amounts if amount is not None), Decimal(0))


def recommendation_id(
    account: str, region: str, family: str, recommendation: RunRecommendation
) -> str:
    """Returns eight letters that are equal for all runs of the family with this recommendation."""
    identity = [
        account,
        region,
        family,
        recommendation.rule,
        recommendation.parameter,
        recommendation.new,
    ]
    number = int.from_bytes(hashlib.sha256(json.dumps(identity).encode()).digest()[:8], "big")
    letters = ""
    for _ in range(_ID_LETTERS):
        number, letter_index = divmod(number, len(_LETTERS))
        letters += _LETTERS[letter_index]
    return letters


def derive_recommendations(
    summaries: Iterable[AuditSummary], decisions: Iterable[Decision], now: datetime
) -> list[FamilyRecommendation]:
    """Returns the recommendations of these runs, counted ones first, then by their 30-day amount.

    Runs and decisions may be in any order, repeated, and of several families.
    """
    families: dict[tuple[str, str, str], dict[object, AuditSummary]] = defaultdict(dict)
    for run in summaries:
        if run.purchase is not None:
            families[run.account, run.region, run.family][run.key] = run
    ordered = sorted(decisions, key=lambda decision: (decision.at, decision.action))
    newest = {decision.recommendation_id: decision for decision in ordered}
    recommendations = [
        row
        for runs in families.values()
        for row in _family_recommendations(sorted(runs.values(), key=_start_order), newest, now)
    ]
    return sort_by_amount(recommendations, now)


def sort_by_amount(
    recommendations: Iterable[FamilyRecommendation], now: datetime
) -> list[FamilyRecommendation]:
    """Returns counted recommendations before trials, each by their 30-day amount, the largest
    first.
    """
    kinds = list(AmountKind)
    return sorted(
        recommendations,
        key=lambda row: (kinds.index(row.amount_kind), -row.recent_total(now, 30), row.id),
    )


def _start_order(run: AuditSummary) -> tuple[datetime, str, datetime]:
    return started_at(run), run.key.arn, run.key.created_at


def _family_recommendations(
    runs: Sequence[AuditSummary], decisions: Mapping[str, Decision], now: datetime
) -> list[FamilyRecommendation]:
    lines: dict[object, dict[str, RunRecommendation]] = defaultdict(dict)
    for run in runs:
        for recommended in run.recommendations or ():
            recommendation_key = recommendation_id(run.account, run.region, run.family, recommended)
            values_by_id = lines[recommended.line]
            values_by_id.pop(recommendation_key, None)
            values_by_id[recommendation_key] = recommended  # the newest value is the last
    rows = [row for values_by_id in lines.values() for row in values_by_id.values()]
    paths = {path for row in rows for path in (row.parameter, *row.other_parameters)}
    recommendations: list[FamilyRecommendation] = []
    for values_by_id in lines.values():
        *replaced_ids, newest_id = values_by_id
        line_decisions = [
            decisions[recommendation_key]
            for recommendation_key in values_by_id
            if recommendation_key in decisions
        ]
        decision = max(line_decisions, key=lambda row: row.at, default=None)
        recommendation = _make_recommendation(
            newest_id, values_by_id[newest_id], runs, decision, frozenset(paths), now
        )
        older_recommendations = (
            replace(
                recommendation,
                id=recommendation_key,
                new=values_by_id[recommendation_key].new,
                occurrences=(),
                earlier_comparisons=(),
            )
            for recommendation_key in replaced_ids
        )
        closed_recommendations = (
            replace(older_recommendation, state=State.CLOSED, comparison=None)
            for older_recommendation in older_recommendations
        )
        recommendations += [recommendation, *closed_recommendations]
    return _count_savings_once(recommendations)


def _count_savings_once(recommendations: list[FamilyRecommendation]) -> list[FamilyRecommendation]:
    claimant_by_runs: dict[object, str] = {}
    savings = [
        (comparison, recommendation.id)
        for recommendation in recommendations
        for comparison in recommendation.measured
    ]
    for comparison, row_id in sorted(
        savings, key=lambda pair: pair[0].predicted_usd or 0, reverse=True
    ):
        claimant_by_runs.setdefault(comparison.keys_after, row_id)

    def count_once(comparison: Comparison, row_id: str) -> Comparison:
        claimant = claimant_by_runs[comparison.keys_after]
        evidence = f"measured together with {claimant}"
        return (
            comparison
            if claimant == row_id
            else replace(comparison, evidence=evidence, after_usd=None)
        )

    def keep_single_savings(recommendation: FamilyRecommendation) -> FamilyRecommendation:
        comparison_now, earlier_comparisons = (
            recommendation.comparison,
            tuple(
                count_once(comparison, recommendation.id)
                for comparison in recommendation.earlier_comparisons
            ),
        )
        if comparison_now is not None and comparison_now.effect is Effect.CHEAPER:
            comparison_now = count_once(comparison_now, recommendation.id)
        return replace(
            recommendation, comparison=comparison_now, earlier_comparisons=earlier_comparisons
        )

    return [keep_single_savings(recommendation) for recommendation in recommendations]


def _make_recommendation(
    row_id: str,
    recommendation: RunRecommendation,
    runs: Sequence[AuditSummary],
    decision: Decision | None,
    paths: frozenset[str],
    now: datetime,
) -> FamilyRecommendation:
    """Returns the family's recommendation with its state and outcome.

    `paths`: the parameters that all of the family's recommendations change.
    """
    episodes = list(split_episodes(runs, recommendation))
    last_episode, recommended_runs = (
        episodes[-1],
        [run for episode in episodes for run in episode.runs],
    )
    newest = recommended_runs[-1]
    end_amounts = [
        (run.ended_at, recommended_amount(run, recommendation)) for run in last_episode.runs
    ]
    comparisons = [
        compare_runs(runs, episode.runs, episode.runs_with_fix, recommendation, paths)
        for episode in episodes
        if episode.runs_with_fix
    ]
    current_comparison = comparisons[-1] if comparisons and last_episode.runs_with_fix else None
    reopened_at = decision.at if decision and decision.action is DecisionAction.REOPEN else None
    followed_times = [run.ended_at for episode in episodes for run in episode.runs_with_fix]
    is_reopened = reopened_at is not None and reopened_at > max(followed_times, default=reopened_at)
    worse_comparison = next(
        (row for row in comparisons if row.effect is Effect.WORSE and not is_reopened), None
    )
    earlier_savings = tuple(
        row for row in comparisons if row is not current_comparison and row.effect is Effect.CHEAPER
    )
    draft = FamilyRecommendation(
        id=row_id,
        account=newest.account,
        region=newest.region,
        family=newest.family,
        owner=runs[-1].owner,
        rule=recommendation.rule,
        parameter=recommendation.parameter,
        old=newest.setting_value(recommendation.parameter),
        new=recommendation.new,
        state=State.OPEN,
        severity=recommendation.severity,
        amount_kind=recommendation.amount_kind,
        amount=recommendation.amount,
        occurrences=tuple(sorted(end_amounts, key=lambda hit: hit[0])),
        all_amounts=tuple(recommended_amount(run, recommendation) for run in recommended_runs),
        appearances=1 + sum(episode.is_reappearance for episode in episodes),
        first_at=min(run.ended_at for run in recommended_runs),
        since=min(at for at, _ in end_amounts),
        last_at=max(run.ended_at for run in recommended_runs),
        decision=decision,
        exempt=recommendation.exempt,
        comparison=worse_comparison
        or current_comparison
        or compare_with_other_fix(runs, last_episode.runs[-1], recommendation),
        earlier_comparisons=earlier_savings,
    )
    silence = None if draft.comparison else _find_silence(draft, now)
    last_run_at = max(run.ended_at for run in runs)
    state = State.SILENCED if silence else _state(draft, last_run_at, now)
    return replace(draft, state=state, silence=silence)


def _state(recommendation: FamilyRecommendation, last_run_at: datetime, now: datetime) -> State:
    comparison = recommendation.comparison
    if comparison is None:
        unseen_time = now - min(last_run_at, recommendation.last_at)
        return State.CLOSED if unseen_time >= CLOSED_AFTER else State.OPEN
    is_unfinished = comparison.effect is Effect.TOO_FEW and now - last_run_at >= CLOSED_AFTER
    is_over = is_unfinished or comparison.effect is Effect.WORSE or comparison.fixed_another_way
    return State.CLOSED if is_over else State.FOLLOWED


def _find_silence(recommendation: FamilyRecommendation, now: datetime) -> Silence | None:
    if recommendation.exempt:
        return Silence(_SILENCED_STATUS[DecisionAction.EXEMPT], None, None, recommendation.exempt)
    decision = recommendation.decision
    if decision is None or decision.action not in _SILENCED_STATUS:
        return None
    is_over = decision.ends_at is not None and decision.ends_at <= now
    was_followed_since = (
        decision.action is DecisionAction.ACCEPT
        and decision.at < recommendation.since
        and recommendation.appearances > 1
    )
    if is_over or was_followed_since:
        return None
    return Silence(_SILENCED_STATUS[decision.action], decision.by, decision.until, decision.reason)
