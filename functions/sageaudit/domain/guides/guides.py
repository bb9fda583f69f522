"""Guides: advice without dollars, chosen by the traits of a job or request.

They are printed on request and folded on the page of a job; they are never stored, counted or sent.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, TypedDict

from msgspec import Struct

from sageaudit.domain.guides import Traits, TraitValue

TABLE = "guides.toml"
"""In `sageaudit.data`."""
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
"""The words for what a request names; without one, no sentence has a place for them."""


class Guide(Struct, frozen=True):
    """One row: `when` has the accepted values of each trait that it needs."""

    name: str
    when: Mapping[str, tuple[TraitValue, ...]]
    says: str
    source: str

    def applies(self, traits: Traits) -> bool:
        """Whether each trait that it needs is known and has an accepted value."""
        return all(traits[name] in values for name, values in self.when.items())


class GuideDocument(TypedDict):
    """A guide as views show it."""

    name: str
    says: str
    source: str


def chosen(traits: Traits) -> list[GuideDocument]:
    """The guides that apply, in the order of the table."""
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
    """All rows of the table."""
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


def _values(accepted: TraitValue | list[TraitValue]) -> list[TraitValue]:
    return accepted if isinstance(accepted, list) else [accepted]
