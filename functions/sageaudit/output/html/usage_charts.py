"""Charts of what a run used: a line for each host, and its idle parts marked."""

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
    Metric.GPU_MEMORY: "GPU memory, % of a host's",
    Metric.MEMORY: "Memory, % of a host's",
    Metric.DISK: "Disk, % of a host's volume",
}
"""In the order in which they are shown."""
_HEIGHT = 130
_SHORT_HEIGHT = 60
_POINTS = 360
_SHORT_MAX_POINTS = 72
_HOSTS = 6
"""Lines in one chart (classes h0 to h5); of more hosts, their mean and their range are drawn."""
_FULL_PERCENT = 100.0
_P95 = 95


_Idle = tuple[range, str]
"""A part of the run, in periods, and what it is called."""


def usage_charts(job: JobReport, *, short: bool) -> Markup | None:
    """A chart for each metric that was recorded; None without any. `short`: small, no table."""
    usage = job.usage
    if usage is None or not usage.points or not any(usage.series.values()):
        return None
    idle = _idle_parts(usage)
    shown = [metric for metric in _TITLES if usage.series.get(metric)]
    charts = [_chart(usage, metric, idle, short=short) for metric in shown]
    return join([_idle_note(usage, idle), tag("div", charts, class_="charts")])


def _idle_parts(usage: Measurements) -> list[_Idle]:
    parts = (
        (idle_head(usage), "idle start"),
        *((still, "standstill") for still in idle_middle(usage)),
        (idle_tail(usage), "idle end"),
    )
    return [(periods, words) for periods, words in parts if periods]


def _idle_note(usage: Measurements, idle: Sequence[_Idle]) -> Markup | None:
    if not idle:
        return None
    parts = ", ".join(f"{words} {_time(usage, len(periods))}" for periods, words in idle)
    shade = tag("i", class_="shade")
    return tag("p", shade, f"Idle parts, shaded in each chart: {parts}.", class_="note")


def _time(usage: Measurements, periods: int) -> str:
    return duration_text(Decimal(periods * (usage.period_s or 0)))


def _chart(usage: Measurements, metric: Metric, idle: Sequence[_Idle], *, short: bool) -> Markup:
    hosts = usage.series[metric]
    height = _SHORT_HEIGHT if short else _HEIGHT
    idle_below = None if short else _idle_below(usage, metric)
    points, lines = _lines(hosts, _SHORT_MAX_POINTS if short else _POINTS)
    inner = tag(
        "svg",
        lines,
        viewBox=f"0 0 {max(points - 1, 1)} 100",
        preserveAspectRatio="none",
        width="100%",
        height=height,
    )
    middle = mean([value for line in hosts.values() for value in line.present])
    label = f"{_TITLES[metric]}: {middle:.0f}% on average, {count_text(len(hosts), 'host')}"
    svg = svg_chart(
        label,
        height,
        [_shade(part, usage.points, height) for part in idle],
        tag("line", x1=0, x2="100%", y1=height - 0.5, y2=height - 0.5, class_="grid"),
        inner,
        _idle_line(idle_below, height),
    )
    caption = (f"{_TITLES[metric]}: ", tag("strong", f"mean {middle:.0f}%"))
    drawn = chart_with_axes(("100", "50", "0"), _times(usage), svg)
    if short:
        return figure(caption, drawn)
    return figure(
        caption,
        drawn,
        _legend(hosts),
        _idle_caption(idle_below),
        _table(hosts, metric),
        note=_width_note(usage, points),
    )


def _lines(hosts: Mapping[str, Series], max_points: int) -> tuple[int, list[Markup]]:
    """The number of points, and a line for each host.

    Of many hosts it is the area between the lowest and the highest, and the mean.
    """
    thin = [_downsample(line.values, max_points) for line in hosts.values()]
    points = max(map(len, thin), default=0)
    if len(thin) <= _HOSTS:
        return points, [_path(line, f"h{at}") for at, line in enumerate(thin)]
    known = [[v for v in at if v is not None] for at in zip(*thin, strict=True)]
    spans = [(min(values), max(values)) if values else None for values in known]
    means = [mean(values) if values else None for values in known]
    return points, [_area(spans), _path(means, "h0")]


def _downsample(values: Sequence[float | None], max_points: int) -> list[float | None]:
    """At most so many points, each the mean of as many periods."""
    width = max(-(-len(values) // max_points), 1)
    thinned: list[float | None] = []
    for start in range(0, len(values), width):
        known = [value for value in values[start : start + width] if value is not None]
        thinned.append(mean(known) if known else None)
    return thinned


def _path(values: Sequence[float | None], kind: str) -> Markup:
    """A line with a gap where points are missing; a single point is a short dash."""
    steps: list[str] = []
    drawing_on = False
    for at, value in enumerate(values):
        if value is not None:
            steps.append(f"{'L' if drawing_on else 'M'}{at} {_y(value)}")
            alone = not drawing_on and (at + 1 == len(values) or values[at + 1] is None)
            if alone:
                steps.append("h.5")
        drawing_on = value is not None
    return tag("path", d="".join(steps), class_=kind)


def _area(spans: Sequence[tuple[float, float] | None]) -> Markup:
    """From the lowest to the highest host; nothing where no host has a point."""
    numbered = enumerate(spans)
    areas = [
        [(at, span) for at, span in part if span is not None]
        for known, part in groupby(numbered, key=lambda pair: pair[1] is not None)
        if known
    ]
    return tag("path", d="".join(map(_closed_path, areas)), class_="range")


def _closed_path(part: Sequence[tuple[int, tuple[float, float]]]) -> str:
    """Along the highest values, and back along the lowest."""
    upper = [f"{at} {_y(span[1])}" for at, span in part]
    lower = [f"{at} {_y(span[0])}" for at, span in reversed(part)]
    return f"M{'L'.join([*upper, *lower])}Z"


def _y(value: float) -> str:
    """From the top, in percent of the height."""
    return f"{_FULL_PERCENT - min(max(value, 0.0), _FULL_PERCENT):.1f}".removesuffix(".0")


def _shade(part: _Idle, points: int, height: int) -> Markup:
    periods, words = part
    place = {"x": periods.start, "width": len(periods)}
    at = {key: f"{value / points * 100:.2f}%" for key, value in place.items()}
    return tag("rect", tag("title", words), **at, height=height, class_="shade")


def _idle_below(usage: Measurements, metric: Metric) -> float | None:
    """What counts as idle, in percent of the chart; None for a metric that does not tell."""
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
    if len(hosts) > _HOSTS:
        return tag("p", f"The mean and the range of {len(hosts)} hosts.", class_="note")
    names = (tag("span", _sample(f"h{at}"), host) for at, host in enumerate(hosts))
    return tag("p", names, class_="legend")


def _sample(kind: str) -> Markup:
    """A short piece of a host's line, as the chart draws it."""
    line = tag("path", d="M0 3H24", class_=kind)
    return tag("svg", line, width=24, height=6, aria_hidden="true")


def _table(hosts: Mapping[str, Series], metric: Metric) -> Markup:
    rows = (
        (
            host,
            f"{mean(line.present):.1f}%",
            f"{percentile(line.present, _P95):.1f}%",
            f"{max(line.present):.1f}%",
            f"{line.share:.0%}",
        )
        for host, line in hosts.items()
        if line.present
    )
    return data_table(("Host", "Mean", "P95", "Highest", "Points recorded"), rows, metric.value)


def _times(usage: Measurements) -> tuple[str, ...]:
    """The start, the middle and the end of the grid, as clock times where they are known."""
    seconds = usage.seconds
    if usage.begins_at is None:
        return ("start", duration_text(Decimal(seconds // 2)), duration_text(Decimal(seconds)))
    return (
        f"{usage.begins_at:%H:%M} UTC",
        f"+{duration_text(Decimal(seconds // 2))}",
        f"+{duration_text(Decimal(seconds))}",
    )


def _width_note(usage: Measurements, drawn: int) -> str | None:
    width = -(-usage.points // max(drawn, 1))
    if width <= 1:
        return None
    return f"Each point is the mean of {_time(usage, width)}: shorter peaks are not seen."
