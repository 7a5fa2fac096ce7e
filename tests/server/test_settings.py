from __future__ import annotations

from typing import get_args

import pytest

from torchtraceap.analyzer.antipatterns import MODEL_TYPES
from torchtraceap.server.settings import DEFAULT_TRACE_FOLDERS, ModelType, Settings, parse_settings

SECTION = {"minSaving": 2.5, "traceFolders": ["out/"], "diagnosticMode": "openFilesOnly", "showHints": True}
WANTED = Settings(min_saving=2.5, trace_folders=("out/",), diagnostic_mode="openFilesOnly", show_hints=True)


@pytest.mark.parametrize(
    "raw",
    [
        SECTION,
        {"torchtraceap": SECTION},
        {"settings": SECTION},
        {"settings": {"torchtraceap": SECTION}},
        {"settings": [SECTION], "globalSettings": SECTION},
        {"settings": [SECTION]},
    ],
)
def test_the_shapes_that_clients_send(raw: object) -> None:
    assert parse_settings(raw) == parse_settings(SECTION)
    assert parse_settings(raw).settings == WANTED and not parse_settings(raw).problems


@pytest.mark.parametrize("raw", [None, [], "x", 3, {}, {"torchtraceap": None}, {"settings": []}])
def test_nothing_usable_is_the_defaults(raw: object) -> None:
    assert parse_settings(raw).settings == Settings(trace_folders=DEFAULT_TRACE_FOLDERS)


def test_a_wrong_value_costs_only_itself() -> None:
    parsed = parse_settings({"minSaving": "much", "select": ["tf32-off"], "diagnosticMode": "all"})
    assert parsed.settings == Settings(select=("tf32-off",))
    assert [problem.split(" is ignored")[0] for problem in parsed.problems] == [
        "setting torchtraceap.minSaving",
        "setting torchtraceap.diagnosticMode",
    ]


def test_an_unknown_name_is_told_with_the_one_it_resembles() -> None:
    parsed = parse_settings({"torchtraceap": {"trace_folders": ["out/"], "colour": "red", "minSaving": 2.5}})
    assert parsed.settings == Settings(min_saving=2.5)
    assert parsed.problems == (
        "setting torchtraceap.colour is ignored: there is none of that name",
        "setting torchtraceap.trace_folders is ignored: there is none of that name; is traceFolders meant?",
    )


def test_select_and_ignore_know_slugs_and_codes() -> None:
    assert Settings(select=("TAP1",)).shows("TAP1", "a") and not Settings(select=("TAP1",)).shows("TAP2", "b")
    assert not Settings(ignore=("a",)).shows("TAP1", "a") and Settings().shows("TAP1", "a")


def test_the_model_types_are_the_analyzers() -> None:
    assert get_args(ModelType) == MODEL_TYPES
