"""`sageaudit advice`: what families were advised, what came of it, and what people decide."""

from __future__ import annotations

import getpass
from datetime import date, datetime, timedelta

import click

from sageaudit.cli import advices, asking, options
from sageaudit.cli.advices import FILTERS, AdviceFilters
from sageaudit.cli.asking import HistoryOptions, Shown
from sageaudit.cli.messages import say
from sageaudit.domain.advice.advice import Advice, Decision, State, Verb
from sageaudit.domain.nearest import did_you_mean
from sageaudit.errors import BadUsage

_USUALLY = timedelta(days=30)
_LONGEST = 200
_EPILOG = """\b
Examples:
  sageaudit advice
  sageaudit advice --owner ana --state taken
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
    Verb.ACCEPT: "Says that it will be followed, until a day; without --until within 30 days.",
    Verb.SNOOZE: "Keeps it out of messages until a day; without --until for 30 days.",
    Verb.EXEMPT: "Keeps it out of messages for a --reason, --until a day.",
    Verb.REOPEN: "Undoes what was decided, or that the runs withdrew it.",
}


@click.group(cls=options.DefaultGroup, epilog=_EPILOG)
def advice() -> None:
    """Lists what families were advised, and keeps what people decide."""


@advice.command("list", epilog=_LIST_EPILOG)
@FILTERS
@click.option(
    "--state",
    type=options.EnumChoice(State),
    help="Advices in this state; by default open ones.",
)
@click.option("--all", "every", is_flag=True, help="Print those in any state.")
@asking.WHERE
@asking.SHOWN
def listed(
    filters: AdviceFilters, state: State | None, every: bool, where: HistoryOptions, shown: Shown
) -> None:
    """Lists advices: what counts before what is worth a trial, the most dollars of 30 days first.

    A state follows from the runs since --since, and from what people decided.
    """
    shown.of(advices.ADVICES)
    with where.open() as opened:
        found = filters.advices(opened, asking.now())
    asked = {state or State.OPEN}
    rows = [row for row in found if every or row.state in asked]
    shown.write(rows, advices.ADVICES, dict, filters.days)
    if not rows:
        others = f": {len(found):,} in other states (--all)" if found else ""
        say(f"no such advice since {filters.since}{others}")


def _decide(verb: Verb) -> None:
    @advice.command(verb.value, help=_HELP[verb], epilog=_DECIDE_EPILOG.format(verb=verb.value))
    @click.argument("name", metavar="ID")
    @click.option("--by", help="Who decides; by default your name on this computer.")
    @click.option(
        "--until", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help="Its last day, in UTC."
    )
    @click.option("--reason", help="Why, for those who ask later.")
    @asking.WHERE
    def decided(
        name: str, by: str | None, until: datetime | None, reason: str | None, where: HistoryOptions
    ) -> None:
        now = asking.now()
        last = _last_day(verb, until, now)
        if verb is Verb.EXEMPT and not reason:
            raise BadUsage("an exemption needs its reason: --reason TEXT")
        if verb is Verb.EXEMPT and last is None:
            raise BadUsage("an exemption needs its end: --until DATE")
        made = Decision(
            name, verb, (by or getpass.getuser())[:_LONGEST], now, last, (reason or "")[:_LONGEST]
        )
        with where.open() as opened:
            known = _known(AdviceFilters().advices(opened, now), name)
            opened.decisions.decide(made)
        until_when = f" until {last}" if last else ""
        change = f"{advices.change_of(known)} in {known.family}"
        say(f"{name}: {verb.value}{until_when}: {change}; written to {opened.words}")


def _last_day(verb: Verb, until: datetime | None, now: datetime) -> date | None:
    """Raises BadUsage for a day that is over, and for one that means nothing."""
    if until is None:
        return (now + _USUALLY).date() if verb in {Verb.SNOOZE, Verb.ACCEPT} else None
    if verb is Verb.REOPEN:
        raise BadUsage("reopen has no end: --until is for the other answers")
    if until.date() < now.date():
        raise BadUsage(f"--until {until.date()} is over")
    return until.date()


def _known(found: list[Advice], name: str) -> Advice:
    """Raises BadUsage for an id that no advice has."""
    known = {one.id: one for one in found}
    if name not in known:
        perhaps = did_you_mean(name, sorted(known)) or ":"
        raise BadUsage(
            f"there is no advice {name}{perhaps} `sageaudit advice list --all` has those of"
            f" {advices.SINCE}"
        )
    return known[name]


for _verb in Verb:
    _decide(_verb)
