"""What was told of one run, and what is being told now: a value without I/O.

A claim begins once no newer version of the audit was there after it was made. From then on a queue
may have a notice of it: it is finished by later tries of its own version, or a newer version takes
it for told. A claim that has not begun has no notices and ends by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sageaudit.domain.alert.news import News, Said
from sageaudit.domain.alert.rule import Tell


@dataclass(frozen=True, slots=True)
class RunClaim:
    """A message about one version of a run: `tell` and `news` are what it says.

    `since`: when it was first claimed. `until`: the try that queues it has ended by then.
    """

    version: int
    news: News
    tell: Tell
    since: datetime
    until: datetime
    begun: bool = False

    def as_said(self) -> Said:
        """What a channel that has its notice was told."""
        return Said(self.version, self.news, self.since)


@dataclass(frozen=True, slots=True)
class RunTold:
    """One run; `revision` counts the writes, 0 before the first. `said` is what was told last."""

    revision: int = 0
    said: Said | None = None
    claim: RunClaim | None = None

    def newest(self) -> int:
        """The newest version that was told, or that some channels may have; 0 for none."""
        said = self.said.version if self.said else 0
        return max(said, self.claim.version) if self.claim and self.claim.begun else said

    def begun(self, version: int) -> RunClaim | None:
        """The claim of this version, where a queue may have its notices."""
        claim = self.claim
        return claim if claim and claim.begun and claim.version == version else None

    def last(self, version: int) -> Said | None:
        """What this version is compared with: what some channels may have counts as told."""
        claim = self.claim
        if claim and claim.begun and claim.version < version:
            return claim.as_said()
        return self.said

    def unfinished(
        self, version: int, at: datetime, tried_for: timedelta, now: datetime
    ) -> RunClaim | None:
        """The claim of an older version, where its own tries may still finish it.

        An audit comes back for `tried_for`, and an hour at most lies between two tries. A version
        that was written `at`, and is about to be given up itself, waits no longer.
        """
        claim = self.claim
        if claim is None or claim.version >= version:
            return None
        if claim.until > now:
            return claim
        over = min(claim.since + tried_for + timedelta(hours=1), at + tried_for)
        return claim if claim.begun and now < over else None

    def claimed(self, claim: RunClaim) -> RunTold:
        """With this claim. What some channels may have of an older version counts as told."""
        return RunTold(self.revision + 1, self.last(claim.version), claim)

    def began(self) -> RunTold:
        """Its notices are queued from now on."""
        claim = None if self.claim is None else replace(self.claim, begun=True)
        return RunTold(self.revision + 1, self.said, claim)

    def released(self) -> RunTold:
        """Without its claim, of which no queue has a notice."""
        return RunTold(self.revision + 1, self.said)

    def told(self, said: Said) -> RunTold:
        """With all notices of this version queued."""
        claim = self.claim if self.claim and self.claim.version > said.version else None
        return RunTold(self.revision + 1, said, claim)
