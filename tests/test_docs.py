"""What the guides say is so: links lead somewhere, commands and options exist, settings have the defaults named."""

import json
import re
import shlex
from dataclasses import fields, is_dataclass
from pathlib import Path

import click
import pytest

from torchtraceap.analyzer.patterns.registry import all_patterns
from torchtraceap.server.cli import COMMANDS, cli
from torchtraceap.server.pages import why
from torchtraceap.server.settings import Settings

ROOT = Path(__file__).parents[1]
GUIDES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)[^)]*\)")
COMMAND = re.compile(r"^(?:\$ )?(torchtraceap .+)$|`(torchtraceap [^`]+)`", re.MULTILINE)
MAKE = re.compile(r"(?:`|^)make ([a-z]+)\b", re.MULTILINE)
PATTERN_ROW = re.compile(r"^\| (TAP\d{3}) \| \[(.+?)\]\(patterns/(.+?)\.md\) \| (.+?) \| (\w+) \|$", re.MULTILINE)
SETTING = re.compile(r"^\| `([\w.]+)` \| `(.+?)` \|", re.MULTILINE)


def commands_shown():
    """Every command line of the guides, split as a shell would."""
    return [
        (guide.name, shlex.split(line, comments=True))
        for guide in GUIDES
        for line in map("".join, COMMAND.findall(guide.read_text("utf-8")))
    ]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: str(guide.relative_to(ROOT)))
def test_links_lead_somewhere(guide):
    missing = [link for link in LINK.findall(guide.read_text("utf-8")) if not (guide.parent / link).exists()]
    assert not missing


def test_commands_and_their_options_exist():
    shown = commands_shown()
    assert len(shown) > 5
    for guide, (_, name, *words) in shown:
        arguments = words[: words.index("--")] if "--" in words else words
        assert name in COMMANDS, f"{guide}: torchtraceap {name}"
        command = cli.get_command(None, name)
        if isinstance(command, click.Group) and arguments:
            command = command.commands[arguments[0]]
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        used = {argument for argument in arguments if argument.startswith("-")}
        assert used <= options | {"--help"}, f"{guide}: {name} {used - options}"


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {target for guide in GUIDES for target in MAKE.findall(guide.read_text())}
    assert {"demo", "test", "check", "bench"} <= named <= targets


def defaults(section, path=""):
    """Name, as an editor has it, and default of every setting, those within others as "llm.backend"."""
    for field in fields(section):
        head, *rest = field.name.split("_")
        name = path + head + "".join(word.capitalize() for word in rest)
        value = getattr(section, field.name)
        yield from defaults(value, f"{name}.") if is_dataclass(value) else [(name, value)]


def test_settings_are_documented_with_their_defaults():
    table = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    documented = {name: json.loads(default) for name, default in SETTING.findall(table)}
    assert documented == json.loads(json.dumps(dict(defaults(Settings()))))


def test_the_index_lists_every_pattern_as_it_is():
    listed = PATTERN_ROW.findall((ROOT / "docs" / "patterns.md").read_text("utf-8"))
    assert listed == [(one.code, one.slug, one.slug, one.title, one.fix.value) for one in all_patterns()]


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "patterns").glob("*.md")), ids=lambda page: page.stem)
def test_the_reason_that_a_report_quotes_reads_as_a_paragraph(page):
    """The first paragraph below "Why it is slow" is shown on one line."""
    assert why(page.stem)
    assert not re.search(r"(^|\s)[-*|] |```", why(page.stem))
