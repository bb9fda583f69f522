"""The names that a history knows: a family by its last part, and what a mistyped filter meant."""

from __future__ import annotations

from collections.abc import Iterator

from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.nearest import did_you_mean
from sageaudit.errors import BadUsage
from sageaudit.queries.lists import Lists
from sageaudit.queries.question import NEVER_STARTED, Question

_STATUSES = ("Completed", "Failed", "Stopped", NEVER_STARTED)
_NAMED = 5


def whole_family(lists: Lists, text: str) -> str:
    """The family of this name, or the only one of the window whose name ends in `/` and the text.

    A text that no family ends in stays as it is. Raises BadUsage where several do.
    """
    if next(lists.sums(Scope.FAMILY, name=text), None) is not None:
        return text
    ends = sorted({name for name in _names(lists, Scope.FAMILY) if name.endswith(f"/{text}")})
    if len(ends) > 1:
        more = f" and {len(ends) - _NAMED} more" if len(ends) > _NAMED else ""
        raise BadUsage(
            f"--family {text} is the end of {', '.join(ends[:_NAMED])}{more}: give more of the name"
        )
    return ends[0] if ends else text


def unmatched(lists: Lists, question: Question) -> str:
    """Which filter matches nothing in the window, with the name that was probably meant."""
    rows = [*lists.sums(Scope.ACCOUNT)]
    if not rows:
        return "an earlier --since shows older ones"
    families = {name for name in _names(lists, Scope.FAMILY) if question.family}
    asked = (
        ("family", question.family, families | {name.rpartition("/")[2] for name in families}),
        ("owner", question.owner, {*_names(lists, Scope.OWNER)} if question.owner else ()),
        ("account", question.account, {row.account for row in rows}),
        ("region", question.region, {row.region for row in rows}),
        ("status", question.status and question.status.capitalize(), _STATUSES),
        ("type", question.instance_type, {*_names(lists, Scope.TYPE)}),
    )
    for option, value, known in asked:
        if value is not None and value not in known:
            return f"--{option} {value} matches nothing{did_you_mean(value, sorted(known))}"
    return "each filter matches some audits, but none matches all of them"


def _names(lists: Lists, scope: Scope) -> Iterator[str]:
    return (row.name for row in lists.sums(scope) if row.name)
