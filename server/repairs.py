"""Looking again: whether an edited finding's fault is still in the source, and what its fix is in the present text."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..analyzer.figures import format_ms
from ..analyzer.findings import Finding, Fix, Safety
from ..codemap.disk import content_of
from ..codemap.edits import compatible
from ..codemap.fixes.base import Confirmation
from .documents import differences
from .engine import Engine
from .folders import Folder
from .merge import Seen
from .messages import Failed, Recheck, Rechecked, Suspect
from .places import speaks_of

WHOLE_S = 3600.0
REST_AFTER_S = 0.3
SHARE_S = 0.04
"""When the source worker turns to findings that nobody waits for, and for how long at a time."""
SETTLED_S = 0.15
"""So long after its last event a file counts as written."""

log = logging.getLogger(__name__)


class Stale(Exception):
    """A fix no longer applies to the text; the message says why."""


class Repairs:
    """Rechecks findings by the source worker."""

    def __init__(self, engine: Engine, changed: Callable[[Folder], None]) -> None:
        self._engine = engine
        self._changed = changed
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._saved: dict[tuple[str, str], asyncio.Event] = {}
        self._settling: dict[tuple[str, str], asyncio.TimerHandle] = {}

    def recheck(self, folder: Folder, path: str) -> None:
        """Look again at what a file that was saved has to do with. A save meanwhile makes it look once more."""
        key = (folder.uri, path)
        self._saved.setdefault(key, asyncio.Event()).set()
        running = self._tasks.get(key)
        if running is None or running.done():
            self._tasks[key] = asyncio.create_task(self._recheck(folder, path, self._saved[key]))

    def file_changed(self, folder: Folder, path: str) -> None:
        """A file that no editor has open was written or deleted. It is read once nothing has happened to it for a
        moment: many programs empty a file before they write it."""
        key = (folder.uri, path)
        if (timer := self._settling.get(key)) is not None:
            timer.cancel()
        loop = asyncio.get_running_loop()
        self._settling[key] = loop.call_later(SETTLED_S, self._look, folder, path)

    def _look(self, folder: Folder, path: str) -> None:
        del self._settling[(folder.uri, path)]
        if folder not in self._engine.folders or self._engine.document(folder, path) is not None:
            return  # closed meanwhile, or opened: then the editor's text counts
        file = folder.root / path
        text = _read(file)
        if text is None:
            traces = {seen.trace for seen in folder.state.seen if speaks_of(seen.finding, path)}
            folder.state.forget_file(path)
            log.info("%s is gone, and its findings with it", file)
            self._changed(folder)
            self._engine.place_again(folder, traces)
        elif folder.state.sync(path, text):
            self._changed(folder)
            self.recheck(folder, path)

    async def current_fix(self, folder: Folder, seen_id: int, fix_id: str) -> Fix:
        """A finding's fix in the text as it is now."""
        seen = next((one for one in folder.state.seen if one.id == seen_id), None)
        if seen is None:
            raise Stale("the finding is gone")
        (confirmation,) = await self._ask(folder, [seen])
        fix = next((fix for fix in confirmation.fixes if fix.id == fix_id), None) if confirmation else None
        if fix is None:
            raise Stale("the source no longer holds what this fix changes")
        return fix

    async def safe_fixes(self, folder: Folder, shown: Sequence[Seen]) -> tuple[Fix, ...]:
        """The safe fixes of these findings in the text as it is now, as many as can be made together."""
        fixes: list[Fix] = []
        for confirmation in await self._ask(folder, shown):
            safe = [fix for fix in confirmation.fixes if fix.safety is Safety.SAFE] if confirmation else []
            fixes += safe[:1]
        paths = {edit.path for fix in fixes for edit in fix.edits}
        texts = {path: text for path in paths if (text := self._text(folder, path)) is not None}
        return compatible(fixes, texts)[0]

    async def _recheck(self, folder: Folder, path: str, saved: asyncio.Event) -> None:
        """First what was edited; then the others, a few at a time, since a fix elsewhere may have cured them too."""
        while saved.is_set():
            saved.clear()
            concerned = [
                seen
                for seen in folder.state.seen
                if speaks_of(seen.finding, path) and not folder.state.is_silenced(seen)
            ]
            await self._settle(folder, [seen for seen in concerned if seen.is_edited], WHOLE_S)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(saved.wait(), REST_AFTER_S)
            rest = [seen for seen in concerned if seen.is_confirmed and not seen.is_edited]
            while rest and not saved.is_set():
                rest = rest[await self._settle(folder, rest, SHARE_S) :]

    async def _settle(self, folder: Folder, batch: Sequence[Seen], within_s: float) -> int:
        """Ask about findings and act on the answers; how many there were in time."""
        texts = {path: folder.state.text(path) or "" for path in folder.state.paths()}
        try:
            confirmations = await self._ask(folder, batch, within_s)
        except Stale as error:
            log.warning("findings could not be checked again: %s", error)
            return len(batch)
        is_changed = False
        for seen, confirmation in zip(batch, confirmations, strict=False):
            if confirmation is not None:
                path = confirmation.location.path
                meanwhile = differences(texts[path], folder.state.text(path) or "") if path in texts else ()
                is_changed |= folder.state.confirm(seen.id, confirmation, meanwhile)
            elif (seen.is_confirmed or _is_deleted(seen.finding)) and self._is_still(folder, seen.finding, texts):
                is_changed |= _repair(folder, seen)
        if is_changed:
            self._changed(folder)
        return len(confirmations)

    def _is_still(self, folder: Folder, finding: Finding, texts: Mapping[str, str]) -> bool:
        """Whether the text that was asked about is what is there: what is missing from a half-written one is not fixed,
        and the file's next event has it looked at again."""
        path = finding.location.path if finding.location else ""
        present = self._text(folder, path) if path in texts else None
        return present is None or present == texts[path]

    async def _ask(
        self, folder: Folder, batch: Sequence[Seen], within_s: float = WHOLE_S
    ) -> tuple[Confirmation | None, ...]:
        if not batch:
            return ()
        overlay = self._engine.overlay(folder)
        asked = tuple(Suspect(seen.finding, folder.state.device(seen.trace), seen.anchor) for seen in batch)
        answer = await self._engine.sources.call(
            lambda job_id: Recheck(job_id, str(folder.real_root), overlay, asked, within_s)
        )
        if isinstance(answer, Failed):
            raise Stale(answer.message)
        assert isinstance(answer, Rechecked)
        return answer.confirmations

    def _text(self, folder: Folder, path: str) -> str | None:
        document = self._engine.document(folder, path)
        return _read(folder.root / path) if document is None else document.source


def _repair(folder: Folder, seen: Seen) -> bool:
    repaired = folder.state.repair(seen.id)
    if repaired is None:
        return False
    log.info(
        "%s in %s of %s: fixed, not yet measured (about %s ms per step expected)",
        repaired.slug, repaired.qualname, repaired.path, format_ms(repaired.saving_us_per_step),
    )  # fmt: skip
    return True


def _read(file: Path) -> str | None:
    try:
        return content_of(file.name, file.read_bytes()).text
    except OSError:
        return None


def _is_deleted(finding: Finding) -> bool:
    where = finding.location
    return where is not None and (where.line, where.column) == (where.end_line, where.end_column)
