# SPDX-License-Identifier: Apache-2.0
"""Statements: the syntax tree of a kernel -> a Program of blocks.

Loops are lowered with the test at the bottom: a copy of it stands before the loop and skips it, so a
round costs one conditional branch. `if` on something the compiler knows keeps one arm only.
"""
from __future__ import annotations

import ast
import re
import sys
from typing import Any, Callable

from pypto import types
from pypto.checked import shown
from pypto.compiler.builder import Restart, bounds, describe, is_integer
from pypto.compiler.arguments import Arguments
from pypto.compiler.ir import Block, Conflict, Const, Host, Program, Tuple, Value
from pypto.compiler.limits import LOWERED, ROUNDS
from pypto.compiler.pipeline import Pipelines
from pypto.compiler.source import Source, assigned_names
from pypto.errors import CompileError
from pypto.instructions import Instruction
from pypto.types import DType

_RESTARTS = 200
_RECURSION = 20_000

STATEMENTS = (
    "assignments, if, while, for over range or pto.static_range, break, continue, return, pass, "
    "assert, with pto.pipeline(), and calls"
)


class Reserved:
    """Names that PTO text gives a meaning of its own."""

    _PATTERN = re.compile(r"([rdpte]\d+|hbm|l1|const|inf|nan|_)$")

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}  # the last one given to a name

    def legal(self, name: str) -> str:
        name = re.sub(r"[^A-Za-z0-9_]", "_", name)
        return name + "_" if self._PATTERN.match(name) else name

    def unique(self, wanted: str) -> str:
        """A name that was not given before."""
        first = name = self.legal(wanted)
        while name in self._taken:
            self._numbers[first] = self._numbers.get(first, 1) + 1
            name = f"{first}_{self._numbers[first]}"
        self._taken.add(name)
        return name


class Lowering(Pipelines):
    """Lowers one kernel for one list of parameter types."""

    def __init__(self, program: Program, source: Source, hints: dict[Any, Any]) -> None:
        super().__init__(program, source, hints)
        self.reserved = Reserved()
        self.local_names: set[str] = set()
        self.inlined: list[Any] = []
        self.return_value: Callable[[Any], None] = self._return_from_kernel
        self.targets: list[tuple[Block, Block]] = []  # of continue and break
        self.tile_count = 0
        self.event_count = 0
        self.loop_count = 0
        self.statement_count = 0
        self.frees_tiles = any("free_local" in line for line in source.lines)

    # ------------------------------------------------------------ functions

    def run(self, env: dict[str, Any]) -> None:
        entry = Block("entry")
        self.program.blocks.append(entry)
        self.block = entry
        self.enter(self.source, env, self._return_from_kernel)
        self.statements(self.source.tree.body)
        self.node = self.source.tree.body[-1]
        self.end()

    def frame(self) -> Any:
        return (
            self.source, self.env, self.local_names, self.return_value, self.targets, self.node,
            self.target_name, self.is_discarded,
        )  # fmt: skip

    def enter(self, source: Source, env: dict[str, Any], on_return: Callable[[Any], None]) -> None:
        self.source = source
        self.sources[id(source)] = source
        self.env = env
        self.local_names = set(assigned_names(source.tree.body))
        self.return_value = on_return
        self.targets = []
        self.target_name, self.is_discarded = "", False

    def leave(self, frame: Any) -> None:
        (
            self.source, self.env, self.local_names, self.return_value, self.targets, self.node,
            self.target_name, self.is_discarded,
        ) = frame  # fmt: skip

    def _return_from_kernel(self, value: Any) -> None:
        if not (isinstance(value, Host) and value.value is None):
            raise self.error(
                "a kernel returns nothing", "store results through a pointer: pto.store(out + i, x)"
            )
        self.end()

    # ------------------------------------------------------------ statements

    def statements(self, nodes: list[ast.stmt]) -> None:
        for node in nodes:
            if self.block is None:
                return
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        saved, self.node = self.node, node
        self.statement_count += 1
        if self.statement_count > LOWERED:
            raise self.error(
                f"unrolling has made more than {LOWERED} statements at this place",
                "unroll less: range(...) makes a loop, pto.static_range(...) and loops over tuples copies",
            )
        method = getattr(self, f"do_{type(node).__name__}", None)
        if method is None:
            raise self.error(
                f"{_statement_name(node)} is not part of the kernel language",
                f"statements are {STATEMENTS}",
            )
        method(node)
        self.node = saved

    def do_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring or `...`
        if not isinstance(node.value, ast.Call):
            raise self.error(
                "the value of this expression is not used", "assign it, or remove the line"
            )
        self.is_discarded = True
        try:
            self.evaluate(node.value)
        finally:
            self.is_discarded = False

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_Assign(self, node: ast.Assign) -> None:
        if self.takes_slot(node):
            return
        first = node.targets[0]
        self.target_name = first.id if isinstance(first, ast.Name) else ""
        value = self.evaluate(node.value)
        self.target_name = ""
        for target in node.targets:
            self.assign(target, value)

    def assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            if isinstance(value, Host) and value.value is None:
                value = Conflict(
                    f"{target.id} is None: what was assigned to it has no result",
                    "the call only acts; it gives no value",
                )
            self.env[target.id] = value
            return
        if isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(value, Tuple):
                raise self.error(f"{describe(value)} cannot be unpacked", "", target)
            if any(isinstance(item, ast.Starred) for item in target.elts):
                raise self.error("a starred target is not part of the kernel language", "", target)
            if len(target.elts) != len(value.items):
                raise self.error(
                    f"{len(value.items)} values for {len(target.elts)} names", "", target
                )
            for item, element in zip(target.elts, value.items):
                self.assign(item, element)
            return
        if isinstance(target, ast.Subscript):
            base = ast.unparse(target.value)
            raise self.error(
                "elements are written by store", f"pto.store({base} + i, value)", target
            )
        raise self.error("only names can be assigned to", "", target)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            raise self.error("a declaration without a value does nothing", "x: pto.f32 = 0")
        if not isinstance(node.target, ast.Name):
            raise self.error("only names can be assigned to", "", node.target)
        dtype = self.need_dtype(self.evaluate(node.annotation), node.annotation)
        value = self.scalar(node.value)
        self.env[node.target.id] = self.assign_type(value, dtype, node.target.id)

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            if isinstance(node.target, ast.Subscript):
                self.assign(node.target, None)
            raise self.error("only names can be assigned to", "", node.target)
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        current = self.evaluate(read)
        self.env[node.target.id] = self.binary(type(node.op), current, self.evaluate(node.value))

    def do_If(self, node: ast.If) -> None:
        when, otherwise, join = Block("then"), Block("else"), Block("endif")
        outer = self.scope
        self.condition(node.test, when, otherwise)
        if not otherwise.entries and not node.orelse or not when.entries:
            join = None  # one way only: no join
        for block, body in ((when, node.body), (otherwise, node.orelse)):
            if self.place(block, outer):
                self.statements(body)
                if join is None:
                    return
                self.jump(join)
        self.place(join, outer)

    def do_Return(self, node: ast.Return) -> None:
        value = Host(None) if node.value is None else self.evaluate(node.value)
        if self.in_stage:
            raise self.error("a stage of a pipeline cannot return")
        self.return_value(value)

    def do_Assert(self, node: ast.Assert) -> None:
        good, bad = Block("holds"), Block("fails")
        outer = self.scope
        self.condition(node.test, good, bad)
        text = f"assert {ast.unparse(node.test)}"
        if node.msg is not None:
            message = self.evaluate(node.msg)
            if not (isinstance(message, Host) and isinstance(message.value, str)):
                raise self.error("the message of an assert is a string", "", node.msg)
            text += f", {message.value}"
        if bad.entries and not good.entries:
            raise self.error("this assert always fails")
        if self.place(bad, outer):
            place = self.place_now
            code = 0xA5510000 + len(self.program.asserts)
            self.program.asserts[code] = f"{text} ({place.file}:{place.line})"
            self.effect("trap", [str(code)])
            self.end()
        self.place(good, outer)

    # ------------------------------------------------------------ loops

    def loop_over(
        self,
        changed: list[str],
        test: Callable[[Block, Block], None],
        body: Callable[[], None],
        step: Callable[[], None],
        orelse: list[ast.stmt],
    ) -> None:
        """A loop: `test` branches to the next round or the end; `step` runs before it."""
        header, latch, leave, done = Block("loop"), Block("next"), Block("end"), Block("end")
        outer = self.scope
        test(header, leave)
        self.loop_count += 1
        loop = None
        if header.entries:
            loop = self.open_loop(self.loop_count, header, changed)
        if loop is not None:
            self.targets.append((latch, done))
            body()
            self.jump(latch)
            self.targets.pop()
            header.entries = []
            if self.place(latch, loop.scope):
                step()
                test(header, leave)
            self.close_loop(loop)
        if self.place(leave, outer):
            self.statements(orelse)
            self.jump(done)
        self.place(done, outer)

    def do_While(self, node: ast.While) -> None:
        def test(again: Block, leave: Block) -> None:
            self.condition(node.test, again, leave)

        changed = assigned_names(node.body)
        self.loop_over(changed, test, lambda: self.statements(node.body), lambda: None, node.orelse)

    def do_Break(self, node: ast.Break) -> None:
        self._leave_round(1)

    def do_Continue(self, node: ast.Continue) -> None:
        self._leave_round(0)

    def _leave_round(self, which: int) -> None:
        if not self.targets:
            raise self.error("this leaves no loop: a stage of a pipeline is not the loop's body")
        self.jump(self.targets[-1][which])

    def do_For(self, node: ast.For) -> None:
        iterable = node.iter
        if isinstance(iterable, ast.Call):
            callee = self._callee(iterable.func)
            if callee is range:
                arguments = Arguments(self, iterable, "range")
                return self._range_loop(node, self.range_bounds(arguments, iterable))
            if isinstance(callee, Instruction) and callee.handler == "static_range":
                arguments = Arguments(self, iterable, "static_range")
                bounds_ = self.range_bounds(arguments, iterable)
                if not all(isinstance(b, Const) for b in bounds_):
                    raise self.error(
                        "static_range unrolls, so its bounds are constants",
                        "use range(...) for bounds known at run time, or annotate the parameter "
                        "with pto.static",
                        iterable,
                    )
                return self._unrolled(node, self._rounds(range(*(b.value for b in bounds_))))
            if callee in (enumerate, zip, reversed, map, filter):
                raise self.error(
                    f"{callee.__name__} is not part of the kernel language",
                    "loop over range(...) or pto.static_range(...)",
                    iterable,
                )
        items = self.evaluate(iterable)
        if isinstance(items, Tuple):
            return self._unrolled(node, list(items.items))
        if isinstance(items, Host) and isinstance(items.value, range):
            return self._unrolled(node, self._rounds(items.value))
        raise self.error(
            f"a for loop cannot run over {describe(items)}",
            "loop over range(...), pto.static_range(...) or a tuple",
            iterable,
        )

    def range_bounds(self, arguments: Arguments, node: ast.AST) -> tuple[Any, Any, Any]:
        """start, stop, step of a range call, as integers of one type or Python numbers."""
        entities = [
            self.numeric(self.need_scalar(entity, "an integer", where))
            for where, entity in arguments.positional
        ]
        if not 1 <= len(entities) <= 3 or arguments.named:
            raise self.error("range takes one to three integers", "", node)
        for entity, (where, _) in zip(entities, arguments.positional):
            if not is_integer(entity):
                raise self.error(
                    f"range takes integers, not {describe(entity)}", "use // instead of /", where
                )
        if len(entities) == 1:
            entities.insert(0, Const(0))
        if len(entities) == 2:
            entities.append(Const(1))
        if isinstance(entities[2], Const) and entities[2].value == 0:
            raise self.error("the step of a range cannot be 0", "", node)
        return tuple(entities)

    def range_type(self, parts: tuple[Any, Any, Any]) -> DType:
        total: Any = parts[0]
        for part in parts[1:]:
            if total.type is None and part.type is None:
                total = total if abs(total.value) > abs(part.value) else part
            elif total.type is None or part.type is None:
                total = total if part.type is None else part
            else:
                total = Value(self.common_operand_type(total, part, "range"), "")
        return types.widened(total.type) if total.type else self.common_type([total]) or types.s64

    def _range_loop(self, node: ast.For, parts: tuple[Any, Any, Any]) -> None:
        if all(isinstance(part, Const) for part in parts):
            if not range(*(part.value for part in parts)):
                self.statements(node.orelse)
                return
        hidden = f"for {node.lineno}:{node.col_offset} {len(self.targets)}"
        changed = [n for n in assigned_names(node.body) if n not in assigned_names([_target_only(node)])]

        def body(index: Any) -> None:
            self.assign(node.target, index)
            self.statements(node.body)

        self.count_loop(hidden, parts, changed, body, node.orelse)

    def count_loop(
        self,
        hidden: str,
        parts: tuple[Any, Any, Any],
        changed: list[str],
        body: Callable[[Any], None],
        orelse: list[ast.stmt],
    ) -> None:
        """for index in range(*parts): body(index). The counter lives under the name `hidden`."""
        type_ = self.range_type(parts)
        start, stop, step = (self.to_type(part, type_) for part in parts)
        (sl, sh), (el, eh), (tl, th) = bounds(start), bounds(stop), bounds(step)
        self.env[hidden] = start

        def test(again: Block, leave: Block) -> None:
            index = self.env[hidden]
            if tl > 0:
                more = self.compare("lt", index, stop)
            elif th < 0:
                more = self.compare("gt", index, stop)
            else:
                zero = Const(0, type_)
                up = self.logic("and", self.compare("gt", step, zero), self.compare("lt", index, stop))
                down = self.logic("and", self.compare("lt", step, zero), self.compare("gt", index, stop))
                more = self.logic("or", up, down)
            self.branch(more, again, leave)

        def inside() -> None:
            index = self.env[hidden]
            if isinstance(index, Value):
                if tl > 0:
                    low, high = sl, eh - 1
                elif th < 0:
                    low, high = el + 1, sh
                else:
                    low, high = min(sl, el), max(sh, eh)
                index = Value(index.type, index.op, low, high)
                self.env[hidden] = index
            body(index)

        def advance() -> None:
            index = self.env[hidden]
            if not isinstance(index, Value):
                return
            args = [index, step]
            op = f"add.{type_.name}"
            self.env[hidden] = self.compute(op, type_, args, None, index.low + tl, index.high + th)

        self.loop_over([hidden, *changed], test, inside, advance, orelse)
        self.env.pop(hidden, None)

    def _rounds(self, values: range) -> list[Any]:
        # By hand: len() of a range does not count beyond 64 bits.
        ends = values.stop - values.start - (1 if values.step > 0 else -1)
        self._need_few(ends // values.step + 1)
        return [Const(value) for value in values]

    def _need_few(self, rounds: int) -> None:
        if rounds > ROUNDS:
            raise self.error(f"unrolling {shown(rounds)} rounds; the limit is {ROUNDS}", "use range(...)")

    def _unrolled(self, node: ast.For, values: list[Any]) -> None:
        self._need_few(len(values))
        done = Block("end")
        outer = self.scope
        for value in values:
            following = Block("next")
            self.assign(node.target, value)
            self.targets.append((following, done))
            self.statements(node.body)
            self.targets.pop()
            if self.block is not None and not following.entries:
                continue
            self.jump(following)
            if not self.place(following, outer):
                break
        if self.block is not None:
            self.statements(node.orelse)
        if done.entries:
            self.jump(done)
            self.place(done, outer)

    def do_With(self, node: ast.With) -> None:
        item = node.items[0]
        call = item.context_expr
        callee = self._callee(call.func) if isinstance(call, ast.Call) else None
        if len(node.items) == 1 and isinstance(callee, Instruction) and callee.handler == "pipeline":
            return self.pipeline(node, call)
        raise self.error(
            "with is for pto.pipeline() here, and for its stages", "", item.context_expr
        )


def lower(name: str, source: Source, make_env: Callable[[Lowering], dict[str, Any]]) -> Lowering:
    """The lowering of a kernel: its program, and what it noted. Raises CompileError."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION))  # expressions and elif chains nest deeply
    try:
        return _lower(name, source, make_env)
    finally:
        sys.setrecursionlimit(limit)


def _lower(name: str, source: Source, make_env: Callable[[Lowering], dict[str, Any]]) -> Lowering:
    hints: dict[Any, Any] = {}
    spent = 0  # statements lowered in vain
    for _ in range(_RESTARTS):
        if spent > 4 * LOWERED:
            break
        lowering = Lowering(Program(name), source, hints)
        try:
            lowering.run(make_env(lowering))
        except Restart:
            spent += lowering.statement_count
            continue
        except RecursionError:
            raise CompileError("the kernel is nested too deeply", source.file) from None
        return lowering
    raise source.error(
        source.tree,
        "the types of the variables that loops change do not settle",
        "give each its type before its loop: total = 0.0 or total = pto.f32(0) instead of total = 0",
    )


def _target_only(node: ast.For) -> ast.stmt:
    return ast.Assign(targets=[node.target], value=ast.Constant(0))


def _statement_name(node: ast.AST) -> str:
    names = {
        ast.Try: "try", ast.Raise: "raise", ast.Import: "import", ast.ImportFrom: "import",
        ast.FunctionDef: "a def inside a kernel", ast.ClassDef: "class", ast.Global: "global",
        ast.Nonlocal: "nonlocal", ast.Delete: "del", ast.AsyncFor: "async for",
        ast.AsyncWith: "async with", ast.AsyncFunctionDef: "async def", ast.Match: "match",
    }  # fmt: skip
    return names.get(type(node), type(node).__name__)
