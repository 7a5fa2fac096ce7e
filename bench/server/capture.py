"""Captures Neovim on the bundled example, with the warning and after the fix: `python -m bench.server.capture`.

Writes docs/captures/neovim-*.txt (the terminal's text) and docs/images/neovim-*.svg (the same, in colour). Needs tmux
and nvim 0.11.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLE = REPOSITORY / "examples" / "leaves"
COLUMNS, ROWS = 144, 38
SLUG = "unfused-attention"
FILE = "src/vit.py"
WITHIN_S = 90.0
LINES_ABOVE = 12
"""Lines of the file shown above the warning."""
BACKGROUND, FOREGROUND = (28, 28, 28), (188, 188, 188)
"""The colour scheme's, so that the picture is of one piece. All other colours come as RGB."""
THEME = TerminalTheme(BACKGROUND, FOREGROUND, [BACKGROUND, *[FOREGROUND] * 7])
SETUP = """
vim.opt.runtimepath:append('{plugin}')
vim.lsp.config('torchtraceap', {{
  cmd = {{ '{python}', '-c', 'from torchtraceap.server.cli import main; main()', 'serve' }},
}})
vim.lsp.enable('torchtraceap')
vim.diagnostic.config({{ virtual_text = false, virtual_lines = {{ current_line = true }} }})
vim.o.number, vim.o.signcolumn, vim.o.termguicolors, vim.o.laststatus = true, 'yes', true, 0
vim.o.ruler = false
vim.keymap.set('n', 'K', function() vim.lsp.buf.hover({{ offset_y = 1 }}) end)
vim.cmd('syntax on | filetype on | colorscheme habamax')
vim.api.nvim_create_autocmd('DiagnosticChanged', {{ callback = function()
  local found = vim.tbl_filter(function(d) return d.code == '{slug}' end, vim.diagnostic.get(0))
  vim.fn.writefile({{ #found > 0 and tostring(found[1].lnum + 1) or 'none' }}, '{state}')
  vim.lsp.codelens.refresh({{ bufnr = 0 }})
end }})
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Capture both screens."""
    argparse.ArgumentParser(prog="python -m bench.server.capture", description=__doc__).parse_args(arguments)
    nvim = shutil.which("nvim", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    tmux = shutil.which("tmux")
    if nvim is None or tmux is None:
        print("nvim 0.11 and tmux are needed", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="leaves-", ignore_cleanup_errors=True) as folder:
        capture(Path(folder) / "leaves", nvim, [tmux, "-L", f"capture-{os.getpid()}"])
    return 0


def capture(root: Path, nvim: str, tmux: list[str]) -> None:
    """Run the editor on a copy of the example and take its screen twice."""
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns("traces"))
    (root / "pyproject.toml").touch()
    state, setup = root / ".state", root / ".setup.lua"
    plugin = REPOSITORY / "editors" / "neovim"
    setup.write_text(SETUP.format(plugin=plugin, python=sys.executable, slug=SLUG, state=state), encoding="utf-8")
    command = f"cd {root} && exec {nvim} --clean -u {setup} {FILE}"
    subprocess.run([*tmux, "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), command], check=True)
    try:
        time.sleep(2.0)
        (root / "runs").mkdir()
        shutil.copy(next((EXAMPLE / "traces").glob("*.json.gz")), root / "runs")
        wait_until(state, lambda line: line.isdigit())
        line = state.read_text(encoding="utf-8").strip()
        keys(tmux, f"{line}G", "^", "zt", str(LINES_ABOVE), "C-y")
        time.sleep(1.0)
        keys(tmux, "K")
        time.sleep(2.0)
        save_screen(tmux, "neovim-warning")
        keys(tmux, "Escape", "^")
        apply = "vim.lsp.buf.code_action({apply=true, filter=function(a) return a.title:find('scaled') ~= nil end})"
        keys(tmux, f":lua {apply}", "Enter")
        time.sleep(3.0)
        keys(tmux, ":silent write", "Enter")
        wait_until(state, lambda line: line == "none")
        keys(tmux, ":echo", "Enter")
        time.sleep(1.0)
        save_screen(tmux, "neovim-fixed")
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def wait_until(state: Path, condition: Callable[[str], bool]) -> None:
    """Wait until the editor has written down what is wanted."""
    deadline = time.monotonic() + WITHIN_S
    while not (state.exists() and condition(state.read_text(encoding="utf-8").strip())):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the editor did not get there within {WITHIN_S} s")
        time.sleep(0.1)


def keys(tmux: list[str], *names: str) -> None:
    """Type into the editor."""
    subprocess.run([*tmux, "send-keys", *names], check=True)


def save_screen(tmux: list[str], name: str) -> None:
    """Write the screen as text and as a picture."""
    done = subprocess.run([*tmux, "capture-pane", "-p", "-e"], check=True, capture_output=True, text=True)
    screen = Text.from_ansi(done.stdout)
    text = REPOSITORY / "docs" / "captures" / f"{name}.txt"
    picture = REPOSITORY / "docs" / "images" / f"{name}.svg"
    for path in (text, picture):
        path.parent.mkdir(parents=True, exist_ok=True)
    text.write_text("\n".join(line.rstrip() for line in screen.plain.splitlines()).rstrip() + "\n", encoding="utf-8")
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        for number, word in enumerate(re.finditer(r"\S+", screen.plain)):
            # Parts a line where blanks are, as not every renderer keeps those that a piece of text begins with.
            screen.stylize(Style(meta={"word": number}), *word.span())
        console.print(screen, no_wrap=True, end="")
        console.save_svg(str(picture), title="Neovim 0.11", theme=THEME)


if __name__ == "__main__":
    sys.exit(main())
