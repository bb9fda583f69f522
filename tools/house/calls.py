"""Follows the calls of a package from an entry, as far as annotations show what is called.

It resolves functions by their names; methods of `self`, of annotated parameters and fields, and of
annotated results; properties; functions that are passed by name or are in a named constant. A call
of a protocol goes to those classes that the entry's module creates and that have its methods.

It does not resolve a callable in a field, what is loaded at run time (as rules are), a lambda's
parameter, and generated methods of dataclasses and enums. So every count is a lower bound. A call
counts even if not every audit makes it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from tools.house.code import Code, Function, Type
from tools.house.names import Names, bound_in

LAYERS = (
    *("errors", "structs", "exits", "domain", "rules", "output", "ports"),
    *("queries", "workflows", "adapters", "cli", "api"),
)
"""The parts of the package from the lowest to the highest, by what they may import
(docs/architecture.md). Workflows import queries, and are above them. Entry points are above all."""
_DEEPEST = 3
"""How deep constants that name constants are followed."""


@dataclass(frozen=True, slots=True)
class Call:
    """One place of the code where `caller` calls `callee`; both are qualified names."""

    caller: str
    line: int
    callee: str


@dataclass(slots=True)
class CallTrace:
    """The functions that are called from an entry on, in the order of the walk, and all calls."""

    code: Code
    entry: str
    functions: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def entered_modules(self) -> list[str]:
        """Returns the modules of the package that a call enters, in the order of the walk.

        The entry's own module does not count, because Lambda enters it. Creating a record enters no
        module, unless its class has its own `__init__` or `__post_init__`. Reading a property does.
        """
        entered = dict.fromkeys(self.code.module_of(call.callee) for call in self.calls)
        return [module for module in entered if module != self.code.module_of(self.entry)]

    def upward_calls(self) -> list[Call]:
        """Returns the calls into a module of a higher layer than the caller's, by LAYERS.

        Each place in the code counts once. As imports only go down, an upward call is a call of a
        port whose adapter is higher, or of something that was passed down.
        """
        places = {
            (call.caller, call.line, call.callee.rpartition(".")[2]): call
            for call in self.calls
            if _layer(self.code.module_of(call.callee)) > _layer(self.code.module_of(call.caller))
        }
        return list(places.values())


def follow(code: Code, entry: str) -> CallTrace:
    """Returns the trace of the calls from an entry. Raises KeyError if there is no such
    function.
    """
    trace, waiting = CallTrace(code, entry), [entry]
    implementations = frozenset(_classes_made_in(code, code.module_of(entry)))
    while waiting:
        name = waiting.pop()
        if name in trace.functions:
            continue
        trace.functions.append(name)
        reader = Reader(code, name, implementations)
        reader.read()
        trace.calls += reader.calls
        waiting += [call.callee for call in reversed(reader.calls)]
    return trace


def _layer(module: str) -> int:
    parts = module.split(".")
    return LAYERS.index(parts[1]) if len(parts) > 1 and parts[1] in LAYERS else len(LAYERS)


def _classes_made_in(code: Code, module: str) -> Iterator[str]:
    for node in ast.walk(code.trees[module]):
        if isinstance(node, ast.Call):
            name = code.class_of(Type(module, node.func))
            if name:
                yield name


class Reader(ast.NodeVisitor):
    """Reads one function: the types of its names, and which functions it calls."""

    def __init__(self, code: Code, name: str, implementations: frozenset[str]) -> None:
        """Prepares the reading. `implementations` are the classes that stand for protocols.

        Raises KeyError if there is no such function.
        """
        node = code.function(name)
        if node is None:
            raise KeyError(name)
        self.code, self.name, self.node = code, name, node
        self.module = code.module_of(name)
        self.names = Names(code, self.module, implementations, bound_in(node))
        self.calls: list[Call] = []
        self.reads: list[Type | None] = []
        """The types of the objects that are read by a key, or by `.get`."""

    def read(self) -> None:
        """Reads the function. Its own class is the type of `self`."""
        node, owner = self.node, self.name.rpartition(".")[0]
        if self.code.class_node(owner) and node.args.args:
            self.names.types[node.args.args[0].arg] = self.names.class_type(owner)
        self.names.parameters(node.args)
        for line in node.body:
            self.visit(line)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Reads an inner function as a part of this one."""
        self.names.parameters(node.args)
        self.generic_visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Reads a lambda as a part of its function."""
        self.visit(node.body)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Gives each name the type of its value."""
        self.visit(node.value)
        for target in node.targets:
            self.names.bind(target, self.names.type_of(node.value), node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Gives an annotated name its annotation as type."""
        if node.value:
            self.visit(node.value)
        self.names.bind(node.target, Type(self.module, node.annotation))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """Gives the name the type of its value."""
        self.visit(node.value)
        self.names.bind(node.target, self.names.type_of(node.value))

    def visit_For(self, node: ast.For) -> None:
        """Gives the target the type of an item."""
        self.visit(node.iter)
        self.names.bind(node.target, self.names.item(self.names.type_of(node.iter)))
        for line in (*node.body, *node.orelse):
            self.visit(line)

    def visit_withitem(self, node: ast.withitem) -> None:
        """Gives the name the type of the context manager, or of what its generator yields."""
        self.visit(node.context_expr)
        if node.optional_vars:
            context_type = self.names.type_of(node.context_expr)
            self.names.bind(node.optional_vars, self.names.item(context_type) or context_type)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        """Reads the generators before the element."""
        self._generators(node.generators, node.elt)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        """Reads the generators before the element."""
        self._generators(node.generators, node.elt)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        """Reads the generators before the element."""
        self._generators(node.generators, node.elt)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        """Reads the generators before key and value."""
        self._generators(node.generators, node.key, node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """Notes the called functions, and reads the arguments."""
        for name in self.names.targets(node.func):
            self._note(node, name)
        if isinstance(node.func, ast.Attribute):
            self.visit(node.func.value)
            if node.func.attr == "get":
                self.reads.append(self.names.type_of(node.func.value))
        for part in (*node.args, *node.keywords):
            self.visit(part)

    def visit_Name(self, node: ast.Name) -> None:
        """Notes a named function as called, and the functions in a named constant."""
        self._named(node, self.names.of_function(node.id))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Notes a property that is read, and a method that is passed, as called."""
        owner = self.code.class_of(self.names.type_of(node.value))
        targets = self.names.methods(owner, node.attr) if owner else [self.names.of_module(node)]
        for name in targets:
            self._named(node, name)
        self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Notes the type of what is read by a key."""
        self.reads.append(self.names.type_of(node.value))
        self.generic_visit(node)

    def _named(self, node: ast.expr, name: str | None, depth: int = 0) -> None:
        value = self.code.definition(name)
        if name is None or value is None or isinstance(value, ast.ClassDef):
            return
        if isinstance(value, Function):
            self._note(node, name)
        elif depth < _DEEPEST:
            module = self.code.module_of(name)
            for inner in ast.walk(value):
                if isinstance(inner, ast.Name):
                    self._named(node, self.code.resolve(module, inner.id), depth + 1)

    def _note(self, node: ast.expr, callee: str) -> None:
        self.calls.append(Call(self.name, node.lineno, callee))

    def _generators(self, generators: list[ast.comprehension], *results: ast.expr) -> None:
        for generator in generators:
            self.visit(generator.iter)
            self.names.bind(generator.target, self.names.item(self.names.type_of(generator.iter)))
            for condition in generator.ifs:
                self.visit(condition)
        for part in results:
            self.visit(part)
