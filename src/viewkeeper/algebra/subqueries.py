"""Queries inside expressions as joins.

    σ_EXISTS(S) E      = E ⋉ S                     σ_NOT EXISTS(S) E = E ▷ S
    σ_x IN S E         = E ⋉_{x=s} S               σ_x NOT IN S E    = E ▷_{x=s is not false} S
    EXISTS as a value  = (E ⋉ S) × {true} ⊎ (E ▷ S) × {false}
    (S) as a value     = E ⟕ S, S one row for each value of what it compares with the row around it
    E, LATERAL (S)     = E ⋈ S                     E LEFT JOIN LATERAL (S) = E ⟕ S
    E, LATERAL (S(∅))  = S(E), where S makes its rows of nothing but the row around it

before that, S is freed of what it asks of the row around it (`algebra/correlation.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from viewkeeper.algebra.correlation import CannotJoin, Freed, free
from viewkeeper.algebra.laterals import of_each_row
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import (
    Aggregate,
    Field,
    Filter,
    Item,
    Join,
    JoinKind,
    Measure,
    Project,
    Relation,
    Top,
    Union,
    Values,
    inputs,
    names,
    pass_through,
    with_inputs,
)
from viewkeeper.algebra.scalars import (
    FALSE,
    NULL,
    ONE,
    TRUE,
    Call,
    Column,
    Literal,
    Scalar,
    Subquery,
    call,
    columns,
    conjunction,
    conjuncts,
    rebuild,
    subqueries,
    substitute,
)
from viewkeeper.algebra.types import BIGINT, BOOLEAN

SINGLE = "__vk_value"  # begins the names of measures over what can only be one row


def as_joins(rel: Relation) -> Relation:
    """The relation with a join for every subquery in an expression; CannotJoin if one has no such form."""
    taken = {n.name.lower() for n in walk(rel) if isinstance(n, (Field, Item, Measure, Column))}
    return _Joins(taken).relation(rel)


@dataclass
class _Joins:
    taken: set[str]

    def fresh(self, base: str) -> str:
        name, count = f"__vk_{base}", 1
        while name in self.taken:
            count += 1
            name = f"__vk_{base}_{count}"
        self.taken.add(name)
        return name

    def relation(self, rel: Relation) -> Relation:
        if isinstance(rel, Join) and rel.lateral:
            return self.lateral(rel)
        below = with_inputs(rel, tuple(self.relation(i) for i in inputs(rel)))
        match below:
            case Filter(input, predicate) if subqueries(predicate):
                return self.filter(input, _denied_inside(predicate))
            case Project(input, items) if any(subqueries(i.value) for i in items):
                values = []
                for item in items:
                    input, value = self.attach_all(input, _denied_inside(item.value))
                    values.append(Item(item.name, value, item.type))
                return Project(input, tuple(values))
            case Join(left, right, "inner", condition) if subqueries(condition):
                sides = (frozenset(names(left)), frozenset(names(right)))
                return self.filter(Join(left, right, "inner", TRUE), _denied_inside(condition), sides)
            case Join(condition=condition) if subqueries(condition):
                return self.sides(below)
            case _:
                return below

    def sides(self, rel: Join) -> Relation:
        """A join on subqueries that read one side each: their values are attached to that side."""
        left, right = rel.left, rel.right
        ours, theirs = frozenset(names(left)), frozenset(names(right))
        asked_before = {"full": (), "semi": (ours, theirs)}.get(rel.kind, (theirs,))
        terms = []
        for term in conjuncts(_denied_inside(rel.condition)):
            strict = any(columns(term) <= side for side in asked_before)

            def attach(part: Scalar, strict: bool = strict) -> Scalar | None:
                nonlocal left, right
                match part:
                    case Subquery() | Call("NOT", (Subquery("in"),)) if columns(part) <= theirs:
                        right, value = self.attach_all(right, part, strict)
                    case Subquery() | Call("NOT", (Subquery("in"),)) if columns(part) <= ours:
                        left, value = self.attach_all(left, part, strict)
                    case Subquery(relation=query):
                        raise CannotJoin("it reads both sides of an outer join, in its condition", query)
                    case _:
                        return None
                return value

            terms.append(rebuild(term, attach))
        return Project(Join(left, right, rel.kind, conjunction(terms)), pass_through(rel.schema))

    def lateral(self, rel: Join) -> Relation:
        """E ⋈ S or E ⟕ S for a subquery that may read the row on its left."""
        if (rows := of_each_row(rel)) is not None:
            return self.relation(rows)
        if subqueries(rel.condition) and rel.kind == "inner":
            return self.filter(self.lateral(replace(rel, condition=TRUE)), _denied_inside(rel.condition))
        if subqueries(rel.condition):
            raise CannotJoin("it stands in the condition of an outer join", subqueries(rel.condition)[0].relation)
        left = self.relation(rel.left)
        freed = self.freed(rel.right, left, rel.right, may_be_total=True)
        right, values = freed.relation, freed.values
        condition = substitute(rel.condition, values)
        conditions = [*freed.conditions, *(c for c in conjuncts(condition) if c != TRUE)]
        if freed.total:  # with one row for each on the left, the condition is looked at after the join
            joined: Relation = Join(left, right, "left", conjunction(list(freed.conditions)))
            joined = Filter(joined, condition) if rel.kind == "inner" and condition != TRUE else joined
            there = condition
        elif rel.kind == "inner":
            joined, there = Join(left, right, "inner", conjunction(conditions)), TRUE
        else:
            there = Column(self.fresh("there"))
            marked = Project(right, (*pass_through(right.schema), Item(there.name, TRUE, BOOLEAN)))
            joined = Join(left, marked, "left", conjunction(conditions))
        if rel.kind == "left":
            values = {n: v if there == TRUE else call("IF", there, v, NULL) for n, v in values.items()}
        made = tuple(Item(f.name, values[f.name], f.type) for f in rel.right.schema)
        return Project(joined, (*pass_through(rel.left.schema), *made))

    def filter(self, input: Relation, predicate: Scalar, sides: tuple[frozenset[str], ...] = ()) -> Relation:
        """σ; of a join on its condition if `sides` are given, of which Spark filters each by what reads it alone."""
        rel, plain = input, []
        for term in conjuncts(predicate):
            match term:
                case Subquery("exists" | "in"):
                    rel = self.matched(rel, term, "semi")
                case Call("NOT", (Subquery("exists" | "in") as subquery,)):
                    rel = self.matched(rel, subquery, "anti")
                case _:
                    strict = not sides or any(columns(term) <= side for side in sides)
                    rel, value = self.attach_all(rel, term, strict)
                    plain.append(value)
        kept = Filter(rel, conjunction(plain)) if plain else rel
        return kept if names(kept) == names(input) else Project(kept, pass_through(input.schema))

    def matched(self, rel: Relation, subquery: Subquery, kind: JoinKind) -> Relation:
        """E ⋉ S or E ▷ S."""
        freed = self.freed(_asked_for(subquery), rel, subquery.relation)
        return _joined(rel, freed, kind, _compared(subquery, freed, kind))

    # As a value

    def attach_all(self, rel: Relation, scalar: Scalar, strict: bool = True) -> tuple[Relation, Scalar]:
        """The relation with what the subqueries of an expression need joined on, and the expression over it.

        To a `strict` NOT IN an unknown comparison is a match. In the condition of a join it is none to Spark.
        """
        values: dict[Scalar, Scalar] = {}

        def attach(part: Scalar) -> Scalar | None:
            nonlocal rel
            match part:
                case Subquery("scalar", _, query):
                    rel, values[part] = self.attach_value(rel, query)
                case Subquery():
                    rel, values[part] = self.mark(rel, part, "semi")
                case Call("NOT", (Subquery("in") as subquery,)):
                    rel, found = self.mark(rel, subquery, "anti" if strict else "semi")
                    values[part] = call("NOT", found)
                case _:
                    pass
            return values.get(part)

        value = rebuild(scalar, attach)
        return rel, value

    def mark(self, rel: Relation, subquery: Subquery, kind: JoinKind) -> tuple[Relation, Column]:
        """E with a column that says whether there is a match.

        As in Spark, IN and NOT IN as values are never NULL: an unknown comparison is none for IN and one for NOT IN.
        """
        name = self.fresh("found")
        freed = self.freed(_asked_for(subquery), rel, subquery.relation)
        condition = _compared(subquery, freed, kind)

        def branch(kind: JoinKind, found: Scalar) -> Relation:
            rows = _joined(rel, freed, kind, condition)
            return Project(rows, (*pass_through(rel.schema), Item(name, found, BOOLEAN)))

        return Union((branch("semi", TRUE), branch("anti", FALSE))), Column(name)

    def attach_value(self, rel: Relation, query: Relation) -> tuple[Relation, Scalar]:
        freed = self.freed(self.one_row(query), rel, query, may_be_total=True)
        (value,) = freed.values.values()
        if not freed.conditions:
            return Join(rel, freed.relation, "inner", TRUE), value
        return Join(rel, freed.relation, "left", conjunction(list(freed.conditions))), value

    def one_row(self, query: Relation) -> Relation:
        """The query as one that has exactly one row, NULL for none, and an error for more than one."""
        match query:
            case Project(Filter(Aggregate(group_by=()) as one, condition), (item,)):
                return Project(one, (Item(item.name, call("IF", condition, item.value, NULL), item.type),))
            case _:
                return query if _is_one_row(query) else self.checked(query)

    def checked(self, query: Relation) -> Relation:
        (field,) = query.schema
        value, count = self.fresh(SINGLE.removeprefix("__vk_")), self.fresh("rows")
        measures = (Measure(value, "any_value", (field.name,), field.type), Measure(count, "count", (), BIGINT))
        error = call("RAISE_ERROR", Literal("'a subquery used as a value has more than one row'"))
        checked = call("IF", call(">", Column(count), ONE), error, Column(value))
        return Project(Aggregate(query, (), measures), (Item(self.fresh("only"), checked, field.type),))

    def freed(self, query: Relation, around: Relation, written: Relation, *, may_be_total: bool = False) -> Freed:
        try:
            return free(self.relation(query), around, self.fresh, may_be_total=may_be_total)
        except CannotJoin as refusal:
            refusal.about = refusal.about or written
            raise


def _is_one_row(rel: Relation) -> bool:
    match rel:
        case Project(input):
            return _is_one_row(input)
        case Aggregate(group_by=(), sets=()) | Values(rows=(_,)):
            return True
        case _:
            return False


def _denied_inside(scalar: Scalar) -> Scalar:
    """Each NOT next to what it denies, where Spark moves it before it asks whether it is IN or NOT IN."""

    def inward(part: Scalar) -> Scalar | None:
        if not subqueries(part):
            return None
        match part:
            case Call("NOT", (Call("AND" | "OR" as name, terms),)):
                denied = tuple(_denied_inside(call("NOT", term)) for term in terms)
                return Call("OR" if name == "AND" else "AND", denied)
            case Call("NOT", (Call("NOT", (term,)),)):
                return _denied_inside(term)
            case Call("=" | "<>" as name, (term, Literal() as truth)) | Call(
                "=" | "<>" as name, (Literal() as truth, term)
            ) if truth in (TRUE, FALSE):
                return _denied_inside(term if (name == "=") == (truth == TRUE) else call("NOT", term))
            case _:
                return None

    return rebuild(scalar, inward)


def _asked_for(subquery: Subquery) -> Relation:
    """Whether there are rows does not depend on how many of the first ones are taken."""
    match subquery:
        case Subquery("exists", _, Top(input, _, int(limit), 0) | Project(Top(input, _, int(limit), 0))) if limit > 0:
            return input
        case _:
            return subquery.relation


def _joined(rel: Relation, freed: Freed, kind: JoinKind, condition: Scalar | None) -> Relation:
    conditions = [*freed.conditions, *([condition] if condition is not None else [])]
    return Join(rel, freed.relation, kind, conjunction(conditions))


def _compared(subquery: Subquery, freed: Freed, kind: JoinKind) -> Scalar | None:
    """x = s for IN, nothing for EXISTS. NOT IN is true only where every comparison is false, so to it an unknown
    one is a match."""
    if subquery.kind != "in":
        return None
    if len(subquery.args) != len(freed.values):  # columns against one struct of them
        raise CannotJoin("it compares other columns than it has", subquery.relation)
    pairs = zip(subquery.args, freed.values.values(), strict=True)
    equal = conjunction([call("=", tested, value) for tested, value in pairs])
    return call("COALESCE", equal, TRUE) if kind == "anti" else equal
