"""What a family was told on one day, and what is being told now: a value without I/O.

A run is claimed before its notices are queued, and told once all of them are. A claim runs out
after some minutes: then it silences no other run. What becomes of the run itself: `run_told`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from sageaudit.domain.alert.news import News, Said


@dataclass(frozen=True, slots=True)
class DayClaim:
    """A message that is about to be queued, until this moment.

    `corrects` is True for a correction: it is not the family's message of the day.
    """

    version: int
    news: News
    until: datetime
    corrects: bool


@dataclass(frozen=True, slots=True)
class Telling:
    """One run: what was told of it this day, and what is about to be."""

    run: str
    said: Said | None = None
    claim: DayClaim | None = None


@dataclass(frozen=True, slots=True)
class FamilyDay:
    """One day of a family; `revision` counts its writes, 0 before the first."""

    revision: int = 0
    tellings: tuple[Telling, ...] = ()

    def said(self) -> tuple[Said, ...]:
        """What was told, run by run, each as it was last corrected."""
        return tuple(telling.said for telling in self.tellings if telling.said)

    def own(self, run: str) -> Telling:
        """What is known of one run."""
        return next((one for one in self.tellings if one.run == run), Telling(run))

    def busy(self, run: str, now: datetime) -> DayClaim | None:
        """A live claim of another run: whether it will be told is not known yet.

        A correction takes no message away from anybody.
        """
        return next(
            (
                claim
                for other, claim in self._claims()
                if other != run and claim.until > now and not claim.corrects
            ),
            None,
        )

    def claimed(self, run: str, claim: DayClaim, now: datetime) -> FamilyDay:
        """With this claim, and without those that ran out."""
        return self._with(replace(self.own(run), claim=claim), now)

    def released(self, run: str, now: datetime) -> FamilyDay:
        """Without the claim of a run of which no notice was queued."""
        return self._with(replace(self.own(run), claim=None), now)

    def told(self, run: str, said: Said, now: datetime, *, corrects: bool) -> FamilyDay:
        """With a claim's notices queued. What corrects another day's message is of that day."""
        of_today = self.own(run).said is not None or not corrects
        return self._with(Telling(run, said=said if of_today else None), now)

    def _with(self, telling: Telling, now: datetime) -> FamilyDay:
        others = (
            one if one.claim is None or one.claim.until > now else replace(one, claim=None)
            for one in self.tellings
            if one.run != telling.run
        )
        kept = tuple(one for one in (*others, telling) if one.said or one.claim)
        return FamilyDay(self.revision + 1, kept)

    def _claims(self) -> Iterator[tuple[str, DayClaim]]:
        return ((one.run, one.claim) for one in self.tellings if one.claim)
