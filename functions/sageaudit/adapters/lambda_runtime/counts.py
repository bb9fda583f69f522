"""Counts of one batch as CloudWatch metrics: EMF lines on standard output."""

from __future__ import annotations

from collections.abc import Mapping

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit


class Counts:
    """Counts by name and, where one is given, by channel; nothing is shared between batches.

    One `EphemeralMetrics` for each set of dimensions: `Metrics` is shared by the whole process.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._namespace = environ.get("POWERTOOLS_METRICS_NAMESPACE", "sageaudit")
        self._service = environ.get("POWERTOOLS_SERVICE_NAME", "sageaudit")
        self._counted: dict[str | None, EphemeralMetrics] = {}

    def add(self, name: str, *, channel: str | None = None) -> None:
        """One more."""
        if channel not in self._counted:
            self._counted[channel] = self._metrics(channel)
        self._counted[channel].add_metric(name, MetricUnit.Count, 1)

    def flush(self) -> None:
        """Prints one line a channel, and none when nothing was counted."""
        for metrics in self._counted.values():
            metrics.flush_metrics()
        self._counted.clear()

    def _metrics(self, channel: str | None) -> EphemeralMetrics:
        metrics = EphemeralMetrics(service=self._service, namespace=self._namespace)
        if channel is not None:
            metrics.add_dimension("channel", channel)
        return metrics
