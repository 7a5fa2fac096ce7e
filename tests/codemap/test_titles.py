from dataclasses import replace

from torchtraceap.analyzer.findings import Evidence, Finding, Fix, Safety, Severity
from torchtraceap.codemap.titles import titled

FINDING = Finding("TAP000", "some-fault", Severity.WARNING, "", "", 90_000, 57_312, 20, 1, (), None)
FIX = Fix("some-fault", "Do it", Safety.SAFE, ())


def test_a_title_says_the_saving_as_exactly_as_the_message():
    assert titled(FIX, FINDING).title == "Do it (about 57.3 ms per step)"
    varied = replace(FINDING, evidence=(Evidence("spread", "", 4.2, "ms"),))
    assert titled(FIX, varied).title == "Do it (about 57 ms per step)"


def test_an_unsafe_fix_says_so_once():
    unsafe = replace(FIX, safety=Safety.UNSAFE)
    once = titled(unsafe, FINDING)
    assert once.title == "Do it (about 57.3 ms per step) (check results)"
    assert titled(once, FINDING) == once
