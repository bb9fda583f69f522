"""Writes a rule with its test and its labelled story: `make rule NAME=volume-nearly-full ID=SA506`.

The hundred of the id decides the folder. The files contain a working example that checks the size
of the volume. Each place to fill in is marked, and the tests fail until no mark is left.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from string import Template

from sageaudit.rules import catalogue
from sageaudit.rules.card import Rule

ROOT = Path(__file__).parent.parent
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")
_ID = re.compile(r"SA[1-9][0-9]{2}")
_MARK = "TO" + "DO"

RULE = '''"""$mark: one sentence that says what is wrong with the job. Tables show it as the title.

What it checks: $mark: what is compared with which threshold.
Why it costs: $mark: what AWS bills for it.
Saving: $mark: what is counted, in one sentence; without a figure, why only a trial shows it.
When it is wrong: $mark: jobs that look the same and need no change.
What to do: $mark: what a person changes.
Sources: $mark: where the thresholds come from.
"""

from __future__ import annotations

from sageaudit.rules import api

MIN_VOLUME = api.Threshold("min_volume_gb", 12_000, "GB", "$mark: why this number")


@api.rule(
    id="$id",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_VOLUME,),
    not_applicable=(api.serverless_reason,),
)
def check(case: api.JobCase) -> api.Outcome:
    """$mark: what it looks at. The example judges the size of the volume."""
    size = case.job.volume_gb
    if size is None:
        return api.Unknown("volume_unknown", "the volume's size is not known")
    if size <= case.threshold(MIN_VOLUME):
        return api.Clear()
    return api.recommendation(
        f"Each instance has a volume of {size} GB.",
        {"volume_gb": size},
        caution="No figure: $mark, why there is none, or api.derived_saving(…, fix=…, change=…).",
    )
'''
TEST = '''"""$mark: what the rule finds, in one sentence."""

from functools import partial

from sageaudit.domain.job.job import Purchase
from tests.fakes.jobs import ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

verdict = partial(answer, "$name")


def test_a_volume_over_the_threshold_is_found() -> None:
    """$mark: the behaviour; below, the numbers, the fix and its dollars, worked out by hand."""
    assert verdict(ran(3600, volume_gb=12_001)) == finds(
        "Each instance has a volume of 12001 GB.",
        confidence="heuristic",
        bucket="none",
        evidence={"volume_gb": 12_001},
    )


def test_a_value_equal_to_the_threshold_is_not_over_it() -> None:
    assert verdict(ran(3600, volume_gb=1)) == CLEAR
    assert verdict(ran(3600, volume_gb=12_000)) == CLEAR


def test_the_policy_may_set_the_threshold_by_its_key() -> None:
    assert verdict(ran(3600, volume_gb=100), limits={"min_volume_gb": 99}) == FOUND
    assert verdict(ran(3600, volume_gb=100), limits={"min_volume_gb": 100}) == CLEAR


def test_what_is_not_known_is_never_a_finding_and_never_clear() -> None:
    assert verdict(ran(3600, volume_gb=None)) == cannot_judge("volume_unknown")


def test_a_serverless_job_has_no_volume() -> None:
    """$mark: which reasons the card names."""
    assert verdict(ran(3600, purchase=Purchase.SERVERLESS)) == does_not_apply("…serverless…")
'''
STORY = '''"""$mark: what happened in the job, without this project's thresholds."""

from sageaudit.structs import replace

from tests.labelled.machine import one_host
from tests.labelled.made_up_job import SKLEARN, Plot
from tests.labelled.story import BUSY_CPU, story

FULL = replace(BUSY_CPU, disk=80)
STORIES = (
    # $mark: a name that says what happened. `must_find`: all rules that are right about it, older
    # ones too; `may_find`: rules that may find it or not; `must_not_find`: rules that must be
    # silent, of which one story shows that they are
    story(
        "a-story-of-$name",
        Plot(
            instance="ml.m5.4xlarge",
            hosts=one_host(FULL),
            image=SKLEARN,
            volume_gb=13_000,
        ),
        must_find=("$name",),
        may_find=(),
    ),
    story(
        "a-story-without-$name",
        Plot(instance="ml.m5.4xlarge", hosts=one_host(BUSY_CPU), image=SKLEARN),
        must_not_find=("$name",),
    ),
)
'''


class InvalidRule(Exception):
    """The name or the id cannot be used. The message is one sentence."""


def folders(rules: tuple[Rule, ...]) -> dict[str, str]:
    """Returns the folder for each first digit, by the first three characters of the ids."""
    return {rule.info.id[:3]: rule.check.__module__.split(".")[-2] for rule in rules}


def files(name: str, rule_id: str, rules: tuple[Rule, ...], root: Path = ROOT) -> dict[Path, str]:
    """Returns each file to write, with its text. Raises InvalidRule."""
    folder, module = _folder(name, rule_id, rules), name.replace("-", "_")
    words: Mapping[str, str] = {"name": name, "id": rule_id, "mark": _MARK}
    paths = {
        root / "functions/sageaudit/rules" / folder / f"{module}.py": RULE,
        root / "tests/rules" / folder / f"test_{module}.py": TEST,
        root / "tests/labelled/stories" / f"{module}.py": STORY,
    }
    for path in paths:
        if path.exists():
            raise InvalidRule(f"the file {path.relative_to(root)} exists already")
    return {path: Template(text).substitute(words) for path, text in paths.items()}


def _folder(name: str, rule_id: str, rules: tuple[Rule, ...]) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidRule(
            f"NAME {name!r} must be words joined by hyphens, such as volume-nearly-full"
        )
    if not _ID.fullmatch(rule_id):
        raise InvalidRule(f"ID {rule_id!r} must be SA and three digits, such as SA506")
    folder_by_ids = folders(rules)
    if rule_id[:3] not in folder_by_ids:
        places = ", ".join(f"{start}xx {folder}" for start, folder in sorted(folder_by_ids.items()))
        raise InvalidRule(f"no folder has ids {rule_id[:3]}xx; there are {places}")
    for rule in rules:
        if rule.info.name == name:
            raise InvalidRule(f"the name {name} is taken by {rule.info.id}")
        if rule.info.id == rule_id:
            free = _next_free(rule_id, rules)
            raise InvalidRule(f"the id {rule_id} is taken by {rule.info.name}; {free} is free")
    return folder_by_ids[rule_id[:3]]


def _next_free(rule_id: str, rules: tuple[Rule, ...]) -> str:
    taken = {rule.info.id for rule in rules}
    numbers = range(int(rule_id[2]) * 100 + 1, int(rule_id[2]) * 100 + 100)
    return next((f"SA{n}" for n in numbers if f"SA{n}" not in taken), "no id of this hundred")


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Writes the files and prints their paths. If it cannot, it prints one sentence and returns
    2.
    """
    parser = argparse.ArgumentParser(prog="make rule", description=__doc__)
    parser.add_argument("name", help="words joined by hyphens, such as volume-nearly-full")
    parser.add_argument("id", help="SA and three digits, such as SA506")
    chosen = parser.parse_args(arguments)
    try:
        texts = files(chosen.name, chosen.id, catalogue.load(), root)
    except InvalidRule as error:
        sys.stderr.write(f"make rule: {error}\n")
        return 2
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(root))
    print(f"Fill in each {_MARK}, then: make golden docs check")
    return 0


if __name__ == "__main__":
    sys.exit(main())
