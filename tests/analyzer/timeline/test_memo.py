from tests.builders import TraceBuilder
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.memo import once


def test_an_answer_is_worked_out_once_for_each_timeline():
    asked = []

    @once
    def events(timeline):
        asked.append(timeline)
        return len(timeline.trace)

    def of_steps(steps):
        b = TraceBuilder(devices=())
        for number in range(steps):
            with b.step(number):
                b.leaf("aten::relu")
        return build_timeline(b.build())

    short, long = of_steps(3), of_steps(4)
    assert [events(short), events(short), events(long)] == [6, 6, 8]
    assert [one is other for one, other in zip(asked, (short, long), strict=True)] == [True, True]
