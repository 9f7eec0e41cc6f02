"""Scorers, and the extraction of answers from replies."""

from nel.scoring.choice import extract_choice
from nel.scoring.extract import Extraction, extract_line, extract_number, extract_pattern
from nel.scoring.sample import ScorerInput
from nel.scoring.scorers import VERSIONS, answer_line, exact_match, fuzzy_match, multichoice_regex, numeric_match

__all__ = [
    "VERSIONS",
    "Extraction",
    "ScorerInput",
    "answer_line",
    "exact_match",
    "extract_choice",
    "extract_line",
    "extract_number",
    "extract_pattern",
    "fuzzy_match",
    "multichoice_regex",
    "numeric_match",
]
