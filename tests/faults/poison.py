"""Puts stored items that cannot be read beside those of a story, before it begins."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache, partial
from typing import Any

from boto3.dynamodb.types import TypeSerializer

from local import ACCOUNT, REGION
from local.demo import POLICY
from sageaudit.adapters.files.policy_file import load_policy
from sageaudit.adapters.history.codec import moment_sk
from sageaudit.adapters.history.dynamo import keys
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.family import family as family_of
from tests.faults.expected import End, Expected
from tests.faults.stories import Story, stories
from tests.faults.verdict import Case
from tests.faults.world import World

Item = Mapping[str, Any]
UNREADABLE = "UnreadableItems"


def poisons(story: Story) -> Mapping[str, Item]:
    """Returns an odd item of each kind that a story's functions read in lists, by its name."""
    job = story.jobs[0]
    described = parse(job.describe, job.tags, account=ACCOUNT, region=REGION)
    account, region, family = ACCOUNT, REGION, family_of(described, load_policy(POLICY).family_tag)
    ended_at = job.ended_at - timedelta(hours=1)
    key = JobKey(job.key.arn.replace(job.name, "poisoned"), ended_at - timedelta(hours=1))
    in_lists = {
        "family_pk": keys.family_pk(account, region, family),
        "account_pk": keys.account_pk(account),
        "day_pk": keys.day_pk(ended_at, key),
        "ended_sk": moment_sk(ended_at, key),
    }
    due = {"due_pk": keys.due_pk(key), "due_sk": moment_sk(ended_at, key)}
    head = {"pk": keys.job_pk(key), "sk": keys.HEAD_SK, **in_lists}
    decision = {"pk": keys.RECOMMENDATIONS_PK, "sk": "abcdefgh#2026-01-01T00:00:00.000000Z"}
    return {
        "head without attributes": head,
        "due head without attributes": head | due,
        "head with a text for a total": head | {"total_usd": "much", "settled": True},
        "family's run without a stamp": {
            "pk": keys.family_runs_pk(account, region, family),
            "sk": moment_sk(ended_at, key),
            "arn": 7,
        },
        "decision without attributes": decision,
        "decision of an unknown verb": decision
        | {
            "recommendation_id": "abcdefgh",
            "action": "postpone",
            "by": "ana",
            "at": "2026-01-01T00:00:00.000000Z",
        },
        "decision at the end of time": decision
        | {
            "recommendation_id": "abcdefgh",
            "action": "exempt",
            "by": "ana",
            "at": "2026-01-01T00:00:00.000000Z",
            "until": "9999-12-31",
        },
    }


@cache
def poisoned_cells() -> tuple[Case, ...]:
    """Returns a cell for each story and each odd item."""
    return tuple(case for story in stories() for case in poisoned_cells_of(story))


def poisoned_cells_of(story: Story) -> Iterator[Case]:
    """Yields the story's cells. A story that does not read an item proves nothing with it."""
    for name in poisons(story):
        yield Case(
            f"{story.name}/beside a {name}",
            story,
            Expected(frozenset({End.UNSEEN, End.LATER}), counted=UNREADABLE),
            breaks=partial(_put, story, name),
            met=lambda world: world.count(UNREADABLE) > 0,
        )


def _put(story: Story, name: str, world: World) -> None:
    item = {key: TypeSerializer().serialize(part) for key, part in poisons(story)[name].items()}
    table = world.aws.physical_id("HistoryTable")
    world.aws.session.client("dynamodb").put_item(TableName=table, Item=item)
