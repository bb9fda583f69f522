"""Charts of a run's metrics: a line for each host, with the idle periods shaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import groupby

from sageaudit.domain.job.job import duration_text
from sageaudit.domain.usage.edges import idle_head, idle_middle, idle_tail
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.domain.usage.series import (
    IDLE_BELOW_CORES,
    IDLE_MAX_GPU_PERCENT,
    Series,
    mean,
    percentile,
)
from sageaudit.output.html.contents import JobReport
from sageaudit.output.html.markup import (
    Markup,
    chart_with_axes,
    data_table,
    figure,
    join,
    svg_chart,
    tag,
)
from sageaudit.output.text.words import count_text

_TITLES = {
    Metric.GPU: "GPU utilisation, % of all GPUs of a host",
    Metric.CPU: "CPU utilisation, % of all vCPUs of a host",
    Metric.GPU_MEMORY: "GPU memory, % of a host's total",
    Metric.MEMORY: "Memory, % of a host's total",
    Metric.DISK: "Disk, % of a host's volume",
}
"""The charts are shown in this order."""
_HEIGHT = 130
_SHORT_HEIGHT = 60
_MAX_POINTS = 360
_SHORT_MAX_POINTS = 72
_MAX_LINES = 6
"""The classes are h0 to h5. More hosts are drawn as their mean and range."""
_FULL_PERCENT = 100.0
_P95 = 95


_PLACES = {"idle start": "at the start", "standstill": "in between", "idle end": "at the end"}
_IdlePeriod = tuple[range, str]


def usage_charts(job: JobReport, *, short: bool) -> Markup | None:
    """Returns a chart for each recorded metric, or None without metrics.

    With `short` the charts are small and have no table.
    """
    usage = job.usage
    if usage is None or not usage.points or not any(usage.series.values()):
        return None
    idle_periods = _idle_periods(usage)
    metrics = [metric for metric in _TITLES if usage.series.get(metric)]
    charts = [_chart(usage, metric, idle_periods, short=short) for metric in metrics]
    return join([_idle_note(usage, idle_periods), tag("div", charts, class_="charts")])


def _idle_periods(usage: Measurements) -> list[_IdlePeriod]:
    labelled = (
        (idle_head(usage), "idle start"),
        *((periods, "standstill") for periods in idle_middle(usage)),
        (idle_tail(usage), "idle end"),
    )
    return [(periods, label) for periods, label in labelled if periods]


def _idle_note(usage: Measurements, idle_periods: Sequence[_IdlePeriod]) -> Markup | None:
    if not idle_periods:
        return None
    durations = ", ".join(
        f"{_periods_text(usage, len(periods))} {_PLACES[label]}" for periods, label in idle_periods
    )
    shade = tag("i", class_="shade")
    return tag("p", shade, f"Idle periods are shaded in each chart: {durations}.", class_="note")


def _periods_text(usage: Measurements, periods: int) -> str:
    return duration_text(Decimal(periods * (usage.period_s or 0)))


def _chart(
    usage: Measurements, metric: Metric, idle_periods: Sequence[_IdlePeriod], *, short: bool
) -> Markup:
    hosts = usage.series[metric]
    height = _SHORT_HEIGHT if short else _HEIGHT
    idle_below_percent = None if short else _idle_below_percent(usage, metric)
    points, lines = _lines(hosts, _SHORT_MAX_POINTS if short else _MAX_POINTS)
    curves = tag(
        "svg",
        lines,
        viewBox=f"0 0 {max(points - 1, 1)} 100",
        preserveAspectRatio="none",
        width="100%",
        height=height,
    )
    average = mean([value for series in hosts.values() for value in series.present])
    label = f"{_TITLES[metric]}: {average:.0f}% on average, {count_text(len(hosts), 'host')}"
    svg = svg_chart(
        label,
        height,
        [_shade(idle_period, usage.points, height) for idle_period in idle_periods],
        tag("line", x1=0, x2="100%", y1=height - 0.5, y2=height - 0.5, class_="grid"),
        curves,
        _idle_line(idle_below_percent, height),
    )
    caption = (f"{_TITLES[metric]}: ", tag("strong", f"mean {average:.0f}%"))
    chart = chart_with_axes(("100", "50", "0"), _time_labels(usage), svg)
    if short:
        return figure(caption, chart)
    return figure(
        caption,
        chart,
        _legend(hosts),
        _idle_caption(idle_below_percent),
        _host_table(hosts, metric),
        note=_resolution_note(usage, points),
    )


def _lines(hosts: Mapping[str, Series], max_points: int) -> tuple[int, list[Markup]]:
    """Returns the number of points, and the lines. Many hosts become their mean and range."""
    sampled = [_downsample(series.values, max_points) for series in hosts.values()]
    points = max(map(len, sampled), default=0)
    if len(sampled) <= _MAX_LINES:
        return points, [_path(values, f"h{index}") for index, values in enumerate(sampled)]
    values_by_point = [
        [value for value in values if value is not None] for values in zip(*sampled, strict=True)
    ]
    ranges = [(min(values), max(values)) if values else None for values in values_by_point]
    means = [mean(values) if values else None for values in values_by_point]
    return points, [_area(ranges), _path(means, "h0")]


def _downsample(values: Sequence[float | None], max_points: int) -> list[float | None]:
    width = max(-(-len(values) // max_points), 1)
    points: list[float | None] = []
    for start in range(0, len(values), width):
        present = [value for value in values[start : start + width] if value is not None]
        points.append(mean(present) if present else None)
    return points


def _path(values: Sequence[float | None], css_class: str) -> Markup:
    """Returns a host's line. A missing point leaves a gap. A single point becomes a short dash."""
    commands: list[str] = []
    has_previous = False
    for x, value in enumerate(values):
        if value is not None:
            commands.append(f"{'L' if has_previous else 'M'}{x} {_y(value)}")
            has_next = x + 1 < len(values) and values[x + 1] is not None
            if not has_previous and not has_next:
                commands.append("h.5")
        has_previous = value is not None
    return tag("path", d="".join(commands), class_=css_class)


def _area(ranges: Sequence[tuple[float, float] | None]) -> Markup:
    numbered = enumerate(ranges)
    areas = [
        [(x, low_high) for x, low_high in group if low_high is not None]
        for is_present, group in groupby(numbered, key=lambda pair: pair[1] is not None)
        if is_present
    ]
    return tag("path", d="".join(map(_closed_path, areas)), class_="range")


def _closed_path(points: Sequence[tuple[int, tuple[float, float]]]) -> str:
    upper = [f"{x} {_y(high)}" for x, (_, high) in points]
    lower = [f"{x} {_y(low)}" for x, (low, _) in reversed(points)]
    return f"M{'L'.join([*upper, *lower])}Z"


def _y(value: float) -> str:
    """Returns the distance from the chart's top, in percent of its height."""
    return f"{_FULL_PERCENT - min(max(value, 0.0), _FULL_PERCENT):.1f}".removesuffix(".0")


def _shade(idle_period: _IdlePeriod, points: int, height: int) -> Markup:
    periods, label = idle_period
    horizontal = {"x": periods.start, "width": len(periods)}
    percents = {key: f"{value / points * 100:.2f}%" for key, value in horizontal.items()}
    return tag("rect", tag("title", label), **percents, height=height, class_="shade")


def _idle_below_percent(usage: Measurements, metric: Metric) -> float | None:
    """Returns the utilisation in percent below which a host is idle; None if the metric has no
    limit.
    """
    if metric is Metric.GPU:
        return IDLE_MAX_GPU_PERCENT / (usage.gpus or 1)
    return IDLE_BELOW_CORES * 100 / usage.vcpu if metric is Metric.CPU and usage.vcpu else None


def _idle_line(percent: float | None, height: int) -> Markup | None:
    if percent is None:
        return None
    y = height * (1 - percent / _FULL_PERCENT)
    return tag("line", x1=0, x2="100%", y1=y, y2=y, class_="limit")


def _idle_caption(percent: float | None) -> Markup | None:
    if percent is None:
        return None
    return tag("p", tag("i", class_="limit"), f"Dashed: idle below {percent:.2g}%.", class_="note")


def _legend(hosts: Mapping[str, Series]) -> Markup | None:
    if len(hosts) == 1:
        return None
    if len(hosts) > _MAX_LINES:
        return tag("p", f"The mean and the range of {len(hosts)} hosts.", class_="note")
    names = (tag("span", _sample(f"h{index}"), host) for index, host in enumerate(hosts))
    return tag("p", names, class_="legend")


def _sample(css_class: str) -> Markup:
    line = tag("path", d="M0 3H24", class_=css_class)
    return tag("svg", line, width=24, height=6, aria_hidden="true")


def _host_table(hosts: Mapping[str, Series], metric: Metric) -> Markup:
    rows = (
        (
            host,
            f"{mean(series.present):.1f}%",
            f"{percentile(series.present, _P95):.1f}%",
            f"{max(series.present):.1f}%",
            f"{series.share:.0%}",
        )
        for host, series in hosts.items()
        if series.present
    )
    return data_table(("Host", "Mean", "P95", "Highest", "Points recorded"), rows, metric.value)


def _time_labels(usage: Measurements) -> tuple[str, ...]:
    """Returns the labels at the start, middle and end of the time axis.

    The start is a clock time if it is known. The other labels are times since the start.
    """
    seconds = usage.seconds
    if usage.begins_at is None:
        return ("start", duration_text(Decimal(seconds // 2)), duration_text(Decimal(seconds)))
    return (
        f"{usage.begins_at:%H:%M} UTC",
        f"+{duration_text(Decimal(seconds // 2))}",
        f"+{duration_text(Decimal(seconds))}",
    )


def _resolution_note(usage: Measurements, points: int) -> str | None:
    periods = -(-usage.points // max(points, 1))
    if periods <= 1:
        return None
    return f"Each point is the mean of {_periods_text(usage, periods)}: shorter peaks do not show."
