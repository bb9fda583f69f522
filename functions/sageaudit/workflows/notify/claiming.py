"""Claims a message about a run before its notices are queued, and keeps it as told afterwards.

take -> begin -> (queue) -> keep; or release, where no queue has a notice
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from sageaudit.domain.alert.family_day import DayClaim, FamilyDay
from sageaudit.domain.alert.news import Said
from sageaudit.domain.alert.run_told import RunClaim, RunTold
from sageaudit.errors import Throttled
from sageaudit.ports import TellLedger

TRIES = 8
"""A family's day is written by one process at a time; each try means that another one was."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of one run, on itself and on a day of its family."""

    ledger: TellLedger
    run: str
    family: str
    day: date
    now: datetime

    def seen(self) -> tuple[FamilyDay, RunTold]:
        """What the family and the run were told."""
        return self.ledger.family_day(self.family, self.day), self.ledger.run_told(self.run)

    def take(self, day: FamilyDay, told: RunTold, claim: RunClaim) -> RunTold | None:
        """Claims both as they were seen; None where either was written since."""
        corrects = claim.tell.corrects is not None
        of_day = DayClaim(claim.version, claim.news, claim.until, corrects=corrects)
        claimed = told.claimed(claim)
        day = day.claimed(self.run, of_day, self.now)
        written = self.ledger.write(self.family, self.day, day, (self.run, claimed))
        return claimed if written else None

    def begin(self, taken: RunTold) -> RunTold:
        """From now on a queue may have a notice. Raises Throttled where another try took it."""
        began = taken.began()
        written = self.ledger.write_run(self.run, began)
        if not written and self.ledger.run_told(self.run) != began:  # else its answer was lost
            raise Throttled("One audit is decided about twice at once.")
        return began

    def release(self, taken: RunTold) -> None:
        """So that others need not wait. A claim that another try took since is left to that one."""
        for _ in range(TRIES):
            day, told = self.seen()
            if told != taken:
                return
            free = day.released(self.run, self.now)
            if self.ledger.write(self.family, self.day, free, (self.run, told.released())):
                return

    def keep(self, claim: RunClaim) -> None:
        """The claim becomes what was told. Raises Throttled."""
        said, corrects = Said(claim.version, claim.news, self.now), claim.tell.corrects is not None
        for _ in range(TRIES):
            day, told = self.seen()
            if told.said and told.said.version == said.version:
                return  # our own write, whose answer was lost; or a newer version took it for told
            overtaken = told.said and told.said.version > said.version
            run = None if overtaken else (self.run, told.told(said))
            of_day = day.told(self.run, said, self.now, corrects=corrects)
            if self.ledger.write(self.family, self.day, of_day, run):
                return
        raise Throttled("Too many audits of one family are decided at once.")
