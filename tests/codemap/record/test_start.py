"""What comes into a process before torch does."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["codemap.record.run", "codemap.record", "server.recorder"])
def test_the_recorder_itself_is_loaded_only_where_something_is_recorded(module):
    code = f"import sys, torchtraceap.{module}; print('torchtraceap.codemap.record.session' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
