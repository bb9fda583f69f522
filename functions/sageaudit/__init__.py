"""Cost audit of finished Amazon SageMaker jobs."""

from __future__ import annotations

__version__ = "0.1.0"
