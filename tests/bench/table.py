"""A table of results, printed line by line."""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Table:
    name: str
    title: str
    header: str  # names of the columns, between semicolons
    rows: list[list] = field(default_factory=list)

    @property
    def columns(self) -> list[str]:
        return self.header.split(";")

    def add(self, *row) -> None:
        self.rows.append(list(row))
        print("  " + "  ".join(f"{name} {value}" for name, value in zip(self.columns, row)))
        sys.stdout.flush()

    def markdown(self) -> str:
        lines = [f"### {self.title}", "", "| " + " | ".join(self.columns) + " |"]
        lines.append("|" + "---|" * len(self.columns))
        lines += ["| " + " | ".join(str(value) for value in row) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"

    def write_csv(self, directory: Path) -> None:
        with open(directory / f"{self.name}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self.rows)


def of_scenes(group: str, module, bench) -> Table:
    """The table of a module that makes rows of each of its scenes."""
    table = Table(group, module.TITLE, module.COLUMNS)
    library = bench.build / "lib" / "libsap_islands.so"
    for name in filter(lambda name: bench.wants(f"{group}/{name}"), module.SCENES):
        for row in module.rows(name, library, bench.threads):
            table.add(name, *row)
    return table
