"""Resolves the names in one function, as far as annotations allow it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from tools.house.code import Code, Function, Type

_LIKE_FIRST_ARGUMENT = frozenset(
    {"sorted", "list", "tuple", "set", "reversed", "iter", "islice", "replace"}
)
"""Functions that return the type of their first argument."""
_LIKE_SECOND_ARGUMENT = frozenset({"filter", "takewhile"})
"""Functions that return the type of their second argument."""
_ITEM_OF_FIRST_ARGUMENT = frozenset({"next", "min", "max"})
"""Functions that return an item of their first argument."""
_MAPPINGS = frozenset({"Mapping", "dict", "defaultdict", "MutableMapping"})
_CONSTRUCTORS = ("__init__", "__post_init__", "__new__")
"""The methods that the call of a class enters, if the class defines them."""


@dataclass(slots=True)
class Names:
    """The names of one function of a module.

    `implementations`: the classes that stand for protocols. `local`: names that the function binds
    itself, so that they hide the module's. `types`: the known types by name.
    """

    code: Code
    module: str
    implementations: frozenset[str]
    local: frozenset[str] = frozenset()
    types: dict[str, Type] = field(default_factory=dict)

    def of_function(self, name: str) -> str | None:
        """Returns what a name refers to in the module; None if the function binds it itself."""
        return None if name in self.local else self.code.resolve(self.module, name)

    def parameters(self, arguments: ast.arguments) -> None:
        """Stores the types of annotated parameters."""
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if argument.annotation:
                self.types[argument.arg] = Type(self.module, argument.annotation)

    def bind(self, target: ast.expr, type_: Type | None, value: ast.expr | None = None) -> None:
        """Stores the type of an assigned name or tuple of names. `value` is the assigned
        expression, if known.
        """
        if isinstance(target, ast.Name) and type_:
            self.types[target.id] = type_
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for element, part in zip(target.elts, value.elts, strict=False):
                self.bind(element, self.type_of(part), part)
        elif (
            isinstance(target, ast.Tuple) and type_ and isinstance(type_.annotation, ast.Subscript)
        ):
            parts = type_.annotation.slice
            if isinstance(parts, ast.Tuple):
                for element, part in zip(target.elts, parts.elts, strict=False):
                    self.bind(element, Type(type_.module, part))

    def type_of(self, node: ast.expr) -> Type | None:
        """Returns the type of an expression; None if annotations do not show it."""
        if isinstance(node, ast.Name):
            return self.types.get(node.id)
        if isinstance(node, ast.NamedExpr | ast.Starred):
            return self.type_of(node.value)
        if isinstance(node, ast.BoolOp):
            return next(filter(None, map(self.type_of, node.values)), None)
        if isinstance(node, ast.IfExp):
            return self.type_of(node.body) or self.type_of(node.orelse)
        if isinstance(node, ast.Subscript):
            type_ = self.type_of(node.value)
            return type_ if isinstance(node.slice, ast.Slice) else self.item(type_, value=True)
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            item = self.type_of(node.elt)
            return item and Type(item.module, _list_of(item.annotation))
        if isinstance(node, ast.Attribute):
            return self._attribute_type(node)
        return self._returned(node) if isinstance(node, ast.Call) else None

    def targets(self, called: ast.expr) -> list[str]:
        """Returns the functions that a call enters."""
        if isinstance(called, ast.Name):
            function_name = self.of_function(called.id)
        elif isinstance(called, ast.Attribute):
            owner = self.code.class_of(self.type_of(called.value))
            if owner:
                return self.methods(owner, called.attr)
            function_name = self.of_module(called)
        else:
            return []
        if function_name and self.code.class_node(function_name):
            constructors = (self.code.method(function_name, name) for name in _CONSTRUCTORS)
            return [name for name in constructors if name]
        return [function_name] if self.code.function(function_name) and function_name else []

    def methods(self, owner: str, method: str) -> list[str]:
        """Returns a class's method; for a protocol, the methods of the classes that implement
        it.
        """
        method_name = self.code.method(owner, method)
        node = self.code.class_node(owner)
        if node is None or method_name is None or not _is_protocol(node):
            return [method_name] if method_name else []
        required_methods = {line.name for line in node.body if isinstance(line, Function)}
        candidates = (
            name
            for name in sorted(self.implementations)
            if not _is_protocol(self.code.class_node(name))
            and all(self.code.method(name, required) for required in required_methods)
        )
        return [
            implementation
            for name in candidates
            if (implementation := self.code.method(name, method))
        ]

    def of_module(self, node: ast.Attribute) -> str | None:
        """Returns what `module.name` or `Class.name` refers to."""
        owner = self.of_function(node.value.id) if isinstance(node.value, ast.Name) else None
        if owner and self.code.class_node(owner):
            return self.code.method(owner, node.attr)
        return self.code.resolve(owner, node.attr) if owner in self.code.trees else None

    def _attribute_type(self, node: ast.Attribute) -> Type | None:
        owner = self.code.class_of(self.type_of(node.value))
        if owner is None:
            class_name = self.of_module(node)
            return (
                self.class_type(class_name)
                if self.code.class_node(class_name) and class_name
                else None
            )
        field_type = self.code.fields(owner).get(node.attr)
        return field_type or self._result(self.code.method(owner, node.attr), owner)

    def _returned(self, node: ast.Call) -> Type | None:
        called = node.func
        if isinstance(called, ast.Attribute):
            owner = self.code.class_of(self.type_of(called.value))
            if owner:
                return self._result(self.code.method(owner, called.attr), owner)
            if called.attr in ("get", "values", "pop"):
                return self._from_mapping(called)
            function_name = self.of_module(called)
        elif isinstance(called, ast.Name):
            function_name = self.of_function(called.id)
            if function_name is None or not self.code.definition(function_name):
                return self._builtin(called.id, node.args)
        else:
            return None
        if function_name and self.code.class_node(function_name):
            return self.class_type(function_name)
        owner = (function_name or "").rpartition(".")[0]
        return self._result(function_name, owner if self.code.class_node(owner) else None)

    def _from_mapping(self, called: ast.Attribute) -> Type | None:
        item = self.item(self.type_of(called.value), value=True)
        if item and called.attr == "values":
            return Type(item.module, _list_of(item.annotation))
        return item

    def _builtin(self, name: str, arguments: list[ast.expr]) -> Type | None:
        if name in _LIKE_FIRST_ARGUMENT and arguments:
            return self.type_of(arguments[0])
        if name in _ITEM_OF_FIRST_ARGUMENT and arguments:
            return self.item(self.type_of(arguments[0]))
        if name in _LIKE_SECOND_ARGUMENT and len(arguments) > 1:
            return self.type_of(arguments[1])
        return None

    def _result(self, name: str | None, owner: str | None) -> Type | None:
        node = self.code.function(name)
        if name is None or node is None or node.returns is None:
            return None
        if owner and isinstance(node.returns, ast.Name) and node.returns.id == "Self":
            return self.class_type(owner)
        return Type(self.code.module_of(name), node.returns)

    def item(self, type_: Type | None, *, value: bool = False) -> Type | None:
        """Returns the type of a container's items; for a mapping, of its keys or its values."""
        if type_ and isinstance(type_.annotation, ast.BinOp):  # X | None
            sides = (type_.annotation.left, type_.annotation.right)
            items = (self.item(Type(type_.module, side), value=value) for side in sides)
            return next(filter(None, items), None)
        if type_ is None or not isinstance(type_.annotation, ast.Subscript):
            return None
        whole, parts = type_.annotation.value, type_.annotation.slice
        if not isinstance(parts, ast.Tuple):
            return Type(type_.module, parts)
        mapping = isinstance(whole, ast.Name) and whole.id in _MAPPINGS
        return Type(type_.module, parts.elts[1 if mapping and value else 0])

    def class_type(self, name: str) -> Type:
        """Returns the type of an object of a class, by the class's qualified name."""
        module = self.code.module_of(name)
        return Type(module, ast.Name(name.rpartition(".")[2], ast.Load()))


def bound_in(function: Function) -> frozenset[str]:
    """Returns the names that a function binds: its parameters, and what it assigns or defines."""
    nodes = [node for node in ast.walk(function) if node is not function]
    names = {node.id for node in nodes if isinstance(node, ast.Name) and not _is_read(node)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return frozenset(names | {node.name for node in nodes if isinstance(node, Function)})


def _is_read(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _list_of(annotation: ast.expr) -> ast.expr:
    return ast.Subscript(ast.Name("list", ast.Load()), annotation, ast.Load())


def _is_protocol(node: ast.ClassDef | None) -> bool:
    bases = node.bases if node else ()
    return any(ast.unparse(base).startswith("Protocol") for base in bases)
