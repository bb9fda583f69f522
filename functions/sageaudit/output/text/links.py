"""Links to the AWS console, and commands to paste.

The console opens the account in which the reader is signed in, so views show the account's id
beside a link. Source of the addresses: public projects.
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
    "aws-eusc": "console.amazonaws-eusc.eu",
}
_HEX = re.compile(r"%([0-9A-F]{2})")
_MAX_HOSTS = 2
"""The maximum number of hosts in a metrics link, since messages limit the length of URLs."""
_MARGIN = timedelta(minutes=5)
"""The metrics link shows this time before and after the run."""


class HistoryLocation(Struct, frozen=True):
    """The options with which a command finds a history.

    Without options it reads the default history of the person who runs it.
    """

    options: tuple[str, ...] = ()

    @classmethod
    def for_table(cls, name: str, region: str) -> Self:
        """Returns the options that select a stack's table.

        They name the region, because the reader's default region may be another one.
        """
        return cls(("--table", name, "--table-region", region))

    def command(self, *words: str) -> str:
        """Returns `sageaudit advice snooze vexhzxcl --table NAME ...`, quoted for a shell."""
        return shlex.join(for_terminal(word) for word in ("sageaudit", *words, *self.options))


DEFAULT_HISTORY = HistoryLocation()
"""The history that commands read without options."""


class Link(Struct, frozen=True):
    """A URL and its label."""

    label: str
    url: str


class RunToLink(Struct, frozen=True):
    """The facts about a run from which its links are made.

    `hosts`: the number of hosts. `period_s`: the period of the metrics, in seconds.
    """

    kind: JobKind
    name: str
    arn: str | None
    region: str | None
    started_at: datetime | None
    ended_at: datetime | None
    hosts: int | None
    period_s: int | None = None


def document_links(document: AuditDocument) -> tuple[Link, ...]:
    """Returns links to the job, its metrics and its logs. A roll-up has only a link to the job."""
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
    """Returns a run's links, or none if its partition or region is not known."""
    console_url, region = _console_url(run.arn, run.region), run.region
    if console_url is None or region is None:
        return ()
    spec = run.kind.spec
    name = quote(run.name, safe="", errors="replace")
    links = [
        Link("Job", f"{console_url}/sagemaker/home?region={region}#/{spec.console_page}/{name}")
    ]
    if spec.metrics is not None:
        cloudwatch_url = f"{console_url}/cloudwatch/home?region={region}"
        log_streams = _log_streams(spec.metrics.namespace, run.name)
        graph = _graph(run, spec.metrics)
        links.append(Link("Metrics", f"{cloudwatch_url}#metricsV2?graph={graph}"))
        links.append(Link("Logs", f"{cloudwatch_url}#logsV2:{log_streams}"))
    return tuple(links)


def object_url(partition: str, region: str, bucket: str, key: str) -> str:
    """Returns the console page of an S3 object. The reader needs permission to read the object.

    In a partition without a known console, it is the object's s3:// address.
    """
    if partition not in _DOMAINS:
        return f"s3://{bucket}/{quote(key)}"
    console_url = f"https://{region}.{_DOMAINS[partition]}"
    return f"{console_url}/s3/object/{bucket}?region={region}&prefix={quote(key, safe='')}"


def _console_url(arn: str | None, region: str | None) -> str | None:
    arn_parts = (arn or "").split(":")
    domain = _DOMAINS.get(arn_parts[1]) if len(arn_parts) > 1 else None
    if domain is None or region is None or not REGION.fullmatch(region):
        return None
    return f"https://{region}.{domain}"


def _log_streams(namespace: str, name: str) -> str:
    """Returns the part of a console URL that selects the job's log streams.

    The console wants the name quoted twice, with `$` for `%`. The slash after the name excludes
    jobs with a longer name.
    """
    group = quote(quote(namespace, safe=""), safe="").replace("%", "$")
    stream = quote(quote(f"{name}/", safe="", errors="replace"), safe="").replace("%", "$")
    return f"log-groups/log-group/{group}$3FlogStreamNameFilter$3D{stream}"


def _graph(run: RunToLink, job_metrics: JobMetrics) -> str:
    period_s = run.period_s or 60
    if not job_metrics.has_numbered_hosts:
        metrics_text = _search_metrics(job_metrics.namespace, run.name, period_s)
    else:
        host_numbers = range(1, min(run.hosts or 1, _MAX_HOSTS) + 1)
        hosts = [f"{run.name}/algo-{number}" for number in host_numbers]
        metrics_text = "".join(_host_metrics(job_metrics.namespace, host) for host in hosts)
    start = _time_argument("start", run.started_at, -_MARGIN)
    end = _time_argument("end", run.ended_at, _MARGIN)
    return (
        f"~(view~'timeSeries~stacked~false~metrics~({metrics_text})~region{_text(run.region or '')}"
        f"{start}{end}~stat~'Average~period~{period_s})"
    )


def _host_metrics(namespace: str, host: str) -> str:
    return "".join(
        f"~({_text(namespace)}{_text(metric)}{_text('Host')}{_text(host)})"
        for metric in ("GPUUtilization", "CPUUtilization")
    )


def _search_metrics(namespace: str, name: str, period_s: int) -> str:
    """Returns a search for a transform job's metrics, since its hosts are named by instance ids."""
    search_text = (
        f'SEARCH(\'{{{namespace},Host}} MetricName="CPUUtilization" "{name}/"\','
        f" 'Average', {period_s})"
    )
    return f"~(~(expression{_text(search_text)}))"


def _time_argument(name: str, moment: datetime | None, margin: timedelta) -> str:
    if moment is None:
        return ""
    return f"~{name}{_text((moment + margin).strftime('%Y-%m-%dT%H:%M:%SZ'))}"


def _text(value: str) -> str:
    """Returns the text in the console's graph syntax: special characters are `*` and their hex
    code.
    """
    return "~'" + _HEX.sub(
        lambda match: f"*{match[1].lower()}", quote(value, safe="", errors="replace")
    ).replace("~", "*7e")
