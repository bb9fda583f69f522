"""Counts of one batch as CloudWatch metrics: EMF lines on standard output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit


class Counts:
    """Counts by name and, where it is given, by channel; batches share nothing.

    Powertools' `Metrics` is shared by the process, has one set of dimensions and warns when empty.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._namespace = environ.get("POWERTOOLS_METRICS_NAMESPACE", "sageaudit")
        self._service = environ.get("POWERTOOLS_SERVICE_NAME", "sageaudit")
        self._counted: dict[str | None, Counter[str]] = {}

    def add(self, name: str, *, channel: str | None = None, number: int = 1) -> None:
        """Adds a number; 0 is a count too: the metric then has a value."""
        self._counted.setdefault(channel, Counter())[name] += number

    def flush(self, metadata: Mapping[str, str] = {}) -> None:
        """Prints one line per channel, and none when nothing was counted.

        `metadata` leads from a count to the other lines of its invocation, and is no dimension.
        """
        for channel, names in self._counted.items():
            metrics = EphemeralMetrics(service=self._service, namespace=self._namespace)
            if channel is not None:
                metrics.add_dimension("channel", channel)
            for key, value in metadata.items():
                metrics.add_metadata(key, value)
            for name, count in names.items():
                metrics.add_metric(name, MetricUnit.Count, count)
            metrics.flush_metrics(raise_on_empty_metrics=True)
        self._counted.clear()
