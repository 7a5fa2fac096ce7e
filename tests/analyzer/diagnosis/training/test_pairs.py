from dataclasses import replace

import msgspec
import pytest

from tests.analyzer.diagnosis.dossiers import made_dossier
from torchtraceap.analyzer.diagnosis.answer import Answer, GivenClaim
from torchtraceap.analyzer.diagnosis.training.pairs import Pair, PairsError, read_pairs, write_pairs


def made_pair(**changed):
    answer = Answer(
        pattern="host-scalar-read",
        stage="implementation",
        claims=(GivenClaim(text="The host waits 9.12 ms.", evidence=("cost",)),),
        cause="The host reads a value.",
        fix="host-scalar-read",
        confidence="high",
    )
    return Pair(made_dossier(), msgspec.structs.replace(answer, **changed), "train", "resnet", "run-1")


def test_what_is_written_is_read_back(tmp_path):
    pairs = [made_pair(), replace(made_pair(pattern="none", fix="none"), run="run-2")]
    write_pairs(tmp_path / "pairs.jsonl", pairs)
    assert read_pairs(tmp_path / "pairs.jsonl") == pairs


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"pattern": "cuda-graphs"}, "pattern 'cuda-graphs'"),
        ({"fix": "magic"}, "fix 'magic'"),
        ({"fix": "edit"}, "edit"),
        ({"edit": "def f(): pass"}, "edit"),
        ({"claims": (GivenClaim(text="Slow.", evidence=("cost", "e99")),)}, "e99"),
    ],
)
def test_what_cannot_be_right_is_neither_written_nor_read(tmp_path, changed, complaint):
    path = tmp_path / "pairs.jsonl"
    with pytest.raises(PairsError, match=f"line 2: .*{complaint}"):
        write_pairs(path, [made_pair(), made_pair(**changed)])
    assert not path.exists()
    path.write_bytes(b"\n".join(msgspec.json.encode(pair) for pair in (made_pair(), made_pair(**changed))))
    with pytest.raises(PairsError, match=f"pairs.jsonl: line 2: .*{complaint}"):
        read_pairs(path)


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", b'{"dossier": ', b"\xff\xfe"])
def test_a_damaged_line_is_named(tmp_path, damage):
    path = tmp_path / "pairs.jsonl"
    good = msgspec.json.encode(made_pair())
    path.write_bytes(b"\n".join((good, good, damage, good)))
    with pytest.raises(PairsError, match="line 3: "):
        read_pairs(path)


def test_a_family_is_in_one_split_only(tmp_path):
    path = tmp_path / "pairs.jsonl"
    pairs = [made_pair(), replace(made_pair(), split="exam")]
    path.write_bytes(b"\n".join(msgspec.json.encode(pair) for pair in pairs))
    with pytest.raises(PairsError, match="line 2: family 'resnet' is in both splits"):
        read_pairs(path)


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "pairs.jsonl").touch()
    with pytest.raises(PairsError, match="no pairs"):
        read_pairs(tmp_path / "pairs.jsonl")
