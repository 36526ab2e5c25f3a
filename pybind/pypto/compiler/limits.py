# SPDX-License-Identifier: Apache-2.0
"""How much the compiler takes on. What asks for more is refused at once, at the line that asks for it.

They bound time and memory: a kernel of INSNS instructions is far larger than any instruction cache, and
takes the compiler some ten seconds.
"""

INSNS = 1 << 16  # of a kernel
LOWERED = 1 << 18  # that are lowered, each copy of an unrolled one counted
ROUNDS = 1 << 12  # of a loop that is unrolled
VALUES = 1 << 18  # of a tuple, a list or an array
BITS = 1 << 13  # of a Python integer
