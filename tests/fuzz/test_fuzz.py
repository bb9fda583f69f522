"""Mutated events, records, notices, decisions and AWS answers cause no defect and no loss.

A failure names its seed: `fuzz_audit(Random(SEED))` repeats that input.
"""

import os
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from tests.fuzz.conftest import INPUTS
from tests.fuzz.rigs import HANDLERS

PARTS, SAMPLE = 20, 60
OF_A_PART = int(os.environ.get("FUZZ_INPUTS", "20000")) // PARTS
"""A twentieth of the inputs of each handler: make fuzz FUZZ_INPUTS=8000."""
FIRST_SEED = int(os.environ.get("FUZZ_SEED", "1"))
"""Another number gives other inputs: make fuzz FUZZ_SEED=2."""
Record = Callable[[str, object], None]


def run(handler: str, seeds: range, record: Record) -> None:
    """Runs the inputs of these seeds; groups the failures, with the first seeds of each."""
    wrong: dict[str, list[int]] = {}
    kinds: Counter[str] = Counter()
    for seed in seeds:
        for problem in HANDLERS[handler](Random(seed)):
            kinds[problem[:150]] += 1
            wrong.setdefault(problem[:150], []).append(seed)
    record(INPUTS, len(seeds))
    assert not wrong, "\n" + "\n".join(
        f"{kinds[problem]} x {problem} (seeds {', '.join(map(str, seeds[:3]))})"
        for problem, seeds in wrong.items()
    )


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("handler", HANDLERS)
def test_mutated_inputs(handler: str, part: int, record_property: Record) -> None:
    """Each handler survives thousands of mutated inputs."""
    first = FIRST_SEED * 1_000_000 + part * OF_A_PART
    run(handler, range(first, first + OF_A_PART), record_property)


@pytest.mark.parametrize("handler", HANDLERS)
def test_some_mutated_inputs(handler: str, record_property: Record) -> None:
    """Each handler survives the first inputs, in every test run."""
    run(handler, range(1_000_000, 1_000_000 + SAMPLE), record_property)
