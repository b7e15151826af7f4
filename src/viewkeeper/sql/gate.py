"""Whether Spark sees the same query in two texts: the last word on whether a definition was read right.

Two texts mean the same if their optimized plans are the same but for names, numbering, sorts, where rows are put and
how they are joined, the order of terms in a condition, and the place where a column is computed. The plans are
compared as canonical text: attributes numbered bottom up, an attribute that a projection computes replaced by its
expression, projections left out except for the order of columns where that matters.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

from viewkeeper.sql.functions import AGGREGATES

_SECTION = re.compile(r"== Optimized Logical Plan ==\n(.*?)\n== Physical Plan ==", re.DOTALL)
_EDGE = re.compile(r"^(?:[ :]  )*(?:[:+]- )?")
_NAMED = re.compile(r" AS ([^#]+?)#(\d+)")
_ATTRIBUTE = re.compile(r"\w*#(\d+)L?")
_LAMBDA = re.compile(r"\blambda (\w+)#\d+L?")  # a parameter, which its name tells from those around it
_RENAME = re.compile(r"#(\d+) AS #(\d+)(?=[,\]]|$)")
_GENERATE = re.compile(r"(Generate .*, (?:true|false), )\w+, \[")  # the alias of a LATERAL VIEW
_MADE = re.compile(
    r"(?:, \[([\d, ]*)\])?(, (?:true|false), \[([^\[\]]*)\])$"
)  # by Generate: what is dropped, what is made
_HINT = re.compile(r", (?:left|right)Hint=\([^()]*\)")
_ALWAYS = re.compile(r"(?<=Outer), true$", re.MULTILINE)  # a join on nothing, as which Spark also shows it
_PLACING = re.compile(r"Sort \[.*\], (?:true|false)|Repartition|RebalancePartitions")
_ORDERED = ("GlobalLimit", "LocalLimit", "Offset", "Aggregate")  # Spark drops a sort that an aggregate does not mind
_AGGREGATE = re.compile(rf"\b(?:{'|'.join(sorted(AGGREGATES))})\(")
_STRICT = re.compile(r" (?:=|<|<=|>|>=|\+|-|\*|/|%) ")
_FILTER = " FILTER (WHERE "
_SUBQUERY = re.compile(r"scalar-#(\d+) \[\]")  # by its number; its plan is shown before the operator's inputs
_MERGED = re.compile(r"Project \[named_struct\((.*)\) AS #\d+\]")  # subqueries of the same rows, computed at once
_STEP = 3  # how far Spark indents an input


def optimized_plan(explained: str) -> str:
    """The canonical form of the optimized plan in the text of EXPLAIN EXTENDED."""
    found = _SECTION.search(explained)
    return canonical(found[1] if found else explained)


def canonical(plan: str) -> str:
    """The plan in a form that is equal for plans that differ in nothing that matters to a bag of rows."""
    names = {(name, number) for name, number in _NAMED.findall(plan)} | _odd_names(plan)
    for name, number in sorted(names, key=lambda n: -len(n[0])):
        plan = re.sub(re.escape(name) + rf"#{number}(?!\d)", f"#{number}", plan, flags=re.IGNORECASE)
    plan = _LAMBDA.sub(lambda found: f"lambda {found[1].lower()}", plan)
    plan = _ATTRIBUTE.sub(r"#\1", plan).replace("Join Cross", "Join Inner")
    plan = _ALWAYS.sub("", _HINT.sub("", _GENERATE.sub(r"\1[", plan)))
    root = _tree(plan.splitlines())
    shown = _Canon(_defined(root)).visit(_left_outer(root))
    return "\n".join([f"output {shown.outputs}", *shown.lines])


def _odd_names(plan: str) -> set[tuple[str, str]]:
    """The names and numbers of columns whose names may be more than a word: of tables, and of what Expand makes."""
    lines = (line.lstrip(" :+-") for line in plan.splitlines())
    lists = [line[_last_list(line) : -1] for line in lines if line.startswith("Expand [")]
    lists += re.findall(r"Relation [^\[]*\[(.*)\]", plan)
    found = (re.fullmatch(r"(.+)#(\d+)L?", item) for items in lists for item in _items(items))
    return {(match[1], match[2]) for match in found if match}


@dataclass
class _PlanNode:
    text: str
    inputs: list[_PlanNode] = field(default_factory=list)


def _tree(lines: list[str]) -> _PlanNode:
    """Spark's indented plan text as a tree."""
    root = _PlanNode("")
    path: list[tuple[int, _PlanNode]] = [(-1, root)]
    for line in lines:
        if not line.strip():
            continue
        edge = _EDGE.match(line)
        depth = len(edge[0]) // _STEP if edge else 0
        node = _PlanNode(line[len(edge[0]) if edge else 0 :].rstrip())
        while path[-1][0] >= depth:
            path.pop()
        path[-1][1].inputs.append(node)
        path.append((depth, node))
    return root.inputs[0] if root.inputs else root


def _left_outer(node: _PlanNode) -> _PlanNode:
    """L RIGHT JOIN R as R LEFT JOIN L: the order of its columns is up to whoever reads them by name."""
    inputs = [_left_outer(i) for i in node.inputs]
    if node.text.startswith("Join RightOuter"):
        return _PlanNode(node.text.replace("Join RightOuter", "Join LeftOuter", 1), inputs[::-1])
    return _PlanNode(node.text, inputs)


def _parted(node: _PlanNode) -> tuple[dict[str, _PlanNode], list[_PlanNode]]:
    """The plans of the scalar subqueries in an operator's expressions, by number, and its inputs."""
    named = _SUBQUERY.findall(node.text)
    inputs = 2 if node.text.startswith("Join ") else 1
    if not named or len(node.inputs) != len(named) + inputs:
        return {}, node.inputs
    return dict(zip(named, node.inputs, strict=False)), node.inputs[len(named) :]


def _merged(plan: _PlanNode) -> dict[str, str]:
    """The values of the subqueries that this plan computes at once, by name; none where these do not tell."""
    found = _MERGED.fullmatch(plan.text)
    items = _items(found[1]) if found else ()
    values = dict(zip(items[::2], items[1::2], strict=False))
    told = 2 * len(values) == len(items) and all(re.fullmatch(r"#\d+", value) for value in values.values())
    return values if told else {}


def _by_place(node: _PlanNode, subqueries: dict[str, _PlanNode]) -> str:
    """The operator's text, with the values of merged subqueries by their places instead of by the names they had."""
    text = node.text
    for number, plan in subqueries.items():
        places = {name: place for place, name in enumerate(_merged(plan))}
        for name in sorted(places, key=len, reverse=True):
            text = text.replace(f"scalar-#{number} [].{name}", f"scalar-#{number} []@{places[name]}")
    return text


def _digest(plan: _PlanNode) -> str:
    """A word for a plan, the same for plans that mean the same."""
    if values := _merged(plan):
        plan = _PlanNode(f"Project [{', '.join(values.values())}]", plan.inputs)
    shown = _Canon(_defined(plan)).visit(_left_outer(plan))
    return hashlib.sha256("\n".join([f"output {shown.outputs}", *shown.lines]).encode()).hexdigest()


@dataclass(frozen=True)
class _Shown:
    """A canonical subplan: its lines, the attributes it gives in order, and what each raw number became.

    `unsaid` are attributes whose raw number the plan has not shown.
    """

    lines: tuple[str, ...]
    outputs: tuple[str, ...]
    meaning: dict[str, str]
    unsaid: tuple[str, ...] = ()


def _defined(node: _PlanNode) -> frozenset[str]:
    """The raw numbers that the plan shows where they are made; Range alone does not show its own."""
    made = re.findall(r"(?<= AS )#(\d+)", node.text)
    if not node.inputs:
        made = re.findall(r"#(\d+)", node.text)
    elif node.text.startswith(("Generate ", "Expand ")):
        made += re.findall(r"#(\d+)", node.text[_last_list(node.text) :])
    return frozenset(made).union(*map(_defined, node.inputs))


@dataclass
class _Canon:
    defined: frozenset[str]
    count: int = 0

    def visit(self, node: _PlanNode, ordered: bool = False) -> _Shown:
        """The order of rows counts only below a limit, or an aggregate that depends on it."""
        ordered = ordered or node.text.startswith(_ORDERED)
        subqueries, below = _parted(node)
        node = _PlanNode(_by_place(node, subqueries), below)
        inputs = [self.visit(i, ordered) for i in below]
        meaning: dict[str, str] = {}
        for shown in reversed(inputs):
            meaning.update(shown.meaning)
        meaning.update((number, _digest(plan)) for number, plan in subqueries.items())
        if node.text.startswith("Range ("):
            number = self.fresh()
            return _Shown((node.text,), (number,), {}, (number,))
        unsaid = [number for shown in inputs for number in shown.unsaid]
        if _PLACING.match(node.text) and not ordered:
            return inputs[0]
        lines = tuple(line for shown in inputs for line in shown.lines)
        if node.text == "Project":  # of no columns: only how many rows there are counts
            return _Shown(lines, (), meaning)
        if node.text.startswith("Project ["):
            computed = self.computed(node.text[len("Project [") : -1], meaning, unsaid)
            return _Shown(lines, computed, meaning, tuple(n for n in unsaid if n in computed))
        if node.text.startswith("Aggregate ["):
            return self.grouped(node.text, lines, meaning, unsaid)
        if node.text.startswith("Window ["):
            return self.windowed(node.text, inputs[-1].outputs, lines, meaning, unsaid)
        text = _ordered_terms(self.resolve(node.text, meaning, unsaid))
        outputs = self.outputs(text, inputs)
        if text.startswith("Generate "):  # what it drops shows in what it gives
            text = _MADE.sub(r"\2", text)
        if text.startswith("Union"):  # the one operator that goes by position
            lines = tuple(line for shown in inputs for line in (f"output {shown.outputs}", *shown.lines))
        return _Shown((text, *("  " + line for line in lines)), outputs, meaning, tuple(unsaid))

    def fresh(self) -> str:
        self.count += 1
        return f"#{self.count - 1}"

    def computed(self, items: str, meaning: dict[str, str], unsaid: list[str]) -> tuple[str, ...]:
        """What a projection gives; from now on a column that it computes is its expression."""
        outputs = []
        for item in _items(items):
            value, named, number = item.rpartition(" AS #")
            shown = self.resolve(value if named and number.isdigit() else item, meaning, unsaid)
            if named and number.isdigit():
                meaning[number] = shown
            outputs.append(shown)
        return tuple(outputs)

    def windowed(
        self, text: str, given: tuple[str, ...], below: tuple[str, ...], meaning: dict[str, str], unsaid: list[str]
    ) -> _Shown:
        """What windows give: each function once, in any order."""
        listed, *spec = _items(text.removeprefix("Window "))
        split = [item.rpartition(" AS #") for item in _items(listed[1:-1])]
        values = [self.resolve(value, meaning, unsaid) for value, _, _ in split]
        made = {value: self.fresh() for value in sorted(set(values))}
        for value, (_, _, number) in zip(values, split, strict=True):
            meaning[number] = made[value]
        line = ", ".join([f"Window {list(made)}", *(self.resolve(part, meaning, unsaid) for part in spec)])
        outputs = (*given, *(made[value] for value in values))
        return _Shown((line, *("  " + one for one in below)), outputs, meaning, tuple(unsaid))

    def grouped(self, text: str, below: tuple[str, ...], meaning: dict[str, str], unsaid: list[str]) -> _Shown:
        """What an aggregate gives is computed of its keys and of aggregate calls, each of which it makes once."""
        *by, items = (_items(part[1:-1]) for part in _items(text.removeprefix("Aggregate ")))
        keys = sorted({self.resolve(key, meaning, unsaid) for key in (by[0] if by else ())})
        split = [item.rpartition(" AS #") if " AS #" in item else (item, "", "") for item in items]
        values = [self.resolve(value, meaning, unsaid) for value, _, _ in split]
        made = {call: self.fresh() for call in sorted({c for value in values for c in _calls(value, keys)})}
        outputs = []
        for value, (_, _, number) in zip(values, split, strict=True):
            shown = value
            for call in sorted(_calls(value, keys), key=len, reverse=True):
                shown = shown.replace(call, made[call])
            if number:
                meaning[number] = shown
            outputs.append(shown)
        # Constants count only where they are all there is: then no rows make no group.
        compared = [key for key in keys if "#" in key] or ["constant"][: len(keys)]
        lines = (f"Aggregate {compared}, {list(made)}", *("  " + line for line in below))
        return _Shown(lines, tuple(outputs), meaning, tuple(n for n in unsaid if n in outputs))

    def resolve(self, text: str, meaning: dict[str, str], unsaid: list[str]) -> str:
        """The operator's text with canonical numbers; learns what its new attributes mean."""

        def rename(match: re.Match[str]) -> str:
            if match[1] not in meaning:
                return match[0]
            meaning[match[2]] = meaning[match[1]]
            return f"#{match[1]}"

        def number(match: re.Match[str]) -> str:
            raw = match[1]
            if raw not in meaning and raw not in self.defined and unsaid:
                # Whose it is is certain if there is only one; else it is like nothing in any other plan.
                meaning[raw] = unsaid.pop() if len(unsaid) == 1 else f"#?{raw}"
            elif raw not in meaning:
                meaning[raw] = self.fresh()
            return meaning[raw]

        return re.sub(r"#(\d+)", number, _RENAME.sub(rename, text))

    def outputs(self, text: str, inputs: list[_Shown]) -> tuple[str, ...]:
        """The attributes an operator gives, in order; none where that is not known."""
        if text.startswith("Expand ["):
            return _attributes(_items(text[_last_list(text) : -1]))
        if text.startswith(("Relation ", "LocalRelation ")):
            return tuple(re.findall(r"#\d+", text))
        if text.startswith("Generate ") and (made := _MADE.search(text)):
            dropped = set(map(int, re.findall(r"\d+", made[1] or "")))
            given = (o for shown in inputs for o in shown.outputs)
            return (*(o for i, o in enumerate(given) if i not in dropped), *_items(made[3]))
        if text.startswith(("Join LeftSemi", "Join LeftAnti", "Filter", "Union")):
            return inputs[0].outputs if inputs else ()
        return tuple(o for shown in inputs for o in shown.outputs)


def _ordered_terms(text: str) -> str:
    """A filter or join whose condition has its terms in the order of their texts."""
    operator, comma, condition = text.partition(", (") if text.startswith("Join ") else text.partition(" (")
    if not text.startswith(("Join ", "Filter ")) or not comma or not condition.endswith(")"):
        return text
    return f"{operator}{comma}{' AND '.join(sorted(_needed(_terms('(' + condition))))})"


def _terms(condition: str) -> set[str]:
    """The terms of nested ANDs."""
    if not (condition.startswith("(") and condition.endswith(")")):
        return {condition}
    depth, start, parts = 0, 1, []
    for i, character in enumerate(condition):
        depth += character == "("
        depth -= character == ")"
        if depth == 0 and i < len(condition) - 1:
            return {condition}  # two expressions in parentheses side by side
        if depth == 1 and condition.startswith(" AND ", i):
            parts.append(condition[start:i])
            start = i + len(" AND ")
    parts.append(condition[start:-1])
    return {condition} if len(parts) == 1 else set().union(*map(_terms, parts))


def _needed(terms: set[str]) -> set[str]:
    """The terms without each `isnotnull(x)` that another implies, since it compares what would be NULL."""
    compared = set().union(*(_strict_parts(t) for t in terms if t.startswith("(")))
    return terms - {f"isnotnull({part})" for part in compared}


def _strict_parts(text: str) -> set[str]:
    """The operands, at any depth, of comparisons and arithmetic: if one is NULL, so is the whole."""
    if not (text.startswith("(") and _closed(text, 1) == len(text)):
        return {text}
    depth = 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        operator = _STRICT.match(text, i) if depth == 1 else None
        if operator:
            return {text} | _strict_parts(text[1:i]) | _strict_parts(text[operator.end() : -1])
    return set()


def _calls(value: str, keys: list[str]) -> list[str]:
    """The aggregate calls in a value; the whole of it if it is made of more than them and the keys."""
    found: list[str] = []
    end = 0
    for match in _AGGREGATE.finditer(value):
        if match.start() >= end:
            end = _closed(value, match.end())
            if value.startswith(_FILTER, end):
                end = _closed(value, end + len(_FILTER))
            found.append(value[match.start() : end])
    rest = value
    for part in sorted((*found, *keys), key=len, reverse=True):
        rest = rest.replace(part, "")
    return [value] if "#" in rest else found


def _closed(text: str, start: int) -> int:
    """Where the parenthesis that is open at the start has been closed."""
    depth = 1
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i + 1
    return len(text)


def _last_list(text: str) -> int:
    """Where the items of an operator's last list begin."""
    return text.rindex(", [") + 3 if ", [" in text else text.index("[") + 1


def _attributes(items: tuple[str, ...]) -> tuple[str, ...]:
    """What each item is called: its number, where it has one."""
    return tuple("#" + i.rpartition(" AS #")[2] if " AS #" in i else i for i in items)


def _items(text: str) -> tuple[str, ...]:
    """The list's items; commas inside parentheses do not part them."""
    items, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += character in "([{"
        depth -= character in ")]}"
        if character == "," and depth == 0:
            items.append(text[start:i].strip())
            start = i + 1
    items.append(text[start:].strip())
    return tuple(i for i in items if i)
