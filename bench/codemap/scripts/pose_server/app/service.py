import queue
from typing import NamedTuple

import torch

from . import ops
from .net import SimplePose

PAIRS = [(1, 2), (3, 4), (5, 6)]


class Request(NamedTuple):
    id: int
    frame: object
    boxes: list


class Batcher:
    def __init__(self, inbox: "queue.Queue[Request]", limit=2):
        self.inbox, self.limit = inbox, limit

    def __iter__(self):
        while True:
            got = []
            try:
                while len(got) < self.limit:
                    got.append(self.inbox.get_nowait())
            except queue.Empty:
                pass
            if not got:
                return
            yield got


class PoseService:
    def __init__(self, flip_test=True):
        self.net = SimplePose().eval()
        self.flip_test = flip_test
        self.answers = {}

    def infer(self, crops):
        heat = self.net(crops)
        if not self.flip_test:
            return heat
        flipped = self.net(torch.flip(crops, dims=[3]))
        return (heat + ops.flip_back(flipped, PAIRS)) * 0.5

    def handle(self, requests):
        with torch.inference_mode():
            crops = torch.cat([ops.preprocess(r.frame, r.boxes) for r in requests])
            heat = self.infer(crops)
            sizes = [len(r.boxes) for r in requests]
            for request, h in zip(requests, heat.split(sizes)):
                people = ops.decode(h, request.boxes)
                good = people[..., 2].mean(1) > -1e9
                self.answers[request.id] = people[good].tolist()

    def run(self, inbox, on_batch=lambda: None):
        for requests in Batcher(inbox):
            self.handle(requests)
            on_batch()
