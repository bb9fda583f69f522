"""`sageaudit advice`: what families were advised, what came of it, and what people decide."""

from __future__ import annotations

import getpass
from datetime import date, datetime, timedelta

import click

from sageaudit.cli import asking, options, recommendations
from sageaudit.cli.asking import HistoryChoice, OutputOptions
from sageaudit.cli.messages import print_message
from sageaudit.cli.recommendations import FILTERS, RecommendationFilters
from sageaudit.domain.advice.advice import Decision, DecisionAction, FamilyRecommendation, State
from sageaudit.domain.nearest import did_you_mean
from sageaudit.errors import BadUsage

_USUALLY = timedelta(days=30)
_MAX_REASON_LENGTH = 200
_EPILOG = """\b
Examples:
  sageaudit advice
  sageaudit advice --owner ana --state followed
  sageaudit advice snooze abcdefgh --until 2027-01-31 --reason "release week"
  sageaudit advice exempt abcdefgh --until 2027-06-30 --reason "two GPUs" --table NAME"""
_LIST_EPILOG = """\b
Examples:
  sageaudit advice list --all --since 180d
  sageaudit advice list --family nightly --output json"""
_DECIDE_EPILOG = """\b
Example:
  sageaudit advice {verb} abcdefgh --by ana"""
_HELP = {
    DecisionAction.ACCEPT: (
        "Says that it will be followed, until a day; without --until within 30 days."
    ),
    DecisionAction.SNOOZE: "Keeps it out of messages until a day; without --until for 30 days.",
    DecisionAction.EXEMPT: "Keeps it out of messages for a --reason, --until a day.",
    DecisionAction.REOPEN: "Undoes what was decided, or that the runs withdrew it.",
}


@click.group(cls=options.DefaultGroup, epilog=_EPILOG)
def advice() -> None:
    """Lists what families were advised, and keeps what people decide."""


@advice.command("list", epilog=_LIST_EPILOG)
@FILTERS
@click.option(
    "--state",
    type=options.EnumChoice(State),
    help="Recommendations in this state; by default open ones.",
)
@click.option("--all", "every", is_flag=True, help="Print those in any state.")
@asking.HISTORY_OPTIONS
@asking.OUTPUT_OPTIONS
def list_recommendations(
    filters: RecommendationFilters,
    state: State | None,
    every: bool,
    where: HistoryChoice,
    shown: OutputOptions,
) -> None:
    """Lists recommendations: counted ones first, then possible ones, by the dollars of 30 days.

    A state follows from the runs since --since, and from what people decided.
    """
    shown.chosen_fields(recommendations.RECOMMENDATIONS)
    with where.open() as opened:
        found = filters.find_recommendations(opened, asking.utc_now())
    asked = {state or State.OPEN}
    rows = [row for row in found if every or row.state in asked]
    shown.write_rows(rows, recommendations.RECOMMENDATIONS, dict, filters.days_text)
    if not rows:
        others = f": {len(found):,} in other states (--all)" if found else ""
        print_message(f"no such advice since {filters.since}{others}")


def _decide(verb: DecisionAction) -> None:
    @advice.command(verb.value, help=_HELP[verb], epilog=_DECIDE_EPILOG.format(verb=verb.value))
    @click.argument("name", metavar="ID")
    @click.option("--by", help="Who decides; by default your name on this computer.")
    @click.option(
        "--until", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help="Its last day, in UTC."
    )
    @click.option("--reason", help="Why, for those who ask later.")
    @asking.HISTORY_OPTIONS
    def decided(
        name: str, by: str | None, until: datetime | None, reason: str | None, where: HistoryChoice
    ) -> None:
        now = asking.utc_now()
        last = _last_day(verb, until, now)
        if verb is DecisionAction.EXEMPT and not reason:
            raise BadUsage("an exemption needs its reason: --reason TEXT")
        if verb is DecisionAction.EXEMPT and last is None:
            raise BadUsage("an exemption needs its end: --until DATE")
        made = Decision(
            name,
            verb,
            (by or getpass.getuser())[:_MAX_REASON_LENGTH],
            now,
            last,
            (reason or "")[:_MAX_REASON_LENGTH],
        )
        with where.open() as opened:
            known = _find_by_id(RecommendationFilters().find_recommendations(opened, now), name)
            opened.decisions.save_decision(made)
        until_when = f" until {last}" if last else ""
        change = f"{recommendations.change_text(known)} in {known.family}"
        print_message(
            f"{name}: {verb.value}{until_when}: {change}; written to {opened.location_text}"
        )


def _last_day(verb: DecisionAction, until: datetime | None, now: datetime) -> date | None:
    """Raises BadUsage for a day that is over, and for one that means nothing."""
    if until is None:
        return (
            (now + _USUALLY).date()
            if verb in {DecisionAction.SNOOZE, DecisionAction.ACCEPT}
            else None
        )
    if verb is DecisionAction.REOPEN:
        raise BadUsage("reopen has no end: --until is for the other answers")
    if until.date() < now.date():
        raise BadUsage(f"--until {until.date()} is over")
    return until.date()


def _find_by_id(found: list[FamilyRecommendation], name: str) -> FamilyRecommendation:
    """Raises BadUsage for an id that no advice has."""
    known = {one.id: one for one in found}
    if name not in known:
        perhaps = did_you_mean(name, sorted(known)) or ":"
        raise BadUsage(
            f"there is no advice {name}{perhaps} `sageaudit advice list --all` has those of"
            f" {recommendations.DEFAULT_SINCE}"
        )
    return known[name]


for _verb in DecisionAction:
    _decide(_verb)
