"""F1, DROP's alignment, aliases, BLEU, chrF and ROUGE: right against their definitions, and total."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.scoring import ScorerInput, alias_match, bleu, chrf, drop_match, rouge, token_f1

words = st.lists(st.sampled_from(["red", "blue", "green", "5", "12", "sea"]), min_size=1, max_size=4).map(" ".join)


@pytest.mark.parametrize(
    ("reply", "gold", "score"),
    [
        ("the cat sat", "cat sat", 1.0),
        ("cat", "cat sat", 2 / 3),
        ("Answer: a cat sat down", "cat sat", 0.8),
        ("dog", "cat", 0.0),
        ("", "cat", 0.0),
        ("cat cat", "cat", 2 / 3),
        ("-5", "5", 0.0),
        ("3.5", "35", 0.0),
        ("cat", ["dog", "cat"], 1.0),
    ],
)
def test_token_f1(reply, gold, score):
    assert token_f1(ScorerInput(reply, gold))["reward"] == pytest.approx(score)


@pytest.mark.parametrize(
    ("reply", "gold", "f1", "exact"),
    [
        ("1,5", "15", 0.0, False),
        ("−5", "-5", 1.0, True),
        ("-5", "5", 0.0, False),
        ("5.0", "5", 1.0, True),
        ("1,000", "1000", 1.0, True),
        ("Answer: 4 yards", "4", 2 / 3, False),
        ("3 yards", "4 yards", 0.0, False),
        ("Tom Brady", "Brady", 2 / 3, False),
        ("", "Paris", 0.0, False),
        ("Rome and Paris", [["Paris", "Rome"]], 1.0, True),
        ("Answer: Rome, Paris", [["Paris", "Rome"]], 1.0, True),
        ("Answer: Rome; Oslo", [["Paris", "Rome"]], 0.5, False),
        ("Answer: Rome", [["Paris", "Rome"]], 0.5, False),
        ("Answer: Rome, Paris, Oslo", [["Paris", "Rome"]], 2 / 3, False),
        ("1,000, 2,000", [["2000", "1000"]], 1.0, True),
        ("4", ["5", "4"], 1.0, True),
        ("Trinidad and Tobago", ["Trinidad and Tobago"], 1.0, True),
    ],
)
def test_drop(reply, gold, f1, exact):
    verdict = drop_match(ScorerInput(reply, gold))
    assert verdict["reward"] == pytest.approx(f1)
    assert verdict["exact"] is exact


@pytest.mark.parametrize(
    ("reply", "gold", "f1", "exact"),
    [
        ("1,5", "15", 1.0, True),
        ("-5", "5", 1.0, True),
        ("the twenty-first", "twenty first", 1.0, True),
        ("Brady Tom", "Tom Brady", 1.0, False),
        ("Tom Brady", "Brady", 0.67, False),
        ("3 yards", "4 yards", 0.0, False),
        ("5.", "5", 1.0, True),
    ],
)
def test_the_official_mode_has_the_quirks_of_the_published_script(reply, gold, f1, exact):
    verdict = drop_match(ScorerInput(reply, gold), official=True)
    assert (verdict["reward"], verdict["exact"]) == (f1, exact)
    assert verdict["method"] == "drop_match, official"


@settings(deadline=None, max_examples=60)
@given(st.lists(words, min_size=2, max_size=4), st.lists(words, min_size=2, max_size=4))
def test_the_alignment_is_the_best_of_all(said, gold):
    def f1(one, other):
        left, right = set(one.split()), set(other.split())
        numbers = {token for token in left if token.isdigit()}
        common = len(left & right)
        return 0.0 if not common or (numbers and not numbers & right) else 2 * common / (len(left) + len(right))

    size = max(len(said), len(gold))
    padded = said + [""] * (size - len(said))
    golds = gold + [""] * (size - len(gold))
    best = max(sum(map(f1, golds, order)) for order in permutations(padded)) / size
    assert drop_match(ScorerInput("; ".join(said), [gold]))["reward"] == pytest.approx(best)


@pytest.mark.parametrize(
    ("reply", "aliases", "right"),
    [
        ("Paris", ["Paris"], True),
        ("It is Paris.", ["Paris"], True),
        ("PARIS\n\nIt has been the capital since 987.", ["Lutetia", "Paris"], True),
        ("Answer: the City of Light", ["Paris", "City of Light"], True),
        ("a comparison", ["Paris"], False),
        ("I ate a pear", ["ear"], False),
        ("", ["Paris"], False),
        ("The", ["Paris"], False),
        ("i", ["Paris"], False),
        ("not Paris", ["Paris"], False),
        ("Rome\n\nParis is in France", ["Paris"], False),
    ],
)
def test_aliases_are_whole_words_of_the_answer(reply, aliases, right):
    assert alias_match(ScorerInput(reply, aliases[0], {"aliases": aliases}))["correct"] is right


def test_the_alias_that_was_named_is_told():
    assert alias_match(ScorerInput("It is Lutetia", "Paris", {"aliases": ["Lutetia"]}))["alias"] == "Lutetia"


@pytest.mark.parametrize("scorer", [bleu, chrf, rouge])
def test_an_equal_text_scores_one_an_empty_or_unrelated_one_nothing(scorer):
    gold = "The quick brown fox jumps over the lazy dog."
    assert scorer(ScorerInput(gold, gold))["reward"] == pytest.approx(1.0)
    assert scorer(ScorerInput("", gold))["reward"] == 0.0
    assert scorer(ScorerInput("zzz 42", gold))["reward"] < 0.1
    partly = scorer(ScorerInput("The quick brown fox sleeps.", gold))["reward"]
    assert 0.1 < partly < 0.9
    assert scorer(ScorerInput(gold, ["nothing alike", gold]))["reward"] == pytest.approx(1.0)


def test_the_libraries_are_those_of_the_papers():
    import sacrebleu

    said, gold = "the cat is on a mat", "the cat sat on the mat"
    assert bleu(ScorerInput(said, gold))["reward"] * 100 == pytest.approx(sacrebleu.sentence_bleu(said, [gold]).score)
    assert chrf(ScorerInput(said, gold))["reward"] != chrf(ScorerInput(said, gold), word_order=2)["reward"]
    assert rouge(ScorerInput(said, gold), variant="rouge1")["reward"] == pytest.approx(4 / 6)
    with pytest.raises(ValueError, match="variant="):
        rouge(ScorerInput(said, gold), variant="rougeX")
