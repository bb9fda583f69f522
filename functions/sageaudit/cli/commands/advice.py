"""`sageaudit advice`: recommendations for families, their outcomes, and people's decisions."""

from __future__ import annotations

import getpass
from datetime import date, datetime, timedelta

import click

from sageaudit.cli import clock, options, query_options, query_output, recommendations
from sageaudit.cli.messages import print_message
from sageaudit.cli.query_options import HistoryChoice, OutputOptions
from sageaudit.cli.recommendations import RECOMMENDATION_FILTER_OPTIONS, RecommendationFilters
from sageaudit.domain.advice.advice import Decision, DecisionAction, FamilyRecommendation, State
from sageaudit.domain.advice.totals import LOOK_BACK_DAYS
from sageaudit.domain.moments import LAST_DAY, parse_day
from sageaudit.domain.nearest import did_you_mean
from sageaudit.errors import BadUsage

_DEFAULT_DURATION = timedelta(days=30)
_MAX_REASON_LENGTH = 200
_EPILOG = """\b
Examples:
  sageaudit advice
  sageaudit advice --owner ana --state followed
  sageaudit advice snooze abcdefgh --until 2027-01-31 --reason "release week"
  sageaudit advice exempt abcdefgh --until 2027-06-30 --reason "two GPUs" --table NAME"""
_LIST_EPILOG = """\b
Examples:
  sageaudit advice list --state all --all --since 180d
  sageaudit advice list --family nightly --output json"""
_DECIDE_EPILOG = """\b
Example:
  sageaudit advice {action} abcdefgh {options}"""
_HELP = {
    DecisionAction.ACCEPT: (
        "Accepts a recommendation: you plan to follow it by the --until day, or within 30 days."
    ),
    DecisionAction.SNOOZE: ("Keeps a recommendation out of messages, by default for 30 days."),
    DecisionAction.EXEMPT: (
        "Keeps a recommendation out of messages until a day that you name, and records why."
    ),
    DecisionAction.REOPEN: (
        "Opens a recommendation again that you decided on or that sageaudit withdrew."
    ),
}
_UNTIL_HELP = {
    DecisionAction.ACCEPT: "Follow it by this day (UTC); by default within 30 days.",
    DecisionAction.SNOOZE: "Send nothing until the end of this day (UTC); by default for 30 days.",
    DecisionAction.EXEMPT: "Send nothing until the end of this day (UTC); needed.",
    DecisionAction.REOPEN: "Not for reopen, which has no end.",
}
_EXAMPLE_OPTIONS = {
    DecisionAction.EXEMPT: '--until 2027-06-30 --reason "two GPUs"',
}
_DEFAULT_EXAMPLE_OPTIONS = "--by ana"


@click.group(cls=options.DefaultGroup, epilog=_EPILOG)
def advice() -> None:
    """Lists recommendations for families, and records your decisions."""


@advice.command("list", epilog=_LIST_EPILOG)
@RECOMMENDATION_FILTER_OPTIONS
@click.option(
    "--state",
    type=click.Choice([*(state.value for state in State), recommendations.ANY_STATE]),
    default=State.OPEN.value,
    show_default=True,
    help="Recommendations in this state.",
)
@query_options.limit_option(recommendations.DEFAULT_LIMIT)
@query_options.ALL_OPTION
@query_options.HISTORY_OPTIONS
@query_options.output_options(recommendations.RECOMMENDATIONS)
def list_recommendations(
    filters: RecommendationFilters,
    state: str,
    limit: int,
    print_all: bool,
    history_choice: HistoryChoice,
    output_options: OutputOptions,
) -> None:
    """Lists recommendations by their 30-day amount.

    Those with avoidable or lost dollars come first, then possible savings. The first lines have
    the sums of all open rows, those of possible savings apart. The state comes from the runs since
    --since and from people's decisions.
    """
    output_options.chosen_fields(recommendations.RECOMMENDATIONS)
    with history_choice.open() as source:
        matching = filters.find_recommendations(source, clock.utc_now())
    rows = [row for row in matching if state in {row.state.value, recommendations.ANY_STATE}]
    query_output.show_rows(
        rows if print_all else rows[:limit],
        rows,
        recommendations.RECOMMENDATIONS,
        output_options,
        dict,
        "\n".join([*recommendations.open_sums_lines(rows), filters.days_text]),
    )
    if not rows:
        others_text = f"; {len(matching):,} in other states (--state all)" if matching else ""
        label = "" if state == recommendations.ANY_STATE else f"{state} "
        print_message(f"no {label}recommendation since {filters.since}{others_text}")


def _add_decision_command(action: DecisionAction) -> None:
    example_options = _EXAMPLE_OPTIONS.get(action, _DEFAULT_EXAMPLE_OPTIONS)

    @advice.command(
        action.value,
        help=_HELP[action],
        epilog=_DECIDE_EPILOG.format(action=action.value, options=example_options),
    )
    @click.argument("recommendation_id", metavar="ID")
    @click.option("--by", help="Who decides; by default your user name on this computer.")
    @click.option("--until", metavar="DATE", help=_UNTIL_HELP[action])
    @click.option("--reason", help="Reason for the decision, for later readers.")
    @query_options.HISTORY_OPTIONS
    def decide(
        recommendation_id: str,
        by: str | None,
        until: str | None,
        reason: str | None,
        history_choice: HistoryChoice,
    ) -> None:
        now = clock.utc_now()
        last_day = _last_day(action, until, now)
        if action is DecisionAction.EXEMPT and not reason:
            raise BadUsage("an exemption needs a reason: --reason TEXT")
        if action is DecisionAction.EXEMPT and last_day is None:
            raise BadUsage("an exemption needs an end: --until DATE")
        decision = Decision(
            recommendation_id,
            action,
            (by or _user_name())[:_MAX_REASON_LENGTH],
            now,
            last_day,
            (reason or "")[:_MAX_REASON_LENGTH],
        )
        with history_choice.open() as source:
            recommendation = _find_by_id(
                RecommendationFilters().find_recommendations(source, now), recommendation_id
            )
            source.decisions.save_decision(decision)
        until_text = f" until {last_day}" if last_day else ""
        change = f"{recommendations.change_text(recommendation)} in {recommendation.family}"
        print_message(
            f"{recommendation_id}: {action.value}{until_text}: {change}; written to"
            f" {source.location_text}"
        )


def _user_name() -> str:
    """Raises BadUsage if the user has no name, as in a container with a bare user id."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError) as error:
        raise BadUsage(
            "your user has no name on this computer: say who decides with --by NAME"
        ) from error


def _last_day(action: DecisionAction, until: str | None, now: datetime) -> date | None:
    # By default, the last day is the action's own. Raises BadUsage for a text that is not a day,
    # for a day in the past, and for an action that takes no day.
    if until is None:
        return (
            (now + _DEFAULT_DURATION).date()
            if action in {DecisionAction.SNOOZE, DecisionAction.ACCEPT}
            else None
        )
    if action is DecisionAction.REOPEN:
        raise BadUsage("reopen takes no --until: it has no end")
    last_day = _parse_day(until)
    if last_day < now.date():
        raise BadUsage(f"--until {last_day} is in the past")
    return last_day


def _parse_day(text: str) -> date:
    try:
        day = parse_day(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:  # ISO 8601 has other forms, such as 2027-W04
        raise BadUsage(
            f"--until {text} is not a day: write YYYY-MM-DD, such as 2027-01-31, up to {LAST_DAY}"
        )
    return day


def _find_by_id(
    matching: list[FamilyRecommendation], recommendation_id: str
) -> FamilyRecommendation:
    """Returns the recommendation with this id. Raises BadUsage if there is none."""
    by_id = {recommendation.id: recommendation for recommendation in matching}
    if recommendation_id not in by_id:
        suggestion = did_you_mean(recommendation_id, sorted(by_id)) or ":"
        raise BadUsage(
            f"there is no recommendation {recommendation_id}{suggestion} `sageaudit advice list"
            f" --state all --all` lists those of the last {LOOK_BACK_DAYS} days"
        )
    return by_id[recommendation_id]


for _action in DecisionAction:
    _add_decision_command(_action)
