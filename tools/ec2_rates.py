"""Renews the EC2 rates behind estimated rates: `python -m tools.ec2_rates FILE`.

FILE is Karpenter's zz_generated.pricing_aws.go (github.com/aws/karpenter-provider-aws, Apache-2.0,
pkg/providers/pricing), which its authors generate from EC2's price list. The tool takes the types
of the catalogue whose family has a tested factor. Types with a known SageMaker rate are included,
because a test predicts these. Factors do not change.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Any

from sageaudit.adapters.prices import packaged, sources
from sageaudit.domain.job.kinds import Component
from tools.hourly_prices import table_text

DATA = Path(str(resources.files("sageaudit.data"))) / sources.ESTIMATES_TABLE
_SOURCE = (
    "aws/karpenter-provider-aws (Apache-2.0), pkg/providers/pricing/zz_generated.pricing_aws.go"
)
_GENERATED = re.compile(r"// generated at (\d{4}-\d{2}-\d{2})T\S+ for (\S+)")
_RATE = re.compile(r'"([a-z0-9-]+\.[a-z0-9-]+)": (\d+\.\d+)')


class Unreadable(Exception):
    """The file is not as Karpenter writes it. The message is one sentence."""


def parse_rates(text: str) -> tuple[str, str, dict[str, Decimal]]:
    """Returns the day, the region and the USD per hour by EC2 type. Raises Unreadable."""
    generated, rates = _GENERATED.search(text), _RATE.findall(text)
    if generated is None or not rates:
        raise Unreadable("The file names no day and region, or has no rates.")
    return generated[1], generated[2], {name: Decimal(usd).normalize() for name, usd in rates}


def renew_table(table: Mapping[str, Any], text: str, types: Iterable[str]) -> dict[str, Any]:
    """Returns the table with the file's rates of these types. Raises Unreadable."""
    day, region, rates = parse_rates(text)
    estimated = sources.EstimatedPrices(table)
    rates_by_type = {
        name: rates[name.removeprefix("ml.")]
        for name in types
        if name.removeprefix("ml.") in rates
        and any(estimated.factor(name, component) for component in Component)
    }
    source = f"{_SOURCE}, generated {day}"
    provenance = {**table["provenance"], "as_of": day, "source": source}
    return {**table, "provenance": provenance, "ec2_usd_per_hour": {region: rates_by_type}}


def main() -> None:
    """Rewrites the packaged table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, help="Karpenter's zz_generated.pricing_aws.go")
    table = json.loads(DATA.read_text(encoding="utf-8"), parse_float=Decimal)
    text = parser.parse_args().path.read_text(encoding="utf-8")
    table = renew_table(table, text, packaged.instance_types())
    DATA.write_text(table_text(table), encoding="utf-8")
    counts = {region: len(rates) for region, rates in table["ec2_usd_per_hour"].items()}
    print(f"{DATA.name}: EC2 rates of {counts}, {table['provenance']['as_of']}")


if __name__ == "__main__":
    main()
