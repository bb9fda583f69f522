"""What the Lambda asset contains of others: a CycloneDX document and a list of licences.

Read from the metadata of what is really in the folder, not from what was asked for. The hashes are
those that `functions/requirements.txt` accepts of each package.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email import message_from_string
from pathlib import Path
from typing import Any

_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)
_OSI = "License :: OSI Approved :: "


@dataclass(frozen=True, slots=True, order=True)
class Distribution:
    """A package in a folder. `licence`: as it says itself, an SPDX expression where it has one."""

    name: str
    version: str
    licence: str
    sha256: tuple[str, ...] = ()

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:pypi/{self.name.lower().replace('_', '-')}@{self.version}"


def distributions(folder: Path, requirements: str) -> list[Distribution]:
    """All of a folder, by name. `requirements`: the text that pins them, with their hashes."""
    hashes = dict(_hashes(requirements))
    found = []
    for metadata in folder.glob("*.dist-info/METADATA"):
        says = message_from_string(metadata.read_text(encoding="utf-8"))
        name = str(says["Name"])
        classified = [one for one in says.get_all("Classifier", []) if one.startswith(_OSI)]
        licence = says["License-Expression"] or says["License"] or "".join(classified[:1])
        word = licence.removeprefix(_OSI).splitlines()[0] if licence else "unknown"
        found.append(Distribution(name, str(says["Version"]), word, hashes.get(_key(name), ())))
    return sorted(found)


def _hashes(requirements: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    starts = list(_PINNED.finditer(requirements))
    ends = [*(one.start() for one in starts[1:]), len(requirements)]
    for one, end in zip(starts, ends, strict=True):
        yield _key(one[1]), tuple(_HASH.findall(requirements[one.start() : end]))


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def document(version: str, found: Sequence[Distribution]) -> str:
    """A CycloneDX 1.6 document of a version; the same input gives the same text."""
    own = "pkg:pypi/sageaudit"
    body: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{own}@{version} {found}')}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": f"{own}@{version}",
                "name": "sageaudit",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "purl": f"{own}@{version}",
            }
        },
        "components": [_component(one) for one in found],
        "dependencies": [
            {"ref": f"{own}@{version}", "dependsOn": [one.purl for one in found]},
            *({"ref": one.purl} for one in found),
        ],
    }
    return json.dumps(body, indent=2) + "\n"


def _component(one: Distribution) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": one.purl,
        "name": one.name,
        "version": one.version,
        "licenses": [{"license": {"name": one.licence}}],
        "purl": one.purl,
        "properties": [
            {"name": "sageaudit:accepted-archive:sha256", "value": value} for value in one.sha256
        ],
    }


def licences(version: str, found: Sequence[Distribution]) -> str:
    """The list as a page; each licence's text is in its `.dist-info` folder of the asset."""
    rows = [f"| {one.name} | {one.version} | {one.licence} |" for one in found]
    head = f"# Licences of sageaudit {version}\n\nsageaudit itself is under Apache-2.0."
    table = ["| in the Lambda asset | version | licence |", "|---|---|---|", *rows]
    return "\n".join([head, "", *table, ""])
