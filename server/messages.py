"""What the server and its worker processes say to each other: length-prefixed MessagePack over pipes."""

from __future__ import annotations

from typing import BinaryIO

import msgspec

from ..analyzer.diagnosis.backends.settings import BackendSettings
from ..analyzer.diagnosis.dossier import Dossier
from ..analyzer.findings import Diagnosis, Finding, Report
from ..codemap.anchors import Anchor
from ..codemap.fixes.base import Confirmation, DeviceFacts

LENGTH_BYTES = 4


class Analyze(msgspec.Struct, tag=True, frozen=True):
    """Analyse one trace and place its findings in the workspace at `root`."""

    id: int
    trace: str
    root: str
    overlay: dict[str, str]
    """Unsaved texts by path relative to `root`, with "/"."""
    min_saving_pct: float
    model_type: str
    report_path: str
    """Where the JSON report goes."""
    others: dict[str, dict[str, str]] = {}
    """The other open folders, whose files the trace may have run, too: the root of each with its unsaved texts."""
    with_detector: bool = True
    most_dossiers: int = 0
    """Of how many findings at most a language model may be asked."""


class Suspect(msgspec.Struct, frozen=True):
    """A finding whose fault is to be looked for again."""

    finding: Finding
    device: DeviceFacts
    anchor: Anchor | None


class Recheck(msgspec.Struct, tag=True, frozen=True):
    """Look again whether findings are in the source."""

    id: int
    root: str
    overlay: dict[str, str]
    suspects: tuple[Suspect, ...]
    within_s: float
    """After so long the rest is left out of the answer."""


class Index(msgspec.Struct, tag=True, frozen=True):
    """Keep up what is known of the files below `root`."""

    id: int
    root: str
    changed: tuple[str, ...]
    """Paths relative to `root` that were written, made or deleted; none to look for what changed anywhere."""
    within_s: float
    """After so long the rest is left for another request."""
    max_age_s: float
    """Which files there are is not looked at again within this time."""


class Explain(msgspec.Struct, tag=True, frozen=True):
    """Have a language model say why the finding of a dossier is slow."""

    id: int
    dossier: Dossier
    backend: BackendSettings
    samples: int
    within_s: float
    """After so long no further sample is begun."""
    text: str
    """Of the file that the dossier's source is from, as it is now; "" if there is none. A proposed edit is for it."""


class Cancel(msgspec.Struct, tag=True, frozen=True):
    """Stop the request `id`, which then is answered in whatever way. Only where a process says that it stops."""

    id: int


class Progress(msgspec.Struct, tag=True, frozen=True):
    """How far a request is: `fraction` of it from 0 to 1."""

    id: int
    fraction: float
    stage: str


class Analyzed(msgspec.Struct, tag=True, frozen=True):
    """Answer to `Analyze`."""

    id: int
    report: Report
    device: DeviceFacts
    sources: dict[str, str]
    """The text, by path, of each file that the report speaks of, as it was when it was placed."""
    confirmed: frozenset[int]
    """Positions in `report.findings` of those that the source was seen to hold; a recheck says nothing of others."""
    anchors: tuple[Anchor | None, ...]
    """What each finding's statement says, so that it is found again."""
    seconds: float
    elsewhere: dict[str, Analyzed] = {}
    """By root, what lies in files of the other folders. What is found there is left out here."""
    dossiers: tuple[Dossier | None, ...] = ()
    """What a language model would be told of each finding; None where it is not to be asked. Empty for none at all."""


class Rechecked(msgspec.Struct, tag=True, frozen=True):
    """Answer to `Recheck`, one item a suspect, from the first: None where the source does not hold the fault."""

    id: int
    confirmations: tuple[Confirmation | None, ...]


class Indexed(msgspec.Struct, tag=True, frozen=True):
    """Answer to `Index`."""

    id: int
    files: int
    left: int
    """Files that are to be read still."""


class Explained(msgspec.Struct, tag=True, frozen=True):
    """Answer to `Explain`."""

    id: int
    diagnosis: Diagnosis
    seconds: float


class Failed(msgspec.Struct, tag=True, frozen=True):
    """Answer to a request that could not be done. `details` is a traceback; "" where the input is at fault."""

    id: int
    message: str
    details: str = ""


Request = Analyze | Recheck | Index | Explain | Cancel
Answer = Analyzed | Rechecked | Indexed | Explained | Failed
Reply = Progress | Answer

request_decoder = msgspec.msgpack.Decoder(Request)
reply_decoder = msgspec.msgpack.Decoder(Reply)
_encoder = msgspec.msgpack.Encoder()


def frame(message: Request | Reply) -> bytes:
    """A message as bytes, with its length in front."""
    body = _encoder.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def read_frame(stream: BinaryIO) -> bytes | None:
    """The next message's bytes; None at the end of the stream."""
    head = stream.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    size = int.from_bytes(head, "big")
    body = stream.read(size)
    return body if len(body) == size else None
