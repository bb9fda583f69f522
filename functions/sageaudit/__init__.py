"""Cost audit of finished Amazon SageMaker jobs. docs/python.md shows how to use it from Python.

Importing this package loads nothing else. Each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sageaudit.adapters.files.exact_json import to_json
    from sageaudit.api.documents import audit, check
    from sageaudit.api.guard import Guard, guard
    from sageaudit.api.history import AuditHistory
    from sageaudit.domain.audit.document import AuditDocument
    from sageaudit.domain.audit.summary import AuditSummary
    from sageaudit.errors import JobRefused, SageauditError
    from sageaudit.queries.changes import SpendChange
    from sageaudit.queries.total import SumsRow
    from sageaudit.workflows.check.document import CheckedFile

__version__ = "0.1.0"
__all__ = [
    "AuditDocument",
    "AuditHistory",
    "AuditSummary",
    "CheckedFile",
    "Guard",
    "JobRefused",
    "RuleFinding",
    "SageauditError",
    "SpendChange",
    "SumsRow",
    "__version__",
    "audit",
    "check",
    "guard",
    "to_json",
]
_MODULES = {
    "audit": "api.documents",
    "check": "api.documents",
    "guard": "api.guard",
    "to_json": "adapters.files.exact_json",
    "AuditDocument": "domain.audit.document",
    "AuditHistory": "api.history",
    "Guard": "api.guard",
    "JobRefused": "errors",
    "CheckedFile": "workflows.check.document",
    "SageauditError": "errors",
    "AuditSummary": "domain.audit.summary",
    "RuleFinding": "domain.audit.record",
    "SpendChange": "queries.changes",
    "SumsRow": "queries.total",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
