from __future__ import annotations

import pytest

from torchtraceap.codemap.fixes.edits import Patch
from torchtraceap.codemap.fixes.imports import name_for

from .test_edits import edited, outline_of

_SOFTMAX = "torch.nn.functional.softmax"


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("import torch.nn.functional as F", "F.softmax"),
        ("from torch.nn import functional as fn", "fn.softmax"),
        ("from torch import nn", "nn.functional.softmax"),
        ("import torch", "torch.nn.functional.softmax"),
        ("import torch as th, sys", "th.nn.functional.softmax"),
        ("from torch.nn.functional import softmax as sm", "sm"),
    ],
)
def test_what_is_imported_is_used(head: str, name: str):
    patch = Patch(outline_of(f"{head}\nx = 1\n"))
    assert name_for(patch, _SOFTMAX) == name
    assert not patch.edits()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "import torch\nx = 1\n"),
        ('"""Doc."""\nx = 1\n', '"""Doc."""\nimport torch\nx = 1\n'),
        (
            '#!/usr/bin/env python\n"""Doc."""\nfrom __future__ import annotations\n\nx = 1\n',
            '#!/usr/bin/env python\n"""Doc."""\nfrom __future__ import annotations\nimport torch\n\nx = 1\n',
        ),
        (
            "# -*- coding: utf-8 -*-\n\n@a\ndef f(): ...\n",
            "# -*- coding: utf-8 -*-\n\nimport torch\n@a\ndef f(): ...\n",
        ),
        ("from a import (\n    b,\n)  # c\nx = 1\n", "from a import (\n    b,\n)  # c\nimport torch\nx = 1\n"),
        (
            "import os\nos.environ['A'] = '1'\nimport sys\n",
            "import os\nos.environ['A'] = '1'\nimport sys\nimport torch\n",
        ),
    ],
)
def test_a_missing_import_is_added_once_behind_the_head(before: str, after: str):
    patch = Patch(outline_of(before))
    assert name_for(patch, "torch.compile") == "torch.compile"
    assert name_for(patch, "torch.float16") == "torch.float16"
    assert edited(patch) == after
