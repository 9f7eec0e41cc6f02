"""The versions of NEL's own scorers: nothing is imported to read them."""

from __future__ import annotations

VERSIONS: dict[str, str] = {
    "exact_match": "1",
    "fuzzy_match": "1",
    "multichoice_regex": "2",
    "answer_line": "2",
    "numeric_match": "2",
    "math_match": "1",
    "token_f1": "1",
    "alias_match": "1",
    "drop_match": "1",
    "bleu": "1",
    "chrf": "1",
    "rouge": "1",
    "json_schema_match": "1",
    "likeliest_option": "1",
    "extract_json": "1",
    "extract_code": "1",
    "code_sandbox": "1",
}
"""Raised when a scorer may judge some reply differently than before: stored answers are then scored again."""
