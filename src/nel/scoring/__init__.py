"""Scorers, the extraction of answers from replies, and what scorers say to judges."""

from nel.scoring.choice import extract_choice
from nel.scoring.extract import Extraction, extract_line, extract_number, extract_pattern
from nel.scoring.judging import JudgeQuestion, judge_score, needs_judge
from nel.scoring.sample import ScorerInput
from nel.scoring.scorers import VERSIONS, answer_line, exact_match, fuzzy_match, multichoice_regex, numeric_match

__all__ = [
    "VERSIONS",
    "Extraction",
    "JudgeQuestion",
    "ScorerInput",
    "answer_line",
    "exact_match",
    "extract_choice",
    "extract_line",
    "extract_number",
    "extract_pattern",
    "fuzzy_match",
    "judge_score",
    "multichoice_regex",
    "needs_judge",
    "numeric_match",
]
