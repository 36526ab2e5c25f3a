# SPDX-License-Identifier: Apache-2.0
"""`with pto.pipeline() as pl`: stages, their order, and how copies overlap with what computes.

Stages are kept as syntax until `pl.run()`, which lowers them in an order that their `after` allows, the
ones that start copies first. `pl.run(range(...))` with depth d keeps d iterations in flight: each buffer
that a stage allocates exists d times, copies of iteration i + d - 1 start before iteration i computes,
and the loop is unrolled d times, so that buffers and events are fixed in each copy of the body.

Every stage that starts copies has an event for each of the d slots. A stage that reads what copies bring
waits for their events; where lanes read scratchpad themselves (not the matrix unit or a copy) a block
barrier follows the wait, because only warp 0 has started the copy, and another one stands before a copy
may overwrite what lanes have read.
"""
from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass, field
from typing import Any

from pypto.compiler.builder import bounds
from pypto.compiler.arguments import Arguments
from pypto.compiler.calls import Calls
from pypto.compiler.ir import EVENT_LIMIT, SCRATCHPAD_BYTES, Block, Const, Event, Host, Ptr, Tuple, Value
from pypto.compiler.source import assigned_names
from pypto.instructions import Instruction

_ALLOCATORS = ("alloc_local", "shared", "tile")
_INDEX = "pl.index"


@dataclass
class Stage:
    name: str
    node: ast.With
    after: list[tuple[str, ast.AST]]
    body: list[ast.stmt] = field(default_factory=list)
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


class Pipeline:
    """The object that `as pl` names."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.stages: dict[str, Stage] = {}
        self.has_run = False

    def kernel_attribute(self, lowering: "Pipelines", node: ast.Attribute) -> Any:
        if node.attr == "index":
            index = lowering.env.get(_INDEX)
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


class Pipelines(Calls):
    in_stage: Stage | None = None
    stage_count = 0
    slot_events: dict[str, int] | None = None  # stage -> event of the current slot
    pending_label = ""

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
        self._analyse(stage, node.body)
        pipe.stages[name.value] = stage

    def _analyse(self, stage: Stage, body: list[ast.stmt]) -> None:
        for statement in body:
            call = statement.value if isinstance(statement, ast.Assign) else None
            if isinstance(call, ast.Call) and self._handler(call) in _ALLOCATORS:
                target = statement.targets[0]
                if isinstance(target, ast.Name):
                    stage.buffers[target.id] = call
        stage.body = body
        stage.assigned = assigned_names(body)
        for part in ast.walk(ast.Module(body, [])):
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

    # ------------------------------------------------------------ running

    def _run(self, pipe: Pipeline, call: ast.Call) -> None:
        order = self._ordered(pipe, call)
        buffers = {name for stage in order for name in stage.buffers}
        for stage in order:
            stage.lanes = _lanes_touch(stage, buffers | self._scratch_names(), self._handler)
        if len(call.args) > 1 or call.keywords:
            raise self.error("run takes nothing, or range(...)", "pl.run(range(k))", call)
        if not call.args:
            if pipe.depth > 1:
                raise self.error(
                    f"depth={pipe.depth} keeps iterations in flight, and run() has only one",
                    "pl.run(range(k)) runs k iterations",
                    call,
                )
            self._run_once(order)
            return
        iterable = call.args[0]
        is_range = isinstance(iterable, ast.Call) and self._callee(iterable.func) is range
        if not is_range:
            raise self.error("run takes nothing, or range(...)", "pl.run(range(k))", iterable)
        parts = self.range_bounds(Arguments(self, iterable, "range"), iterable)
        self._run_rounds(pipe, order, parts, call)

    def _scratch_names(self) -> set[str]:
        return {n for n, e in self.env.items() if isinstance(e, Ptr) and e.space == "l1"}

    def _run_once(self, order: list[Stage]) -> None:
        self.slot_events = self._assign_events(order, 1)[0]
        touched = False  # lanes have used scratchpad since the last barrier
        for stage in order:
            self._lower_stage(stage, order, stage.lanes or touched and not stage.loads)
            touched = stage.lanes
        if self.loop is not None and any(stage.lanes for stage in order):
            self.effect("barrier_block", [], lane_scoped=False)  # the next round fills the buffers again
        self.slot_events = None

    def _assign_events(self, order: list[Stage], depth: int) -> list[dict[str, int]]:
        """For each slot the event of every stage that copies; stages share where eight do not suffice."""
        copying = [s.name for s in order if s.loads or s.stores]
        free = EVENT_LIMIT - self.event_count - 1
        each = max(1, min(len(copying), free // depth))
        if copying and free < depth:
            raise self.error(f"the pipeline needs {depth} events and {free} are left")
        slots = []
        for slot in range(depth):
            first = self.event_count + slot * each
            slots.append({name: first + min(i, each - 1) for i, name in enumerate(copying)})
        self.event_count += depth * each if copying else 0
        return slots

    def _waits_for(self, stage: Stage, order: list[Stage]) -> list[int]:
        """Events of the copies into scratchpad that come before the stage."""
        assert self.slot_events is not None
        before = [s for s in order if s.fills and s.name in stage.before]
        if not stage.has_wait:  # only what it reads; wait_all means all of them
            before = [s for s in before if s.fills & set(stage.reads)]
        return list(dict.fromkeys(self.slot_events[s.name] for s in before))

    def _lower_stage(self, stage: Stage, order: list[Stage], needs_barrier: bool) -> None:
        self._label(stage.name)
        self.in_stage = stage
        targets, self.targets = self.targets, []
        self._stage_order = order
        self._stage_barrier = needs_barrier
        if not stage.has_wait:
            self._wait_for_copies()
        self.statements(stage.body)
        self.targets = targets
        self.in_stage = None
        self._label("")

    def _wait_for_copies(self) -> None:
        """The waits of the current stage, and the barrier where lanes read."""
        stage = self.in_stage
        assert stage is not None
        events = self._waits_for(stage, self._stage_order)
        for event in events:
            self.effect("wait", [f"e{event}"], lane_scoped=False)
        if self._stage_barrier:
            self.effect("barrier_block", [], lane_scoped=False)
            self._stage_barrier = False

    def _label(self, stage: str) -> None:
        self.stage_count += 1
        text = "".join(c if c.isascii() and c.isalnum() else "_" for c in stage)
        name = f"stage_{text}_{self.stage_count}" if stage else f"stage_end_{self.stage_count}"
        self.program.stages[name] = stage
        self.pending_label = name  # a stage that emitted nothing gives its label up

    def append(self, insn: Any) -> None:
        if self.pending_label:
            insn.label, self.pending_label = self.pending_label, ""
        super().append(insn)

    # ------------------------------------------------------------ iterations in flight

    def _run_rounds(self, pipe: Pipeline, order: list[Stage], parts: Any, call: ast.Call) -> None:
        depth = pipe.depth
        early = self._early_stages(order)
        late = [stage for stage in order if stage not in early]
        if depth > 1:
            self._check_rotation(order, early, late)
        slots = self._allocate_slots(order, depth, call)
        events = self._assign_events(order, depth)
        type_ = self.range_type(parts)
        start, stop, step = (self.to_type(part, type_) for part in parts)
        if bounds(step)[0] <= 0:
            raise self.error("a pipeline runs over a range with a positive step", "", call)
        names = [n for s in order for n in s.assigned if n not in s.buffers]
        lanes_read = any(stage.lanes for stage in late)

        def index_at(base: Any, rounds: int) -> Any:
            if rounds == 0:
                return base
            many = self.binary(ast.Mult, step, Const(rounds))
            return self.binary(ast.Add, base, many)

        def guarded(index: Any, slot: int, stages: list[Stage], is_refill: bool) -> None:
            """The stages for `index`, if the range reaches that far."""
            more, join = Block("load"), Block("loaded")
            outer = self.scope
            condition: Any = self.compare("lt", index, stop) if depth > 1 else Const(True)
            if isinstance(condition, Const) and condition.value:
                run_early(index, slot, stages, is_refill)
                return
            if isinstance(condition, Const):
                return
            self.branch(condition, more, join)
            self.place(more, outer)
            run_early(index, slot, stages, is_refill)
            self.jump(join)
            self.place(join, outer)

        def run_early(index: Any, slot: int, stages: list[Stage], is_refill: bool) -> None:
            self._bind(slots[slot], index, events[slot])
            if is_refill and lanes_read:
                self.effect("barrier_block", [], lane_scoped=False)
            for stage in stages:
                self._lower_stage(stage, order, False)
            if depth > 1:
                self._forget(order)

        for ahead in range(depth - 1):
            guarded(index_at(start, ahead), ahead, early, self.loop is not None)
        hidden = f"pipeline {self.stage_count}"
        self.env[hidden] = start

        def test(again: Block, leave: Block) -> None:
            self.branch(self.compare("lt", self.env[hidden], stop), again, leave)

        def body() -> None:
            base = self.env[hidden]
            for slot in range(depth):
                index = index_at(base, slot)
                if slot > 0:
                    following = Block("round")
                    outer = self.scope
                    self.branch(self.compare("lt", index, stop), following, self.targets[-1][1])
                    if not self.place(following, outer):
                        return
                ahead = depth - 1
                guarded(index_at(index, ahead), (slot + ahead) % depth, early, True)
                self._bind(slots[slot], index, events[slot])
                touched = False
                for stage in late:
                    self._wait_for_stores(stage, late, events[slot], self.compare("gt", base, start))
                    self._lower_stage(stage, order, stage.lanes or touched)
                    touched = stage.lanes
                self._forget(order)

        def advance() -> None:
            self.env[hidden] = index_at(self.env[hidden], depth)

        self.loop_over([hidden, *dict.fromkeys(names)], test, body, advance, [])
        self.env.pop(hidden, None)
        self._forget(order)
        self.slot_events = None
        if any(stage.stores for stage in order):
            self.effect("wait_all", [], lane_scoped=False)

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

    def _allocate_slots(self, order: list[Stage], depth: int, call: ast.Call) -> list[dict[str, Ptr]]:
        """Every buffer of the stages, once for each iteration in flight."""
        slots: list[dict[str, Ptr]] = [{} for _ in range(depth)]
        parts = []
        for name, node in ((n, c) for s in order for n, c in s.buffers.items()):
            for slot in range(depth):
                self.target_name = f"{name}_{slot}" if depth > 1 else name
                before, self.program.scratch_bytes = self.program.scratch_bytes, 0  # one that is too large says so
                slots[slot][name] = self.evaluate(node)
                size = self.program.scratch_bytes
                self.program.scratch_bytes = before + size
                self.target_name = ""
                if slot == 0 and size:
                    parts.append((name, size))
        total = self.program.scratch_bytes
        if total > SCRATCHPAD_BYTES:
            text = " + ".join(f"{name} {size}" for name, size in parts)
            raise self.error(
                f"depth={depth} needs {total} bytes of scratchpad ({depth} x ({text})); "
                f"a block has {SCRATCHPAD_BYTES}",
                "a smaller depth, or smaller tiles",
                call,
            )
        return slots

    def _bind(self, buffers: dict[str, Ptr], index: Any, events: dict[str, int]) -> None:
        self.env.update(buffers)
        self.env[_INDEX] = index
        self.slot_events = events

    def _forget(self, order: list[Stage]) -> None:
        """Names of a slot do not outlive it."""
        for name in (_INDEX, *(n for s in order for n in s.buffers)):
            self.env.pop(name, None)

    def _wait_for_stores(
        self, stage: Stage, late: list[Stage], events: dict[str, int], is_reused: Any
    ) -> None:
        """Before a slot's buffer is written again, the copy out of it must be over."""
        wanted = [
            events[other.name]
            for other in late
            if other.stores and other is not stage and any(n in stage.buffers for n in other.reads)
        ]
        if not wanted or (isinstance(is_reused, Const) and not is_reused.value):
            return
        assert isinstance(is_reused, Value)  # the counter of a loop is no constant
        again, fresh = Block("again"), Block("fresh")
        outer = self.scope
        self.branch(is_reused, again, fresh)  # the first time round nothing has been copied
        self.place(again, outer)
        for event in dict.fromkeys(wanted):
            self.effect("wait", [f"e{event}"], lane_scoped=False)
        self.jump(fresh)
        self.place(fresh, outer)

    # ------------------------------------------------------------ what differs inside a stage

    def takes_slot(self, node: ast.Assign) -> bool:
        """True if the assignment allocates a buffer that rotates: it exists already."""
        stage = self.in_stage
        if stage is not None and _INDEX in self.env and isinstance(node.value, ast.Call):
            target = node.targets[0]
            if isinstance(target, ast.Name) and stage.buffers.get(target.id) is node.value:
                pointer = self.env[target.id]  # allocated before the loop, once for each slot
                if any(_accumulates(s, target.id, self._handler) for s in self._stage_order):
                    self.effect("fill.b32", [self.memory_name(pointer), "0"], lane_scoped=False)
                return True
        return False

    def generic(self, function: Instruction, arguments: Arguments) -> Any:
        stage = self.in_stage
        name = function.row.mnemonic if stage is not None else ""
        if name == "wait_all":
            arguments.bind([], 0)
            own = any(s.has_own_events and s.name in stage.before for s in self._stage_order)
            if self._waits_for(stage, self._stage_order) and not own:
                self._wait_for_copies()
                return Host(None)
        if name in ("async_load", "async_store") and stage.name in self.slot_events:
            count = len(arguments.positional) + len(arguments.named)
            if "e" not in arguments.named and count in (3, 6):
                event = Event(self.slot_events[stage.name])
                arguments.named["e"] = (self.node, event)
        return super().generic(function, arguments)

    def _store_tile(self, to: Ptr, tile: Ptr, size: Any, node: ast.AST) -> Any:
        stage = self.in_stage
        if stage is None or _INDEX not in self.env or size is None or stage.name not in self.slot_events:
            return super()._store_tile(to, tile, size, node)
        self.start_copy("async_store", to, tile, size, self.slot_events[stage.name])
        return Host(None)


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


def _lanes_touch(stage: Stage, buffers: set[str], handler: Any) -> bool:
    """True if a buffer is used other than by block-scoped instructions."""
    allowed: set[int] = set()
    for part in ast.walk(ast.Module(stage.body, [])):
        if isinstance(part, ast.Call):
            name = handler(part)
            if name in _BLOCK_CALLS or _stores_tile(name, part):
                for argument in [*part.args, *(k.value for k in part.keywords)]:
                    allowed |= {id(n) for n in ast.walk(argument)}
    for part in ast.walk(ast.Module(stage.body, [])):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id in buffers:
            if id(part) not in allowed:
                return True
    return False


def _accumulates(stage: Stage, buffer: str, handler: Any) -> bool:
    """True if an mma of the stage adds to the buffer."""
    for part in ast.walk(ast.Module(stage.body, [])):
        if isinstance(part, ast.Call) and handler(part) == "mma" and part.args:
            names = {n.id for n in ast.walk(part.args[0]) if isinstance(n, ast.Name)}
            if buffer in names:
                return True
    return False
