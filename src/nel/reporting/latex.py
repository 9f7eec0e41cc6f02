r"""The report as LaTeX: tables to `\input` into a paper that loads `booktabs`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple

from nel.observability.format import format_count
from nel.reporting import content
from nel.reporting.run_view import RunView
from nel.reporting.text import one_line

_COUNTS = ("Scored", "Unscored", "Errors")
_HEAD = ("Cell", "Model", "Metric", "Value", "95 % interval", "Problems × repeats", *_COUNTS, "Status")
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    # A row that begins with a bracket would be read as the argument of the line break before it.
    "[": "{[}",
    "]": "{]}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "×": r"$\times$",
    "–": r"\textendash{}",
    "…": r"\dots{}",
    "±": r"$\pm$",
}
_TABLE = str.maketrans(_SPECIAL)


def render_latex(view: RunView) -> str:
    """The table of results with its warnings, and a table of categories for each cell that has them."""
    lines = [
        "% Needs \\usepackage{booktabs} and \\usepackage{textcomp}.",
        *_table(
            f"Results of run {view.manifest.run_id}.",
            _HEAD,
            [astuple(row) for row in content.rows(view)],
            "lllrrrrrrl",
        ),
    ]
    if said := content.warnings(view):
        lines += ["\\begin{itemize}", *(f"  \\item {latex(text)}" for text in said), "\\end{itemize}", ""]
    for cell in view.cells():
        if cell.categories:
            body = [
                (
                    name,
                    content.number(metric.value),
                    content.interval(metric),
                    *map(format_count, (metric.n, metric.scored, metric.unscored, metric.error)),
                )
                for name, metric in cell.categories.items()
            ]
            head = ("Category", "Value", "95 % interval", "Problems", *_COUNTS)
            lines += _table(f"{cell.name}: {cell.headline or content.ABSENT} by category.", head, body, "lrrrrrr")
    return "\n".join(lines).rstrip() + "\n"


def latex(text: str) -> str:
    """`text` as LaTeX that shows exactly these characters, on one line; letters outside ASCII stay as they are."""
    return one_line(text).translate(_TABLE).replace("--", "-{}-")


def _table(caption: str, head: Sequence[str], body: Sequence[Sequence[str]], columns: str) -> Iterator[str]:
    yield "\\begin{table}"
    yield "  \\centering"
    yield f"  \\caption{{{latex(caption)}}}"
    yield f"  \\begin{{tabular}}{{{columns}}}"
    yield "    \\toprule"
    yield f"    {_row(head)}"
    yield "    \\midrule"
    yield from (f"    {_row(line)}" for line in body)
    yield "    \\bottomrule"
    yield "  \\end{tabular}"
    yield "\\end{table}"
    yield ""


def _row(cells: Sequence[str]) -> str:
    return " & ".join(map(latex, cells)) + " \\\\"
