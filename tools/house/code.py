"""Reads a package with `ast`: its modules, their definitions, and the meaning of names in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef | ast.expr
_ENUMS = frozenset({"Enum", "IntEnum", "StrEnum"})


@dataclass(frozen=True, slots=True)
class Type:
    """An annotation, and the module whose names it uses."""

    module: str
    annotation: ast.expr


@dataclass(slots=True)
class Code:
    """The modules below a folder by dotted name, and all definitions by qualified name.

    A definition is a function, a class, a method, or the value of a module's constant.
    """

    root: Path
    trees: dict[str, ast.Module] = field(default_factory=dict)
    definitions: dict[str, tuple[str, Definition]] = field(default_factory=dict)
    imported: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, root: Path) -> Code:
        """Parses every Python file below a folder. An `__init__` module has its package's name."""
        code = cls(root)
        for path in sorted(root.rglob("*.py")):
            name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            tree = ast.parse(path.read_text(encoding="utf-8"))
            code.trees[name] = tree
            code.imported[name] = dict(_imported(tree))
            for defined, node in _defined(name, tree):
                code.definitions[defined] = name, node
        return code

    def modules(self) -> dict[str, ast.Module]:
        """Returns the trees of the modules, without the `__init__` of packages."""
        packages = {name.rpartition(".")[0] for name in self.trees}
        return {name: tree for name, tree in self.trees.items() if name not in packages}

    def resolve(self, module: str, name: str) -> str | None:
        """Returns the qualified name that a name in a module refers to; None if it is not ours."""
        for _ in range(5):  # a module may pass on what it imports
            if f"{module}.{name}" in self.definitions:
                return f"{module}.{name}"
            target = self.imported.get(module, {}).get(name)
            if target is None or target in self.trees or target in self.definitions:
                return target
            module, _, name = target.rpartition(".")
        return None

    def definition(self, name: str | None) -> Definition | None:
        """Returns the definition with this qualified name; None if there is none."""
        return self.definitions[name][1] if name in self.definitions else None

    def class_node(self, name: str | None) -> ast.ClassDef | None:
        """Returns the class with this qualified name; None if there is none."""
        node = self.definition(name)
        return node if isinstance(node, ast.ClassDef) else None

    def function(self, name: str | None) -> Function | None:
        """Returns the function or method with this qualified name; None if there is none."""
        node = self.definition(name)
        return node if isinstance(node, Function) else None

    def classes(self) -> Iterator[tuple[str, ast.ClassDef]]:
        """Yields all classes at the top level of modules."""
        for name, (_, node) in self.definitions.items():
            if isinstance(node, ast.ClassDef):
                yield name, node

    def module_of(self, name: str) -> str:
        """Returns the module that has a definition."""
        return self.definitions[name][0]

    def lineage(self, name: str) -> Iterator[str]:
        """Yields a class and our base classes of it, nearest first."""
        node = self.class_node(name)
        if node is None:
            return
        yield name
        for base in node.bases:
            base_class = self.class_of(Type(self.module_of(name), base))
            if base_class and base_class != name:
                yield from self.lineage(base_class)

    def method(self, name: str, method: str) -> str | None:
        """Returns the qualified name of a method that a class has or inherits; None if there is
        none.
        """
        candidates = (f"{owner}.{method}" for owner in self.lineage(name))
        return next(
            (method_name for method_name in candidates if method_name in self.definitions), None
        )

    def fields(self, name: str) -> dict[str, Type]:
        """Returns the annotated fields of a class and of its base classes."""
        fields: dict[str, Type] = {}
        for owner in reversed(list(self.lineage(name))):
            fields |= {
                key: Type(self.module_of(owner), annotation)
                for key, annotation in own_fields(self.definitions[owner][1])
            }
        return fields

    def class_of(self, type_: Type | None) -> str | None:
        """Returns our class that an annotation names; for `X | None` it is X. None if it is not
        ours.
        """
        if type_ is None:
            return None
        node = type_.annotation
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.class_of(Type(type_.module, ast.parse(node.value, mode="eval").body))
        if isinstance(node, ast.BinOp):
            sides = (self.class_of(Type(type_.module, side)) for side in (node.left, node.right))
            return next(filter(None, sides), None)
        if isinstance(node, ast.Subscript):  # a generic class of ours, with its arguments
            return self.class_of(Type(type_.module, node.value))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = self.resolve(type_.module, node.value.id)
            class_name = f"{module}.{node.attr}"
        elif isinstance(node, ast.Name):
            class_name = self.resolve(type_.module, node.id) or ""
        else:
            return None
        return class_name if self.class_node(class_name) else None


def own_fields(node: Definition) -> Iterator[tuple[str, ast.expr]]:
    """Yields the annotated fields that a class itself has, without class variables."""
    body = node.body if isinstance(node, ast.ClassDef) else ()
    for line in (line for line in body if isinstance(line, ast.AnnAssign)):
        if isinstance(line.target, ast.Name) and "ClassVar" not in ast.unparse(line.annotation):
            yield line.target.id, line.annotation


def members(node: ast.ClassDef) -> list[str]:
    """Returns the members of an enum; empty for any other class."""
    bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
    if not bases & _ENUMS:
        return []
    lines = (line for line in node.body if isinstance(line, ast.Assign))
    return [target.id for line in lines for target in line.targets if isinstance(target, ast.Name)]


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yields the names that a module imports, with their source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            yield from ((alias.asname, alias.name) for alias in node.names if alias.asname)


def _defined(module: str, tree: ast.Module) -> Iterator[tuple[str, Definition]]:
    for node in tree.body:
        if isinstance(node, Function):
            yield f"{module}.{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield f"{module}.{node.name}", node
            methods = (line for line in node.body if isinstance(line, Function))
            yield from ((f"{module}.{node.name}.{method.name}", method) for method in methods)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield f"{module}.{node.targets[0].id}", node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield f"{module}.{node.target.id}", node.value
