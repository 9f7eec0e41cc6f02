"""The viewer in a real browser: open, filter, read, compare, follow a run in progress."""

import pytest
from browser import chromium, elsewhere, rows, serving
from viewer_runs import held, two_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return elsewhere(two_runs, tmp_path_factory.mktemp("browse") / "runs")


@pytest.fixture(scope="module")
def address(runs):
    with serving(runs, cache=runs.parent / "cache") as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    page = context.new_page()
    page.complaints = []
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("console", lambda message: page.complaints.append(message.text))
    yield page
    assert page.complaints == []
    context.close()


def at(page, address):
    page.goto(address)
    page.wait_for_selector("html[data-ready]")


def test_a_run_is_opened_from_the_list_filtered_and_read(page, address):
    at(page, address)
    assert page.locator("#runs th a").all_inner_texts() == ["runs/second", "runs/first"]
    page.click("text=runs/first")
    page.wait_for_selector("html[data-ready] #tab-samples")
    assert page.is_visible(".results")
    page.click("#tab-samples")
    assert rows(page)[:2] == ["s0", "s1"]
    page.select_option("#filter-standing", "wrong")
    page.wait_for_selector("#count:has-text('2 of 60')")
    assert rows(page) == ["s3", "s5"]
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector(".detail-head:has-text('sums · s3')")
    assert page.locator(".verdict pre").all_inner_texts() == ["0", "4"]
    page.keyboard.press("j")
    page.wait_for_selector(".detail-head:has-text('sums · s5')")
    page.keyboard.press("Escape")
    assert not page.is_visible("#detail")


def test_a_search_is_made_by_the_server(page, address):
    at(page, address)
    page.click("text=runs/first")
    page.wait_for_selector("html[data-ready] #tab-samples")
    page.click("#tab-samples")
    page.keyboard.press("/")
    page.keyboard.type("41+1?")
    page.wait_for_selector("#count:has-text('1 of 60')")
    assert rows(page) == ["s41"]


def test_two_runs_are_compared_side_by_side(page, address):
    at(page, address)
    for name in ("first", "second"):
        page.check(f"tr:has-text('runs/{name}') input")
    page.click("#compare")
    page.wait_for_selector("html[data-ready] .tile")
    page.click("button.tile.worse")
    page.wait_for_selector("#count:has-text('1 of 60')")
    assert rows(page) == ["s10"]
    page.click(".row")
    page.wait_for_selector(".side")
    assert page.locator(".side > h4:first-child").all_inner_texts() == ["A · runs/first", "B · runs/second"]
    assert page.locator(".message.assistant pre").all_inner_texts() == ["11", "0"]
    page.click("text=Swap A and B")
    page.wait_for_selector("html[data-ready] .tile")
    page.click("button.tile.better")
    page.wait_for_selector("#count:has-text('1 of 60')")
    assert rows(page) == ["s10"]


def test_a_run_in_progress_updates_by_itself(page, runs, tmp_path):
    with held(tmp_path / "live", free=5, count=12) as finish, serving(tmp_path, cache=tmp_path / "cache") as address:
        at(page, address)
        page.click("text=live")
        page.wait_for_selector("html[data-ready] #progress")
        assert page.inner_text("#progress") == "5 of 12"
        page.click("#tab-samples")
        assert len(rows(page)) == 5
        finish()
        page.wait_for_selector("#samples-count:has-text('12')")
        page.wait_for_selector(".row:has-text('s11')")
        assert page.locator("#progress").is_hidden()
        page.click("#tab-overview")
        page.wait_for_selector("#overview .pill.completed")


def test_dark_mode_is_remembered_from_page_to_page(page, address):
    at(page, address)
    page.click("#theme")
    at(page, address)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_narrow_screen_needs_no_sideways_scrolling(page, address):
    page.set_viewport_size({"width": 380, "height": 700})
    at(page, address)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    page.click("text=runs/first")
    page.wait_for_selector("html[data-ready] #tab-samples")
    page.click("#tab-samples")
    rows(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
