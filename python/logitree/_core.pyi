"""The Rust core as Python sees it, one part a room."""

__version__: str
__profile__: str

class LogitreeError(Exception): ...
