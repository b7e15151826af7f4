"""The folder of a project and what its viewkeeper.toml says."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewkeeper.errors import ProjectError
from viewkeeper.settings import Settings

FILE = "viewkeeper.toml"


@dataclass(frozen=True)
class Project:
    """What viewkeeper.toml says."""

    root: Path
    warehouse: Path
    settings: Settings = dataclasses.field(default_factory=Settings)
    views: tuple[str, ...] = ("**/*.sql",)
    setup: tuple[str, ...] = ()

    def setup_files(self) -> list[Path]:
        """The files under `setup`, in the order in which they are listed."""
        return list(dict.fromkeys(f for pattern in self.setup for f in self._matching(pattern)))

    def view_files(self) -> list[Path]:
        setup = set(self.setup_files())
        found = {f for pattern in self.views for f in self._matching(pattern)}
        return sorted(found - setup)

    def _matching(self, pattern: str) -> list[Path]:
        try:
            found = sorted(f for f in self.root.glob(pattern) if f.is_file())
        except (ValueError, NotImplementedError) as error:
            raise ProjectError(f"{FILE}: {pattern!r} is not a pattern of files in the project: {error}") from error
        return [f for f in found if not self._hidden(f)]

    def _hidden(self, file: Path) -> bool:
        inside = file.relative_to(self.root).parts
        return any(part.startswith(".") for part in inside) or self.warehouse in file.parents


def find_project(folder: Path) -> Project | None:
    """The project that a folder belongs to: its own, or that of a folder above it."""
    here = folder.absolute()
    return next((load_project(f) for f in (here, *here.parents) if (f / FILE).is_file()), None)


def load_project(folder: Path) -> Project:
    root = folder.absolute()
    try:
        data = tomllib.loads((root / FILE).read_text("utf-8"))
    except FileNotFoundError:
        raise ProjectError(f"there is no {FILE} in {root}", hint="viewkeeper init makes one") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ProjectError(f"{root / FILE} cannot be read: {error}") from error
    known = {"warehouse", "settings", "views", "setup"}
    if unknown := sorted(set(data) - known):
        raise ProjectError(f"{FILE}: unknown key {unknown[0]}", hint=f"known keys: {', '.join(sorted(known))}")
    warehouse = data.get("warehouse", "warehouse")
    if not isinstance(warehouse, str) or not warehouse:
        raise ProjectError(f"{FILE}: warehouse must be the name of a folder in quotes")
    return Project(
        root,
        (root / Path(warehouse).expanduser()).absolute(),
        _settings(data.get("settings", {})),
        _patterns(data, "views", ("**/*.sql",)),
        _patterns(data, "setup", ()),
    )


def _settings(data: Any) -> Settings:
    known = [f.name for f in dataclasses.fields(Settings)]
    if not isinstance(data, dict):
        raise ProjectError(f"{FILE}: settings must be a table, [settings]")
    for key, value in data.items():
        if key not in known:
            raise ProjectError(f"{FILE}: unknown setting {key}", hint=f"known settings: {', '.join(known)}")
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ProjectError(f"{FILE}: {key} must be a whole number, not {value!r}")
    return Settings(**data)


def _patterns(data: dict[str, Any], key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    value = data.get(key, list(default))
    if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
        raise ProjectError(f'{FILE}: {key} must be a list of file patterns, like ["{key}/*.sql"]')
    return tuple(value)
