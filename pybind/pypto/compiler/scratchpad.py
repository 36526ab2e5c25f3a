# SPDX-License-Identifier: Apache-2.0
"""Scratchpad and events: what a kernel allocates by name."""
from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

from pypto import types
from pypto.compiler.arguments import Arguments
from pypto.compiler.ir import EVENT_LIMIT, SCRATCHPAD_BYTES, TILE_LIMIT, Buffer, Const, Event, Host, Ptr, Tuple
from pypto.compiler.limits import VALUES
from pypto.compiler.table_calls import TableCalls
from pypto.instructions import Instruction
from pypto.types import DType


class Scratchpad(TableCalls):
    def call_shared(self, function: Instruction, arguments: Arguments) -> Any:
        bound = arguments.bind(["n", "dtype"], 1)
        dtype = self._elements_of(bound)
        count = self.static_count(bound["n"], "shared")
        return self.static_buffer("shared", [count], dtype)

    def call_tile(self, function: Instruction, arguments: Arguments) -> Any:
        bound = arguments.bind(["rows", "cols", "dtype"], 2)
        dtype = self._elements_of(bound)
        sizes = [self.static_count(bound[name], "tile") for name in ("rows", "cols")]
        return self.static_buffer("tile", sizes, dtype)

    def _elements_of(self, bound: dict[str, tuple[ast.expr, Any]]) -> DType:
        """The type that `dtype` gives, f32 without."""
        if "dtype" not in bound:
            return types.f32
        node, entity = bound["dtype"]
        return self.need_dtype(entity, node)

    def static_count(self, pair: Any, what: str) -> int:
        node, entity = pair
        if isinstance(entity, Tuple) and all(isinstance(e, Const) for e in entity.items):
            entity = Const(math.prod(e.value for e in entity.items))
        if not isinstance(entity, Const) or type(entity.value) is not int:
            raise self.error(
                f"the size of {what} is a constant known when the kernel is compiled",
                "use pto.alloc_local(n) for a size known at run time, or annotate the parameter "
                "with pto.static",
                node,
            )
        if entity.value <= 0:
            raise self.error(f"a size of {entity.value} elements", "", node)
        return entity.value

    def static_buffer(self, what: str, sizes: list[int], dtype: DType) -> Ptr:
        name = self.symbol_name(self.target_name or what)
        shape = "".join(f"[{n}]" for n in sizes)
        self.program.symbols.append(f".{what} {name}, {dtype.name}{shape}")
        self.program.scratch_bytes += math.prod(sizes) * dtype.size
        self.check_scratchpad()
        return Ptr("l1", name, dtype, buffer=Buffer(name, "shared memory"))

    def check_scratchpad(self) -> None:
        if self.program.scratch_bytes > SCRATCHPAD_BYTES:
            raise self.error(
                f"the kernel asks for {self.program.scratch_bytes} bytes of scratchpad; "
                f"a block has {SCRATCHPAD_BYTES}"
            )

    def call_const_array(self, function: Instruction, arguments: Arguments) -> Any:
        bound = arguments.bind(["values", "dtype"], 1)
        dtype = self._elements_of(bound)
        entity = bound["values"][1]
        if isinstance(entity, Host) and isinstance(entity.value, np.ndarray):
            if entity.value.size > VALUES:
                raise self.error(
                    f"const_array of {entity.value.size} values; the limit is {VALUES}",
                    "pass them as a tensor",
                )
            if entity.value.dtype.kind not in "biuf":
                raise self.error(f"const_array of {entity.value.dtype} values: numbers are needed")
            entity = Tuple([Const(v) for v in entity.value.ravel().tolist()])
        if not isinstance(entity, Tuple) or not all(isinstance(v, Const) for v in entity.items):
            raise self.error("const_array takes a tuple, list or array of numbers")
        if not entity.items:
            raise self.error("const_array of no values")
        name = self.symbol_name(self.target_name or "constants")
        texts = [self.immediate(self.as_const(v, dtype), dtype) for v in entity.items]
        self.program.symbols.append(f".const {name}, {dtype.name} {{{', '.join(texts)}}}")
        return Ptr("const", name, dtype, buffer=Buffer(name, "constants"))

    def symbol_name(self, wanted: str) -> str:
        return self.reserved.unique(wanted)

    def call_alloc_local(self, function: Instruction, arguments: Arguments) -> Any:
        bound = arguments.bind(["n", "dtype"], 1)
        dtype = self._elements_of(bound)
        node, entity = bound["n"]
        if self.loop is not None and not self.frees_tiles:
            raise self.error(
                "alloc_local in a loop would allocate a tile in each round",
                "allocate before the loop, or give the tile back with pto.free_local in the round",
            )
        return self.allocate(self.need_scalar(entity, "a number of elements", node), dtype)

    def allocate(self, count: Any, dtype: DType) -> Ptr:
        if self.tile_count >= TILE_LIMIT:
            raise self.error(
                f"a block has {TILE_LIMIT} tiles; this would be one more",
                "use pto.shared(n) for sizes that are constants",
            )
        if isinstance(count, Const):
            if type(count.value) is not int or count.value <= 0:
                raise self.error(f"alloc_local of {count.value} elements")
            self.program.scratch_bytes += count.value * dtype.size
            self.check_scratchpad()
        total = self.binary(ast.Mult, count, Const(dtype.size))
        arg = self.count_operand(total, types.u32, "the size of alloc_local")
        name = f"t{self.tile_count}"
        self.tile_count += 1
        self.effect("alloc_local", [name, arg], lane_scoped=False)
        return Ptr("l1", name, dtype, buffer=Buffer(name, "tile"))

    def call_event(self, function: Instruction, arguments: Arguments) -> Any:
        arguments.bind([], 0)
        return self.new_event()

    def new_event(self) -> Event:
        if self.event_count >= EVENT_LIMIT - 1:
            raise self.error(f"all {EVENT_LIMIT - 1} events are used (one is kept for stores of tiles)")
        self.event_count += 1
        return Event(self.event_count - 1)

    def call_static_range(self, function: Instruction, arguments: Arguments) -> Any:
        raise self.error(
            "static_range stands in a for statement", "for i in pto.static_range(4): ..."
        )

    def call_pipeline(self, function: Instruction, arguments: Arguments) -> Any:
        raise self.error("pipeline stands in a with statement", "with pto.pipeline() as pl: ...")
