"""An exceeded budget in the whole flow: from the job's end to the posted message."""

from tests.faults.stories import played, stories


def test_a_passed_budget_is_posted_once() -> None:
    """By the watch of the next hour; the eight watches after it post nothing."""
    [story] = [story for story in stories() if story.name == "budget"]
    with played(story) as world:
        posted = [line for line in world.shown("sns") if "Budget" in line]
        assert len(posted) == 1
        assert posted[0].startswith("Budget all jobs is exceeded: $0.15 or more of $0.01")
        assert (world.letters(), world.waiting()) == ([], 0)
