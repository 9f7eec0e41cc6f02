"""Which problems are attempted, and in which order."""

import asyncio

import pytest
from conftest_engine import Sums, rows

from nel.core.errors import UsageError
from nel.engine.selection import select
from nel.engine.settings import EvaluationSettings


def chosen(count=10, **settings):
    return asyncio.run(select(Sums(rows(count)), EvaluationSettings(**settings))).tolist()


def test_without_settings_every_problem_in_the_data_s_order():
    assert chosen(5) == [0, 1, 2, 3, 4]


def test_a_seeded_shuffle_is_the_same_everywhere():
    assert chosen(8, shuffle_seed=42) == [3, 4, 6, 7, 2, 5, 0, 1]
    assert chosen(8, shuffle_seed=43) != chosen(8, shuffle_seed=42)


def test_ids_and_fields_select_before_shuffle_range_and_limit():
    assert chosen(select_ids=("7", "2")) == [2, 7]
    assert chosen(select_where={"row": [1, 3, 5, 8]}) == [1, 3, 5, 8]
    assert chosen(select_where={"row": [1, 3, 5, 8]}, problem_range=(1, 4), max_problems=2) == [3, 5]


def test_an_unknown_id_or_field_is_refused_by_name():
    with pytest.raises(UsageError, match="no problem has the id '77'"):
        chosen(select_ids=("7", "77"))
    with pytest.raises(UsageError, match="no problem has the field 'color'"):
        chosen(select_where={"color": "red"})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"repeats": 0}, "repeats is 0"),
        ({"max_error_rate": 1.5}, "max_error_rate is 1.5"),
        ({"timeout": 0}, "timeout is 0"),
        ({"problem_range": (3, 1)}, r"problem_range is \[3, 1\)"),
        ({"instruction_template": "no place"}, "no {prompt} in it"),
    ],
)
def test_settings_out_of_range_are_refused(settings, said):
    with pytest.raises(UsageError, match=said):
        EvaluationSettings(**settings)
