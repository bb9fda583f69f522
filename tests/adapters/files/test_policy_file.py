"""The policy as a file: one sentence that names file and key."""

from pathlib import Path

import pytest

from sageaudit.adapters.files import policy_file
from sageaudit.adapters.files.policy_file import line_number, load_policy
from sageaudit.domain.prices.known_prices import OwnRates, RateBasis
from sageaudit.errors import BadPolicy

SECTION = '[[for]]\nfamily = "a"\nrules.off = ["spot-not-used"]\n'
BELOW_ZERO = "[rules.gpu-underused]\nmax_mean_percent = -5"
SHIPPED = Path(__file__).parents[3] / "policy.toml"


def test_the_shipped_policy_is_that_of_a_fresh_install() -> None:
    """It tells, from $5 a family, with every rule on."""
    policy = load_policy(SHIPPED)
    assert (policy.mode, policy.floor_usd, policy.disabled_rules) == ("notify", 5, frozenset())


def test_the_shipped_examples_hold_when_they_are_taken(tmp_path: Path) -> None:
    """The whole policy with every example's mark removed is valid."""
    lines = SHIPPED.read_text(encoding="utf-8").splitlines()
    taken = [
        line.removeprefix("# ") if line[:3] == "# [" or " = " in line else line for line in lines
    ]
    path = tmp_path / "policy.toml"
    path.write_text("\n".join(taken), encoding="utf-8")
    rates = policy_file.own_rates_text(OwnRates(RateBasis.NET))
    (tmp_path / "own-rates.json").write_text(rates, encoding="utf-8")
    policy = load_policy(path)
    assert policy.discounts.own_rates is not None
    assert policy.members.role_by_account
    assert policy.members.organization_role == "sageaudit-read"
    assert policy.members.regions_by_account
    assert policy.members.regions
    names = ("thresholds", "mentions", "exemptions", "overrides", "objectives")
    assert all(getattr(policy, name) for name in (*names, "commitment_usd_per_hour"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'mood = "notify"', "mood"),
        (b"mode =", "is not TOML"),
        (b"\xff\xfem", "is not text in UTF-16 (byte 3)"),
        (b"[rules.gpu-underused]\nmean = 5", "max_mean_percent"),
        (b"floor_usd = " + b"9" * 5000, "too long or too deep"),
        (b"floor_usd = " + b"[" * 9000, "too long or too deep"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    """With the file's name."""
    path = tmp_path / "policy.toml"
    path.write_bytes(content)
    with pytest.raises(BadPolicy) as caught:
        load_policy(path)
    assert str(caught.value).startswith(f"{path}:")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param('\n\nmood = "notify"', ":3: unknown key mood", id="an unknown key"),
        pytest.param(
            '# a\r\nmode = "shout"\r\n', ":2: mode is", id="lines that end as Windows ends them"
        ),
        pytest.param(
            '[rules]\noff = [\n  "spot-not-used",\n  "gpu-idol",\n]',
            ":2: rules.off names",
            id="an unknown rule in an array",
        ),
        pytest.param(
            "[rules]\ngpu-underuse.max_mean_percent = 5",
            ":2: rules.gpu-underuse cannot be set",
            id="an unknown rule in a table's name",
        ),
        pytest.param(
            "[rules.gpu-underused]\n\nmax_mean_percent = -5",
            ":3: rules.gpu-underused.max_mean_percent is",
            id="a value out of range",
        ),
        pytest.param(
            "[rules]\n'gpu-underused'.\"max_mean_percent\" = -5",
            ":2: rules.gpu-underused.max_mean_percent is",
            id="a value out of range under a quoted key",
        ),
        pytest.param(
            "[rules]\ngpu-underused = { max_mean_percent = -5 }",
            ": rules.gpu-underused.max_mean_percent is",
            id="a value out of range in an inline table",
        ),
        pytest.param(
            f'family_tag = """\n[rules]\n"""\n{BELOW_ZERO}',
            ":5: rules.gpu-underused.max_mean_percent is",
            id="what looks like a table is text",
        ),
        pytest.param(
            SECTION + SECTION + BELOW_ZERO.replace("[", "[for."),
            ":8: for[2].rules.gpu-underused.max_mean_percent is",
            id="the second of two sections",
        ),
        pytest.param(
            '[rules]\noff = []\n[[exempt]]\nrule = "spot-not-used"',
            ":3: exempt[1] needs",
            id="an exemption that lacks a key",
        ),
        pytest.param(
            '[[exempt]]\nrule = "a"\n[[exempt]]\nby = "b"',
            ": exempt[1] needs",
            id="the first of two exemptions is not told apart",
        ),
        pytest.param(
            "[discounts.percent]\ng5 = 1\ng99 = 2",
            ":3: discounts.percent.g99 is neither",
            id="one of two discounts",
        ),
        pytest.param(
            '[discounts.rates.us-east-1]\n"ml.g99.x" = 2',
            ':2: discounts.rates.us-east-1."ml.g99.x"',
            id="a key in quotes",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    """Where one line alone sets a key of its name; else the name has to do."""
    path = tmp_path / "policy.toml"
    path.write_bytes(text.encode())
    with pytest.raises(BadPolicy) as caught:
        load_policy(path)
    assert str(caught.value).startswith(f"{path}{said}")


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    """Some editors put one first; lines are counted as without it."""
    path = tmp_path / "policy.toml"
    path.write_text('mode = "observe"\n', encoding="utf-8-sig")
    assert load_policy(path).mode == "observe"
    path.write_text('mode = "notify"\nmood = 1\n', encoding="utf-8-sig")
    with pytest.raises(BadPolicy, match=":2: unknown key mood"):
        load_policy(path)


@pytest.mark.parametrize("key", [(), ("absent",), ("rules", "on"), ("mode", "deeper"), (0,)])
def test_no_line_is_guessed(key: tuple[str | int, ...]) -> None:
    """A key that no line sets has none, nor has one whose name is set twice."""
    assert line_number('mode = "notify"\nrules.on = ["a"]\n[for.rules]\non = []', key) is None


def test_an_absent_file_is_said(tmp_path: Path) -> None:
    """Not a stack trace."""
    with pytest.raises(BadPolicy, match="cannot be read"):
        load_policy(tmp_path / "policy.toml")
