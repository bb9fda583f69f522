"""Counts what became of the jobs of a scan; of the jobs themselves it keeps nothing."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from sageaudit.cli.exits import Exit, exit_of, gravest
from sageaudit.domain.audit.sums import Sums
from sageaudit.errors import SageauditError
from sageaudit.workflows.scan.run import Outcome, Result

_MOST_REASONS = 100
"""Reasons that are counted on their own: they come from a few fixed sentences with figures."""
_OTHERS = "(other reasons)"
_FIGURE = re.compile(r"\d[\d,.]*(?<=\d)")


@dataclass
class ScanTally:
    """`sums` are of all jobs with an audit, those that were known before included.

    They are what a progress bar shows: the ranking reads the history's own sums.
    """

    results: Counter[Result] = field(default_factory=Counter)
    sums: Sums = field(default_factory=Sums)
    not_judged: Counter[str] = field(default_factory=Counter)
    """Jobs by the reason why not all of them was judged; figures in a reason are the first's."""
    refused: Counter[str] = field(default_factory=Counter)
    """Jobs by the error that kept them from being audited."""
    codes: set[Exit] = field(default_factory=set)
    _shown: dict[str, str] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """Jobs of which it is known what became of them."""
        return self.results.total()

    def add(self, outcome: Outcome) -> None:
        """Counts one job; one that was known and is audited again, as known."""
        if not outcome.known_before:
            self.results[outcome.result] += 1
            if outcome.sums is not None:
                self.sums += outcome.sums
            for reason in outcome.not_judged:
                self.not_judged[self._alike(reason)] += 1
        if outcome.error is not None:
            self.refuse(str(outcome.error), exit_of(outcome.error))

    def refuse(self, reason: str, code: Exit) -> None:
        """Counts something that failed, with its exit code."""
        known = reason in self.refused or len(self.refused) < _MOST_REASONS
        self.refused[reason if known else _OTHERS] += 1
        self.codes.add(code)

    def take(self, other: ScanTally, error: SageauditError | None) -> None:
        """Counts what could not be listed of one account, `error` where that is all of it."""
        for reason, count in other.refused.items():
            known = reason in self.refused or len(self.refused) < _MOST_REASONS
            self.refused[reason if known else _OTHERS] += count
        self.codes |= {*other.codes, *([exit_of(error)] if error else [])}

    @property
    def exit(self) -> Exit:
        """The gravest of what failed."""
        return gravest(self.codes)

    def _alike(self, reason: str) -> str:
        """The first reason that differs from this one by its figures only."""
        pattern = _FIGURE.sub("#", reason)
        if pattern not in self._shown and len(self._shown) >= _MOST_REASONS:
            return _OTHERS
        return self._shown.setdefault(pattern, reason)
