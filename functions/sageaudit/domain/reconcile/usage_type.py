"""Usage types as bills print them: `USE1-Train:ml.m5.large` is a region prefix, a role and a type.

The prefix is never converted to a region or back: prefixes are irregular (APS3 is ap-south-1).
The roles were observed in price lists and bills, except those of Canvas, Feature Store, Data
Wrangler and Ground Truth, which are the names of the products. An unlisted role counts as "other".
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from sageaudit.domain.job.kinds import BILLED_KINDS
from sageaudit.domain.prices.price_list import ROLES, SPOT_ROLE

JOBS = "jobs"
"""The area that audits cover; spend in any other area is not audited."""
MANAGED_SPOT = "managed spot (TrSpt), compared with no job"
OTHER = "other"

_PREFIX = re.compile(r"[A-Z]{2,4}\d?-")
_AREAS = (
    ("traindebug", "free Debugger and Monitor rules"),
    ("monitorfreetier", "free Debugger and Monitor rules"),
    ("trainingplan", "training plans"),
    ("serverlessinf", "endpoints"),
    ("asyncinf", "endpoints"),
    ("host", "endpoints"),
    ("notebk", "notebooks"),
    ("notebook", "notebooks"),
    ("studio", "Studio"),
    ("rstudio", "Studio"),
    ("cluster", "HyperPod"),
    ("canvas", "Canvas"),
    ("featurestore", "Feature Store"),
    ("datawrangler", "Data Wrangler"),
    ("groundtruth", "Ground Truth"),
    (SPOT_ROLE.lower(), MANAGED_SPOT),
)
"""The start of a role, in lower case, and the area it belongs to."""
_ROLE_OF_KIND = {kind.value: ROLES[kind.row.component] for kind in BILLED_KINDS}
_JOB_ROLES = frozenset(role.lower() for role in ROLES.values())


class Usage(Struct, frozen=True):
    """A usage type without its region prefix. Compare by `key`: newer SKUs change the case."""

    role: str
    what: str

    @property
    def key(self) -> str:
        """Equal for two usage types that differ in prefix or case only."""
        return f"{self.role}:{self.what}".lower()

    @property
    def text(self) -> str:
        """`Train:ml.m5.large`."""
        return f"{self.role}:{self.what}" if self.what else self.role

    @property
    def area(self) -> str:
        """The part of SageMaker that this belongs to."""
        role = self.role.lower()
        if role in _JOB_ROLES:
            return JOBS
        return next((area for start, area in _AREAS if role.startswith(start)), OTHER)


@lru_cache(maxsize=4_096)  # a bill of a million lines has some hundred usage types
def parsed(usage_type: str) -> Usage:
    """Splits a usage type; a text without a colon becomes a role with an empty `what`."""
    prefix = _PREFIX.match(usage_type)
    role, _, what = usage_type[prefix.end() if prefix else 0 :].partition(":")
    return Usage(role, what)


def of_job(kind: str, what: str) -> Usage | None:
    """The usage of an instance type or volume by a kind of job; None for kinds without a bill."""
    role = _ROLE_OF_KIND.get(kind)
    return None if role is None else Usage(role, what)
