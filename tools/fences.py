"""Checks who imports whom inside src/viewkeeper.

A room is a package or a module directly in src/viewkeeper; the room "viewkeeper" is its __init__.py.
Imports under `if TYPE_CHECKING:` and inside functions count like any other.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = "viewkeeper"
ROOT = Path(__file__).resolve().parent.parent / "src" / PACKAGE

# Each room, and the other rooms it may import. A room that is not listed is a violation.
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "settings": {"errors"},
    "display": {"errors"},
    "selection": {"errors"},
    "algebra": {"errors"},
    "sql": {"algebra", "errors"},
    "changes": {"algebra", "errors"},
    "planner": {"algebra", "changes", "errors", "selection", "settings", "sql"},
    "testing": {"algebra", "changes", "errors", "planner", "selection", "sql"},
    "store": {"algebra", "errors", "settings", "sql"},
    "here": {"algebra", "changes", "sql", "store"},
    "runtime": {"algebra", "changes", "errors", "here", "planner", "settings", "sql", "store"},
}
ROOMS["reports"] = {"display"}
ROOMS["overview"] = {"algebra", "changes", "errors", "planner", "reports", "runtime", "settings", "sql", "store"}
ROOMS["stages"] = ROOMS["overview"] | {"overview"}
ROOMS["refreshing"] = ROOMS["overview"] | {"overview"}
ROOMS["warehouse"] = set(ROOMS)  # all of the above
ROOMS["viewkeeper"] = {"errors", "settings", "warehouse"}
ROOMS["project"] = {"errors", "reports", "settings", "sql", "store", "viewkeeper", "warehouse"}
ROOMS["tpch"] = {"errors"}
ROOMS["demo"] = {"errors", "reports", "settings", "tpch", "viewkeeper", "warehouse"}
ROOMS["bench"] = ROOMS["demo"]
# Of runtime and store, the command line uses only what looks at the machine (doctor) and what fetches rows (sql).
ROOMS["cli"] = ROOMS["demo"] | {"bench", "demo", "display", "project", "runtime", "sql", "store"}
ROOMS["__main__"] = {"cli"}

# The fenced libraries, by the rooms that may import them.
LIBRARIES: dict[str, set[str]] = {
    "selection": {"numpy", "scipy"},
    "planner": {"numpy", "scipy"},
    "sql": {"sqlglot"},
    "store": {"delta", "deltalake", "numpy", "py4j", "pyspark"},
    "here": {"numpy"},
    "runtime": {"delta", "py4j", "pyspark"},
    "display": {"rich", "typer"},
    "cli": {"rich", "typer"},
    "bench": {"matplotlib"},
}
FENCED = set[str]().union(*LIBRARIES.values())


def imports(tree: ast.Module, package: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yields the line and the absolute dotted path of every import in a file of `package`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            module = node.module.split(".") if node.module else []
            yield from ((node.lineno, [*above, *module, alias.name]) for alias in node.names)


def violations(file: Path) -> Iterator[str]:
    where = file.relative_to(ROOT.parent.parent).as_posix()
    parts = file.relative_to(ROOT).with_suffix("").parts
    room = PACKAGE if parts == ("__init__",) else parts[0]
    if room not in ROOMS:
        yield f"{where}:1: room {room} is not listed in tools/fences.py"
        return
    for line, path in imports(ast.parse(file.read_bytes()), [PACKAGE, *parts[:-1]]):
        if path[0] in FENCED - LIBRARIES.get(room, set()):
            yield f"{where}:{line}: room {room} may not import {path[0]}"
        if path[0] == PACKAGE:
            target = path[1] if path[1:] and path[1] in ROOMS else PACKAGE
            if target != room and target not in ROOMS[room]:
                yield f"{where}:{line}: room {room} may not import room {target}"


if __name__ == "__main__":
    TopologicalSorter(ROOMS).prepare()  # raises CycleError if the rooms above go round in a circle
    found = dict.fromkeys(line for file in sorted(ROOT.rglob("*.py")) for line in violations(file))
    print("\n".join(found) or "fences: ok")
    sys.exit(bool(found))
