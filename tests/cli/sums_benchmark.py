"""A benchmark of six sums, its file, and a server that knows the answers: what the tests of the commands run."""

import re

from openai_server import prompt_text

SOURCE = """
from nel import benchmark, scorer

ROWS = [{"a": n, "b": 2 * n, "target": str(3 * n)} for n in range(1, 7)]

@benchmark(name="sums", dataset=lambda: ROWS, prompt="What is {a} + {b}?", system_prompt="You add.")
@scorer
def sums(sample):
    return sample.response.strip() == sample.target
"""


def right(body):
    first, second = map(int, re.findall(r"\d+", prompt_text(body)))
    return str(first + second)
