"""The pages of a job and of an account: what they say, and that it adds up."""

import base64
import hashlib
import re
from decimal import Decimal
from html import unescape

import pytest
from hypothesis import given

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.output.html.account import account_body
from sageaudit.output.html.contents import AccountReport, JobReport
from sageaudit.output.html.job import job_body
from sageaudit.output.html.markup import join
from sageaudit.output.text.money import format_usd as dollars
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
    """150 jobs of 30 days, and 100 of the days before."""
    return reports.large_account_report(150, 100)


def words(markup: str) -> str:
    """The text of a page."""
    return unescape(re.sub(r"<[^>]+>", " ", markup))


def amounts(markup: str, title: str) -> list[list[str]]:
    """The rows of the table below a heading, each a list of its cells."""
    part = markup.split(f"<h2>{title}</h2>")[1].split("</section>", maxsplit=1)[0]
    body = part.split("<tbody>")[1].split("</tbody>")[0]
    return [
        [words(cell).strip() for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in body.split("<tr")[1:]
    ]


def usd(text: str) -> Decimal:
    """The dollars of a cell."""
    return Decimal(text.replace("$", "").replace(",", "").replace("−", "-"))


def test_the_same_data_gives_the_same_bytes() -> None:
    """Only the time of writing is another, and it is an argument."""
    assert reports.page_of(reports.large_account_report(30)) == reports.page_of(
        reports.large_account_report(30)
    )


def test_the_policy_allows_exactly_the_style_and_script_of_the_page() -> None:
    """By their hashes; nothing inline is allowed beside them, and nothing is loaded."""
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
    """To the cent, in the headline, the figures, and each table of sums."""
    body = join(account_body(account))
    total, avoidable = dollars(account.total.total_usd), dollars(account.total.avoidable_usd)
    assert f"150 jobs cost {total}: {avoidable} or more was avoidable." in words(body)
    for title in ("By family", "By owner", "By instance type"):
        rows = amounts(body, title)
        assert account.period_before is not None
        for cell, sums in ((1, account.total), (2, account.period_before.total)):
            off_by = abs(sum(usd(row[cell]) for row in rows) - sums.total_usd)
            assert off_by <= Decimal("0.005") * len(rows) + Decimal("0.005")
        assert sum(int(row[5]) for row in rows) == 150
    micros = sum(int(micros) for micros in re.findall(r'data-u="(\d+)"', body))
    assert Decimal(micros) / 1_000_000 == account.total.total_usd


def test_the_page_says_what_to_change_first(account: AccountReport) -> None:
    """Three families, the most dollars first, each with its fix and one link."""
    cards = re.findall(
        r'<article class="card">.*?</article>', join(account_body(account)), re.DOTALL
    )
    shown = [
        usd(re.findall(r"<strong>(?:about )?(.*?)(?: or more)?</strong>", card)[0])
        for card in cards
    ]
    rules = [rule for sums in account.by[0].sums.values() for rule in sums.rules.values()]
    most = max(rule.waste_usd for rule in rules)
    assert len(cards) == 3
    assert most * Decimal("1.1") >= shown[0] >= shown[1] * Decimal("0.9") > 0
    for card in cards:
        [link] = re.findall(r'href="#(j\d+)"', card)
        assert f'<details id="{link}"' in join(account_body(account))
        assert 'instance_type="ml.g4dn.xlarge"' in words(card)


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
def test_a_family_is_told_its_dearest_rule_that_still_holds(name: str) -> None:
    """What its newest runs that did not fail have no more was mended, if all runs before had it; a
    loss comes back.
    """
    runs, wanted = FIRST_CHANGES[name]
    told = {one.family: one.fix.finding["rule"] for one in reports.family_report(runs).top_changes}
    assert told == ({} if wanted is None else {"training/bert": wanted})


def test_what_changed_is_against_as_many_days_before(account: AccountReport) -> None:
    """Each difference is of the two sums beside it; a family of one side is new or gone."""
    rows = amounts(join(account_body(account)), "What changed")
    assert len(rows) == 10
    differences = [usd(row[4].replace("+", "")) for row in rows]
    assert [abs(one) for one in differences] == sorted(map(abs, differences), reverse=True)
    for row, difference in zip(rows, differences, strict=True):
        assert abs(usd(row[2]) - usd(row[3]) - difference) <= Decimal("0.02")
        words = {(True, False): {"new"}, (False, True): {"gone"}}
        found = (int(row[5]) > 0, int(row[6]) > 0)
        assert row[1] in words.get(found, {"increased", "decreased"})
    body = words_of_page(reports.large_account_report(5))
    assert "Nothing is compared: the history does not cover the 30 days before." in body


def words_of_page(report: AccountReport) -> str:
    """The text of an account's page."""
    return words(join(account_body(report)))


def test_the_page_ends_with_what_was_needed(account: AccountReport) -> None:
    """Spend, less each rule's share."""
    rows = amounts(join(account_body(account)), "From spend to what was needed")
    steps = [usd(row[1]) for row in rows]
    needed = account.total.total_usd - account.total.waste_usd
    assert rows[0][0] == "Spend"
    assert abs(steps[-1] - needed) <= Decimal("0.005")
    assert abs(sum(steps[:-1]) - steps[-1]) <= Decimal("0.005") * len(rows)


def test_every_job_has_a_row_and_the_dearest_a_section(account: AccountReport) -> None:
    """In the order of their avoidable and lost dollars."""
    body = join(account_body(account))
    assert len(re.findall(r'<tr><th scope="row"><a href="#j\d+">', body)) == 150
    assert len(re.findall(r'<details id="j\d+"', body)) == 150
    wasted = [(head.avoidable_usd or 0) + (head.lost_usd or 0) for head in account.summaries]
    assert wasted == sorted(wasted, reverse=True)


def test_a_job_that_could_not_be_audited_says_why() -> None:
    """And shows no figures."""
    document = sample_documents.unauditable_document()
    shown = words(job_body(JobReport(document, None)))
    assert "Could not be audited: SageMaker knows no such training job" in shown
    assert "$" not in shown


def test_a_repeated_download_has_its_reason_and_no_dollars() -> None:
    """Where other phases have their cost."""
    again = documents.phase(
        "Downloading", 1500, "0", billed=False, why="repeated after an interruption"
    )
    parts = [documents.phase("Downloading", 1500, "0.63"), again]
    shown = words(job_body(JobReport(documents.document(phases=parts), None)))
    assert "$0.63" in shown
    assert "not charged: repeated after an interruption" in shown


def test_findings_are_laid_out_with_what_is_set_aside() -> None:
    """Ways beyond the first are folded away; repeated advice is only named."""
    body = job_body(JobReport(sample_documents.uncounted_document(), None))
    shown = words(body)
    assert "2 other ways" in shown
    assert "Exempt by policy until 2026-12-31: benchmark" in shown
    assert "Not counted: counted covers it" in shown
    assert "As for train-bert-0411, an earlier run of the family: spot-not-used" in shown
    assert "Spot is cheaper." not in shown
    assert body.count('class="finding aside"') == 2


def test_a_fix_is_there_in_every_dialect() -> None:
    """To copy as it is, for those whose script is off too."""
    body = job_body(JobReport(documents.document(), None))
    for dialect, code in (
        ("sdk-v3", 'instance_type="ml.g4dn.xlarge"'),
        ("boto3", 'ResourceConfig={"InstanceType": "ml.g4dn.xlarge"'),
    ):
        found = re.findall(
            rf'<pre data-d="{dialect}"><b>{dialect}</b><code>(.*?)</code>', body, re.DOTALL
        )
        assert any(code in unescape(one) for one in found), dialect


def usage(hosts: int, minutes: int = 200, idle_after: int = 75) -> Measurements:
    """Hosts that work on their GPU, and then sleep."""
    on = jobs.job("ml.g4dn.xlarge", hosts)
    busy = [80.0] * idle_after + [0.0] * (minutes - idle_after)
    raw = [
        jobs.series(metric, values, host=f"train/algo-{host + 1}")
        for host in range(hosts)
        for metric, values in ((Metric.GPU, busy), (Metric.CPU, [4 * value for value in busy]))
    ]
    return jobs.usage(on, *raw)


def test_idle_parts_are_marked_in_the_charts() -> None:
    """Where the run slept, how long, and what counts as idle."""
    body = job_body(JobReport(documents.document(), usage(1)))
    assert "Idle parts, shaded in each chart: idle end 1 h 44 min." in words(body)
    assert body.count('class="shade"') == 3
    assert "Dashed: idle below 1%." in words(body)
    assert body.count('class="limit"') == 4  # a line and its words, for GPU and for CPU
    assert "mean 28%" in words(body)


@pytest.mark.parametrize(("hosts", "lines"), [(1, 1), (6, 6), (7, 1), (40, 1)])
def test_each_host_has_a_line_and_many_hosts_a_range(hosts: int, lines: int) -> None:
    """Above six lines nobody can tell them apart; the table has every host."""
    body = job_body(JobReport(documents.document(), usage(hosts)))
    chart = body[body.index("GPU utilisation") :].split("</figure>")[0]
    assert len(re.findall(r'<path d="M[^"H]*" class="h\d">', chart)) == lines
    assert ('class="range"' in chart) == (hosts > 6)
    assert len(set(re.findall(r">(train/algo-\d+)</th>", chart))) == hosts


@given(hostile_documents())
@whole_documents
def test_whatever_a_document_holds_becomes_text(document: AuditDocument) -> None:
    """Only our elements, and no attribute that runs, styles or loads."""
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
