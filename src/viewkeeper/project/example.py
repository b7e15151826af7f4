"""A new project, with an example in it."""

from __future__ import annotations

from pathlib import Path

from viewkeeper.errors import ProjectError, ViewkeeperError
from viewkeeper.project.definitions import statements
from viewkeeper.project.files import FILE, Project
from viewkeeper.reports import Progress
from viewkeeper.warehouse import Warehouse

_TOML = """\
# A Viewkeeper project. `viewkeeper refresh`, anywhere in this folder, brings the warehouse in line with the SQL
# files: it creates views that are new, replaces those that changed and refreshes the rest.

warehouse = "{warehouse}"        # the folder of Delta tables, seen from here
views = ["views/**/*.sql"]     # CREATE MATERIALIZED VIEW statements, in any order
setup = ["setup/*.sql"]        # any statements; run by `viewkeeper init`, each time

# [settings]
# small_rows = 200_000         # steps that touch fewer rows run with settings for small steps
# rewrite_rows = 1_000_000     # views up to this size are rewritten rather than merged into
# retries = 3                  # how often a refresh that met another one is tried again
# views_at_once = 2            # how many views are refreshed at the same time
"""

_EXAMPLE = {
    "setup/tables.sql": """\
-- A source table. With its change data feed on, changes are cheapest to read; views work without it too.
CREATE TABLE IF NOT EXISTS sales (id BIGINT, day DATE, shop STRING, price DECIMAL(10, 2))
USING DELTA TBLPROPERTIES (delta.enableChangeDataFeed = true);

-- Some rows, if there are none: this file runs at each `viewkeeper init`.
INSERT INTO sales
SELECT id, date_add(DATE '2025-01-01', CAST(id % 30 AS INT)), concat('shop ', id % 7),
       CAST(id % 97 + 0.5 AS DECIMAL(10, 2))
FROM range(1000)
WHERE NOT EXISTS (SELECT 1 FROM sales);
""",
    "views/daily.sql": """\
-- Kept right from the changes of sales: a refresh touches only the days that have new, changed or deleted sales.
CREATE MATERIALIZED VIEW daily
COMMENT 'Sales by day and shop'
AS
SELECT day, shop, count(*) AS sales, sum(price) AS revenue, max(price) AS largest
FROM sales
GROUP BY day, shop;
""",
    "views/best_days.sql": """\
-- A view over a view: its changes come from those of daily.
CREATE MATERIALIZED VIEW best_days AS
SELECT day, sum(revenue) AS revenue
FROM daily
GROUP BY day
HAVING sum(revenue) > 1600;
""",
}


def write_example(folder: Path, warehouse: str = "warehouse") -> list[Path]:
    """Write what a new project needs and the folder does not have; an example, where there is no SQL file yet."""
    root = folder.absolute()
    if (root / FILE).exists():
        return []
    empty = not any(root.rglob("*.sql"))
    toml = _TOML.format(warehouse=warehouse)
    if not empty:
        toml = toml.replace("views = ", "# views = ").replace("setup = ", "# setup = ")
    files = {FILE: toml, **(_EXAMPLE if empty else {})}
    for name, text in files.items():
        try:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            with (root / name).open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise ProjectError(f"{root / name} cannot be written: {error}") from error
    return [root / name for name in files]


def run_setup(project: Project, wh: Warehouse, progress: Progress) -> int:
    """Run the statements of the setup files, in order; returns how many."""
    scripts = list(statements(project.setup_files(), project))
    for script in scripts:
        progress(script.place, "running")
        try:
            wh.sql(script.text)
        except ViewkeeperError as error:
            raise script.located(error) from error
        progress(script.place, "done")
    return len(scripts)
