"""The HTML report in a real browser: search, filter, open, keyboard, dark mode, and texts that try to do harm."""

import pytest
from browser import chromium, rows
from detailed_run import DetailedRun, detail

from nel.reporting.html.page import render_html
from nel.reporting.run_view import Counts

COUNT = 2_000


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """2,000 attempts; number 1234 alone says `xylophone` in its reasoning, number 77 calls a tool."""
    details = [detail(f"The sum is {number}.", f"What is {number} and nothing?") for number in range(COUNT)]
    details[1234].reasoning = "I hear a xylophone."
    call = {"function": {"name": "adding_machine", "arguments": '{"left": 77, "right": 0}'}}
    details[77].tool_calls = [call]
    details[77].scoring = {"method": "judge", "details": {"reason": "The judge was not amused."}}
    path = tmp_path_factory.mktemp("report") / "report.html"
    run = DetailedRun(*details, counts=Counts(planned=COUNT, scored=COUNT))
    path.write_text(render_html(run), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser, report):
    context = browser.new_context(viewport={"width": 1200, "height": 700}, color_scheme="light")
    page = context.new_page()
    page.complaints = []
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("console", lambda message: page.complaints.append(message.text))
    page.goto(report)
    page.wait_for_selector("html[data-ready]")
    yield page
    assert page.complaints == []
    context.close()


def samples(page):
    page.click("#tab-samples")
    return rows(page)


def settled(page, text):
    page.wait_for_selector(f"#count:has-text('{text}')")


def test_the_overview_is_shown_first_and_the_samples_on_a_click(page):
    assert page.is_visible(".results")
    assert samples(page)[:3] == ["0", "1", "2"]
    assert not page.is_visible(".results")
    assert page.inner_text("#count") == "2,000 samples"


def test_only_the_rows_in_view_exist_however_long_the_list(page):
    samples(page)
    assert page.locator(".row").count() < 60
    page.keyboard.press("End")
    page.wait_for_selector(".row:has-text('1999')")
    assert rows(page)[-1] == "1999"
    assert page.locator(".row").count() < 60


def test_a_filter_and_an_order_narrow_the_list(page):
    samples(page)
    page.select_option("#filter-standing", "right")
    settled(page, "1,000 of 2,000")
    assert rows(page)[:3] == ["1", "3", "5"]
    page.select_option("#filter-category", "even")
    settled(page, "0 of 2,000")
    assert page.inner_text(".empty") == "Nothing matches."
    page.select_option("#filter-standing", "")
    settled(page, "1,000 of 2,000")
    page.select_option("#filter-sort", "-latency")
    page.wait_for_selector(".row:has-text('1998')")
    assert rows(page)[:2] == ["1998", "1996"]


def test_a_search_finds_words_deep_in_the_texts(page):
    samples(page)
    page.keyboard.press("/")
    page.keyboard.type("XYLOphone")
    settled(page, "1 of 2,000")
    assert rows(page) == ["1234"]
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert page.inner_text(".message.reasoning pre") == "I hear a xylophone."


def test_a_sample_opens_with_question_answer_tool_call_judge_and_both_values(page):
    samples(page)
    page.fill("#search", "adding_machine judge")
    settled(page, "1 of 2,000")
    page.click(".row")
    page.wait_for_selector(".side")
    assert page.inner_text(".detail-head h2") == "gsm8k · 77"
    assert page.inner_text(".message.user pre") == "What is 77 and nothing?"
    assert page.inner_text(".message.assistant pre") == "The sum is 77."
    assert "adding_machine" in page.inner_text(".message.tool")
    assert page.locator(".message.tool dt").all_inner_texts() == ["left", "right"]
    assert "The judge was not amused." in page.inner_text(".side")
    assert page.locator(".verdict pre").all_inner_texts() == ["–", "4"]


def test_the_keyboard_moves_opens_and_closes(page):
    samples(page)
    for key in ("j", "j", "j", "k"):
        page.keyboard.press(key)
    assert page.inner_text(".row.selected .id").startswith("1")
    page.keyboard.press("Enter")
    page.wait_for_selector(".detail-head:has-text('gsm8k · 1')")
    page.keyboard.press("j")
    page.wait_for_selector(".detail-head:has-text('gsm8k · 2')")
    page.keyboard.press("Escape")
    assert not page.is_visible("#detail")


def test_a_link_opens_its_attempt(page, report):
    page.goto("about:blank")
    page.goto(f"{report}#s/0/1500/0")
    page.wait_for_selector(".detail-head:has-text('gsm8k · 1500')")


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_dark_mode_follows_the_system_and_the_button(page):
    light = background(page)
    page.emulate_media(color_scheme="dark")
    dark = background(page)
    assert dark != light
    page.click("#theme")
    assert background(page) == light
    page.click("#theme")
    assert background(page) == dark


def test_print_shows_the_overview_on_white(page):
    samples(page)
    page.emulate_media(media="print", color_scheme="light")
    assert page.is_visible(".results")
    assert not page.is_visible("#samples")
    assert background(page) == "rgb(255, 255, 255)"


def test_a_narrow_screen_needs_no_sideways_scrolling(page):
    page.set_viewport_size({"width": 380, "height": 700})
    for tab in ("#tab-overview", "#tab-samples"):
        page.click(tab)
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
    page.click(".row")
    page.wait_for_selector(".side")
    assert not page.is_visible("#list")


HARM = "<img src=x onerror='window.harmed=1'></script><script>window.harmed=1</script><svg onload='window.harmed=1'>"


def test_no_text_of_a_run_can_run(browser, tmp_path):
    link = [
        {"role": HARM, "content": [{"type": "text", "text": HARM}, {"image_url": {"url": "http://127.0.0.1:9/x.png"}}]}
    ]
    harmful = detail(HARM, HARM, reasoning=HARM, scoring={HARM: {HARM: HARM}}, error=HARM, metadata={"__proto__": HARM})
    linked = detail(HARM)
    linked.messages = link
    run = DetailedRun(harmful, linked, name=HARM, model=HARM, benchmark=HARM, headline=None)
    path = tmp_path / "report.html"
    path.write_text(render_html(run), encoding="utf-8")
    page = browser.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{path.as_uri()}#samples")
    page.wait_for_selector("html[data-ready]")
    for _ in range(2):
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_selector(".side")
    assert page.evaluate("window.harmed") is None
    assert page.locator(".side img, .side script, .side svg").count() == 0
    assert HARM in page.inner_text(".side")
    assert [url.partition("#")[0] for url in asked] == [path.as_uri()]
    page.close()
