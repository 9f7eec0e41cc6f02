"""Nothing that a person can type is missing from the docs, and no page is out of reach."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import click
import pytest
from markdown_blocks import PAGES, ROOT
from ruamel.yaml import YAML

from nel.cli.lazy import LazyGroup
from nel.cli.main import root
from nel.core.errors import ExitCode

DOCS = ROOT / "docs"


def commands(group: click.Group = root, path: tuple[str, ...] = ("nel",)):
    """Every command with its whole name, `nel eval run` and the like."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, LazyGroup):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands())


@cache
def cli_sections() -> dict[str, str]:
    """Heading to text of docs/cli.md."""
    parts = re.split(r"^#+ `?([^`\n]+)`?$", (DOCS / "cli.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_section_with_each_of_its_options(name):
    section = cli_sections().get(name)
    assert section is not None, f"docs/cli.md has no section `{name}`"
    for param in COMMANDS[name].params:
        if isinstance(param, click.Option) and not param.hidden:
            for form in param.opts:
                assert re.search(rf"`{re.escape(form)}[ `]", section), f"docs/cli.md, {name}: {form} is missing"
        elif isinstance(param, click.Argument):
            assert f"`{param.make_metavar(click.Context(COMMANDS[name])).strip('[]')}`" in section, (
                f"{name}: {param.name}"
            )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_section_names_no_option_that_the_command_does_not_have(name):
    known = {form for param in COMMANDS[name].params for form in param.opts} | {"--help"}
    table = re.findall(r"^\| `(--?[\w-]+)", cli_sections()[name], flags=re.MULTILINE)
    assert set(table) <= known


def test_the_environment_variables_of_options_are_documented():
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    for command in COMMANDS.values():
        for param in command.params:
            for variable in [param.envvar] if isinstance(param.envvar, str) else param.envvar or ():
                assert f"`{variable}`" in text


def test_the_table_of_exit_codes_is_the_one_of_the_code():
    rows = re.findall(r"^\| (\d+) \|", cli_sections()["Exit codes"], flags=re.MULTILINE)
    assert {int(row) for row in rows} == {int(code) for code in ExitCode} | {141}


def test_every_config_key_is_in_the_docs():
    from nel.config.schema import all_models, rows

    text = (DOCS / "config.md").read_text(encoding="utf-8")
    missing = [
        f"{model.__name__}.{row.name}" for model in all_models() for row in rows(model) if f"`{row.name}`" not in text
    ]
    assert missing == []


def navigation(entries) -> set[str]:
    found = set()
    for entry in entries:
        if isinstance(entry, str):
            found.add(entry)
        else:
            for value in entry.values():
                found |= navigation([value] if isinstance(value, str) else value)
    return found


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    settings = YAML(typ="safe", pure=True).load(re.sub(r"!!python/name:\S+", "name", text))
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert navigation(settings["nav"]) == pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    broken = [
        target
        for target in re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", without_code(page))
        if not re.match(r"[a-z]+:", target) and not leads_somewhere(page, target)
    ]
    assert broken == []


def without_code(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^( *)(```+).*?^\1\2$", "", text, flags=re.MULTILINE | re.DOTALL))


def leads_somewhere(page: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    return path.exists() and (not anchor or anchor in anchors(path))


@cache
def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in headings}
