"""Small faults put into Python source, one at a time."""

import ast
import copy
from dataclasses import dataclass

COMPARED = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True)
class Mutant:
    """A module with one fault, and words that tell what it is."""

    line: int
    what: str
    tree: ast.Module


def mutants_of(source):
    """Yield every mutant of a module."""
    for position, node in enumerate(_nodes(ast.parse(source))):
        for variant, (what, _) in enumerate(_changes(node)):
            # Parsed anew, since a change is made in place.
            tree = ast.parse(source)
            old = _nodes(tree)[position]
            new = ast.copy_location(list(_changes(old))[variant][1], old)
            yield Mutant(node.lineno, what, ast.fix_missing_locations(_Swap(old, new).visit(tree)))


def _nodes(tree):
    quiet = _left_alone(tree)
    return [node for node in ast.walk(tree) if id(node) not in quiet]


class _Swap(ast.NodeTransformer):
    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else self.generic_visit(node)


def _left_alone(tree):
    """Return the nodes that do nothing at run time, or only speak: types, docstrings, messages."""
    quiet = set()
    for node in ast.walk(tree):
        parts = []
        if isinstance(node, ast.FunctionDef):
            parts = [
                node.returns,
                *(a.annotation for a in [*node.args.args, *node.args.kwonlyargs]),
            ]
        elif isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.JoinedStr):
            parts = [node]
        for part in filter(None, parts):
            quiet |= {id(inner) for inner in ast.walk(part)}
    return quiet


def _changes(node):
    """Yield (what, new node) for each fault that a node can have."""
    match node:
        case ast.Compare(ops=[op]):
            for other in COMPARED[type(op)]:
                yield _told(node, ast.Compare(node.left, [other()], node.comparators))
        case ast.Compare(ops=[first, *rest]):
            other = COMPARED[type(first)][0]
            yield _told(node, ast.Compare(node.left, [other(), *rest], node.comparators))
        case ast.BinOp() if type(node.op) in COMPUTED and not _is_text(node):
            yield _told(node, ast.BinOp(node.left, COMPUTED[type(node.op)](), node.right))
        case ast.AugAssign() if type(node.op) in COMPUTED and not _is_text(node.value):
            yield _told(node, ast.AugAssign(node.target, COMPUTED[type(node.op)](), node.value))
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield _told(node, ast.BoolOp(other, node.values))
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub()):
            yield _told(node, node.operand)
        case ast.If() | ast.IfExp():
            yield f"if not ({ast.unparse(node.test)})", _negated(node)
        case ast.Constant(value=bool()):
            yield _told(node, ast.Constant(not node.value))
        case ast.Constant(value=int() | float()):
            yield _told(node, ast.Constant(2 * node.value + 1))
        case ast.Return(value=value) if value is not None and ast.unparse(value) != "None":
            yield _told(node, ast.Return(ast.Constant(None)))
        case ast.Raise():
            yield _told(node, ast.Pass())
        case ast.Expr(value=ast.Call()):
            yield _told(node, ast.Pass())


def _is_text(node):
    return any(
        isinstance(n, ast.JoinedStr) or (isinstance(n, ast.Constant) and isinstance(n.value, str))
        for n in ast.walk(node)
    )


def _negated(node):
    new = copy.copy(node)
    new.test = ast.UnaryOp(ast.Not(), node.test)
    return new


def _told(node, new):
    return f"{ast.unparse(node)}  ->  {ast.unparse(ast.fix_missing_locations(new))}", new
