from __future__ import annotations

from decimal import Decimal

import pytest

from sageaudit.output.text.facts import unsaid


@pytest.mark.parametrize(
    ("sentence", "key", "fact"),
    [
        ("The GPU averaged 24% (P95 26%) over 9 h 59 min.", "gpu_mean_percent", Decimal("23.9")),
        ("The GPU averaged 24% (P95 26%) over 9 h 59 min.", "gpu_p95_percent", Decimal("26.4")),
        ("The GPU averaged 24% over 9 h 59 min.", "active_minutes", 599),
        ("It ran for 1 h on demand.", "elapsed_s", Decimal(3600)),
        ("At its peak 0.8 GPUs and 14.0 GiB.", "gpus_needed", Decimal("0.78")),
        ("At its peak 0.8 GPUs and 14.0 GiB.", "gpu_memory_needed_gib", 14.0),
        ("It cost $1,234.57 in all.", "total_usd", Decimal("1234.567")),
        ("It ran on 1 x ml.p3.2xlarge.", "instance_type", "ml.p3.2xlarge"),
        ("No GPU worked for 2 h.", "gpu_hours_not_counted", Decimal(0)),
    ],
)
def test_a_figure_of_the_sentence_is_not_shown_again(sentence: str, key: str, fact: object) -> None:
    """Two roundings of one figure look like two figures."""
    assert unsaid(sentence, [(key, fact)]) == []


@pytest.mark.parametrize(
    ("sentence", "key", "fact"),
    [
        ("The GPU averaged 24%.", "gpu_max_percent", Decimal("28.3")),
        ("The work of the 4 GPUs.", "vcpu", 4),
        ("It took 4 h 20 min.", "elapsed_s", Decimal(4 * 3600)),
        ("It took 4 h 20 min.", "starting_s", Decimal(20 * 60)),
        ("4% of the GPU.", "gpu_memory_gib", Decimal(4)),
        ("It failed.", "checkpointed", False),
        ("It failed.", "status", "Failed"),
        ("It failed.", "failed_trials", 0),
        ("No GPU worked for 2 h.", "gpu_hours_not_counted", Decimal(16)),
        ("It failed.", "limit_s", None),
    ],
)
def test_every_other_fact_is_shown(sentence: str, key: str, fact: object) -> None:
    """Another unit, another figure, a count, and a text that is no figure."""
    assert unsaid(sentence, [(key, fact)]) == [(key, fact)]
