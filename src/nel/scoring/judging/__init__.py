"""Judges: models that grade answers, with replies that are read strictly and outages that are no scores."""

from nel.scoring.judging.parsing import Unreadable, read_verdict
from nel.scoring.judging.request import JudgeQuestion, judge_score, needs_judge
from nel.scoring.judging.scale import Scale

__all__ = ["JudgeQuestion", "Scale", "Unreadable", "judge_score", "needs_judge", "read_verdict"]
