"""Rebuilds the catalogue of instance types from EC2: `python -m tools.catalogue`.

    python -m tools.catalogue                    asks EC2, with your AWS credentials
    python -m tools.catalogue --from types.json  what `aws ec2 describe-instance-types` printed

Measured fields come from EC2. Rows entered by hand (types that EC2 no longer describes) and
editorial fields (category, legacy, successors) do not change. botocore's enums say which kinds of
job may use a type. A type that neither EC2 nor the catalogue describes is named and left out.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import boto3
import botocore
import botocore.session

from sageaudit.domain.job.kinds import BILLED_KINDS

CATALOGUE = Path(str(resources.files("sageaudit.data"))) / "instance_types.json"
_ENUMS = {kind.value: f"{kind.spec.prefix}InstanceType" for kind in BILLED_KINDS}
_ORDER = (
    "family", "size", "category", "vcpu", "memory_gib", "gpus", "gpu", "gpu_memory_gib",
    "accelerator", "kinds", "efa", "network_gbps", "ebs_volume_billed", "local_nvme_gb",
    "legacy_family", "successors",
    "entered_by_hand",
)  # fmt: skip
_GIB = 1024
_GIGABIT = re.compile(r"(?:Up to )?(?:(\d+)x )?([\d.]+) Gigabit")
_COMPUTE_BELOW_GIB, _MEMORY_FROM_GIB = 3, 7
"""GiB per vCPU: AWS's compute types have 2, general ones 4, memory ones 8."""

Row = dict[str, Any]


class Unreadable(Exception):
    """EC2's answer is not as EC2 documents it. The message is one sentence."""


def enums() -> dict[str, list[str]]:
    """Returns the instance types that the installed botocore accepts, by kind of job."""
    model = botocore.session.get_session().get_service_model("sagemaker")
    return {kind: list(model.shape_for(shape).enum) for kind, shape in _ENUMS.items()}


def unknown_types(catalogue: Mapping[str, Any], offered: Iterable[str]) -> list[str]:
    """Returns the types that the API accepts and the catalogue lacks."""
    return sorted(set(offered) - set(catalogue))


def rebuild(
    catalogue: Mapping[str, Row], described: Iterable[Mapping[str, Any]], offered: dict[str, Any]
) -> tuple[dict[str, Row], list[str]]:
    """Returns the new rows in the old order, new types last, and a sentence for each missing type.

    Raises Unreadable for an entry without a documented key.
    """
    ec2 = {f"ml.{entry.get('InstanceType')}": entry for entry in described}
    rows: dict[str, Row] = {}
    notes = []
    for name in [*catalogue, *unknown_types(catalogue, offered["training"])]:
        old_row = catalogue.get(name)
        if old_row is not None and old_row.get("entered_by_hand"):
            row = dict(old_row)
        elif name in ec2:
            row = _row(name, ec2[name], old_row)
        elif old_row is not None:
            notes.append(f"{name}: EC2 did not describe it; its row stays as it was")
            row = dict(old_row)
        else:
            notes.append(f"{name}: neither EC2 nor the catalogue knows it; it stays unknown")
            continue
        row["kinds"] = [kind for kind in _ENUMS if name in offered[kind]]
        rows[name] = {key: row[key] for key in _ORDER if key in row}
    return rows, notes


def _row(name: str, entry: Mapping[str, Any], old_row: Row | None) -> Row:
    try:
        return _measured(name, entry) | _editorial(entry, old_row)
    except (KeyError, TypeError) as error:
        raise Unreadable(f"{name}: EC2's entry has no {error}") from error


def _measured(name: str, entry: Mapping[str, Any]) -> Row:
    family, _, size = name.removeprefix("ml.").partition(".")
    row: Row = {
        "family": family,
        "size": size,
        "vcpu": entry["VCpuInfo"]["DefaultVCpus"],
        "memory_gib": _gib(entry["MemoryInfo"]["SizeInMiB"]),
        "gpus": 0,
        "efa": entry["NetworkInfo"]["EfaSupported"],
        # SageMaker provisions no EBS volume for types with local NVMe
        "ebs_volume_billed": not entry["InstanceStorageSupported"],
    }
    if network_gbps := _network_gbps(entry["NetworkInfo"]):
        row["network_gbps"] = network_gbps
    if local_gb := entry.get("InstanceStorageInfo", {}).get("TotalSizeInGB"):
        row["local_nvme_gb"] = local_gb
    gpus = entry.get("GpuInfo", {}).get("Gpus", [])
    if gpus:
        if len({(gpu["Name"], gpu["MemoryInfo"]["SizeInMiB"]) for gpu in gpus}) > 1:
            raise Unreadable(f"{name} has GPUs of several models: the catalogue has one")
        row["gpus"] = sum(gpu["Count"] for gpu in gpus)
        row["gpu"] = gpus[0]["Name"]
        row["gpu_memory_gib"] = _gib(gpus[0]["MemoryInfo"]["SizeInMiB"])
        row["accelerator"] = gpus[0]["Manufacturer"].lower()
    elif "NeuronInfo" in entry:
        row["accelerator"] = "neuron"
    return row


def _network_gbps(network: Mapping[str, Any]) -> float:
    """Returns the most that all network cards carry together, by either of EC2's fields; 0 if
    unknown.
    """
    cards = network.get("NetworkCards", [])
    peak_gbps = sum(card.get("PeakBandwidthInGbps", 0) for card in cards)
    match = _GIGABIT.fullmatch(network.get("NetworkPerformance", ""))
    return max(float(peak_gbps), int(match[1] or 1) * float(match[2]) if match else 0.0)


def _gib(mib: int) -> float:
    return round(mib / _GIB, 2)


def _editorial(entry: Mapping[str, Any], old_row: Row | None) -> Row:
    """Returns the old row's fields. A new type gets its category by EC2's figures, and no
    successors.
    """
    if old_row is not None:
        return {key: old_row[key] for key in ("category", "legacy_family", "successors")}
    return {"category": _category(entry), "legacy_family": False, "successors": []}


def _category(entry: Mapping[str, Any]) -> str:
    if "GpuInfo" in entry:
        return "gpu"
    if "NeuronInfo" in entry:
        return "trainium"
    if entry.get("BurstablePerformanceSupported"):
        return "burstable"
    ratio = entry["MemoryInfo"]["SizeInMiB"] / _GIB / entry["VCpuInfo"]["DefaultVCpus"]
    if ratio < _COMPUTE_BELOW_GIB:
        return "compute"
    return "memory" if ratio >= _MEMORY_FROM_GIB else "general"


def read_file(path: Path) -> list[Mapping[str, Any]]:
    """Returns the entries of a file as the AWS CLI prints it. Raises Unreadable with the file's
    name.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: {error}") from error
    entries = document.get("InstanceTypes") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise Unreadable(f"{path} has no list InstanceTypes: is it describe-instance-types?")
    return entries


def describe_types(region: str) -> Iterator[Mapping[str, Any]]:
    """Yields every type that EC2 describes in a region, page by page."""
    pages = boto3.client("ec2", region_name=region).get_paginator("describe_instance_types")
    for page in pages.paginate():
        yield from page["InstanceTypes"]


def text(provenance: Mapping[str, Any], rows: Mapping[str, Row]) -> str:
    """Returns the file's text, with one row per line, so that a diff shows the changed types."""
    head = json.dumps({"provenance": provenance}, indent=1, ensure_ascii=False)[:-2]
    body = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    return f'{head},\n "types": {{\n{body}\n }}\n}}\n'


def main(arguments: list[str] | None = None) -> int:
    """Rewrites the catalogue, and prints types that were not found to stderr."""
    parser = argparse.ArgumentParser(prog="python -m tools.catalogue", description=__doc__)
    parser.add_argument("--from", dest="file", type=Path, help="EC2's answer as the CLI printed it")
    parser.add_argument("--region", default="us-east-1", help="where EC2 is asked (us-east-1)")
    parser.add_argument("--catalogue", type=Path, default=CATALOGUE, help="the file to rewrite")
    chosen = parser.parse_args(arguments)
    document = json.loads(chosen.catalogue.read_text(encoding="utf-8"))
    try:
        described = read_file(chosen.file) if chosen.file else describe_types(chosen.region)
        rows, notes = rebuild(document["types"], described, enums())
    except Unreadable as error:
        sys.stderr.write(f"catalogue: {error}\n")
        return 2
    description = f"Specifications of {len(rows)} instance types of SageMaker's training enum"
    provenance = document["provenance"] | {
        "what": f"{description} (botocore {botocore.__version__})",
        "botocore": botocore.__version__,
        "rebuilt_from": "a file" if chosen.file else f"EC2 in {chosen.region}",
        "as_of": f"{datetime.now(UTC):%Y-%m}",
    }
    chosen.catalogue.write_text(text(provenance, rows), encoding="utf-8")
    for note in notes:
        sys.stderr.write(f"catalogue: {note}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
