"""What the names of one function stand for, as far as annotations tell it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from tools.house.code import Code, Function, Type

_SAME = frozenset({"sorted", "list", "tuple", "set", "reversed", "iter", "islice", "replace"})
"""Functions that give what their first argument has."""
_SECOND = frozenset({"filter", "takewhile"})
"""Functions that give what their second argument has."""
_ITEM = frozenset({"next", "min", "max"})
"""Functions that give an item of their first argument."""
_MAPPINGS = frozenset({"Mapping", "dict", "defaultdict", "MutableMapping"})
_MADE = ("__init__", "__post_init__", "__new__")
"""What the call of a class enters, if the class writes it itself."""


@dataclass(slots=True)
class Names:
    """The names of one function of a module.

    `made`: the classes that stand for protocols. `local`: names that the function binds itself, so
    that they hide the module's. `types`: of those whose type is known.
    """

    code: Code
    module: str
    made: frozenset[str]
    local: frozenset[str] = frozenset()
    types: dict[str, Type] = field(default_factory=dict)

    def of_function(self, name: str) -> str | None:
        """What a name stands for in the module; None of one that the function binds itself."""
        return None if name in self.local else self.code.resolve(self.module, name)

    def parameters(self, arguments: ast.arguments) -> None:
        """Learns the annotated parameters of a function."""
        for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if one.annotation:
                self.types[one.arg] = Type(self.module, one.annotation)

    def bind(self, target: ast.expr, known: Type | None, value: ast.expr | None = None) -> None:
        """Learns what is assigned to one or more names: its type, and if known its value."""
        if isinstance(target, ast.Name) and known:
            self.types[target.id] = known
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, part in zip(target.elts, value.elts, strict=False):
                self.bind(one, self.type_of(part), part)
        elif (
            isinstance(target, ast.Tuple) and known and isinstance(known.annotation, ast.Subscript)
        ):
            parts = known.annotation.slice
            if isinstance(parts, ast.Tuple):
                for one, part in zip(target.elts, parts.elts, strict=False):
                    self.bind(one, Type(known.module, part))

    def type_of(self, node: ast.expr) -> Type | None:
        """The type of an expression as far as annotations tell it."""
        if isinstance(node, ast.Name):
            return self.types.get(node.id)
        if isinstance(node, ast.NamedExpr | ast.Starred):
            return self.type_of(node.value)
        if isinstance(node, ast.BoolOp):
            return next(filter(None, map(self.type_of, node.values)), None)
        if isinstance(node, ast.IfExp):
            return self.type_of(node.body) or self.type_of(node.orelse)
        if isinstance(node, ast.Subscript):
            known = self.type_of(node.value)
            return known if isinstance(node.slice, ast.Slice) else self.item(known, value=True)
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            item = self.type_of(node.elt)
            return item and Type(item.module, _listed(item.annotation))
        if isinstance(node, ast.Attribute):
            return self._attribute_type(node)
        return self._returned(node) if isinstance(node, ast.Call) else None

    def targets(self, called: ast.expr) -> list[str]:
        """The functions that a call enters."""
        if isinstance(called, ast.Name):
            found = self.of_function(called.id)
        elif isinstance(called, ast.Attribute):
            owner = self.code.class_of(self.type_of(called.value))
            if owner:
                return self.methods(owner, called.attr)
            found = self.of_module(called)
        else:
            return []
        if found and self.code.class_node(found):
            made = (self.code.method(found, name) for name in _MADE)
            return [name for name in made if name]
        return [found] if self.code.function(found) and found else []

    def methods(self, owner: str, method: str) -> list[str]:
        """A class's method; of a protocol those of the classes that stand for it."""
        found = self.code.method(owner, method)
        node = self.code.class_node(owner)
        if node is None or found is None or not _is_protocol(node):
            return [found] if found else []
        asked = {line.name for line in node.body if isinstance(line, Function)}
        able = (
            name
            for name in sorted(self.made)
            if not _is_protocol(self.code.class_node(name))
            and all(self.code.method(name, one) for one in asked)
        )
        return [real for name in able if (real := self.code.method(name, method))]

    def of_module(self, node: ast.Attribute) -> str | None:
        """What `module.name` or `Class.name` stands for."""
        owner = self.of_function(node.value.id) if isinstance(node.value, ast.Name) else None
        if owner and self.code.class_node(owner):
            return self.code.method(owner, node.attr)
        return self.code.resolve(owner, node.attr) if owner in self.code.trees else None

    def _attribute_type(self, node: ast.Attribute) -> Type | None:
        owner = self.code.class_of(self.type_of(node.value))
        if owner is None:
            found = self.of_module(node)
            return self.class_type(found) if self.code.class_node(found) and found else None
        known = self.code.fields(owner).get(node.attr)
        return known or self._result(self.code.method(owner, node.attr), owner)

    def _returned(self, node: ast.Call) -> Type | None:
        called = node.func
        if isinstance(called, ast.Attribute):
            owner = self.code.class_of(self.type_of(called.value))
            if owner:
                return self._result(self.code.method(owner, called.attr), owner)
            if called.attr in ("get", "values", "pop"):
                return self._from_mapping(called)
            found = self.of_module(called)
        elif isinstance(called, ast.Name):
            found = self.of_function(called.id)
            if found is None or not self.code.definition(found):
                return self._builtin(called.id, node.args)
        else:
            return None
        if found and self.code.class_node(found):
            return self.class_type(found)
        owner = (found or "").rpartition(".")[0]
        return self._result(found, owner if self.code.class_node(owner) else None)

    def _from_mapping(self, called: ast.Attribute) -> Type | None:
        item = self.item(self.type_of(called.value), value=True)
        if item and called.attr == "values":
            return Type(item.module, _listed(item.annotation))
        return item

    def _builtin(self, name: str, arguments: list[ast.expr]) -> Type | None:
        if name in _SAME and arguments:
            return self.type_of(arguments[0])
        if name in _ITEM and arguments:
            return self.item(self.type_of(arguments[0]))
        if name in _SECOND and len(arguments) > 1:
            return self.type_of(arguments[1])
        return None

    def _result(self, name: str | None, owner: str | None) -> Type | None:
        node = self.code.function(name)
        if name is None or node is None or node.returns is None:
            return None
        if owner and isinstance(node.returns, ast.Name) and node.returns.id == "Self":
            return self.class_type(owner)
        return Type(self.code.module_of(name), node.returns)

    def item(self, known: Type | None, *, value: bool = False) -> Type | None:
        """The type of what a container has; of a mapping its keys, or its values."""
        if known and isinstance(known.annotation, ast.BinOp):  # X | None
            sides = (known.annotation.left, known.annotation.right)
            items = (self.item(Type(known.module, side), value=value) for side in sides)
            return next(filter(None, items), None)
        if known is None or not isinstance(known.annotation, ast.Subscript):
            return None
        whole, parts = known.annotation.value, known.annotation.slice
        if not isinstance(parts, ast.Tuple):
            return Type(known.module, parts)
        mapping = isinstance(whole, ast.Name) and whole.id in _MAPPINGS
        return Type(known.module, parts.elts[1 if mapping and value else 0])

    def class_type(self, name: str) -> Type:
        """The type of an object of a class, by the class's qualified name."""
        module = self.code.module_of(name)
        return Type(module, ast.Name(name.rpartition(".")[2], ast.Load()))


def bound_in(function: Function) -> frozenset[str]:
    """The names that a function binds: its parameters, and what it assigns or defines within."""
    nodes = [node for node in ast.walk(function) if node is not function]
    names = {node.id for node in nodes if isinstance(node, ast.Name) and not _is_read(node)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return frozenset(names | {node.name for node in nodes if isinstance(node, Function)})


def _is_read(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _listed(annotation: ast.expr) -> ast.expr:
    return ast.Subscript(ast.Name("list", ast.Load()), annotation, ast.Load())


def _is_protocol(node: ast.ClassDef | None) -> bool:
    bases = node.bases if node else ()
    return any(ast.unparse(base).startswith("Protocol") for base in bases)
