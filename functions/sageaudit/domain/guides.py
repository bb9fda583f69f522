"""Guides: recommendations without dollars, chosen by the traits of a job or request.

sageaudit prints guides on request, and never stores, counts or sends them. A trait is a word, True
or False, or None if unknown. A guide that needs an unknown trait is left out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, TypedDict

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
NEVER_RUN = "not_run"
"""The value of a trait that needs an earlier run, if the family of a request has none."""
_BUSY_SHARE = Decimal("0.5")
"""GPUs count as busy if they work for at least this share of their paid hours. Source: Jobstats'
target for a job's mean GPU utilisation."""
_EARLY_FAILURE_S = 1800
"""A failure before this many seconds is early: our choice."""
_SHORT_S = 900
"""A run under this many seconds is short: our choice."""
_EXPENSIVE_USD = Decimal(5)
"""Instances are expensive from this rate in USD an hour: our choice."""
_LONG_S = 3600
"""A run of at least this many seconds is worth a profile: our choice."""
_DOWNLOAD_S = Decimal(300)
"""The fewest seconds of a long download: our choice."""
_DOWNLOAD_SHARE = Decimal("0.1")
"""The least share of the billed time that a long download takes: our choice."""
_FAMILY_RUNS = 3
"""The fewest runs from which a trait of a family is derived: our choice."""
_PRETRAINED_CHANNELS = frozenset({"model", "pretrained", "pretrained_model", "base_model"})
_PLATEAU = ("metric-plateau",)
_INPUT_BOUND = ("cpu-bottleneck", "gpu-starved")
TRAIT_RULES = (*_PLATEAU, *_INPUT_BOUND)
"""The rules whose results decide a trait."""

TABLE = "guides.toml"
"""The name of the file with all guides, in `sageaudit.data`."""
_METHODS = {
    "smddp": "the SageMaker distributed data parallelism library (SMDDP)",
    "smp": "the SageMaker model parallelism library (SMP)",
    "ddp": "PyTorch DDP or torchrun",
    "fsdp": "PyTorch FSDP",
    "deepspeed": "DeepSpeed",
    "horovod": "Horovod",
    "mirrored": "a mirrored strategy of TensorFlow",
    "xla": "PyTorch/XLA",
    "accelerate": "Hugging Face Accelerate",
    "mpi": "MPI",
    "parameter_server": "a parameter server",
}
"""The text that replaces `{distribution}` in guides, by distribution method."""


class TraitSource(Struct, frozen=True):
    """The job or request from which traits are read.

    `types`: one for each instance group; an item is None if the catalogue lacks the type. `audit`
    and `newest_run`: of the job, or of the newest run in a request's family. `runs`: the family's
    earlier runs, newest first. `is_isolated`: the request's EnableNetworkIsolation.
    """

    kind: JobKind
    job: Job | None = None
    types: tuple[InstanceType | None, ...] = ()
    audit: AuditDocument | None = None
    newest_run: AuditSummary | None = None
    runs: tuple[AuditSummary, ...] = ()
    is_isolated: bool | None = None
    is_request: bool = False


def traits_of_audit(
    audit: AuditDocument,
    job: Job | None,
    summary: AuditSummary | None,
    runs: Sequence[AuditSummary],
    types: Mapping[str, InstanceType],
) -> Traits:
    """Returns the traits of a job that ran.

    `job`: None if its description is no longer stored. `runs`: the family's earlier runs.
    """
    kind, run_summary = (
        JobKind(audit["job"]["kind"]),
        summary if summary and summary.purchase else None,
    )
    return _traits(TraitSource(kind, job, _types(job, types), audit, run_summary, tuple(runs)))


def traits_of_request(
    job: Job,
    runs: Sequence[AuditSummary],
    audit: AuditDocument | None,
    types: Mapping[str, InstanceType],
    *,
    is_isolated: bool | None,
) -> Traits:
    """Returns the traits of a requested job.

    `audit`: the audit of the family's newest run; None without one.
    """
    newest_run = runs[0] if runs else None
    own_types = _types(job, types)
    return _traits(
        TraitSource(
            job.kind, job, own_types, audit, newest_run, tuple(runs), is_isolated, is_request=True
        )
    )


def _types(
    job: Job | None, type_by_name: Mapping[str, InstanceType]
) -> tuple[InstanceType | None, ...]:
    return tuple(type_by_name.get(group.instance_type) for group in job.groups) if job else ()


def _gpu(_: Job, types: Sequence[InstanceType]) -> str:
    families = {instance.family[:1] for instance in types if instance.gpus}
    return "none" if not families else "p" if "p" in families else "g"


def _devices(job: Job, types: Sequence[InstanceType]) -> str:
    has_several = (job.instance_count or 0) > 1 or any(instance.gpus > 1 for instance in types)
    return "several" if has_several else "one"


def _has_useless_volume(job: Job, types: Sequence[InstanceType]) -> bool | None:
    """Returns whether the job sets a volume size for types without volumes; None if unknown."""
    if any(instance.is_ebs_billed is None for instance in types):
        return None
    return job.volume_gb is not None and not any(instance.is_ebs_billed for instance in types)


def _gpu_use(subject: TraitSource) -> str | None:
    """Returns `busy`, `waits` or NEVER_RUN; None if the use of the GPUs is unknown."""
    if subject.audit is None:
        return NEVER_RUN if subject.is_request else None
    idle = subject.audit["idle_capacity"]
    if idle is None or idle["unit"] != "gpu_hours" or not idle["paid"]:
        return None
    return "busy" if idle["worked"] / idle["paid"] >= _BUSY_SHARE else "waits"


def _network_isolation(subject: TraitSource) -> bool | None:
    """Returns None if the stored description lacks the setting."""
    if subject.is_request or subject.job is None:
        return subject.is_isolated
    values = subject.job.settings.get("EnableNetworkIsolation")
    return None if values is None else all(bool(value) for value in values.values())


def _is_pretrained(job: Job) -> bool:
    channels = {channel.name.lower() for channel in job.channels} & _PRETRAINED_CHANNELS
    return job.hints.pretrained or bool(channels)


def _has_finding(subject: TraitSource, rules: Sequence[str]) -> bool | None:
    """Returns whether one of these rules has a finding; None if a rule could not judge."""
    audit = subject.audit
    if audit is None:
        return None
    if any(finding["rule"] in rules for finding in audit["findings"]):
        return True
    return False if set(rules) <= set(audit["clear"]) else None


def _has_failed_early(subject: TraitSource) -> bool | None:
    """Returns whether the newest run failed early with a code error; None if unknown."""
    run = subject.newest_run
    if run is None or run.status != "Failed":
        return None if run is None else False
    if run.elapsed_s is None or run.reason is None:
        return None
    return run.reason == "code error" and run.elapsed_s < _EARLY_FAILURE_S


def _is_short_and_expensive(subject: TraitSource) -> bool | None:
    if subject.newest_run is None or subject.audit is None:
        return None
    run = subject.newest_run
    lines = subject.audit["bill"]["lines"]
    rates = [line["rate_usd"] for line in lines if line["item"] == "compute"]
    if run.elapsed_s is None or not rates or None in rates:
        return None
    hourly_usd = max(rate for rate in rates if rate is not None)
    return run.status == "Completed" and run.elapsed_s < _SHORT_S and hourly_usd >= _EXPENSIVE_USD


def _is_long(subject: TraitSource) -> bool | None:
    elapsed_s = subject.newest_run.elapsed_s if subject.newest_run else None
    return None if elapsed_s is None else elapsed_s >= _LONG_S


def _waits_longer_than_billed(subject: TraitSource) -> bool | None:
    """Returns whether the runs waited longer in sum than they ran; None if too few show it."""
    own_run = [subject.newest_run] if subject.newest_run and not subject.is_request else []
    times = [
        (sum((run.phase_s.get(name, Decimal(0)) for name in START_PHASES), Decimal(0)), elapsed_s)
        for run in (*own_run, *subject.runs)
        if (elapsed_s := run.elapsed_s) and any(name in run.phase_s for name in START_PHASES)
    ]
    if len(times) < _FAMILY_RUNS:
        return None
    return sum(waited_s for waited_s, _ in times) > sum(elapsed_s for _, elapsed_s in times)


def _download(subject: TraitSource) -> str | None:
    if subject.audit is None:
        return NEVER_RUN if subject.is_request else None
    phases = [phase for phase in subject.audit["phases"] if phase["billed"]]
    if not phases or any(phase["seconds"] is None for phase in phases):
        return None
    times = [(phase["name"], phase["seconds"] or Decimal(0)) for phase in phases]
    download_s = sum((seconds for name, seconds in times if name == "Downloading"), Decimal(0))
    billed_s = sum((seconds for _, seconds in times), Decimal(0))
    is_long = download_s >= max(_DOWNLOAD_S, _DOWNLOAD_SHARE * billed_s)
    return "long" if is_long else "short"


def _inputs(job: Job) -> str:
    channels = job.channels
    if not channels:
        return "none"
    if any(channel.source in {DataSource.EFS, DataSource.FSX} for channel in channels):
        return "file_system"
    return "copied" if any(channel.is_copied for channel in channels) else "streamed"


Read = Callable[[TraitSource], TraitValue | None]


def _job_trait(read: Callable[[Job], TraitValue]) -> Read:
    return lambda subject: None if subject.job is None else read(subject.job)


def _type_trait(read: Callable[[Job, Sequence[InstanceType]], TraitValue | None]) -> Read:
    def read_subject(subject: TraitSource) -> TraitValue | None:
        types = [instance for instance in subject.types if instance is not None]
        if subject.job is None or not types or len(types) < len(subject.types):
            return None
        return read(subject.job, types)

    return read_subject


class Trait(NamedTuple):
    """The `values` that a trait can have, besides None, and the function that reads the trait."""

    values: frozenset[TraitValue]
    read: Read


_BOOLEAN: frozenset[TraitValue] = frozenset({True, False})
TRAITS: Mapping[str, Trait] = {
    "kind": Trait(frozenset(kind.value for kind in JobKind), lambda subject: subject.kind.value),
    "deep_learning": Trait(_BOOLEAN, _job_trait(lambda job: job.hints.deep_learning)),
    "mixed_precision": Trait(_BOOLEAN, _job_trait(lambda job: job.hints.mixed_precision)),
    "training_compiler": Trait(_BOOLEAN, _job_trait(lambda job: job.hints.training_compiler)),
    "pretrained": Trait(_BOOLEAN, _job_trait(_is_pretrained)),
    "distribution": Trait(
        frozenset({*DISTRIBUTIONS, "none"}),
        _job_trait(lambda job: job.hints.distribution or "none"),
    ),
    "purchase": Trait(
        frozenset(kind.value for kind in Purchase), _job_trait(lambda job: job.purchase.value)
    ),
    "warm_pool": Trait(_BOOLEAN, _job_trait(lambda job: job.warm_pool is not None)),
    "inputs": Trait(frozenset({"none", "file_system", "copied", "streamed"}), _job_trait(_inputs)),
    "network_isolation": Trait(_BOOLEAN, _network_isolation),
    "gpu": Trait(frozenset({"none", "g", "p"}), _type_trait(_gpu)),
    "devices": Trait(frozenset({"one", "several"}), _type_trait(_devices)),
    "tensor_cores": Trait(
        _BOOLEAN, _type_trait(lambda _, types: any(map(has_tensor_cores, types)))
    ),
    "volume_without_effect": Trait(_BOOLEAN, _type_trait(_has_useless_volume)),
    "gpu_use": Trait(frozenset({"busy", "waits", NEVER_RUN}), _gpu_use),
    "download": Trait(frozenset({"long", "short", NEVER_RUN}), _download),
    "objective_flat": Trait(_BOOLEAN, lambda subject: _has_finding(subject, _PLATEAU)),
    "input_bound": Trait(_BOOLEAN, lambda subject: _has_finding(subject, _INPUT_BOUND)),
    "failed_soon": Trait(_BOOLEAN, _has_failed_early),
    "short_and_expensive": Trait(_BOOLEAN, _is_short_and_expensive),
    "long": Trait(_BOOLEAN, _is_long),
    "waits_longer_than_it_works": Trait(_BOOLEAN, _waits_longer_than_billed),
}
"""All traits by name."""


def _traits(subject: TraitSource) -> Traits:
    return {name: trait.read(subject) for name, trait in TRAITS.items()}


class Guide(Struct, frozen=True):
    """One guide of the table. `when`: the accepted values by trait. `says`: the text."""

    name: str
    when: Mapping[str, tuple[TraitValue, ...]]
    says: str
    source: str

    def applies(self, traits: Traits) -> bool:
        """Returns whether each trait in `when` is known and has an accepted value."""
        return all(traits[name] in values for name, values in self.when.items())


class GuideDocument(TypedDict):
    """A guide as views show it."""

    name: str
    says: str
    source: str


def select_guides(traits: Traits) -> list[GuideDocument]:
    """Returns the guides that apply, in the order of the table."""
    method = _METHODS.get(str(traits["distribution"]), "")
    return [
        {
            "name": guide.name,
            "says": guide.says.replace("{distribution}", method),
            "source": guide.source,
        }
        for guide in load()
        if guide.applies(traits)
    ]


@cache
def load() -> tuple[Guide, ...]:
    """Returns all guides of the table."""
    text = resources.files("sageaudit.data").joinpath(TABLE).read_text(encoding="utf-8")
    rows: dict[str, dict[str, Any]] = tomllib.loads(text)
    return tuple(
        Guide(
            name,
            {trait: tuple(_values(accepted)) for trait, accepted in row["when"].items()},
            row["says"],
            row["source"],
        )
        for name, row in rows.items()
    )


def _values(accepted_values: TraitValue | list[TraitValue]) -> list[TraitValue]:
    return accepted_values if isinstance(accepted_values, list) else [accepted_values]
