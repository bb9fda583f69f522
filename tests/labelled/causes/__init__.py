"""Further jobs and families, everyday and large, each with a cause that its machines acted out.

Read an `Expert` as among the large jobs; a `Family` is in `form`. Recordings may carry `buckets`:
the region of each bucket that the job names, None where it could not be learnt.
"""

from tests.labelled.large.form import Expert, Scenario

from .bought import BOUGHT
from .built_in import BUILT_IN
from .failed import FAILED
from .families import FAMILIES
from .form import Family
from .little import LITTLES
from .memory import MEMORY
from .middles import MIDDLES
from .moving import MOVING
from .others import OTHERS
from .quiet import QUIETS
from .tails import TAILS
from .vetoes import TYPES

SCENARIOS: tuple[Scenario, ...] = (
    *TAILS,
    *MIDDLES,
    *LITTLES,
    *MEMORY,
    *FAILED,
    *BOUGHT,
    *MOVING,
    *TYPES,
    *BUILT_IN,
    *QUIETS,
    *OTHERS,
)

__all__ = ["FAMILIES", "SCENARIOS", "Expert", "Family", "Scenario"]
