"""A place where the tree breaks a rule of its style."""

from typing import NamedTuple


class Finding(NamedTuple):
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"
