from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import pytest

from torchtraceap.analyzer.diagnosis.dossier import Dossier, LayerRow, TreeRow
from torchtraceap.analyzer.diagnosis.figures import figure_text, figures_of, number_text
from torchtraceap.analyzer.diagnosis.prompt import WrittenPrompt, write_prompt
from torchtraceap.analyzer.findings import Evidence

from .dossiers import SOURCE, made_dossier

PLENTY = 10_000


def count_words(text: str) -> int:
    """Words and signs, which is near what tokenizers make of code."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def written(dossier: Dossier, budget: int = PLENTY, order_seed: int = 0) -> WrittenPrompt:
    return write_prompt(dossier, count_words, budget, order_seed)


def size(prompt: WrittenPrompt) -> int:
    return count_words(prompt.prompt.system) + count_words(prompt.prompt.user)


def section(text: str, title: str) -> list[str]:
    """The lines of a section, up to the next title in capitals."""
    lines = text.splitlines()
    start = next(at for at, line in enumerate(lines) if line.split(" (")[0] == title) + 1
    end = next((at for at in range(start, len(lines)) if re.match(r"[A-Z][A-Z ]+\b", lines[at])), len(lines))
    return lines[start:end]


def large() -> Dossier:
    tree = [TreeRow("t1", 0, "step", 1.0, 45123.4, 10.0, 100.0)]
    tree += [TreeRow(f"t{n}", 1 + n % 3, f"aten::op_{n}", float(n), 40000.0 / n, 9.0, 90.0 / n) for n in range(2, 40)]
    layers = [LayerRow(f"l{n}", 1, f"Conv2d_{n}", (8, 3, 9, 9), (8, 4, 9, 9), 50.0 / n) for n in range(1, 30)]
    evidence = tuple(Evidence(f"item{n}", f"figure number {n}", float(n), "") for n in range(10))
    return replace(made_dossier(), tree=tuple(tree), layers=tuple(layers), evidence=evidence)


def test_every_figure_stands_beside_its_id() -> None:
    dossier = made_dossier()
    user = written(dossier).prompt.user
    for figure in figures_of(dossier):
        text = figure_text(figure) if figure.unit != "%" else number_text(round(float(figure.value), 1)) + " %"
        if figure.id[0] == "t" and figure.unit == "":
            text = f"x{text}"
        said = [line for line in user.splitlines() if re.search(rf"(^|[ (]){re.escape(figure.id)}\b", line)]
        assert any(text in line for line in said), (figure, said)


def test_figures_are_the_traces_own_in_the_units_shown() -> None:
    figures = {figure.id: figure for figure in figures_of(made_dossier())}
    assert figures["waiting"] == Evidence("waiting", "time that the host waits per step", 9.1234, "ms")
    assert figures["step"].value == pytest.approx(45.1234)
    assert figures["count"].events == (5, 6, 7)


def test_the_headlines_ids_are_given_once() -> None:
    ids = [figure.id for figure in figures_of(made_dossier()) if figure.id in ("step", "cost", "saving")]
    assert sorted(ids) == ["cost", "saving", "step"]


def test_a_window_without_a_finding_has_no_saving() -> None:
    window = replace(made_dossier(), slug="", saving_us_per_step=0.0, probability=0.0, fixes=(), source=None)
    ids = {figure.id for figure in figures_of(window)}
    assert not ids & {"saving", "saving-pct", "probability"}
    assert section(written(window).prompt.user, "FIXES") == ["none: none of these helps"]


def test_is_the_same_each_time() -> None:
    assert written(made_dossier(), 600, 3) == written(made_dossier(), 600, 3)


def test_seed_0_keeps_the_order() -> None:
    user = written(made_dossier()).prompt.user
    choices = [line.partition(":")[0] for line in section(user, "CHOICES")]
    assert choices == ["host-scalar-read", "unfused-attention", "launch-bound", "none"]


def test_seeds_change_the_order_and_nothing_else() -> None:
    natural = written(made_dossier()).prompt.user
    orders = set()
    for seed in range(1, 6):
        user = written(made_dossier(), PLENTY, seed).prompt.user
        assert sorted(user.splitlines()) == sorted(natural.splitlines())
        assert section(user, "SOURCE") == section(natural, "SOURCE")
        assert section(user, "CALL TREE") == section(natural, "CALL TREE")
        for title in ("CHOICES", "EVIDENCE", "FIXES"):
            orders.add((title, tuple(section(user, title))))
    assert all(sum(title == one for one, _ in orders) > 2 for title in ("CHOICES", "EVIDENCE", "FIXES"))


def test_a_choices_id_does_not_tell_its_rank() -> None:
    dossier = made_dossier()
    backwards = replace(dossier, choices=dossier.choices[::-1])
    assert sorted(section(written(dossier).prompt.user, "CHOICES")) == sorted(
        section(written(backwards).prompt.user, "CHOICES")
    )


@pytest.mark.parametrize("budget", [700, 900, 1300, 2000])
def test_keeps_to_the_budget_and_says_what_it_cut(budget: int) -> None:
    prompt = written(large(), budget)
    assert size(prompt) <= budget
    for line in prompt.cut:
        assert line in prompt.prompt.user


def test_uses_the_budget_that_it_has() -> None:
    whole = size(written(large()))
    assert written(large(), whole).cut == ()
    cut = written(large(), whole - 1)
    assert whole - 40 < size(cut) < whole
    assert cut.cut == ("1 of 29 layers",)


def test_cuts_layers_first_then_the_tree_then_source_then_evidence() -> None:
    whole, kinds = size(written(large())), []
    for budget in range(whole, 350, -10):
        for line in written(large(), budget).cut:
            what = line.partition(" of ")[2].partition(" ")[2]
            if what not in kinds:
                kinds.append(what)
    assert kinds == ["layers", "rows of the call tree", "lines of source", "evidence items"]


def test_the_dearest_path_of_the_tree_stays() -> None:
    rows = section(written(large(), 700).prompt.user, "CALL TREE")
    assert rows[1].startswith("t1 step")
    assert rows[2].strip().startswith("t2 ")


def test_choices_headline_fixes_and_the_marked_line_are_never_cut() -> None:
    small, whole = written(large(), 1).prompt.user, written(large()).prompt.user
    for title in ("FIGURES", "CHOICES", "FIXES"):
        assert section(small, title) == section(whole, title)
    assert ">17         total += loss.item()" in small


def test_source_has_its_numbers_and_one_mark() -> None:
    lines = section(written(made_dossier()).prompt.user, "SOURCE")
    assert lines[2:-1] == [f"{'>' if n == 17 else ' '}{n} {text}" for n, text in enumerate(SOURCE, 10)]


def test_a_dossier_survives_json() -> None:
    dossier = made_dossier()
    assert msgspec.json.decode(msgspec.json.encode(dossier), type=Dossier) == dossier
