"""`output`: where results go and what is made of them."""

from __future__ import annotations

from typing import Any, Literal

from nel.config.base import Model, Positive, key

DEFAULT_DIR = "./eval_results"


class Trajectories(Model):
    """What is added to trajectories after a run."""

    enrich: bool = key(False, "Add the model calls of external agents to their trajectories.", later=True)


class Output(Model):
    """Where results go and what is made of them."""

    dir: str | None = key(None, "The run directory; `./eval_results` by default.")
    timestamped: bool | None = key(
        None, "Put each run in a directory of its own below `dir`; so where no `dir` is named."
    )
    progress_interval: Positive = key(60.0, "Seconds between two lines of progress where there is no terminal.")
    report: list[Literal["markdown", "json", "console", "html", "csv", "latex"]] = key(
        lambda: ["markdown"],
        "Reports that are written into the run directory; `console` is printed at the end of every run.",
    )
    export: list[str] = key(list, "Where results are sent after the run.", later=True)
    export_config: dict[str, Any] = key(dict, "Settings of each export.", later=True)
    trajectories: Trajectories = key(Trajectories, "What is added to trajectories after a run.")

    @property
    def directory(self) -> str:
        """`dir`, or the default."""
        return self.dir if self.dir is not None else DEFAULT_DIR

    @property
    def adds_timestamp(self) -> bool:
        """Whether each run gets a directory of its own below `directory`."""
        return self.dir is None if self.timestamped is None else self.timestamped
