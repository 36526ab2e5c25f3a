# SPDX-License-Identifier: Apache-2.0
"""The compiler of the kernel language: Python source -> PTO text.

source.py       the text of a function and what its names mean
captured.py     what was taken from around it, to notice when that changes
limits.py       how large a kernel may be
lower.py        statements: syntax tree -> blocks of insns over virtual registers (ir.py)
builder.py      blocks, edges and joins under construction
loops.py        values that loops carry
conversions.py, division.py, arithmetic.py, conditions.py, pointers.py, expressions.py   what expressions become
arguments.py, table_calls.py, special_calls.py, scratchpad.py, calls.py     what calls become
stages.py       stages of a pipeline, their order
pipeline.py     running them: buffers that rotate, events
combine.py      joins insns that the machine does in one, drops what nobody reads
regalloc.py     virtual registers -> r, d and p registers: liveness.py, interference.py, spill.py
emit.py         layout of blocks, branches and predicates, text

Values are in SSA form: a virtual register is written by one insn, joins of control flow are phis. The
compiler lowers loops with the test at the bottom and computes what does not change inside a loop before
it, common subexpressions once. The classes from Builder to Lowering are one object in layers, each a file:
a layer uses those below it, and above it only what the layer declares.
"""
