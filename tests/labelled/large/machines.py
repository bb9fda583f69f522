"""Machines of the scenarios: sizes and on-demand rates, copied as literals.

The figures stand here a second time on purpose: an expert's dollars must not come from the code
that is judged. Sizes and GiB per GPU: EC2's tables. USD per hour and GB-month: AWS's price list of
us-east-1, 2026-05-20.
"""

from dataclasses import dataclass
from decimal import Decimal

Range = tuple[Decimal, Decimal]

MAY_HOURS = Decimal(744)  # hours of May 2026: a GB-month of that month
TRAINING_GB_MONTH = Decimal("0.14")  # storage-prices.json, us-east-1, observed
PROCESSING_GB_MONTH = Decimal("0.10")  # plain gp2 = training rate / 1.4 (derived)
CENT = Decimal("0.01")


@dataclass(frozen=True)
class Machine:
    vcpu: int
    memory_gib: int
    gpus: int
    gpu_gib: float
    usd_hour: Decimal | None  # hourly-prices-2026-05-20.json, us-east-1; None: not in the file
    ebs: bool = False  # an EBS volume is provisioned and billed


def _m(vcpu: int, mem: int, gpus: int, gib: float, usd: str | None, ebs: bool = False) -> Machine:
    return Machine(vcpu, mem, gpus, gib, None if usd is None else Decimal(usd), ebs)


# instance-types.json and hourly-prices-2026-05-20.json (us-east-1), read on 2026-11-22
MACHINES: dict[str, Machine] = {
    "ml.g5.xlarge": _m(4, 16, 1, 22.35, "1.408"),
    "ml.g5.2xlarge": _m(8, 32, 1, 22.35, "1.515"),
    "ml.g5.4xlarge": _m(16, 64, 1, 22.35, "2.03"),
    "ml.g5.8xlarge": _m(32, 128, 1, 22.35, "3.06"),
    "ml.g5.16xlarge": _m(64, 256, 1, 22.35, "5.12"),
    "ml.g5.12xlarge": _m(48, 192, 4, 22.35, "7.09"),
    "ml.g5.48xlarge": _m(192, 768, 8, 22.35, "20.36"),
    "ml.g6.2xlarge": _m(8, 32, 1, 22.35, "1.222"),
    "ml.g6.4xlarge": _m(16, 64, 1, 22.35, "1.654"),
    "ml.g6.12xlarge": _m(48, 192, 4, 22.35, "5.752"),
    "ml.g6.48xlarge": _m(192, 768, 8, 22.35, "16.688"),
    "ml.g6e.xlarge": _m(4, 32, 1, 44.7, "2.6054"),
    "ml.g6e.2xlarge": _m(8, 64, 1, 44.7, "2.8026"),
    "ml.g6e.4xlarge": _m(16, 128, 1, 44.7, "3.7553"),
    "ml.g7e.2xlarge": _m(8, 64, 1, 96.0, "4.2039"),
    "ml.g7e.12xlarge": _m(48, 512, 2, 96.0, "10.3576"),
    "ml.p3.2xlarge": _m(8, 61, 1, 16.0, "3.825", True),
    "ml.p3.8xlarge": _m(32, 244, 4, 16.0, "14.688", True),
    "ml.p3.16xlarge": _m(64, 488, 8, 16.0, "28.152", True),
    "ml.p3dn.24xlarge": _m(96, 768, 8, 32.0, None),
    "ml.p4d.24xlarge": _m(96, 1152, 8, 40.0, "25.2512883"),
    "ml.p4de.24xlarge": _m(96, 1152, 8, 80.0, "31.5641075"),
    "ml.p5.48xlarge": _m(192, 2048, 8, 80.0, "63.296"),
    "ml.p5e.48xlarge": _m(192, 2048, 8, 141.0, None),
    "ml.trn1.32xlarge": _m(128, 512, 0, 0.0, "24.73"),
    "ml.m5.xlarge": _m(4, 16, 0, 0.0, "0.23", True),
    "ml.m5.2xlarge": _m(8, 32, 0, 0.0, "0.461", True),
    "ml.m5.4xlarge": _m(16, 64, 0, 0.0, "0.922", True),
    "ml.m5.12xlarge": _m(48, 192, 0, 0.0, "2.765", True),
    "ml.m5.24xlarge": _m(96, 384, 0, 0.0, "5.53", True),
    "ml.c5.xlarge": _m(4, 8, 0, 0.0, "0.204", True),
    "ml.c5.2xlarge": _m(8, 16, 0, 0.0, "0.408", True),
    "ml.c5.4xlarge": _m(16, 32, 0, 0.0, "0.816", True),
    "ml.c5.9xlarge": _m(36, 72, 0, 0.0, "1.836", True),
    "ml.c5.18xlarge": _m(72, 144, 0, 0.0, "3.672", True),
    "ml.r5.xlarge": _m(4, 32, 0, 0.0, "0.302", True),
    "ml.r5.2xlarge": _m(8, 64, 0, 0.0, "0.605", True),
    "ml.r5.4xlarge": _m(16, 128, 0, 0.0, "1.21", True),
    "ml.r5.12xlarge": _m(48, 384, 0, 0.0, "3.629", True),
    "ml.r5.24xlarge": _m(96, 768, 0, 0.0, "7.258", True),
}


def rate(kind: str) -> Decimal:
    """USD per hour of a type whose rate is known."""
    usd = MACHINES[kind].usd_hour
    if usd is None:
        raise ValueError(f"{kind} has no packaged rate")
    return usd


def usd(kind: str, hours: float, hosts: int = 1) -> Decimal:
    """On-demand dollars of so many instance-hours, by the rates above."""
    return rate(kind) * Decimal(str(hours)) * hosts


def cents(low: Decimal | float, high: Decimal | float) -> Range:
    """A range of dollars or hours, rounded outwards by at most a cent."""
    return (Decimal(str(low)).quantize(CENT), Decimal(str(high)).quantize(CENT))


NOTHING: Range = (Decimal(0), Decimal(0))


def merged(total: float, n: int, m: int, times: float = 1.0) -> float:
    """Upper bound of the time factor when n devices, whose use sums to `total` percent, become m.

    times: how much slower one new device is than one old device (1 for the same model).
    """
    use = total / (100 * n)
    return max(1.0, 1 + use * (n / m * times - 1))
