"""Scorers, the extraction of answers from replies, and what scorers say to judges."""

from typing import TYPE_CHECKING

from nel.core.loading import lazy_export
from nel.scoring.versions import VERSIONS as VERSIONS

if TYPE_CHECKING:
    from nel.scoring.choice import extract_choice as extract_choice
    from nel.scoring.code import extract_code as extract_code
    from nel.scoring.code_check import code_sandbox as code_sandbox
    from nel.scoring.extract import Extraction as Extraction
    from nel.scoring.extract import extract_line as extract_line
    from nel.scoring.extract import extract_number as extract_number
    from nel.scoring.extract import extract_pattern as extract_pattern
    from nel.scoring.json_schema import JsonExtraction as JsonExtraction
    from nel.scoring.json_schema import extract_json as extract_json
    from nel.scoring.json_schema import json_schema_match as json_schema_match
    from nel.scoring.json_schema import validate_json_schema as validate_json_schema
    from nel.scoring.judging.request import JudgeQuestion as JudgeQuestion
    from nel.scoring.judging.request import judge_score as judge_score
    from nel.scoring.judging.request import needs_judge as needs_judge
    from nel.scoring.likelihood import likeliest_option as likeliest_option
    from nel.scoring.math_equality import GoldError as GoldError
    from nel.scoring.math_equality import MathTimeoutError as MathTimeoutError
    from nel.scoring.math_equality import check_gold as check_gold
    from nel.scoring.math_equality import extract_math as extract_math
    from nel.scoring.math_equality import math_equal as math_equal
    from nel.scoring.math_equality import math_match as math_match
    from nel.scoring.overlap import alias_match as alias_match
    from nel.scoring.overlap import bleu as bleu
    from nel.scoring.overlap import chrf as chrf
    from nel.scoring.overlap import drop_match as drop_match
    from nel.scoring.overlap import rouge as rouge
    from nel.scoring.overlap import token_f1 as token_f1
    from nel.scoring.sample import ScorerInput as ScorerInput
    from nel.scoring.scorers import answer_line as answer_line
    from nel.scoring.scorers import exact_match as exact_match
    from nel.scoring.scorers import fuzzy_match as fuzzy_match
    from nel.scoring.scorers import multichoice_regex as multichoice_regex
    from nel.scoring.scorers import numeric_match as numeric_match

_NAMES = {
    "extract_choice": "nel.scoring.choice",
    "extract_code": "nel.scoring.code",
    "code_sandbox": "nel.scoring.code_check",
    **dict.fromkeys(("Extraction", "extract_line", "extract_number", "extract_pattern"), "nel.scoring.extract"),
    **dict.fromkeys(
        ("JsonExtraction", "extract_json", "json_schema_match", "validate_json_schema"), "nel.scoring.json_schema"
    ),
    "likeliest_option": "nel.scoring.likelihood",
    **dict.fromkeys(("JudgeQuestion", "judge_score", "needs_judge"), "nel.scoring.judging.request"),
    **dict.fromkeys(
        ("GoldError", "MathTimeoutError", "check_gold", "extract_math", "math_equal", "math_match"),
        "nel.scoring.math_equality",
    ),
    **dict.fromkeys(("alias_match", "bleu", "chrf", "drop_match", "rouge", "token_f1"), "nel.scoring.overlap"),
    "ScorerInput": "nel.scoring.sample",
    **dict.fromkeys(
        ("answer_line", "exact_match", "fuzzy_match", "multichoice_regex", "numeric_match"), "nel.scoring.scorers"
    ),
}

__all__ = ["VERSIONS", *_NAMES]  # noqa: PLE0604 - the names of the table

__getattr__, __dir__ = lazy_export(__name__, _NAMES)
