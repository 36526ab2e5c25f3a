# SPDX-License-Identifier: Apache-2.0
"""Random text of kernels for pypto_fuzz.py."""

from __future__ import annotations

import random

from pypto_fuzz_reference import LANES

WIDTH = 16  # elements of `mem` of each lane


class Generator:
    """Random text of one kernel. Every variable has one type and a value from the start."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 0
        self.loops = 0
        self.loop_names = 0
        self.helpers: list[tuple[str, list[str], str]] = []
        kinds = ["s32", "s32", "f32", "u32", "bool", "s64", "s32", "f32", "u64", "f16", "weak", "ptr"]
        count = self.r.randint(3, 7)
        self.variables = {f"v{i}": k for i, k in enumerate(self.r.sample(kinds, count))}
        if "s32" not in self.variables.values():
            self.variables["vi"] = "s32"
        self.readable: dict[str, str] = {}

    def text(self) -> str:
        for _ in range(self.r.choice([0, 0, 1, 1, 2])):
            self.helper()
        self.line("@pto.kernel")
        self.line("def fuzzed(xi, xf, xu, xb, mem, oi, of, ou, ol, count, n, scale):")
        self.depth = 1
        self.line("lane = pto.get_global_id()")
        self.readable = {"lane": "s32", "n": "s32", "scale": "f32"}
        for name, kind in self.variables.items():
            self.line(f"{name} = {self.initial(kind)}")
            self.readable[name] = kind
        self.body(self.r.randint(3, 8), 0)
        self.results()
        return "\n".join(self.lines) + "\n"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def helper(self) -> None:
        number = len(self.helpers)
        kinds = [self.r.choice(["s32", "f32"]) for _ in range(self.r.randint(1, 3))]
        result = self.r.choice(["s32", "f32", "bool"])
        names = [f"p{i}" for i in range(len(kinds))]
        self.line("@pto.func")
        self.line(f"def helper{number}({', '.join(names)}):")
        saved = self.readable
        self.readable = dict(zip(names, kinds))
        self.depth = 1
        if self.r.random() < 0.6:
            self.line(f"if {self.expr('bool', 2)}:")
            self.depth = 2
            self.line(f"return {self.typed(result, 2)}")
            self.depth = 1
        self.line(f"return {self.typed(result, 2)}")
        self.depth = 0
        self.readable = saved
        self.helpers.append((f"helper{number}", kinds, result))

    def typed(self, kind: str, depth: int) -> str:
        """An expression that is no Python number."""
        text = self.expr(kind, depth)
        return text if kind == "bool" else f"pto.{kind}({text})"

    def initial(self, kind: str) -> str:
        r = self.r
        if kind == "bool":
            return f"lane % {r.randint(2, 5)} == {r.randint(0, 1)}"
        if kind == "s64":
            return f"pto.s64(pto.load(xi + lane)) * {r.randint(-9, 999999937)}"
        if kind == "u64":
            return f"pto.u64(pto.load(xu + lane)) * {r.randint(1, 2**33)}"
        if kind == "f16":
            return f"pto.f16({r.choice(['pto.load(xf + lane)', 'lane', '0.1', 'scale'])})"
        if kind == "weak":
            return str(r.randint(0, 3))
        if kind == "ptr":
            return self.pointer(0)
        source = {"s32": "xi", "f32": "xf", "u32": "xu"}[kind]
        choices = [f"pto.load({source} + lane)", f"pto.{kind}({self.constant(kind)})"]
        if kind == "s32":
            choices += ["pto.load(xb + lane) + 0", "lane * 3 - 40", "pto.s32(n)"]
        return r.choice(choices)

    def pointer(self, depth: int) -> str:
        """A place among the elements of `mem` that belong to the lane."""
        return f"mem + lane * {WIDTH} + ({self.expr('s32', depth)}) % {WIDTH}"

    def constant(self, kind: str) -> str:
        r = self.r
        if kind == "u64":
            return str(r.choice([0, 1, 3, 2**32, 2**63 + 5, r.getrandbits(64)]))
        if kind == "f16":
            return repr(r.choice([0.0, 1.0, -1.5, 0.1, 1000.0, 65504.0, 6e-8]))
        if kind == "f32":
            return repr(r.choice([0.0, 1.0, -1.5, 0.1, 3.25, -100.0, 1e-3, 65536.0]))
        if kind == "u32":
            return str(r.choice([0, 1, 7, 255, 65535, 0x80000000, 0xFFFFFFFF, r.getrandbits(32)]))
        if kind == "s64":
            return str(r.choice([0, 1, -1, 5, -(2**40), 2**33 + 7, r.randint(-(2**62), 2**62)]))
        return str(r.choice([0, 1, -1, 2, 3, 10, -7, 31, 1000, -(2**31), 2**31 - 1, r.randint(-99, 99)]))

    # ------------------------------------------------------------ expressions

    def expr(self, kind: str, depth: int) -> str:
        r = self.r
        if depth <= 0 or r.random() < 0.15:
            return self.leaf(kind)
        return getattr(self, f"expr_{kind}")(depth - 1)

    def leaf(self, kind: str) -> str:
        accepted = (kind, "weak") if kind == "s32" else (kind,)
        names = [n for n, k in self.readable.items() if k in accepted]
        if names and self.r.random() < 0.75:
            name = self.r.choice(names)
            return f"pto.s32({name})" if self.readable[name] == "weak" else name
        if kind == "bool":
            return self.comparison(0)
        return f"pto.{kind}({self.constant(kind)})"

    def call(self, kind: str, depth: int) -> str | None:
        fitting = [h for h in self.helpers if h[2] == kind]
        if not fitting or self.r.random() < 0.5:
            return None
        name, kinds, _ = self.r.choice(fitting)
        return f"{name}({', '.join(self.expr(k, min(depth, 1)) for k in kinds)})"

    def either(self, kind: str, depth: int) -> str:
        return f"({self.expr(kind, depth)} if {self.expr('bool', depth)} else {self.expr(kind, depth)})"

    def minmax(self, kind: str, depth: int) -> str:
        return f"{self.r.choice(['min', 'max'])}({self.expr(kind, depth)}, {self.expr(kind, depth)})"

    def divide(self, kind: str, depth: int, divisors: list[int]) -> str:
        if self.r.random() < 0.6:
            divisor = str(self.r.choice(divisors))
        else:
            divisor = f"({self.expr(kind, depth)} | 1)"
        return f"({self.expr(kind, depth)} {self.r.choice(['//', '%'])} {divisor})"

    def expr_s32(self, depth: int) -> str:
        r, e = self.r, self.expr
        choice = r.randint(0, 15)
        if choice == 0:
            return self.call("s32", depth) or self.leaf("s32")
        if choice <= 5:
            op = r.choice(["+", "-", "*", "&", "|", "^", "+", "-"])
            right = self.constant("s32") if r.random() < 0.3 else e("s32", depth)
            if r.random() < 0.1 and op in "+-*":
                return f"({right} {op} {e('s32', depth)})"
            return f"({e('s32', depth)} {op} {right})"
        if choice <= 7:
            op = r.choice(["//", "%"])
            if r.random() < 0.6:
                divisor = str(r.choice([1, 2, 3, 4, 7, 8, 10, 32, 100, -1, -2, -3, -8]))
            else:
                divisor = f"({e('s32', depth)} | 1)"
            return f"({e('s32', depth)} {op} {divisor})"
        if choice == 8:
            op = r.choice(["<<", ">>"])
            count = str(r.randint(0, 31)) if r.random() < 0.6 else f"({e('s32', depth)} & 31)"
            return f"({e('s32', depth)} {op} {count})"
        if choice == 9:
            return self.minmax("s32", depth)
        if choice == 10:
            return self.either("s32", depth)
        if choice == 11:
            return r.choice([f"(-{e('s32', depth)})", f"(~{e('s32', depth)})", f"abs({e('s32', depth)})"])
        if choice == 12:
            source = r.choice(["f32", "u32", "s64", "bool", "u64", "f16"])
            return f"pto.s32({e(source, depth)})"
        if choice == 13:
            if "xi" not in self.scope_pointers():
                return self.leaf("s32")
            pointers = [n for n, k in self.readable.items() if k == "ptr"]
            if pointers and r.random() < 0.6:
                return f"pto.load({r.choice(pointers)})"
            where = f"({e('s32', depth)}) % {LANES}"
            return r.choice([f"pto.load(xi + {where})", f"pto.s32(pto.load(xb + {where}))"])
        if choice == 14:
            return f"pto.popc({e('u32', depth)})"
        return f"(pto.s32({e('bool', depth)}) + {e('s32', depth)})"

    def scope_pointers(self) -> tuple[str, ...]:
        return ("xi",) if "lane" in self.readable else ()

    def expr_u32(self, depth: int) -> str:
        r, e = self.r, self.expr
        choice = r.randint(0, 8)
        if choice <= 3:
            op = r.choice(["+", "-", "*", "&", "|", "^"])
            right = self.constant("u32") if r.random() < 0.3 else e("u32", depth)
            return f"({e('u32', depth)} {op} {right})"
        if choice == 4:
            return self.divide("u32", depth, [1, 2, 3, 16, 1000])
        if choice == 5:
            return f"({e('u32', depth)} {r.choice(['<<', '>>'])} {r.randint(0, 31)})"
        if choice == 6:
            return f"pto.u32({e(r.choice(['s32', 'f32', 's64']), depth)})"
        if choice == 7:
            return self.minmax("u32", depth)
        return self.either("u32", depth)

    def expr_s64(self, depth: int) -> str:
        r, e = self.r, self.expr
        choice = r.randint(0, 7)
        if choice <= 2:
            other = e(r.choice(["s64", "s32", "u32"]), depth)
            return f"({e('s64', depth)} {r.choice(['+', '-', '*'])} {other})"
        if choice == 3:
            return self.divide("s64", depth, [1, 2, 3, 8, 1000, -5])
        if choice == 4:
            return f"({e('s64', depth)} {r.choice(['<<', '>>'])} {r.randint(0, 63)})"
        if choice == 5:
            return f"pto.s64({e(r.choice(['s32', 'u32', 'f32']), depth)})"
        if choice == 6:
            return f"({e('s64', depth)} {r.choice(['&', '|', '^'])} {e('s64', depth)})"
        return self.either("s64", depth)

    def expr_u64(self, depth: int) -> str:
        r, e = self.r, self.expr
        choice = r.randint(0, 5)
        if choice <= 1:
            return f"({e('u64', depth)} {r.choice(['+', '-', '*'])} {e(r.choice(['u64', 'u32']), depth)})"
        if choice == 2:
            return self.divide("u64", depth, [1, 3, 8, 10**10])
        if choice == 3:
            return f"pto.u64({e(r.choice(['s32', 'u32', 's64', 'f32']), depth)})"
        if choice == 4:
            return f"({e('u64', depth)} {r.choice(['&', '|', '^', '>>'])} {r.randint(0, 63)})"
        return self.either("u64", depth)

    def expr_f16(self, depth: int) -> str:
        r, e = self.r, self.expr
        choice = r.randint(0, 6)
        if choice <= 2:
            right = r.choice([e("f16", depth), self.constant("f16"), e("s32", depth)])
            return f"({e('f16', depth)} {r.choice(['+', '-', '*', '/'])} {right})"
        if choice == 3:
            return f"pto.f16({e(r.choice(['s32', 'f32', 'u32']), depth)})"
        if choice == 4:
            return self.minmax("f16", depth)
        if choice == 5:
            return r.choice([f"(-{e('f16', depth)})", f"abs({e('f16', depth)})"])
        return self.either("f16", depth)

    def expr_f32(self, depth: int) -> str:
        r, e = self.r, self.expr
        choice = r.randint(0, 13)
        if choice == 0:
            return self.call("f32", depth) or self.leaf("f32")
        if choice <= 5:
            op = r.choice(["+", "-", "*", "/", "+", "*"])
            right = self.constant("f32") if r.random() < 0.3 else e("f32", depth)
            if r.random() < 0.2:
                right = e(r.choice(["s32", "u32", "s64", "u64", "f16"]), depth)
            return f"({e('f32', depth)} {op} {right})"
        if choice == 6:
            return f"({e('s32', depth)} / {e('s32', depth)})"
        if choice == 7:
            return f"({e('f32', depth)} {r.choice(['//', '%'])} {e('f32', depth)})"
        if choice == 8:
            return self.minmax("f32", depth)
        if choice == 9:
            return self.either("f32", depth)
        if choice == 10:
            return f"pto.fma({e('f32', depth)}, {e('f32', depth)}, {e('f32', depth)})"
        if choice == 11:
            return r.choice([f"(-{e('f32', depth)})", f"abs({e('f32', depth)})", f"pto.floor({e('f32', depth)})"])
        if choice == 12:
            return f"pto.f32({e(r.choice(['s32', 'u32', 's64', 'bool', 'u64', 'f16']), depth)})"
        return f"pto.sqrt(abs({e('f32', depth)}))"

    def comparison(self, depth: int) -> str:
        r, e = self.r, self.expr
        kind = r.choice(["s32", "s32", "f32", "u32", "s64", "u64", "f16"])
        op = r.choice(["<", "<=", ">", ">=", "==", "!="])
        if r.random() < 0.15:
            return f"({e(kind, depth)} {op} {e(kind, depth)} {r.choice(['<', '<='])} {e(kind, depth)})"
        return f"({e(kind, depth)} {op} {e(kind, depth)})"

    def expr_bool(self, depth: int) -> str:
        r, e = self.r, self.expr
        choice = r.randint(0, 8)
        if choice == 0:
            return self.call("bool", depth) or self.comparison(depth)
        if choice <= 4:
            return self.comparison(depth)
        if choice <= 6:
            return f"({e('bool', depth)} {r.choice(['and', 'or'])} {e('bool', depth)})"
        if choice == 7:
            return f"(not {e('bool', depth)})"
        return self.either("bool", depth)

    # ------------------------------------------------------------ statements

    def body(self, count: int, nesting: int) -> None:
        start = len(self.lines)
        for _ in range(count):
            self.statement(nesting)
        if len(self.lines) == start:
            self.line("pass")

    def block(self, nesting: int) -> None:
        self.depth += 1
        known = dict(self.readable)
        self.body(self.r.randint(1, 3), nesting + 1)
        self.readable = known  # what was first set inside may be unset behind
        self.depth -= 1

    def assign(self) -> None:
        name = self.r.choice(list(self.variables))
        kind = self.variables[name]
        if kind == "weak":
            self.line(f"{name} {self.r.choice(['+=', '-='])} {self.r.randint(0, 3)}")
            return
        if kind == "ptr":
            self.line(f"{name} = {self.pointer(2)}")
            return
        if kind in ("s32", "f32", "u32", "s64") and self.r.random() < 0.35:
            op = self.r.choice(["+=", "-=", "*="] if kind != "f32" else ["+=", "-=", "*=", "/="])
            self.line(f"{name} {op} {self.expr(kind, 2)}")
            return
        self.line(f"{name} = {self.expr(kind, 3)}")

    def statement(self, nesting: int) -> None:
        r = self.r
        choice = r.randint(0, 20)
        if nesting == 0 and (choice == 20 or r.random() < 0.06):
            return self.warp()
        if choice <= 6 or nesting >= 3:
            return self.assign()
        if choice <= 10:
            self.line(f"if {self.expr('bool', 2)}:")
            self.block(nesting)
            if r.random() < 0.25:
                self.line(f"elif {self.expr('bool', 2)}:")
                self.block(nesting)
            if r.random() < 0.5:
                self.line("else:")
                self.block(nesting)
            return None
        if choice <= 13:
            return self.loop(nesting)
        if choice == 14 and self.loops:
            self.line(f"if {self.expr('bool', 1)}:")
            self.depth += 1
            self.line(r.choice(["break", "continue"]))
            self.depth -= 1
            return None
        if choice == 15:
            self.line(f"pto.store(mem + (lane * {WIDTH} + ({self.expr('s32', 2)}) % {WIDTH}), {self.expr('s32', 2)})")
            return None
        if choice == 16:
            name = r.choice([n for n, k in self.variables.items() if k == "s32"])
            self.line(f"{name} = pto.load(mem + lane * {WIDTH} + ({self.expr('s32', 1)}) % {WIDTH})")
            return None
        if choice == 17:
            self.line(f"pto.atomic_add(count + ({self.expr('s32', 1)}) % 8, {self.expr('s32', 1)})")
            return None
        if choice == 18:
            kind = r.choice(list(self.variables.values()))
            names = [n for n, k in self.variables.items() if k == kind]
            if kind == "ptr" and self.r.random() < 0.5:
                self.line(f"pto.store({r.choice(names)}, {self.expr('s32', 2)})")
                return None
            a, b = r.choice(names), r.choice(names)
            if a != b:
                self.line(f"{a}, {b} = {b}, {a}")
            return None
        if choice == 19 and nesting == 0 and r.random() < 0.3:
            self.line(f"if {self.expr('bool', 2)}:")
            self.depth += 1
            self.results()
            self.line("return")
            self.depth -= 1
            return None
        return self.assign()

    def warp(self) -> None:
        """Where all lanes that still run are together: something of the other lanes."""
        r = self.r
        kinds = {k: [n for n, kind in self.variables.items() if kind == k] for k in ("s32", "u32", "bool")}
        self.loop_names += 1
        if r.random() < 0.5:
            name = r.choice(kinds["s32"])
            shuffle = r.choice(["shfl_idx", "shfl_xor", "shfl_up", "shfl_down"])
            source = r.choice(kinds["s32"] + kinds["u32"])
            target = name if source in kinds["s32"] else source
            self.line(f"{target} = pto.{shuffle}({source}, {r.randint(0, 31)})")
        elif r.random() < 0.6:
            name = r.choice(kinds["s32"])
            self.line(f"{name} = pto.{r.choice(['reduce_add', 'reduce_max', 'reduce_xor'])}({self.expr('s32', 2)})")
        elif kinds["bool"] and r.random() < 0.7:
            self.line(f"{r.choice(kinds['bool'])} = pto.{r.choice(['vote_any', 'vote_all'])}({self.expr('bool', 2)})")
        elif kinds["u32"]:
            self.line(f"{r.choice(kinds['u32'])} = pto.vote_ballot({self.expr('bool', 2)})")

    def loop(self, nesting: int) -> None:
        r = self.r
        self.loop_names += 1
        index = f"i{self.loop_names}"
        choice = r.randint(0, 3)
        self.loops += 1
        known = dict(self.readable)
        if choice <= 1:
            bounds = r.choice([
                f"{r.randint(0, 4)}",
                f"({self.expr('s32', 1)}) % {r.randint(1, 5)}",
                f"{r.randint(-3, 3)}, {r.randint(-3, 6)}",
                f"lane % 3, {r.randint(2, 7)}, {r.randint(1, 3)}",
                f"({self.expr('s32', 1)}) % 6, {r.randint(-2, 1)}, -{r.randint(1, 2)}",
                f"0, 6, ({self.expr('s32', 1)}) % 3 + 1",
            ])  # fmt: skip
            self.line(f"for {index} in range({bounds}):")
            self.readable[index] = "s32"
            self.block(nesting)
            if r.random() < 0.2:
                self.line("else:")
                self.readable = dict(known)
                self.loops -= 1  # break and continue are no part of it
                self.block(nesting)
                self.loops += 1
        elif choice == 2:
            self.line(f"{index} = pto.s32(0)")
            self.line(f"while {index} < ({self.expr('s32', 1)}) % 5 and {self.expr('bool', 1)}:")
            self.depth += 1
            self.line(f"{index} += 1")
            self.readable[index] = "s32"
            self.body(r.randint(1, 3), nesting + 1)
            self.depth -= 1
            known[index] = "s32"
        else:
            self.line(f"for {index} in pto.static_range({r.randint(1, 3)}):")
            self.block(nesting)
        self.readable = known
        self.loops -= 1

    def results(self) -> None:
        places = {"f32": "of", "u32": "ou", "s64": "ol", "f16": "of", "u64": "ol"}
        for i, (name, kind) in enumerate(self.variables.items()):
            value = f"pto.load({name})" if kind == "ptr" else name
            if kind in ("bool", "u64"):
                value = f"pto.{'s32' if kind == 'bool' else 's64'}({name})"
            self.line(f"pto.store({places.get(kind, 'oi')} + (lane * 8 + {i}), {value})")
