from .blocks import *
from .model import Pyramid

__all__ = ["Pyramid"]
