"""The benchmark that the measurements run."""

from nel.environments.decorators import benchmark, scorer
from nel.scoring.scorers import exact_match


@benchmark(name="sums", dataset="rows.jsonl", prompt="{question}", target_field="answer")
@scorer
def score(sample):
    return exact_match(sample)
