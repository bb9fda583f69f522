"""What the weekly digest rests on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from msgspec import Struct

from sageaudit.domain.advice.advice import Advice
from sageaudit.domain.audit.sums import ChangedFamily, Sums
from sageaudit.domain.policy.routes import Route

LOOK_BACK_DAYS = 180
"""The runs by which advices are judged: older ones say little of what is open now. Our choice."""


class Digest(Struct, frozen=True):
    """The week from `since` to `until`, both included, in days of UTC; `now`: of the advices.

    `before`: the sums of the week before, None where the history does not cover it; `changed`: the
    families whose spend changed since, the largest change first. `advices` are in any state, what
    counts first. `unsent`: the open ones that runs of the week had, and no message of the week.
    With a `route` all of it is of the jobs, and the advices, that the route is about.
    """

    since: date
    until: date
    now: datetime
    total: Sums
    before: Sums | None
    changed: Sequence[ChangedFamily]
    advices: Sequence[Advice]
    unsent: Sequence[Advice]
    route: Route | None = None
