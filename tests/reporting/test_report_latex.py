r"""The LaTeX report: tables that compile, whatever the names in them are."""

import re

from hypothesis import given
from hypothesis import strategies as st
from memory_run import MemoryRun, cell, estimate

from nel.core.rundir import Stage
from nel.reporting.latex import latex, render_latex


def test_the_table_has_a_row_for_each_cell_and_one_for_each_category():
    text = render_latex(
        MemoryRun(
            cell(categories={"algebra": estimate(0.5)}),
            cell("lost", stage=Stage.FAILED, headline=None, metrics={}, error="x_1"),
        )
    )
    assert (
        r"gsm8k & qwen3-8b & pass@1 & 0.725 & {[}0.630, 0.803{]} & 100 $\times$ 1 & 100 & 0 & 0 & completed \\" in text
    )
    assert r"algebra & 0.500 &" in text
    assert r"\item lost: failed: x\_1" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2


def test_commands_become_their_letters():
    assert latex(r"\input{/etc/passwd} 50% #1 a&b $x^2$ ~") == (
        r"\textbackslash{}input\{/etc/passwd\} 50\% \#1 a\&b \$x\textasciicircum{}2\$ \textasciitilde{}"
    )
    assert latex("a -- b") == "a -{}- b"


@given(st.text())
def test_no_text_holds_a_character_that_latex_would_act_on(text):
    escaped = latex(text)
    left = re.sub(r"\\text[a-z]+\{\}|\\dots\{\}|\$\\(?:times|pm)\$|\\[{}$&#%_]|\{[][]\}|\{\}", "", escaped)
    assert not set("\\{}$&#%_^~\n") & set(left)
    assert "--" not in escaped
