"""Sixty large jobs and what an expert says about each, written from facts about AWS alone.

How to read an `Expert`: a test may ask low <= avoidable <= high, low <= lost <= high, and for
`together_usd` (where set) the sum of both, since the same dollar may honestly stand in either.
None: not knowable, no number is owed (but a null is always fine). `bill_usd` is None where the
bill is unknown, an upper bound or not final, and 0 where capacity is prepaid. Every entry of
`must_say` must be met, a frozenset by any one member; a finding without dollars is enough.
"""

from .cpu_jobs import CPU_JOBS
from .failed import FAILED
from .few_devices import FEW_DEVICES
from .form import Expert, Scenario
from .head import HEAD
from .healthy import HEALTHY
from .hosts import HOSTS
from .hung import HUNG
from .missing import MISSING
from .purchase import PURCHASE
from .tuning import TUNING

SCENARIOS: tuple[Scenario, ...] = (
    *HEALTHY,
    *FEW_DEVICES,
    *HUNG,
    *HEAD,
    *HOSTS,
    *PURCHASE,
    *FAILED,
    *MISSING,
    *CPU_JOBS,
    *TUNING,
)

__all__ = ["SCENARIOS", "Expert", "Scenario"]
