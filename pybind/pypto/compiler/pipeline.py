# SPDX-License-Identifier: Apache-2.0
"""`pl.run()` of a pipeline: how copies overlap with what computes.

The stages (stages.py) are lowered in an order that their `after` allows, the ones that start copies first. `pl.run(range(...))` with depth d keeps d iterations in flight: each buffer
that a stage allocates exists d times, copies of iteration i + d - 1 start before iteration i computes,
and the loop is unrolled d times, so that buffers and events are fixed in each copy of the body.

Every stage that starts copies has an event for each of the d slots. A stage that reads what copies bring
waits for their events; where lanes read scratchpad themselves (not the matrix unit or a copy) a block
barrier follows the wait, because only warp 0 has started the copy, and another one stands before a copy
may overwrite what lanes have read.
"""
from __future__ import annotations

import ast
from typing import Any

from pypto.compiler.arguments import Arguments
from pypto.compiler.builder import bounds
from pypto.compiler.ir import EVENT_LIMIT, SCRATCHPAD_BYTES, Block, Const, Event, Host, Ptr, Value
from pypto.compiler.stages import INDEX, Pipeline, Stage, Stages, accumulates, lanes_touch
from pypto.instructions import Instruction


class Pipelines(Stages):
    stage_count = 0
    slot_events: dict[str, int] | None = None  # stage -> event of the current slot
    pending_label = ""

    # ------------------------------------------------------------ running

    def _run(self, pipe: Pipeline, call: ast.Call) -> None:
        order = self._ordered(pipe, call)
        buffers = {name for stage in order for name in stage.buffers}
        for stage in order:
            stage.lanes = lanes_touch(stage, buffers | self._scratch_names(), self._handler)
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

    def _waits_for(self, stage: Stage) -> list[int]:
        """Events of the copies into scratchpad that come before the stage."""
        assert self.slot_events is not None
        before = [s for s in self._stage_order if s.fills and s.name in stage.before]
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
        self.statements(stage.node.body)
        self.targets = targets
        self.in_stage = None
        self._label("")

    def _wait_for_copies(self) -> None:
        """The waits of the current stage, and the barrier where lanes read."""
        stage = self.in_stage
        assert stage is not None
        for event in self._waits_for(stage):
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
        self.env[INDEX] = index
        self.slot_events = events

    def _forget(self, order: list[Stage]) -> None:
        """Names of a slot do not outlive it."""
        for name in (INDEX, *(n for s in order for n in s.buffers)):
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
        if stage is not None and INDEX in self.env and isinstance(node.value, ast.Call):
            target = node.targets[0]
            if isinstance(target, ast.Name) and stage.buffers.get(target.id) is node.value:
                pointer = self.env[target.id]  # allocated before the loop, once for each slot
                if any(accumulates(s, target.id, self._handler) for s in self._stage_order):
                    self.effect("fill.b32", [self.memory_name(pointer), "0"], lane_scoped=False)
                return True
        return False

    def generic(self, function: Instruction, arguments: Arguments) -> Any:
        stage = self.in_stage
        name = function.row.mnemonic if stage is not None else ""
        if name == "wait_all":
            arguments.bind([], 0)
            own = any(s.has_own_events and s.name in stage.before for s in self._stage_order)
            if self._waits_for(stage) and not own:
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
        if stage is None or INDEX not in self.env or size is None or stage.name not in self.slot_events:
            return super()._store_tile(to, tile, size, node)
        self.start_copy("async_store", to, tile, size, self.slot_events[stage.name])
        return Host(None)
