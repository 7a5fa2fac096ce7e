"""The server over its pipes, with fabricated analysis: what editors see."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from lsprotocol import types as lsp

from torchtraceap.analyzer.findings import Hotspot, Related, Safety, Severity
from torchtraceap.server.repairs import SETTLED_S

from .clients import EDITORS, Client, actions, begin, change, edited, open_file, save, until
from .reports import finding, place, report, write_trace

SOURCE = "import torch\n\n\ndef forward(x):\n    y = slow(x)\n    return y\n"


def slow(**changes):
    return finding("slow", place("model.py", 5, 9, 13, "forward"), **changes)


def shown(client: Client, uri: str):
    return [
        (d.code, d.range.start.line, d.range.start.character, d.range.end.character)
        for d in client.diagnostics.get(uri, ())
    ]


@pytest.fixture
def model(project: Path) -> Path:
    file = project / "model.py"
    file.write_text(SOURCE)
    return file


@pytest.mark.parametrize("editor", EDITORS)
async def test_trace_to_fix(client: Client, project: Path, model: Path, editor: str) -> None:
    await begin(client, project, editor)
    uri = open_file(client, model)
    related = (Related("called here", place("model.py", 6, 5, 13, "forward")),)
    write_trace(project / "runs" / "a.pt.trace.json", report(slow(related=related)))
    await until(lambda: shown(client, uri), "the diagnostic")
    (diagnostic,) = client.diagnostics[uri]
    assert shown(client, uri) == [("slow", 4, 8, 12)]
    assert diagnostic.source == "torchtraceap" and diagnostic.severity == lsp.DiagnosticSeverity.Warning
    assert diagnostic.message.startswith("slow happens: 9.80 of 22.3 ms per step")
    assert diagnostic.data["slug"] == "slow"
    assert client.published[-1].version == 1
    told = [info.message for info in diagnostic.related_information or []]
    measured = "measured: time per step: 9.8 ms (trace events 3, 14, 159); operator: aten::softmax | x"
    assert told == ([] if editor == "emacs" else ["called here", measured])

    fix, ignore, fix_all, *_ = await actions(client, uri, 4)
    assert fix.title == "Use fixed (about 6.10 ms per step)" and fix.is_preferred
    assert ignore.title == "Ignore slow on this line"
    assert fix_all.kind == "source.fixAll.torchtraceap"
    resolved = fix if fix.edit else await client.code_action_resolve_async(fix)
    assert resolved.edit and resolved.edit.document_changes
    (edit,) = resolved.edit.document_changes
    assert isinstance(edit, lsp.TextDocumentEdit) and edit.text_document.version == 1
    text = edited(SOURCE, [e for e in edit.edits if isinstance(e, lsp.TextEdit)])
    assert text == SOURCE.replace("slow", "fixed")

    change(client, uri, 2, (4, 8, 4, 12, "fixed"))
    model.write_text(text)
    save(client, uri)
    await until(lambda: not client.diagnostics[uri], "the diagnostic to go")
    await until(lambda: any("fixed, not yet measured" in told.message for told in client.log_messages), "the repair")
    hover = await client.text_document_hover_async(lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(3, 5)))
    assert hover and "fixed, not yet measured" in hover.contents.value
    assert not client.messages, "no message boxes"


async def test_traces_present_at_start_and_unopened_files(client: Client, project: Path, model: Path) -> None:
    write_trace(project / "log" / "old.json", report(slow()))
    await begin(client, project)
    uri = model.as_uri()
    await until(lambda: shown(client, uri), "the diagnostic of an unopened file")
    assert client.published[-1].version is None


async def test_nothing_is_pulled_or_watched_by_the_client(client: Client, project: Path) -> None:
    """Neovim 0.11 cannot refresh pulled diagnostics, and watches nothing on Linux; VS Code misses what it watches."""
    result = await begin(client, project, "visual-studio-code")
    assert result.capabilities.diagnostic_provider is None
    await until(lambda: client.registrations, "the registrations")
    assert {r.method for r in client.registrations} == {lsp.WORKSPACE_DID_CHANGE_CONFIGURATION}


async def test_diagnostics_are_shifted_and_published_with_every_edit(
    client: Client, project: Path, model: Path
) -> None:
    write_trace(project / "runs" / "a.json", report(slow()))
    await begin(client, project)
    uri = open_file(client, model)
    await until(lambda: shown(client, uri), "the diagnostic")
    change(client, uri, 2, (0, 0, 0, 0, "# a\n"), (0, 0, 0, 0, "# b\n"))
    await until(lambda: client.published[-1].version == 2, "version 2")
    assert shown(client, uri) == [("slow", 6, 8, 12)]
    change(client, uri, 3, (6, 4, 6, 4, "abc = "))
    await until(lambda: client.published[-1].version == 3, "version 3")
    assert shown(client, uri) == [("slow", 6, 14, 18)]
    titles = [action.title for action in await actions(client, uri, 6)]
    assert titles[0].startswith("Use fixed"), "with the empty context that editors send for a moved line"
    assert not [a for a in await actions(client, uri, 4) if a.kind == lsp.CodeActionKind.QuickFix]


async def test_edits_are_made_for_the_present_text_and_version(client: Client, project: Path, model: Path) -> None:
    write_trace(project / "runs" / "a.json", report(slow()))
    await begin(client, project)
    uri = open_file(client, model)
    await until(lambda: shown(client, uri), "the diagnostic")
    fix = (await actions(client, uri, 4))[0]
    change(client, uri, 7, (0, 0, 0, 0, "\n\n"))
    resolved = await client.code_action_resolve_async(fix)
    (edit,) = resolved.edit.document_changes
    assert edit.text_document.version == 7 and edit.edits[0].range.start == lsp.Position(6, 8)
    change(client, uri, 8, (6, 8, 6, 12, "other"))
    resolved = await client.code_action_resolve_async(fix)
    assert resolved.edit is None, "the source no longer holds what the fix changes"
    assert not client.messages


@pytest.mark.parametrize(("editor", "column"), [("neovim", 15), ("visual-studio-code", 12), ("emacs", 11)])
async def test_columns_are_in_the_clients_units(client: Client, project: Path, editor: str, column: int) -> None:
    model = project / "model.py"
    model.write_text("y = '😋é' + slow(x)\n", encoding="utf-8")
    write_trace(project / "runs" / "a.json", report(finding("slow", place("model.py", 1, 12, 16))))
    await begin(client, project, editor)
    uri = open_file(client, model, model.read_text(encoding="utf-8"))
    await until(lambda: shown(client, uri), "the diagnostic")
    assert shown(client, uri) == [("slow", 0, column, column + 4)]
    fix = (await actions(client, uri, 0))[0]
    resolved = fix if fix.edit else await client.code_action_resolve_async(fix)
    assert resolved.edit.document_changes[0].edits[0].range.start.character == column


async def test_a_form_feed_does_not_shift_the_text(client: Client, project: Path) -> None:
    model = project / "model.py"
    model.write_text("import torch\n\x0c\ny = slow(x)\nz = 1\n")
    write_trace(project / "runs" / "a.json", report(finding("slow", place("model.py", 3, 5, 9))))
    await begin(client, project)
    uri = open_file(client, model)
    await until(lambda: shown(client, uri), "the diagnostic")
    change(client, uri, 2, (2, 0, 2, 0, "# new\n"))
    await until(lambda: client.published[-1].version == 2, "version 2")
    assert shown(client, uri) == [("slow", 3, 4, 8)]
    resolved = await client.code_action_resolve_async((await actions(client, uri, 3))[0])
    assert resolved.edit.document_changes[0].edits[0].range.start == lsp.Position(3, 4)


async def test_clients_that_resolve_nothing_get_edits_at_once(client: Client, project: Path, model: Path) -> None:
    write_trace(project / "runs" / "a.json", report(slow(safety=Safety.UNSAFE)))
    plain = lsp.ClientCapabilities(text_document=lsp.TextDocumentClientCapabilities())
    await client.initialize_session(lsp.InitializeParams(capabilities=plain, root_uri=project.as_uri()))
    uri = open_file(client, model)
    await until(lambda: shown(client, uri), "the diagnostic")
    fix, ignore, *_ = await actions(client, uri, 4)
    assert fix.title == "Use fixed (about 6.10 ms per step) (check results)" and not fix.is_preferred
    assert fix.edit and ignore.edit


async def test_ignoring_a_line(client: Client, project: Path, model: Path) -> None:
    write_trace(project / "runs" / "a.json", report(slow()))
    await begin(client, project)
    uri = open_file(client, model)
    await until(lambda: shown(client, uri), "the diagnostic")
    ignore = next(a for a in await actions(client, uri, 4) if a.title.startswith("Ignore"))
    resolved = await client.code_action_resolve_async(ignore)
    text = edited(SOURCE, resolved.edit.document_changes[0].edits)
    assert text == SOURCE.replace("slow(x)", "slow(x)  # torchtraceap: ignore[slow]")
    change(client, uri, 2, (4, 15, 4, 15, "  # torchtraceap: ignore[slow]"))
    await until(lambda: not client.diagnostics[uri], "the diagnostic to go")
    model.write_text(text)
    save(client, uri)
    change(client, uri, 3, (4, 15, 4, 45, ""))
    await until(lambda: shown(client, uri), "the diagnostic to come back")
    assert not any("fixed, not yet" in message.message for message in client.log_messages)


async def test_fix_all_makes_the_safe_fixes(client: Client, project: Path) -> None:
    model = project / "model.py"
    text = "a = one(x)\nb = two(x)\nc = three(x)\n"
    model.write_text(text)
    found = [
        finding("one", place("model.py", 1, 5, 8)),
        finding("two", place("model.py", 2, 5, 8), safety=Safety.UNSAFE),
        finding("three", place("model.py", 3, 5, 10)),
    ]
    write_trace(project / "runs" / "a.json", report(*found))
    await begin(client, project)
    uri = open_file(client, model)
    await until(lambda: len(shown(client, uri)) == 3, "the diagnostics")
    (fix_all,) = await actions(client, uri, 0, only=["source.fixAll"])
    resolved = await client.code_action_resolve_async(fix_all)
    assert edited(text, resolved.edit.document_changes[0].edits) == "a = fixed(x)\nb = two(x)\nc = fixed(x)\n"
    assert await actions(client, uri, 0, only=["refactor"]) == []


async def test_an_unopened_file_changed_on_disk_is_looked_at_again(client: Client, project: Path, model: Path) -> None:
    write_trace(project / "runs" / "a.json", report(slow()))
    await begin(client, project)
    uri = model.as_uri()
    await until(lambda: shown(client, uri), "the diagnostic")
    model.write_text("# moved\n" + SOURCE)
    await until(lambda: shown(client, uri) == [("slow", 5, 8, 12)], "the moved diagnostic")
    model.write_text("# moved\n" + SOURCE.replace("slow", "fast"))
    await until(lambda: not client.diagnostics[uri], "the diagnostic to go")
    model.unlink()


async def test_a_file_that_is_empty_for_a_moment_is_not_fixed(client: Client, project: Path, model: Path) -> None:
    """Many programs empty a file, then write it."""
    write_trace(project / "runs" / "a.json", report(slow()))
    await begin(client, project)
    uri = model.as_uri()
    await until(lambda: shown(client, uri), "the diagnostic")
    for moved, gap_s in enumerate((0.0, 0.01, 0.02, 0.03, 0.05), start=1):
        with model.open("w") as file:
            await asyncio.sleep(gap_s)
            file.write("# moved\n" * moved + SOURCE)
        await until(lambda line=4 + moved: shown(client, uri) == [("slow", line, 8, 12)], "the moved diagnostic")


async def test_closing_without_saving_goes_back_to_the_file(client: Client, project: Path, model: Path) -> None:
    write_trace(project / "runs" / "a.json", report(slow()))
    await begin(client, project)
    uri = open_file(client, model)
    await until(lambda: shown(client, uri), "the diagnostic")
    change(client, uri, 2, (0, 0, 0, 0, "\n\n"))
    await until(lambda: shown(client, uri) == [("slow", 6, 8, 12)], "the shift")
    client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
    await until(lambda: shown(client, uri) == [("slow", 4, 8, 12)], "the old place")


async def test_closing_and_opening_again_at_once_keeps_to_what_the_editor_has(
    client: Client, project: Path, model: Path
) -> None:
    write_trace(project / "runs" / "a.json", report(slow()))
    await begin(client, project)
    uri = open_file(client, model)
    await until(lambda: shown(client, uri), "the diagnostic")
    client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
    open_file(client, model, "\n\n" + SOURCE)
    await until(lambda: shown(client, uri) == [("slow", 6, 8, 12)], "the place in the unsaved text")
    await asyncio.sleep(2 * SETTLED_S)
    assert shown(client, uri) == [("slow", 6, 8, 12)]


async def test_the_newest_trace_wins_and_recurring_findings_say_so(client: Client, project: Path, model: Path) -> None:
    write_trace(project / "runs" / "old.json", report(slow(saving_us=9000.0)), recorded_s=1000.0)
    write_trace(project / "runs" / "new.json", report(slow(saving_us=3000.0)), recorded_s=2000.0)
    await begin(client, project)
    uri = model.as_uri()
    await until(lambda: any("2 of 2" in d.message for d in client.diagnostics.get(uri, ())), "both")
    (diagnostic,) = client.diagnostics[uri]
    assert diagnostic.data["saving_us_per_step"] == 3000.0
    assert diagnostic.message.endswith("; seen in 2 of 2 recordings")
    (project / "runs" / "new.json").unlink()
    (project / "runs" / "old.json").unlink()
    await until(lambda: not client.diagnostics[uri], "the diagnostic to go with its traces")


@pytest.mark.parametrize("at_once", [True, False])
async def test_ranks_of_one_job_are_one_recording(client: Client, project: Path, model: Path, at_once: bool) -> None:
    alone = report(slow(saving_us=9000.0))
    names = [str(project / "runs" / f"rank{rank}.json") for rank in range(2)]
    job = report(slow(saving_us=3000.0))
    job = replace(job, trace=replace(job.trace, paths=tuple(names)))
    uri = model.as_uri()

    def savings() -> list[float]:
        return [d.data["saving_us_per_step"] for d in client.diagnostics.get(uri, ())]

    if at_once:
        write_trace(Path(names[0]), alone, recorded_s=1000.0)
        write_trace(Path(names[1]), job, recorded_s=1001.0)
        await begin(client, project)
    else:
        await begin(client, project)
        write_trace(Path(names[0]), alone, recorded_s=1000.0)
        await until(lambda: savings() == [9000.0], "the finding of the rank that landed first")
        write_trace(Path(names[1]), job, recorded_s=1001.0)
    await until(lambda: savings() == [3000.0], "the job's finding")
    (diagnostic,) = client.diagnostics[uri]
    assert "recordings" not in diagnostic.message


async def test_hints_and_unplaced_findings(client: Client, project: Path, model: Path) -> None:
    lacks = finding("trace-lacks-evidence", None, severity=Severity.INFORMATION, saving_us=0.0)
    trace = write_trace(project / "runs" / "a.json", report(slow(severity=Severity.HINT), lacks))
    client.set_configuration({"torchtraceap": {"showHints": True}})
    await begin(client, project)
    await until(lambda: shown(client, model.as_uri()), "the hint")
    assert client.diagnostics[model.as_uri()][0].severity == lsp.DiagnosticSeverity.Hint
    (unplaced,) = await until(lambda: client.diagnostics.get(trace.as_uri()), "the finding of the trace itself")
    assert unplaced.code == "trace-lacks-evidence" and unplaced.range.start == lsp.Position(0, 0)
    assert unplaced.severity == lsp.DiagnosticSeverity.Information
    assert unplaced.code_description and unplaced.code_description.href.endswith(
        "/docs/patterns/trace-lacks-evidence.md"
    )
    client.set_configuration({"torchtraceap": {}})
    client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(None))
    await until(lambda: not client.diagnostics[model.as_uri()], "the hint to go")


async def test_hover_and_lenses(client: Client, project: Path, model: Path) -> None:
    spots = (Hotspot("model.py", 4, "forward", 12_340.0, 55.3),)
    write_trace(project / "runs" / "a.json", report(slow(), hotspots=spots))
    await begin(client, project)
    uri = open_file(client, model)
    await until(lambda: shown(client, uri), "the diagnostic")
    identifier = lsp.TextDocumentIdentifier(uri)
    hover = await client.text_document_hover_async(lsp.HoverParams(identifier, lsp.Position(4, 9)))
    assert hover and isinstance(hover.contents, lsp.MarkupContent)
    text = hover.contents.value
    rows = [[cell.strip() for cell in line.split(" | ")] for line in text.splitlines() if line.startswith("| ")]
    assert ["| time per step", "9.8 ms |"] in rows and "aten::softmax \\| x |" in text
    assert len({len(line) for line in text.splitlines() if line.startswith("|")}) == 1, "aligned as written"
    assert "now    ██████████████████████████████ 22.3 ms per step" in text
    assert "after  ██████████████████████░░░░░░░░ 16.2 ms, predicted" in text
    assert "93 % sure of the pattern; the line was found by the recorded call stack." in text
    assert hover.range == lsp.Range(lsp.Position(4, 8), lsp.Position(4, 12))
    assert await client.text_document_hover_async(lsp.HoverParams(identifier, lsp.Position(0, 0))) is None
    change(client, uri, 2, (0, 0, 0, 0, "\n"))
    (lens,) = await client.text_document_code_lens_async(lsp.CodeLensParams(identifier)) or []
    assert lens.range.start.line == 4 and lens.command and lens.command.title == "12.3 ms per step (55 %)"
