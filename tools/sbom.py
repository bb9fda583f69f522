"""Describes the third-party packages in the Lambda asset: a CycloneDX document and licences.

The packages are read from the metadata in the folder, not from the requirements. The hashes are
those that `functions/requirements.txt` accepts for each package.
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
    """A package in a folder. `licence` is the package's own text, if possible an SPDX
    expression.
    """

    name: str
    version: str
    licence: str
    sha256: tuple[str, ...] = ()

    @property
    def purl(self) -> str:
        """The package URL."""
        return f"pkg:pypi/{self.name.lower().replace('_', '-')}@{self.version}"


def distributions(folder: Path, requirements: str) -> list[Distribution]:
    """Returns all packages of a folder, by name.

    `requirements` is the text that pins them, with their hashes.
    """
    hashes = dict(_hashes(requirements))
    packages = []
    for metadata in folder.glob("*.dist-info/METADATA"):
        fields = message_from_string(metadata.read_text(encoding="utf-8"))
        name = str(fields["Name"])
        classified = [
            classifier
            for classifier in fields.get_all("Classifier", [])
            if classifier.startswith(_OSI)
        ]
        licence = fields["License-Expression"] or fields["License"] or "".join(classified[:1])
        word = licence.removeprefix(_OSI).splitlines()[0] if licence else "unknown"
        packages.append(
            Distribution(name, str(fields["Version"]), word, hashes.get(_key(name), ()))
        )
    return sorted(packages)


def _hashes(requirements: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    starts = list(_PINNED.finditer(requirements))
    ends = [*(pin.start() for pin in starts[1:]), len(requirements)]
    for pin, end in zip(starts, ends, strict=True):
        yield _key(pin[1]), tuple(_HASH.findall(requirements[pin.start() : end]))


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def document(version: str, packages: Sequence[Distribution]) -> str:
    """Returns a CycloneDX 1.6 document of a version. The same input gives the same text."""
    own_purl = "pkg:pypi/sageaudit"
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"{own_purl}@{version} {packages}")
    body: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": f"{own_purl}@{version}",
                "name": "sageaudit",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "purl": f"{own_purl}@{version}",
            }
        },
        "components": [_component(package) for package in packages],
        "dependencies": [
            {"ref": f"{own_purl}@{version}", "dependsOn": [package.purl for package in packages]},
            *({"ref": package.purl} for package in packages),
        ],
    }
    return json.dumps(body, indent=2) + "\n"


def _component(package: Distribution) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "licenses": [{"license": {"name": package.licence}}],
        "purl": package.purl,
        "properties": [
            {"name": "sageaudit:accepted-archive:sha256", "value": value}
            for value in package.sha256
        ],
    }


def licences(version: str, packages: Sequence[Distribution]) -> str:
    """Returns the list as a page. Each licence's text is in the package's `.dist-info` in the
    asset.
    """
    rows = [f"| {package.name} | {package.version} | {package.licence} |" for package in packages]
    head = f"# Licences of sageaudit {version}\n\nsageaudit itself is under Apache-2.0."
    table = ["| in the Lambda asset | version | licence |", "|---|---|---|", *rows]
    return "\n".join([head, "", *table, ""])
