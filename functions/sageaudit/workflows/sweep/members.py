"""Answers `sageaudit doctor --members`: what is known of each member, and what it denies now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import Member, denial_reason
from sageaudit.workflows.side_by_side import MAX_RUNNING, run_side_by_side
from sageaudit.workflows.sweep.lists import SweepDependencies

Row = dict[str, Any]


def describe_members(deps: SweepDependencies, last_place: str, until: datetime) -> Row:
    """Returns rows about members after `last_place`, by account and region, until the time is up.

    `next` is the place after which to continue; None after the last member. `members` has a row for
    each member that the policy includes or from which an event arrived:

    `account`, `region`, `is_audited` (whether the policy includes it), `missing_permissions` (what
    it denies now: reasons by action), `first_seen_at`, `last_seen_at`, `denied_since` (ISO 8601, or
    None), `is_gone`, `is_silent`, `template_version` (or None), `waiting_events` (a number).
    """
    now, registered = deps.clock(), deps.registry.members()
    audited = set(deps.scope.audited(registered, now))
    members = {
        _place(account_region): registered.get(account_region) or Member(account_region)
        for account_region in audited | registered.keys()
        if account_region != deps.scope.home
    }
    places = [place for place in sorted(members) if place > last_place]
    rows: list[Row] = []
    for start in range(0, len(places), MAX_RUNNING):
        if rows and deps.clock() >= until:
            return {"members": rows, "next": _place_of_row(rows[-1])}
        lanes: list[Iterator[Callable[[], Row]]] = [
            iter([partial(_describe, deps, members[place], now)])
            for place in places[start : start + MAX_RUNNING]
        ]
        rows += sorted(run_side_by_side(lanes, deps.workers), key=_place_of_row)
    return {"members": rows, "next": None}


def _describe(deps: SweepDependencies, member: Member, now: datetime) -> Row:
    account_region, denial = member.account_region, member.denial
    is_audited = deps.scope.includes(account_region)
    errors = deps.check_member(account_region.account, account_region.region) if is_audited else {}
    moments = {
        "first_seen_at": member.first_seen_at,
        "last_seen_at": member.last_seen_at,
        "denied_since": denial and denial.since,
    }
    return {
        "account": account_region.account,
        "region": account_region.region,
        "is_audited": is_audited,
        "missing_permissions": {action: denial_reason(error) for action, error in errors.items()},
        **{name: moment and moment.isoformat() for name, moment in moments.items()},
        "is_gone": member.is_gone(now),
        "is_silent": member.is_silent(now),
        "template_version": member.template_version,
        "waiting_events": sum(1 for _ in deps.registry.waiting_events(account_region)),
    }


def _place(account_region: AccountRegion) -> str:
    return f"{account_region.account} {account_region.region}"


def _place_of_row(row: Row) -> str:
    return f"{row['account']} {row['region']}"
