"""What a message is about: an audit's document, parsed once on its way through `notify`."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from sageaudit.domain.advice.advice import Advice
from sageaudit.domain.alert.alert import AlertFigures
from sageaudit.domain.alert.audit_figures import (
    advised_in,
    counted_findings,
    figures_of,
    idle_worth_a_line,
    is_regression,
    own_findings,
    trial_findings,
    without,
)
from sageaudit.domain.audit.advised import Advised
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument


class MessageSubject(Struct, frozen=True):
    """One version of an audit, as a decision and a card need it.

    `counted` are the findings that count for a message, and `trials` those that are worth a trial;
    `own` is what counts of this run alone, also if an earlier run had it. `regressions` say that
    the run cost more than comparable runs. All lists have the largest saving first. `advised` is
    what the run is recommended. `shows_idle`: whether its idle hours are worth a line.
    """

    document: AuditDocument
    figures: AlertFigures
    counted: tuple[FindingDocument, ...]
    trials: tuple[FindingDocument, ...]
    own: tuple[FindingDocument, ...]
    regressions: tuple[FindingDocument, ...]
    advised: tuple[Advised, ...]
    shows_idle: bool

    @classmethod
    def parse(cls, document: AuditDocument) -> MessageSubject:
        """Raises KeyError, TypeError or ValueError for a document of another form."""
        return cls(
            document=document,
            figures=figures_of(document),
            counted=counted_findings(document),
            trials=trial_findings(document),
            own=own_findings(document),
            regressions=tuple(filter(is_regression, document["findings"])),
            advised=advised_in(document),
            shows_idle=idle_worth_a_line(document),
        )

    def without(self, silent: Callable[[Advised], Advice | None]) -> MessageSubject:
        """The same without what somebody has silenced, as if the policy had accepted it."""
        rest = without(self.document, silent)
        return self if rest is self.document else self.parse(rest)
