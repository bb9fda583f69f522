"""Where a reader goes on: links into the AWS console, and commands to paste.

The console opens the signed-in account, so show the id beside a link.

A link is made only from a valid region and a valid name. Sources: the console's own addresses as
public projects record them.
"""

from __future__ import annotations

import re
import shlex
from datetime import datetime, timedelta
from typing import Self
from urllib.parse import quote

from msgspec import Struct

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.job.kinds import JobKind, JobMetrics
from sageaudit.domain.job.ref import REGION
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.output.text.words import parse_time

_DOMAINS = {
    "aws": "console.aws.amazon.com",
    "aws-cn": "console.amazonaws.cn",
    "aws-us-gov": "console.amazonaws-us-gov.com",
}
_HEX = re.compile(r"%([0-9A-F]{2})")
_HOSTS = 2
"""Hosts in the metrics link: the URL must stay short enough for a message."""
_MARGIN = timedelta(minutes=5)


class HistoryLocation(Struct, frozen=True):
    """The history that the commands of a message are about, as the options that name it.

    Without options it is the reader's own default.
    """

    options: tuple[str, ...] = ()

    @classmethod
    def for_table(cls, name: str, region: str) -> Self:
        """A table of a stack. Its region is named always: the reader's default may be another."""
        return cls(("--table", name, "--table-region", region))

    def command(self, *words: str) -> str:
        """`sageaudit advice snooze vexhzxcl --table NAME --table-region us-east-1`, quoted for a
        shell.
        """
        return shlex.join(for_terminal(word) for word in ("sageaudit", *words, *self.options))


DEFAULT_HISTORY = HistoryLocation()
"""The one that the reader's commands use by default."""


class Link(Struct, frozen=True):
    """A URL and the word to show for it."""

    label: str
    url: str


class RunToLink(Struct, frozen=True):
    """What links to a run need. `hosts` are None where they are not known."""

    kind: JobKind
    name: str
    arn: str | None
    region: str | None
    started_at: datetime | None
    ended_at: datetime | None
    hosts: int | None
    period_s: int | None = None


def document_links(document: AuditDocument) -> tuple[Link, ...]:
    """Links to the job, its metrics and its logs; a tuning job has only its own page."""
    job, coverage = document["job"], document["audit"]["coverage"]
    return run_links(
        RunToLink(
            JobKind(job["kind"]),
            job["name"],
            job["arn"],
            job["region"],
            parse_time(job["started_at"] or job["created_at"]),
            parse_time(job["ended_at"]),
            coverage["hosts_expected"],
            coverage["period_s"],
        )
    )


def run_links(run: RunToLink) -> tuple[Link, ...]:
    """The same of a run; until now where it has not ended."""
    home, region = _console(run.arn, run.region), run.region
    if home is None or region is None:
        return ()
    row = run.kind.spec
    name = quote(run.name, safe="", errors="replace")
    result = [Link("Job", f"{home}/sagemaker/home?region={region}#/{row.console_page}/{name}")]
    if row.metrics is not None:
        watch = f"{home}/cloudwatch/home?region={region}"
        streams = _log_streams(row.metrics.namespace, run.name)
        result.append(Link("Metrics", f"{watch}#metricsV2?graph={_graph(run, row.metrics)}"))
        result.append(Link("Logs", f"{watch}#logsV2:{streams}"))
    return tuple(result)


def object_url(partition: str, region: str, bucket: str, key: str) -> str:
    """The page of an object in S3: only who may read it sees its content there."""
    home = f"https://{region}.{_DOMAINS.get(partition, _DOMAINS['aws'])}"
    return f"{home}/s3/object/{bucket}?region={region}&prefix={quote(key, safe='')}"


def _console(arn: str | None, region: str | None) -> str | None:
    parts = (arn or "").split(":")
    domain = _DOMAINS.get(parts[1]) if len(parts) > 1 else None
    if domain is None or region is None or not REGION.fullmatch(region):
        return None
    return f"https://{region}.{domain}"


def _log_streams(namespace: str, name: str) -> str:
    """The log search: quoted twice, with `$` for `%`; the final slash excludes longer names."""
    group = quote(quote(namespace, safe=""), safe="").replace("%", "$")
    stream = quote(quote(f"{name}/", safe="", errors="replace"), safe="").replace("%", "$")
    return f"log-groups/log-group/{group}$3FlogStreamNameFilter$3D{stream}"


def _graph(run: RunToLink, published: JobMetrics) -> str:
    period_s = run.period_s or 60
    if not published.has_numbered_hosts:
        metrics = _search_metrics(published.namespace, run.name, period_s)
    else:
        hosts = range(1, min(run.hosts or 1, _HOSTS) + 1)
        names = [f"{run.name}/algo-{number}" for number in hosts]
        metrics = "".join(_host_metrics(published.namespace, name) for name in names)
    span = _moment("start", run.started_at, -_MARGIN) + _moment("end", run.ended_at, _MARGIN)
    return (
        f"~(view~'timeSeries~stacked~false~metrics~({metrics})~region{_text(run.region or '')}"
        f"{span}~stat~'Average~period~{period_s})"
    )


def _host_metrics(namespace: str, host: str) -> str:
    return "".join(
        f"~({_text(namespace)}{_text(metric)}{_text('Host')}{_text(host)})"
        for metric in ("GPUUtilization", "CPUUtilization")
    )


def _search_metrics(namespace: str, name: str, period_s: int) -> str:
    """The metrics of a transform job: its hosts are named after instances, so a search is used."""
    search = (
        f'SEARCH(\'{{{namespace},Host}} MetricName="CPUUtilization" "{name}/"\','
        f" 'Average', {period_s})"
    )
    return f"~(~(expression{_text(search)}))"


def _moment(word: str, moment: datetime | None, margin: timedelta) -> str:
    if moment is None:
        return ""
    return f"~{word}{_text((moment + margin).strftime('%Y-%m-%dT%H:%M:%SZ'))}"


def _text(value: str) -> str:
    """A string in the syntax of console graphs: special characters as `*` and their hex bytes."""
    return "~'" + _HEX.sub(
        lambda match: f"*{match[1].lower()}", quote(value, safe="", errors="replace")
    ).replace("~", "*7e")
