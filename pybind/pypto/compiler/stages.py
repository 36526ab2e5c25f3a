# SPDX-License-Identifier: Apache-2.0
"""The stages of a `with pto.pipeline() as pl`: what they are, the order that they allow, what each may use.

They are kept as syntax until `pl.run()`; pipeline.py lowers them then. What copies, what lanes touch and
what is read is found in the syntax tree.
"""
from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass, field
from typing import Any, Iterator

from pypto.compiler.arguments import Arguments
from pypto.compiler.calls import Calls
from pypto.compiler.ir import Const, Host, Tuple
from pypto.compiler.source import assigned_names
from pypto.instructions import Instruction

INDEX = "pl.index"
_ALLOCATORS = ("alloc_local", "shared", "tile")


@dataclass
class Stage:
    name: str
    node: ast.With
    after: list[tuple[str, ast.AST]]
    buffers: dict[str, ast.Call] = field(default_factory=dict)  # allocated here
    loads: bool = False  # starts copies into scratchpad
    stores: bool = False  # starts copies out of it
    lanes: bool = False  # lanes touch scratchpad themselves
    assigned: list[str] = field(default_factory=list)
    reads: dict[str, ast.AST] = field(default_factory=dict)
    fills: set[str] = field(default_factory=set)  # names that its copies write to
    has_wait: bool = False  # wait_all() says where
    has_own_events: bool = False  # copies that name their event, and are waited for by the user
    before: set[str] = field(default_factory=set)  # names of all stages that come first

    def walk(self) -> Iterator[ast.AST]:
        """Everything in its body."""
        return ast.walk(ast.Module(self.node.body, []))


class Pipeline:
    """The object that `as pl` names."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.stages: dict[str, Stage] = {}
        self.has_run = False

    def kernel_attribute(self, lowering: "Stages", node: ast.Attribute) -> Any:
        if node.attr == "index":
            index = lowering.env.get(INDEX)
            if index is None:
                raise lowering.error(
                    "pl.index is the iteration of pl.run(range(...)); here there is none"
                )
            return index
        if node.attr == "stage":
            raise lowering.error(
                "a stage is a with statement of its own, directly in the pipeline",
                'with pl.stage("load"): ...',
            )
        if node.attr == "run":
            raise lowering.error("run() stands once, directly in the pipeline, after the stages")
        raise lowering.error(f"a pipeline has stage, run and index, not {node.attr}")


class Stages(Calls):
    in_stage: Stage | None = None

    # ------------------------------------------------------------ declaration

    def pipeline(self, node: ast.With, call: ast.Call) -> None:
        bound = Arguments(self, call, "pipeline").bind(["depth"], 0)
        depth: Any = bound["depth"][1] if "depth" in bound else Const(1)
        if not isinstance(depth, Const) or type(depth.value) is not int or not 1 <= depth.value <= 4:
            raise self.error("the depth of a pipeline is a constant from 1 to 4", "", call)
        name = node.items[0].optional_vars
        if not isinstance(name, ast.Name):
            raise self.error("name the pipeline", "with pto.pipeline() as pl:", call)
        if self.in_stage:
            raise self.error("a pipeline inside a stage", "write the inner one as a loop", call)
        pipe = Pipeline(depth.value)
        self.env[name.id] = pipe
        for statement in node.body:
            saved, self.node = self.node, statement
            self._declare(pipe, name.id, statement)
            self.node = saved
            if self.block is None:
                return
        if not pipe.has_run:
            raise self.error(
                "this pipeline never runs", f"end it with {name.id}.run() or {name.id}.run(range(k))", call
            )
        self.env.pop(name.id, None)

    def _declare(self, pipe: Pipeline, name: str, node: ast.stmt) -> None:
        call = _call_of(node)
        if call is not None and _is_method(call, name, "stage"):
            if not isinstance(node, ast.With):
                raise self.error("a stage is a with statement", f'with {name}.stage("load"): ...')
            if pipe.has_run:
                raise self.error("a stage after run()", "declare stages before the pipeline runs")
            self._declare_stage(pipe, node, call)
        elif call is not None and _is_method(call, name, "run"):
            if pipe.has_run:
                raise self.error("a pipeline runs once")
            pipe.has_run = True
            self._run(pipe, call)
        elif isinstance(node, (ast.With, ast.For, ast.While, ast.If)):
            raise self.error(
                "only stages, simple statements and run() stand directly in a pipeline",
                f"put this into a stage: with {name}.stage(...)",
            )
        else:
            self.statement(node)

    def _declare_stage(self, pipe: Pipeline, node: ast.With, call: ast.Call) -> None:
        if len(node.items) != 1:
            raise self.error("one stage a with statement")
        bound = Arguments(self, call, "stage").bind(["name", "after"], 1)
        name = bound["name"][1]
        if not (isinstance(name, Host) and isinstance(name.value, str) and name.value):
            raise self.error("the name of a stage is a string", "", bound["name"][0])
        after: list[tuple[str, ast.AST]] = []
        if "after" in bound:
            where, entity = bound["after"]
            items = entity.items if isinstance(entity, Tuple) else [entity]
            for item in items:
                if not (isinstance(item, Host) and isinstance(item.value, (str, type(None)))):
                    raise self.error("after= names a stage, or a tuple of stages", "", where)
                if item.value is not None:
                    after.append((item.value, where))
        if name.value in pipe.stages:
            raise self.error(f"there are two stages {name.value!r}", "", bound["name"][0])
        stage = Stage(name.value, node, after)
        self._analyse(stage)
        pipe.stages[name.value] = stage

    def _analyse(self, stage: Stage) -> None:
        for statement in stage.node.body:
            call = statement.value if isinstance(statement, ast.Assign) else None
            if isinstance(call, ast.Call) and self._handler(call) in _ALLOCATORS:
                target = statement.targets[0]
                if isinstance(target, ast.Name):
                    stage.buffers[target.id] = call
        stage.assigned = assigned_names(stage.node.body)
        for part in stage.walk():
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                stage.reads.setdefault(part.id, part)
            if isinstance(part, ast.Call):
                name = self._handler(part)
                if name == "async_load":
                    stage.loads = True
                    if _names_event(part):
                        stage.has_own_events = True
                        continue
                    target = part.args[:1] or [k.value for k in part.keywords if k.arg == "to"]
                    stage.fills |= {n.id for t in target for n in ast.walk(t) if isinstance(n, ast.Name)}
                stage.stores |= name == "async_store" or _stores_tile(name, part)
                stage.has_wait |= name == "wait_all"

    def _handler(self, call: ast.Call) -> str:
        """The name of the instruction function that a call means, or an empty string."""
        callee = self._callee(call.func)
        return callee.__name__ if isinstance(callee, Instruction) else ""

    # ------------------------------------------------------------ order

    def _ordered(self, pipe: Pipeline, call: ast.AST) -> list[Stage]:
        """Stages in an order that `after` allows, copies in first; checks what they read."""
        if not pipe.stages:
            raise self.error("this pipeline has no stages", 'with pl.stage("load"): ...', call)
        for stage in pipe.stages.values():
            for name, where in stage.after:
                if name not in pipe.stages:
                    near = difflib.get_close_matches(name, pipe.stages, 1)
                    known = ", ".join(pipe.stages)
                    raise self.error(
                        f"stage {stage.name!r} comes after {name!r}, which is no stage",
                        f"did you mean {near[0]!r}?" if near else f"the stages are {known}",
                        where,
                    )
        for stage in pipe.stages.values():
            self._find_earlier(pipe, stage, stage, [stage.name])
        order: list[Stage] = []
        left = list(pipe.stages.values())
        while left:
            done = {stage.name for stage in order}
            ready = [s for s in left if all(name in done for name, _ in s.after)]
            chosen = next((s for s in ready if s.loads), ready[0])
            order.append(chosen)
            left.remove(chosen)
        self._check_reads(order)
        return order

    def _find_earlier(self, pipe: Pipeline, start: Stage, stage: Stage, path: list[str]) -> None:
        for name, where in stage.after:
            if name == start.name:
                raise self.error(
                    f"the stages wait for each other: {' after '.join([*path, name])}",
                    "remove one of these `after`",
                    where,
                )
            if name not in start.before:
                start.before.add(name)
                self._find_earlier(pipe, start, pipe.stages[name], [*path, name])

    def _check_reads(self, order: list[Stage]) -> None:
        """What a stage reads must come from itself, from before the pipeline, or from an earlier stage."""
        for stage in order:
            for name, node in stage.reads.items():
                makers = [s for s in order if name in s.assigned and s is not stage]
                if name in stage.assigned or not makers or name in self.env:
                    continue
                if not any(maker.name in stage.before for maker in makers):
                    maker = makers[0].name
                    raise self.error(
                        f"stage {stage.name!r} reads {name}, which stage {maker!r} sets, and does not "
                        "come after it",
                        f'pl.stage("{stage.name}", after="{maker}")',
                        node,
                    )

    def _early_stages(self, order: list[Stage]) -> list[Stage]:
        """Stages that run ahead: those that start copies in, with what they come after."""
        needed = {s.name for s in order if s.loads}
        for stage in order:
            if stage.loads:
                needed |= stage.before
        early = [s for s in order if s.name in needed]
        for stage in early:
            if not stage.loads and (stage.lanes or stage.stores):
                loader = next(s for s in order if s.loads and stage.name in s.before)
                raise self.error(
                    f"stage {loader.name!r} loads and comes after {stage.name!r}, which computes: its "
                    "copies cannot run ahead",
                    "let stages that load depend on nothing that computes",
                    loader.node.items[0].context_expr,
                )
        return early

    def _check_rotation(self, order: list[Stage], early: list[Stage], late: list[Stage]) -> None:
        """Variables do not cross between stages that run ahead and those that do not."""
        for stage in early:
            for other in late:
                for name in other.assigned:
                    if name in stage.reads and name not in other.buffers:
                        raise self.error(
                            f"{name} is changed by stage {other.name!r}, and stage {stage.name!r}, which runs "
                            "iterations ahead, reads it",
                            "let the loading stage compute it from pl.index",
                            stage.reads[name],
                        )
            for name in stage.assigned:
                if name in stage.buffers:
                    continue
                for other in order:
                    if other is not stage and name in other.reads and name not in other.assigned:
                        raise self.error(
                            f"{name} is set by stage {stage.name!r}, which runs iterations ahead, and "
                            f"read by {other.name!r}",
                            f"compute it again in {other.name!r}; only buffers rotate",
                            other.reads[name],
                        )

    def _run(self, pipe: Pipeline, call: ast.Call) -> None:
        """What `pl.run()` emits."""
        raise NotImplementedError


def _call_of(node: ast.stmt) -> ast.Call | None:
    if isinstance(node, ast.With) and isinstance(node.items[0].context_expr, ast.Call):
        return node.items[0].context_expr
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return node.value
    return None


def _is_method(call: ast.Call, owner: str, method: str) -> bool:
    f = call.func
    return (
        isinstance(f, ast.Attribute)
        and f.attr == method
        and isinstance(f.value, ast.Name)
        and f.value.id == owner
    )


def _names_event(call: ast.Call) -> bool:
    """True if a copy has an event as its last operand."""
    return len(call.args) + len(call.keywords) in (4, 7) or any(k.arg == "e" for k in call.keywords)


def _stores_tile(name: str, call: ast.Call) -> bool:
    """True for store(p, tile, nbytes)."""
    return name == "store" and len(call.args) + len(call.keywords) >= 3


_BLOCK_CALLS = ("async_load", "async_store", "mma", "fill", "free_local", "alloc_local")


def lanes_touch(stage: Stage, buffers: set[str], handler: Any) -> bool:
    """True if a buffer is used other than by block-scoped instructions."""
    allowed: set[int] = set()
    for part in stage.walk():
        if isinstance(part, ast.Call):
            name = handler(part)
            if name in _BLOCK_CALLS or _stores_tile(name, part):
                for argument in [*part.args, *(k.value for k in part.keywords)]:
                    allowed |= {id(n) for n in ast.walk(argument)}
    for part in stage.walk():
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id in buffers:
            if id(part) not in allowed:
                return True
    return False


def accumulates(stage: Stage, buffer: str, handler: Any) -> bool:
    """True if an mma of the stage adds to the buffer."""
    for part in stage.walk():
        if isinstance(part, ast.Call) and handler(part) == "mma" and part.args:
            names = {n.id for n in ast.walk(part.args[0]) if isinstance(n, ast.Name)}
            if buffer in names:
                return True
    return False
