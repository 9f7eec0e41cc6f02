"""`docs/failures.md` and the list of categories say the same."""

from __future__ import annotations

import re
from pathlib import Path

from nel.observability.failures import CATEGORIES

PAGE = Path(__file__).parents[2] / "docs" / "failures.md"


def test_the_page_lists_every_category_with_its_meaning_in_order() -> None:
    section = PAGE.read_text().partition("## Categories")[2].partition("## `failure_analysis.json`")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", section, flags=re.MULTILINE)
    assert rows == list(CATEGORIES.items())
