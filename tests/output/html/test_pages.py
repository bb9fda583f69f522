"""The pages of a job and of an account: their texts and sums."""

import base64
import hashlib
import re
from decimal import Decimal
from html import unescape

import pytest
from hypothesis import given

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.money import format_usd as dollars
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.output.html.account import account_body
from sageaudit.output.html.contents import AccountReport, JobReport, RuleExplanation
from sageaudit.output.html.job import job_body
from sageaudit.output.html.markup import join
from tests.fakes import documents, jobs, reports, sample_documents
from tests.fakes.hostile import documents as hostile_documents
from tests.fakes.hostile import whole_documents

_ALLOWED = {
    "a",
    "article",
    "b",
    "bdi",
    "body",
    "br",
    "button",
    "code",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "form",
    "g",
    "h1",
    "h2",
    "h3",
    "h4",
    "head",
    "header",
    "html",
    "i",
    "input",
    "label",
    "li",
    "line",
    "link",
    "main",
    "meta",
    "option",
    "p",
    "path",
    "pre",
    "rect",
    "script",
    "section",
    "select",
    "span",
    "strong",
    "style",
    "summary",
    "svg",
    "symbol",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "ul",
    "use",
    "wbr",
}


@pytest.fixture(scope="module")
def account() -> AccountReport:
    """Returns the report of 150 jobs in 30 days, and 100 in the 30 days before."""
    return reports.large_account_report(150, 100)


def text_of(markup: str) -> str:
    """Returns the text of a page."""
    return unescape(re.sub(r"<[^>]+>", " ", markup))


def table_cells(markup: str, title: str) -> list[list[str]]:
    """Returns the rows of the table below a heading as lists of cells."""
    part = markup.split(f"<h2>{title}</h2>")[1].split("</section>", maxsplit=1)[0]
    body = part.split("<tbody>")[1].split("</tbody>")[0]
    return [
        [text_of(cell).strip() for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in body.split("<tr")[1:]
    ]


def usd(text: str) -> Decimal:
    """Returns the dollars of a cell."""
    return Decimal(text.replace("$", "").replace(",", "").replace("−", "-"))


def test_the_same_data_gives_the_same_bytes() -> None:
    """The time of writing is an argument."""
    assert reports.page_of(reports.large_account_report(30)) == reports.page_of(
        reports.large_account_report(30)
    )


def test_the_policy_allows_exactly_the_style_and_script_of_the_page() -> None:
    """It allows them by their hashes; other inline content and all loading is blocked."""
    text = reports.page_of(JobReport(documents.document(), None))
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    policy = unescape(policy)
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for name in ("style", "script"):
        [inline] = re.findall(rf"<{name}>(.*?)</{name}>", text, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy


def test_the_headline_is_the_daily_sums(account: AccountReport) -> None:
    """The headline, the amounts and each table of sums agree to the cent."""
    body = join(account_body(account))
    total, avoidable = dollars(account.total.total_usd), dollars(account.total.avoidable_usd)
    assert f"150 jobs cost {total}: {avoidable} or more was avoidable." in text_of(body)
    for title in ("By family", "By owner", "By instance type"):
        rows = table_cells(body, title)
        assert account.previous_period is not None
        for cell, sums in ((1, account.total), (2, account.previous_period.total)):
            difference = abs(sum(usd(row[cell]) for row in rows) - sums.total_usd)
            assert difference <= Decimal("0.005") * len(rows) + Decimal("0.005")
        assert sum(int(row[5]) for row in rows) == 150
    micros = sum(int(micros) for micros in re.findall(r'data-u="(\d+)"', body))
    assert Decimal(micros) / 1_000_000 == account.total.total_usd


def test_the_page_says_what_to_change_first(account: AccountReport) -> None:
    """Each card has its fix, and a link to the job with the most of its dollars."""
    cards = re.findall(
        r'<article class="card">.*?</article>', join(account_body(account)), re.DOTALL
    )
    assert len(cards) == 2
    for card in cards:
        [link] = re.findall(r'href="#(j\d+)"', card)
        assert f'<details id="{link}"' in join(account_body(account))
        assert 'instance_type="ml.g4dn.xlarge"' in text_of(card)


def test_words_and_rules_are_explained_where_they_stand(account: AccountReport) -> None:
    """The legend stands at the amounts and the findings; each rule's title follows its name."""
    body = join(account_body(account))
    for word in ("Judged", "Derived", "High, medium, low"):
        assert f"<dt>{word}</dt>" in body
    limits = Policy().severity
    assert f"from ${limits.high_usd}, from ${limits.medium_usd}, or less" in body
    for rule, title in (
        ("idle-tail", "The instances are idle after their work is done."),
        ("gpu-underused", "The GPU works little."),
    ):
        assert table_cells(body, "By rule")
        assert f'>{rule}</span><p class="dim">{title}</p>' in body
        assert f"<dt>{rule}</dt><dd>{title}<p><strong>What it checks: </strong>" in body
        assert f"{title} (SA" in body


def test_a_jobs_page_explains_its_rules() -> None:
    """An audit of another version may have a rule that this version does not know."""
    explanation = RuleExplanation("It copies.", ("One:", "- `File`"), ("No.",))
    rules = {"download-dominates": explanation}
    body = job_body(JobReport(documents.document(), None, rules=rules))
    text = " ".join(text_of(body).split())
    about = "About the rule download-dominates What it checks: One: File When it is wrong: No."
    assert about in text
    assert "About the rule gpu-underused" not in text
    assert "What these words mean" in text
    unexplained = text_of(job_body(JobReport(documents.document(), None)))
    assert "(SA101, measured)" in unexplained


FAIL, IDLE = ("failed-spend", "lost"), ("gpu-idle", "avoidable")
FIRST_CHANGES: dict[str, tuple[list[list[tuple[str, str, int]]], str | None]] = {
    "the newest run has it": ([[(*IDLE, 9)], [(*IDLE, 5)]], "gpu-idle"),
    "the newest run no longer has it": ([[(*IDLE, 9)], []], None),
    "the next rule takes its place": (
        [[(*IDLE, 9), ("idle-tail", "avoidable", 3)], [("idle-tail", "avoidable", 2)]],
        "idle-tail",
    ),
    "it comes and goes": ([[], [(*IDLE, 9)], []], "gpu-idle"),
    "a family that fails now and then": ([[(*FAIL, 30)], [(*IDLE, 27)]], "failed-spend"),
    "a newest run that failed was not judged by it": ([[(*IDLE, 27)], [(*FAIL, 3)]], "gpu-idle"),
}


@pytest.mark.parametrize("name", FIRST_CHANGES)
def test_a_family_shows_its_most_expensive_open_rule(name: str) -> None:
    """A finding that all earlier runs had, and the newest runs without failure do not have, was
    fixed. A loss can come back.
    """
    runs, wanted = FIRST_CHANGES[name]
    rules_by_family = {
        change.example.family: change.example.fix.finding["rule"]
        for change in reports.family_report(runs).top_changes
    }
    assert rules_by_family == ({} if wanted is None else {"training/bert": wanted})


def test_changes_are_compared_with_the_same_number_of_days_before(account: AccountReport) -> None:
    """Each difference is that of the two sums beside it; a family with jobs in one period is new or
    gone.
    """
    rows = table_cells(join(account_body(account)), "What changed")
    assert len(rows) == 10
    differences = [usd(row[4].replace("+", "")) for row in rows]
    assert [abs(difference) for difference in differences] == sorted(
        map(abs, differences), reverse=True
    )
    for row, difference in zip(rows, differences, strict=True):
        assert abs(usd(row[2]) - usd(row[3]) - difference) <= Decimal("0.02")
        words = {(True, False): {"new"}, (False, True): {"gone"}}
        has_jobs = (int(row[5]) > 0, int(row[6]) > 0)
        assert row[1] in words.get(has_jobs, {"increased", "decreased"})
    body = account_text(reports.large_account_report(5))
    assert "No comparison: the history does not cover the 30 days before this period." in body


def account_text(report: AccountReport) -> str:
    """Returns the text of an account's page."""
    return text_of(join(account_body(report)))


def test_the_waterfall_ends_with_what_was_needed(account: AccountReport) -> None:
    """It is the spend less the waste of each rule."""
    rows = table_cells(join(account_body(account)), "How much of the spend was needed")
    steps = [usd(row[1]) for row in rows]
    needed = account.total.total_usd - account.total.waste_usd
    assert rows[0][0] == "Spend"
    assert abs(steps[-1] - needed) <= Decimal("0.005")
    assert abs(sum(steps[:-1]) - steps[-1]) <= Decimal("0.005") * len(rows)


def test_every_job_has_a_row_and_the_most_wasteful_a_section(account: AccountReport) -> None:
    """Rows are ordered by avoidable and lost dollars."""
    body = join(account_body(account))
    assert len(re.findall(r'<tr><th scope="row"><a href="#j\d+">', body)) == 150
    assert len(re.findall(r'<details id="j\d+"', body)) == 150
    wasted = [(head.avoidable_usd or 0) + (head.lost_usd or 0) for head in account.summaries]
    assert wasted == sorted(wasted, reverse=True)


def test_a_job_that_could_not_be_audited_says_why() -> None:
    """The page shows no amounts."""
    document = sample_documents.unauditable_document()
    text = text_of(job_body(JobReport(document, None)))
    assert "Could not be audited: SageMaker has no training job of this name" in text
    assert "$" not in text


def test_a_repeated_download_has_its_reason_and_no_dollars() -> None:
    """The reason is shown in place of the cost."""
    again = documents.phase(
        "Downloading", 1500, "0", billed=False, why="repeated after an interruption"
    )
    parts = [documents.phase("Downloading", 1500, "0.63"), again]
    text = text_of(job_body(JobReport(documents.document(phases=parts), None)))
    assert "$0.63" in text
    assert "not charged: repeated after an interruption" in text


def test_findings_that_are_not_counted_show_why() -> None:
    """Alternatives are folded away; a finding reported for an earlier run is only named."""
    body = job_body(JobReport(sample_documents.uncounted_document(), None))
    text = text_of(body)
    assert "2 other ways" in text
    assert "Exempt by the policy until 2026-12-31 (reason: benchmark)" in text
    assert "Not counted: counted already has this amount" in text
    assert (
        "Already reported for train-bert-0411, an earlier run of the family: spot-not-used" in text
    )
    assert "Spot is cheaper." not in text
    assert body.count('class="finding aside"') == 2


def test_a_fix_is_shown_in_every_dialect() -> None:
    """It can be copied without the script too."""
    body = job_body(JobReport(documents.document(), None))
    for dialect, code in (
        ("sdk-v3", 'instance_type="ml.g4dn.xlarge"'),
        ("boto3", 'ResourceConfig={"InstanceType": "ml.g4dn.xlarge"'),
    ):
        codes = re.findall(
            rf'<pre data-d="{dialect}"><b>{dialect}</b><code>(.*?)</code>', body, re.DOTALL
        )
        assert any(code in unescape(block) for block in codes), dialect


def usage(hosts: int, minutes: int = 200, idle_after: int = 75) -> Measurements:
    """Returns metrics of hosts whose GPU works for `idle_after` minutes and then idles."""
    on = jobs.job("ml.g4dn.xlarge", hosts)
    busy = [80.0] * idle_after + [0.0] * (minutes - idle_after)
    raw = [
        jobs.series(metric, values, host=f"train/algo-{host + 1}")
        for host in range(hosts)
        for metric, values in ((Metric.GPU, busy), (Metric.CPU, [4 * value for value in busy]))
    ]
    return jobs.usage(on, *raw)


def test_idle_periods_are_marked_in_the_charts() -> None:
    """The page shows when the run was idle, how long, and the threshold."""
    body = job_body(JobReport(documents.document(), usage(1)))
    assert "Idle periods are shaded in each chart: 1 h 44 min at the end." in text_of(body)
    assert body.count('class="shade"') == 3
    assert "Dashed: idle below 1%." in text_of(body)
    assert body.count('class="limit"') == 4  # a line and its words, for GPU and for CPU
    assert "mean 28%" in text_of(body)


@pytest.mark.parametrize(("hosts", "lines"), [(1, 1), (6, 6), (7, 1), (40, 1)])
def test_each_host_has_a_line_and_many_hosts_a_range(hosts: int, lines: int) -> None:
    """More than six hosts share one line and a range; the table has every host."""
    body = job_body(JobReport(documents.document(), usage(hosts)))
    chart = body[body.index("GPU utilisation") :].split("</figure>")[0]
    assert len(re.findall(r'<path d="M[^"H]*" class="h\d">', chart)) == lines
    assert ('class="range"' in chart) == (hosts > 6)
    assert len(set(re.findall(r">(train/algo-\d+)</th>", chart))) == hosts


@given(hostile_documents())
@whole_documents
def test_no_document_adds_elements_or_attributes(document: AuditDocument) -> None:
    """The page has only our own elements, and no attribute that runs, styles or loads."""
    text = reports.page_of(JobReport(document, None))
    markup = re.sub(r"<(style|script)>.*?</\1>", "", text, flags=re.DOTALL)
    assert set(re.findall(r"</?([a-zA-Z0-9]+)", markup)) <= _ALLOWED
    for attributes in re.findall(r"<[a-zA-Z0-9]+((?: [^\s=<>]+(?:=\"[^\"<>]*\")?)*)>", markup):
        for name in re.findall(r" ([^\s=<>]+)(?:=\"[^\"<>]*\")?", attributes):
            assert not re.fullmatch(r"on\w+|style|src|srcset|action", name)
    assert (
        re.sub(r"<!?/?[a-zA-Z0-9]+(?: [^\s=<>]+(?:=\"[^\"<>]*\")?)*>", "", markup).count("<") == 0
    )
    assert not set(markup) & set("\u202e\u2066\u2069\u200b\ufeff\x1b\x00\x07")
