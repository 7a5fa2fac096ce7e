"""Which programs of a workspace a trace may be of."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ..building.classes import find
from ..building.program import Program as Models
from ..building.signatures import Arguments, bind, signature_of
from ..building.values import BoundMethod, FunctionValue, ModuleValue, Unknown, Value, join
from ..expressions import last_name
from ..knowledge import Knowledge
from ..recorded import RecordedFiles
from .likeness import fits_of
from .program import Program
from .walker import Walker

_MOST_SCRIPTS = 8
_MOST_STEPS = 250_000
"""Steps of walking after which no further program is tried."""
_MOST_MODELS = 8
_MOST_FUNCTIONS = 40
_STEPS = frozenset(("training_step", "validation_step", "test_step", "predict_step", "train_step"))
"""Methods of a model that a library's trainer calls."""
_MODELS = frozenset(
    ("model", "net", "network", "module", "encoder", "generator", "backbone", "student", "teacher", "self")
)
"""What a parameter is called that is a model."""
_OF_A_STEP = frozenset(("backward", "zero_grad"))


def programs(known: Knowledge, files: RecordedFiles, words: Collection[str] = ()) -> Iterator[Program]:
    """The scripts of the workspace, those first that hold most of the `words` and look most like a training or
    inference run; then its models and the functions that use one, each by itself: what calls them may be code that is
    not there."""
    scores = {path: score for path in files.paths() if (score := _script_score(known, path)) > 0}
    fits = fits_of(known, files, list(scores), words) if len(scores) > 1 else dict.fromkeys(scores, 0.0)
    taken = 0
    for path in sorted(scores, key=lambda path: (-fits[path], -scores[path]))[:_MOST_SCRIPTS]:
        walker = Walker(known)
        walker.walk_script(path)
        yield walker.program
        taken += walker.taken
        if taken > _MOST_STEPS:
            return
    walker = Walker(known)
    walker.walk_calls(_calls(walker, Models(known, files).roots()[:_MOST_MODELS], files))
    yield walker.program


def _script_score(known: Knowledge, path: str) -> int:
    """How much of a file runs when it is run: statements that are neither definitions nor constants."""
    tree = known.file(path).tree
    if tree is None:
        return 0
    score = 0
    for statement in tree.body:
        if isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test):
            score += 10
        elif isinstance(statement, (ast.For, ast.While, ast.With, ast.Try)):
            score += 2
        elif isinstance(statement, (ast.Expr, ast.Assign)):
            score += any(isinstance(part, ast.Call) for part in ast.walk(statement.value))
    return score


def _calls(walker: Walker, models: tuple[ModuleValue, ...], files: RecordedFiles) -> Iterator[tuple[Value, Arguments]]:
    """The functions that use a model, the steps of models, and the models."""
    functions = [one for path in files.paths() for one in _functions(walker, path)]
    called = {last_name(part.func) for one in functions for part in ast.walk(one.node) if isinstance(part, ast.Call)}
    any_model = join(list(models[:4])) if models else Unknown("a model")
    for function in [one for one in functions if one.name not in called][:_MOST_FUNCTIONS]:
        yield function, _given(function, any_model)
    for model in models:
        for value in _own_steps(walker, model):
            yield BoundMethod(value, model), Arguments(is_open=True)
        yield model, Arguments([Unknown("an input")], is_open=True)


def _functions(walker: Walker, path: str) -> Iterator[FunctionValue]:
    """Functions of a file that run a step, or call what they are given."""
    for value in list(walker.file(path).names.values()):
        if isinstance(value, FunctionValue) and value.path == path and not isinstance(value.node, ast.Lambda):
            parameters = {one.arg for one in (*value.node.args.args, *value.node.args.kwonlyargs)}
            called = {last_name(part.func) for part in ast.walk(value.node) if isinstance(part, ast.Call)}
            if called & (_OF_A_STEP | parameters):
                yield value


def _given(function: FunctionValue, model: Value) -> Arguments:
    """Arguments of which nothing is known but which of them are models, by their names."""
    assert not isinstance(function.node, ast.Lambda)
    bound = bind(signature_of(function.node.args), Arguments(is_open=True), function.defaults)
    return Arguments([], {name: model for name in bound if name in _MODELS}, is_open=True)


def _own_steps(walker: Walker, model: ModuleValue) -> Iterator[FunctionValue]:
    for name in sorted(_STEPS):
        value = find(walker, model.cls, name) if model.cls is not None else None
        if isinstance(value, FunctionValue):
            yield value
