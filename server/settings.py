"""What a user may set, and reading it from whatever a client sends."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_type_hints

import msgspec

SECTION = "torchtraceap"
DEFAULT_TRACE_FOLDERS = ("log*/", "runs/", "profil*/", "trace*/", "*.pt.trace.json*")

ModelType = Literal["auto", "cnn", "vit", "windowed", "detection", "video", "unet", "generative"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one workspace folder. In the editor they are written in camelCase below `torchtraceap.`."""

    enable: bool = True
    """False: nothing is watched, analysed or shown."""
    trace_folders: tuple[str, ...] = DEFAULT_TRACE_FOLDERS
    """Where traces appear: patterns as in .gitignore, below the workspace folder; or absolute or ~ paths of folders."""
    min_saving: float = 1.0
    """Predicted saving, in per cent of the step, from which a finding is shown."""
    model_type: ModelType = "auto"
    """The family of the model: some rules hold for one family only."""
    detector: bool = True
    """Whether the learned detector has a say in how probable findings are, and finds what no rule does."""
    select: tuple[str, ...] = ()
    """Slugs or codes to show; empty for all."""
    ignore: tuple[str, ...] = ()
    """Slugs or codes not to show."""
    diagnostic_mode: Literal["openFilesOnly", "workspace"] = "workspace"
    show_hints: bool = False
    """Show findings below `min_saving` and uncertain ones too."""
    code_lens: bool = True
    """Show the time per step above functions."""
    recent_traces: int = 3
    """How many of the newest traces are analysed at start."""
    record_command: str = ""
    """What `torchtraceap.record` runs in the workspace folder, split as a shell would and run without one; `${file}`
    stands for the file asked for. Empty: `python` and that file, if it is a script."""
    record_on_save: bool = False
    """Record after each save of a Python file. Whoever switches it on lets saving run the program."""
    log_level: Literal["error", "warning", "info", "debug"] = "info"

    def shows(self, code: str, slug: str) -> bool:
        """Whether findings of a pattern are wanted."""
        names = {code, slug}
        return not names & set(self.ignore) and (not self.select or bool(names & set(self.select)))


@dataclass(frozen=True, slots=True)
class Parsed:
    """Settings read, and a sentence for each that could not be or is not known."""

    settings: Settings
    problems: tuple[str, ...]


def parse_settings(raw: Any, base: Settings = Settings()) -> Parsed:
    """Read the section as a client sends it: bare, below its name, or below "settings". `base` fills what is wrong."""
    section = _section(raw)
    types = get_type_hints(Settings)
    values: dict[str, Any] = {}
    problems: list[str] = []
    for field in fields(Settings):
        name = _camel(field.name)
        values[field.name] = getattr(base, field.name)
        if section.get(name) is None:
            continue
        try:
            values[field.name] = msgspec.convert(section[name], types[field.name])
        except msgspec.ValidationError as error:
            problems.append(f"setting {SECTION}.{name} is ignored: {error}")
    problems += _unknown(section, [_camel(field.name) for field in fields(Settings)])
    return Parsed(Settings(**values), tuple(problems))


def _unknown(section: Mapping[str, Any], known: list[str]) -> Iterable[str]:
    for name in sorted(set(map(str, section)) - set(known)):
        alike = difflib.get_close_matches(name, known, n=1)
        hint = f"; is {alike[0]} meant?" if alike else ""
        yield f"setting {SECTION}.{name} is ignored: there is none of that name{hint}"


def _section(raw: Any) -> Mapping[str, Any]:
    for name in ("globalSettings", "settings", SECTION):
        if isinstance(raw, Mapping) and name in raw:
            raw = raw[name]
        if isinstance(raw, list):  # one per folder; a folder's own are asked for by workspace/configuration
            raw = raw[0] if raw else None
    return raw if isinstance(raw, Mapping) else {}


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
