# SPDX-License-Identifier: Apache-2.0
"""The compiler of the kernel language: Python source -> PTO text.

source.py    finds the text of a function and what its names mean
lower.py     statements: syntax tree -> blocks of insns over virtual registers (ir.py)
expressions.py  operators, conversions, conditions, pointers
calls.py     what can be called in a kernel: instruction functions, pto.func, builtins
pipeline.py  stages, buffers that rotate, events
combine.py   joins insns that the machine does in one, drops what nobody reads
regalloc.py  virtual registers -> r, d and p registers
emit.py      layout of blocks, branches and predicates, text

Values are in SSA form: a virtual register is written by one insn, joins of control flow are phis. The
compiler lowers loops with the test at the bottom and computes what does not change inside a loop before
it, common subexpressions once.
"""
