from .factory import create_model, register_model
from . import models  # noqa: F401

__all__ = ["create_model", "register_model"]
