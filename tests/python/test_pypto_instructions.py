# SPDX-License-Identifier: Apache-2.0
"""The instructions of the table as functions of pypto's kernel language."""

from __future__ import annotations

import inspect
import keyword

import numpy as np
import pypto as pto
import pypto_ptosim as ptosim
from pypto.instructions import arguments_of
from pypto.table import table
from pypto_kernels import compiled, from_text, insns, out, run


def test_every_instruction_of_the_table_has_a_function_with_help():
    for row in table().values():
        name = row.mnemonic + ("_" if row.mnemonic in ("and", "or", "not") else "")
        function = getattr(pto, name)
        assert row.summary in function.__doc__
        for modifier in row.modifiers:
            if not modifier.is_optional:
                for suffix in modifier.suffixes:
                    assert callable(getattr(pto, f"{row.mnemonic}_{suffix}"))
        assert isinstance(inspect.signature(function), inspect.Signature)


SNIPPETS = {
    "abs": "pto.abs(i)", "add": "pto.add(i, 3)", "alloc_local": "pto.alloc_local(16)",
    "and": "pto.and_(i, 6)", "async_load": "pto.async_load(t, p, 64, 0)",
    "async_store": "pto.async_store(p, t, 64, 1)", "atom": "pto.atom(q, 5, operation='add')",
    "barrier": "pto.barrier()", "barrier_block": "pto.barrier_block(2)", "brev": "pto.brev(i)",
    "clz": "pto.clz(i)", "cmp": "pto.store(q + i, pto.s32(pto.cmp(i, 4, comparison='lt')))",
    "cos": "pto.cos(x)", "cvt": "pto.cvt(x, pto.s32, rounding='rp')", "div": "pto.div(i, 3)",
    "exit": "pto.exit()", "exp": "pto.exp(x)", "fence": "pto.fence_block()", "fill": "pto.fill(t, 0)",
    "fma": "pto.fma(x, 2.0, x)", "free_local": "pto.free_local(t)", "inval": "pto.inval(p)",
    "load": "pto.load(p, cache='cg')", "log": "pto.log(x)", "mad": "pto.mad(i, i, 3)",
    "max": "pto.max(i, 5)", "min": "pto.min(x, 2)", "mma": "pto.mma(u, t, t, 4, 4, 4)",
    "mul": "pto.mul(i, 7)", "mulhi": "pto.mulhi(i, i)", "neg": "pto.neg(x)", "nop": "pto.nop(5)",
    "not": "pto.not_(i)", "or": "pto.or_(i, 1)", "popc": "pto.popc(i)", "pow": "pto.pow(x, 2.5)",
    "prefetch": "pto.prefetch(p)", "print": "pto.print('%d', i)", "prmt": "pto.prmt(i, i, 0x5410)",
    "rcp": "pto.rcp(x)", "reduce": "pto.reduce(i, operation='add')", "rem": "pto.rem(i, 7)",
    "rsqrt": "pto.rsqrt(x)", "sel": "pto.sel(i, 4, i > 3)", "shfl": "pto.shfl(i, 3, mode='idx')",
    "shl": "pto.shl(i, 2)", "shr": "pto.shr(i, 2)", "sin": "pto.sin(x)", "sqrt": "pto.sqrt(x)",
    "store": "pto.store(p, x, cache='cg')", "sub": "pto.sub(i, 2)", "tanh": "pto.tanh(x)",
    "trap": "pto.trap(7)", "vote": "pto.vote(i > 3, mode='ballot')", "wait": "pto.wait(3)",
    "wait_all": "pto.wait_all()", "xor": "pto.xor(i, 3)",
}  # fmt: skip


def plain_call(row):
    """A call of a row that has no snippet yet, by what its operands accept."""
    kinds = [("hbm", "p"), ("tile", "t"), ("event", "0"), ("predicate", "i > 3"), ("register", "i"), ("", "1")]
    name = row.mnemonic + ("_" if keyword.iskeyword(row.mnemonic) else "")
    given = [
        next(text for kind, text in kinds if kind in operand.accepts)
        for operand in arguments_of(row.forms[0])
        if not operand.optional
    ]
    given += [f"{m.name}='{m.suffixes[0]}'" for m in row.modifiers if not m.is_optional]
    return f"pto.{name}({', '.join(given)})"


def test_every_row_can_be_called_and_assembles():
    for row in table().values():
        if row.mnemonic in ("bra", "call", "ret", "mov"):
            continue  # made by control flow, and by what needs a copy
        call = SNIPPETS.get(row.mnemonic) or plain_call(row)
        is_value = row.forms[0][:1] and row.forms[0][0].is_written and row.forms[0][0].accepts.startswith(("register", "predicate"))
        statement = f"pto.store(q + i, pto.s32({call}))" if is_value and "store" not in call else call
        text = (
            "@pto.kernel\ndef k(p, q):\n    i = pto.get_global_id()\n    x = pto.load(p + i)\n"
            f"    t = pto.alloc_local(64)\n    u = pto.alloc_local(64)\n    {statement}\n"
        )
        kernel = from_text(text)
        code = compiled(kernel, out(np.float32), out())
        assert f" {row.mnemonic}" in code.asm, row.mnemonic
        assert code.object


def test_results_of_warp_instructions():
    @pto.kernel
    def k(o):
        i = pto.get_lane_id()
        even = pto.vote_ballot(i % 2 == 0)
        below = pto.popc(even & pto.lanemask_lt())
        pto.store(o + i, below * 1000 + pto.shfl_down(i, 1) + pto.reduce_max(i))

    o = out()
    run(k, o)
    i = np.arange(32)
    assert (o == (i + 1) // 2 * 1000 + np.minimum(i + 1, 31) + 31).all()


def test_atomics_and_unused_results():
    @pto.kernel
    def k(c, o):
        i = pto.get_global_id()
        pto.atomic_add(c, 1)
        old = pto.atomic_max(c + 1, i)
        pto.store(o + i, old)

    code = compiled(k, out(), out()).asm
    assert "atom.add.s32 _, hbm[c], 1" in code and "atom.max.s32 r" in code
    c, o = out(), out()
    run(k, c, o)
    assert c[0] == 32 and c[1] == 31


def test_vectors():
    @pto.kernel
    def k(o, x):
        i = pto.get_global_id()
        a, b, c, d = pto.load(x + i * 4, vector=4)
        pto.store(o + i * 4, (d, c, b, a))

    x = np.arange(128, dtype=np.float32)
    o = out(np.float32, 128)
    run(k, o, x)
    assert (o.reshape(32, 4) == x.reshape(32, 4)[:, ::-1]).all()


def test_printing():
    @pto.kernel
    def k(x):
        i = pto.get_global_id()
        if i == 3:
            pto.print(f"lane {i}: {pto.load(x + i)} 100%")
            print("plain", i, 2.5)
            pto.print("%x %u", i + 12, i)

    report = run(k, np.arange(32, dtype=np.float32))
    texts = [p["text"] if isinstance(p, dict) else p for p in report["prints"]]
    assert [t.split("]")[-1].strip() for t in texts] == ["lane 3: 3.000000 100%", "plain 3 2.500000", "f 3"]


def test_tile_store_and_copies():
    @pto.kernel
    def k(y, x, n):
        t = pto.alloc_local(n)
        e = pto.event()
        pto.async_load(t, x, n * 4, e)
        pto.wait(e)
        pto.store(y, t, n * 4)

    x = np.arange(100, dtype=np.float32)
    y = out(np.float32, 100)
    run(k, y, x, 100)
    assert (y == x).all()


def test_emit_ascendc():
    @pto.kernel
    def scale(o, x, n):
        for i in range(pto.get_global_id(), n, pto.get_global_size()):
            pto.store(o + i, pto.load(x + i) * 2.5)

    compiled(scale, out(np.float32), out(np.float32), 3)
    text = scale.emit("ascendc")
    assert "scale" in text and "2.5" in text and "pto_simt.h" in text


def test_the_stub_is_fresh():
    from pypto import stubs

    path = ptosim.ROOT / "pybind" / "pypto" / "language.pyi"
    assert path.read_text() == stubs.text(), "python3 -m pypto.stubs pybind/pypto/language.pyi"


def test_two_halves_in_a_register():
    @pto.kernel
    def k(o, x):
        i = pto.get_global_id()
        pairs, out2 = pto.bitcast(x, pto.f16x2), pto.bitcast(o, pto.f16x2)
        v = pto.load(pairs + i)
        pto.store(out2 + i, pto.fma(v, v, v) + v - max(v, -v))

    x = np.arange(-32, 32, dtype=np.float16)
    o = out(np.float16, 64)
    run(k, o, x)
    assert "fma.f16x2" in insns(k, o, x)
    assert (o == x * x + x + x - np.maximum(x, -x)).all()
