"""The traits of a job or request by which guides are chosen.

A trait is a word, True or False. It is None where nothing that is requested, recorded or stored
says it: guides that need it are then left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.course import START_PHASES
from sageaudit.domain.job.hints import DISTRIBUTIONS
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import DataSource
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.resize.type_vetoes import has_tensor_cores

TraitValue = bool | str
Traits = Mapping[str, TraitValue | None]
NOT_RUN = "not_run"
"""The value of a trait of runs, for a request whose family has no run that is known."""
_BUSY_SHARE = Decimal("0.5")
"""Of the GPU hours paid for: Jobstats' target of a job's mean GPU utilisation."""
_SOON_S = 1800
"""A failure within half an hour: our choice."""
_SHORT_S, _EXPENSIVE_USD = 900, Decimal(5)
"""A run under 15 minutes on instances of $5 an hour and more: our choice."""
_LONG_S = 3600
"""Runs from an hour on are worth a profile: our choice."""
_DOWNLOAD_S, _DOWNLOAD_SHARE = Decimal(300), Decimal("0.1")
"""A download of five minutes that is a tenth of the billed time: our choice."""
_FAMILY_RUNS = 3
"""Fewer runs show no habit: our choice."""
_PRETRAINED_CHANNELS = frozenset({"model", "pretrained", "pretrained_model", "base_model"})
_PLATEAU, _INPUT_BOUND = ("metric-plateau",), ("cpu-bottleneck", "gpu-starved")
RULES_READ = (*_PLATEAU, *_INPUT_BOUND)
"""The rules whose outcomes are traits."""


class Subject(Struct, frozen=True):
    """A job that ran, or a request: what its traits are read from.

    `types`: of each of its instance groups, None for one that is not in the catalogue. `audit`: of
    the run; of a request that of its family's newest run. `last`: that run.
    `runs`: the earlier runs of the family, newest first. `isolated`:
    EnableNetworkIsolation of a request.
    """

    kind: JobKind
    job: Job | None = None
    types: tuple[InstanceType | None, ...] = ()
    audit: AuditDocument | None = None
    last: AuditSummary | None = None
    runs: tuple[AuditSummary, ...] = ()
    isolated: bool | None = None
    is_request: bool = False


def of_audit(
    audit: AuditDocument,
    job: Job | None,
    own: AuditSummary | None,
    runs: Sequence[AuditSummary],
    types: Mapping[str, InstanceType],
) -> Traits:
    """The traits of a job that ran, with its own summary and the earlier runs of its family.

    `job` is None where its description is no longer kept; summaries are kept longer.
    """
    kind, last = JobKind(audit["job"]["kind"]), own if own and own.purchase else None
    return _traits(Subject(kind, job, _types(job, types), audit, last, tuple(runs)))


def of_request(
    job: Job,
    runs: Sequence[AuditSummary],
    audit: AuditDocument | None,
    types: Mapping[str, InstanceType],
    *,
    isolated: bool | None,
) -> Traits:
    """The traits of a request, as the job that it asks for; `audit`: of its family's newest run."""
    last = runs[0] if runs else None
    found = _types(job, types)
    return _traits(
        Subject(job.kind, job, found, audit, last, tuple(runs), isolated, is_request=True)
    )


def _types(job: Job | None, types: Mapping[str, InstanceType]) -> tuple[InstanceType | None, ...]:
    return tuple(types.get(group.instance_type) for group in job.groups) if job else ()


def _gpu(_: Job, types: Sequence[InstanceType]) -> str:
    families = {found.family[:1] for found in types if found.gpus}
    return "none" if not families else "p" if "p" in families else "g"


def _devices(job: Job, types: Sequence[InstanceType]) -> str:
    """Several hosts, or several GPUs in one."""
    several = (job.instance_count or 0) > 1 or any(found.gpus > 1 for found in types)
    return "several" if several else "one"


def _volume_without_effect(job: Job, types: Sequence[InstanceType]) -> bool | None:
    """Whether it sets a volume size for types that get no volume."""
    if any(found.ebs_billed is None for found in types):
        return None
    return job.volume_gb is not None and not any(found.ebs_billed for found in types)


def _gpu_use(subject: Subject) -> str | None:
    """By the hours paid for: what is not known counts as worked."""
    if subject.audit is None:
        return NOT_RUN if subject.is_request else None
    idle = subject.audit["idle_capacity"]
    if idle is None or idle["unit"] != "gpu_hours" or not idle["paid"]:
        return None
    return "busy" if idle["worked"] / idle["paid"] >= _BUSY_SHARE else "waits"


def _network_isolation(subject: Subject) -> bool | None:
    """None of a stored job whose answer was kept before this setting was."""
    if subject.is_request or subject.job is None:
        return subject.isolated
    values = subject.job.settings.get("EnableNetworkIsolation")
    return None if values is None else all(bool(value) for value in values.values())


def _pretrained(job: Job) -> bool:
    named = {channel.name.lower() for channel in job.channels} & _PRETRAINED_CHANNELS
    return job.hints.pretrained or bool(named)


def _found(subject: Subject, rules: Sequence[str]) -> bool | None:
    """Whether one of these rules found something; None where not all of them could judge."""
    audit = subject.audit
    if audit is None:
        return None
    if any(finding["rule"] in rules for finding in audit["findings"]):
        return True
    return False if set(rules) <= set(audit["clear"]) else None


def _failed_soon(subject: Subject) -> bool | None:
    """A code error soon after the start of the run, or of the family's newest one."""
    last = subject.last
    if last is None or last.status != "Failed":
        return None if last is None else False
    if last.elapsed_s is None or last.reason is None:
        return None
    return last.reason == "code error" and last.elapsed_s < _SOON_S


def _short_and_expensive(subject: Subject) -> bool | None:
    """A run that completed, and took little of an expensive hour."""
    if subject.last is None or subject.audit is None:
        return None
    last = subject.last
    lines = subject.audit["bill"]["lines"]
    rates = [line["rate_usd"] for line in lines if line["item"] == "compute"]
    if last.elapsed_s is None or not rates or None in rates:
        return None
    hourly_usd = max(rate for rate in rates if rate is not None)
    return last.status == "Completed" and last.elapsed_s < _SHORT_S and hourly_usd >= _EXPENSIVE_USD


def _is_long(subject: Subject) -> bool | None:
    elapsed_s = subject.last.elapsed_s if subject.last else None
    return None if elapsed_s is None else elapsed_s >= _LONG_S


def _waits_longer(subject: Subject) -> bool | None:
    """Whether the runs of the family waited longer for their instances than they were billed."""
    own = [subject.last] if subject.last and not subject.is_request else []
    known = [
        (sum((one.phase_s.get(name, Decimal(0)) for name in START_PHASES), Decimal(0)), elapsed_s)
        for one in (*own, *subject.runs)
        if (elapsed_s := one.elapsed_s) and any(name in one.phase_s for name in START_PHASES)
    ]
    if len(known) < _FAMILY_RUNS:
        return None
    return sum(waited for waited, _ in known) > sum(worked for _, worked in known)


def _download(subject: Subject) -> str | None:
    if subject.audit is None:
        return NOT_RUN if subject.is_request else None
    phases = [phase for phase in subject.audit["phases"] if phase["billed"]]
    if not phases or any(phase["seconds"] is None for phase in phases):
        return None
    times = [(phase["name"], phase["seconds"] or Decimal(0)) for phase in phases]
    download_s = sum((seconds for name, seconds in times if name == "Downloading"), Decimal(0))
    billed_s = sum((seconds for _, seconds in times), Decimal(0))
    long = download_s >= max(_DOWNLOAD_S, _DOWNLOAD_SHARE * billed_s)
    return "long" if long else "short"


def _inputs(job: Job) -> str:
    """From where its channels read; "copied" is S3 in File mode."""
    channels = job.channels
    if not channels:
        return "none"
    if any(channel.source in {DataSource.EFS, DataSource.FSX} for channel in channels):
        return "file_system"
    return "copied" if any(channel.is_copied for channel in channels) else "streamed"


Read = Callable[[Subject], TraitValue | None]


def _of_job(read: Callable[[Job], TraitValue]) -> Read:
    """A trait that the job's description says."""
    return lambda subject: None if subject.job is None else read(subject.job)


def _of_types(read: Callable[[Job, Sequence[InstanceType]], TraitValue | None]) -> Read:
    """A trait of a job whose types are all in the catalogue."""

    def of_subject(subject: Subject) -> TraitValue | None:
        known = [found for found in subject.types if found is not None]
        if subject.job is None or not known or len(known) < len(subject.types):
            return None
        return read(subject.job, known)

    return of_subject


class Trait(NamedTuple):
    """`values`: all that `read` may give beside None."""

    values: frozenset[TraitValue]
    read: Read


_EITHER: frozenset[TraitValue] = frozenset({True, False})
TRAITS: Mapping[str, Trait] = {
    "kind": Trait(frozenset(kind.value for kind in JobKind), lambda subject: subject.kind.value),
    "deep_learning": Trait(_EITHER, _of_job(lambda job: job.hints.deep_learning)),
    "mixed_precision": Trait(_EITHER, _of_job(lambda job: job.hints.mixed_precision)),
    "training_compiler": Trait(_EITHER, _of_job(lambda job: job.hints.training_compiler)),
    "pretrained": Trait(_EITHER, _of_job(_pretrained)),
    "distribution": Trait(
        frozenset({*DISTRIBUTIONS, "none"}), _of_job(lambda job: job.hints.distribution or "none")
    ),
    "purchase": Trait(
        frozenset(kind.value for kind in Purchase), _of_job(lambda job: job.purchase.value)
    ),
    "warm_pool": Trait(_EITHER, _of_job(lambda job: job.warm_pool is not None)),
    "inputs": Trait(frozenset({"none", "file_system", "copied", "streamed"}), _of_job(_inputs)),
    "network_isolation": Trait(_EITHER, _network_isolation),
    "gpu": Trait(frozenset({"none", "g", "p"}), _of_types(_gpu)),
    "devices": Trait(frozenset({"one", "several"}), _of_types(_devices)),
    "tensor_cores": Trait(_EITHER, _of_types(lambda _, types: any(map(has_tensor_cores, types)))),
    "volume_without_effect": Trait(_EITHER, _of_types(_volume_without_effect)),
    "gpu_use": Trait(frozenset({"busy", "waits", NOT_RUN}), _gpu_use),
    "download": Trait(frozenset({"long", "short", NOT_RUN}), _download),
    "objective_flat": Trait(_EITHER, lambda subject: _found(subject, _PLATEAU)),
    "input_bound": Trait(_EITHER, lambda subject: _found(subject, _INPUT_BOUND)),
    "failed_soon": Trait(_EITHER, _failed_soon),
    "short_and_expensive": Trait(_EITHER, _short_and_expensive),
    "long": Trait(_EITHER, _is_long),
    "waits_longer_than_it_works": Trait(_EITHER, _waits_longer),
}
"""All traits by name."""


def _traits(subject: Subject) -> Traits:
    return {name: trait.read(subject) for name, trait in TRAITS.items()}
