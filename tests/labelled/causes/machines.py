"""Further machines of the scenarios: sizes and on-demand rates, copied as literals.

Same units and sources as the machines of the large jobs (us-east-1, 2026-05-20). A type whose rate
is only an estimate has none here: its bill is not known, and an expert's dollars use `about`.
"""

from decimal import Decimal

from tests.labelled.large.machines import (
    MACHINES,
    NOTHING,
    Machine,
    Range,
    cents,
    rate,
    usd,
)

__all__ = ["MACHINES", "NOTHING", "Machine", "Range", "about", "cents", "part", "rate", "usd"]


def _m(vcpu: int, mem: int, gpus: int, gib: float, usd: str | None, ebs: bool = False) -> Machine:
    return Machine(vcpu, mem, gpus, gib, None if usd is None else Decimal(usd), ebs)


# instance-types.json and hourly-prices-2026-05-20.json (us-east-1), read on 2026-11-22
MORE: dict[str, Machine] = {
    "ml.g4dn.xlarge": _m(4, 16, 1, 16.0, "0.736"),
    "ml.g4dn.2xlarge": _m(8, 32, 1, 16.0, "0.94"),
    "ml.g4dn.4xlarge": _m(16, 64, 1, 16.0, "1.505"),
    "ml.g5.24xlarge": _m(96, 384, 4, 22.35, "10.18"),
    "ml.g6.xlarge": _m(4, 16, 1, 22.35, "1.1267"),
    "ml.g6e.12xlarge": _m(48, 384, 4, 44.7, "13.1158"),
    "ml.p5en.48xlarge": _m(192, 2048, 8, 141.0, "72.795"),
    "ml.p6-b200.48xlarge": _m(192, 2048, 8, 179.06, "131.02272"),
    "ml.trn1.2xlarge": _m(8, 32, 0, 0.0, "1.55"),
    "ml.trn2.48xlarge": _m(192, 2048, 0, 0.0, None),
    "ml.m5.large": _m(2, 8, 0, 0.0, "0.115", True),
    "ml.m7i.4xlarge": _m(16, 64, 0, 0.0, "0.968", True),
    "ml.c7i.4xlarge": _m(16, 32, 0, 0.0, "0.857", True),
    "ml.t3.xlarge": _m(4, 16, 0, 0.0, None, True),
    "ml.m6i.8xlarge": _m(32, 128, 0, 0.0, None, True),
    "ml.r6i.4xlarge": _m(16, 128, 0, 0.0, None, True),
}
for _kind, _box in MORE.items():
    MACHINES.setdefault(_kind, _box)

# EC2 on-demand rate x 1.20 (more-prices.json, us-east-1): an estimate, not a price
ABOUT: dict[str, Decimal] = {
    "ml.t3.xlarge": Decimal("0.1664") * Decimal("1.2"),
    "ml.m6i.8xlarge": Decimal("1.536") * Decimal("1.2"),
    "ml.r6i.4xlarge": Decimal("1.008") * Decimal("1.2"),
}


def about(kind: str, hours: float, low: float, high: float) -> Range:
    """A range of dollars as shares of an estimated bill."""
    total = ABOUT[kind] * Decimal(str(hours))
    return cents(total * Decimal(str(low)), total * Decimal(str(high)))


def part(of: str, to: str, times: float = 1.0) -> float:
    """The share (0..1) of the bill that a move saves, at so many times the time."""
    return float(1 - rate(to) * Decimal(str(times)) / rate(of))
