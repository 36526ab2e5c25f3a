# SPDX-License-Identifier: Apache-2.0
"""Comparisons, truth values, conditions that branch, conditional expressions."""
from __future__ import annotations

import ast
import operator
from typing import Any

from pypto import types
from pypto.compiler.arithmetic import Arithmetic
from pypto.compiler.builder import bounds, fits, is_scalar, is_truth
from pypto.compiler.ir import Block, Conflict, Const, Host, Value
from pypto.compiler.operators import COMPARISONS, SWAPPED, SYMBOLS
from pypto.types import PRED, DType


class Conditions(Arithmetic):
    def invert(self, value: Any) -> Any:
        if isinstance(value, Const):
            return Const(not value.value, PRED)
        return Value(PRED, value.op, negated=not value.negated)

    def logic(self, name: str, a: Any, b: Any) -> Any:
        """and, or, xor of truth values."""
        if isinstance(a, Const):
            a, b = b, a
        if isinstance(b, Const):
            if isinstance(a, Const):
                fn = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[name]
                return Const(bool(fn(bool(a.value), bool(b.value))), PRED)
            if name == "xor":
                return self.invert(a) if b.value else a
            if bool(b.value) == (name == "and"):
                return a
            return Const(name == "or", PRED)
        if a.op is b.op:
            if a.negated == b.negated:
                return Const(False, PRED) if name == "xor" else a
            return Const(name != "and", PRED)
        (reg,) = self.pure(f"{name}.pred", "p", [a.arg, b.arg], (a, b))
        return Value(PRED, reg)

    def compare(self, name: str, a: Any, b: Any) -> Any:
        """A comparison; folded where constants or ranges decide it."""
        if isinstance(a, Const) and isinstance(b, Const):
            fn = next(f for n, f in COMPARISONS.values() if n == name)
            return Const(bool(fn(a.value, b.value)), PRED)
        if is_truth(a) and is_truth(b):
            if name == "ne":
                return self.logic("xor", a, b)
            if name == "eq":
                return self.invert(self.logic("xor", a, b))
        a, b = self.numeric(a), self.numeric(b)
        decided = self._decide(name, a, b)
        if decided is not None:
            return Const(decided, PRED)
        symbol = next(SYMBOLS[o] for o, (n, _) in COMPARISONS.items() if n == name)
        type_ = self.common_operand_type(a, b, symbol)
        weak = next((v for v in (a, b) if isinstance(v, Const) and v.type is None), None)
        if weak is not None and type_.is_int and not fits(weak.value, type_):
            raise self.error(
                f"a {type_.name} is compared with {weak.value}, which it cannot be: it holds "
                f"{type_.low} to {type_.high}"
            )
        if isinstance(a, Const):
            a, b, name = b, a, SWAPPED[name]
        a, b = self.to_type(a, type_), self.to_type(b, type_)
        if not (type_.is_int or type_.is_float):
            raise self.error(f"{type_.name} values have no order")
        args = [self.arg(a, type_), self.arg(b, type_)]
        (reg,) = self.pure(f"cmp.{name}.{type_.name}", "p", args, (a, b))
        return Value(PRED, reg)

    def _decide(self, name: str, a: Any, b: Any) -> bool | None:
        for value in (a, b):
            if isinstance(value, Const):
                if not isinstance(value.value, int):
                    return None
            elif not value.type.is_int:
                return None
        if isinstance(a, Value) and isinstance(b, Value) and a.op is b.op and a.type is b.type:
            return name in ("eq", "le", "ge")
        at, bt = a.type, b.type
        if at is not None and bt is not None and types.promote(at, bt) is None:
            return None  # reported by the caller
        weak = next((v for v in (a, b) if isinstance(v, Const) and v.type is None), None)
        if weak is not None:
            other = types.widened(at or bt)
            if not fits(weak.value, other):
                return None
        (al, ah), (bl, bh) = bounds(a), bounds(b)
        if ah < bl:
            return name in ("lt", "le", "ne")
        if al > bh:
            return name in ("gt", "ge", "ne")
        if ah <= bl and name in ("le", "gt"):
            return name == "le"
        if al >= bh and name in ("ge", "lt"):
            return name == "ge"
        return None

    def eval_Compare(self, node: ast.Compare) -> Any:
        result: Any = Const(True, PRED)
        left = self.evaluate(node.left)
        for op, right_node in zip(node.ops, node.comparators):
            right = self.evaluate(right_node)
            result = self.logic("and", result, self._compare_two(op, left, right))
            left = right
        return result

    def _compare_two(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        symbol = SYMBOLS[type(op)]
        if isinstance(left, Host) and isinstance(right, Host):
            if isinstance(op, (ast.Eq, ast.Is)):
                return Const(left.value == right.value, PRED)
            if isinstance(op, (ast.NotEq, ast.IsNot)):
                return Const(left.value != right.value, PRED)
        if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, Host) and right.value is None:
            return Const(isinstance(op, ast.IsNot), PRED)
        if type(op) not in COMPARISONS:
            raise self.error(f"`{symbol}` is not part of the kernel language", "use == or !=")
        left = self.need_scalar(left, f"a number on the left of {symbol}")
        right = self.need_scalar(right, f"a number on the right of {symbol}")
        return self.compare(COMPARISONS[type(op)][0], left, right)

    def eval_BoolOp(self, node: ast.BoolOp) -> Any:
        """and/or as a truth value; the right side is computed by those lanes only that need it where
        that could be noticed."""
        if all(self.is_pure(value) for value in node.values[1:]):
            name = "and" if isinstance(node.op, ast.And) else "or"
            result: Any = Const(name == "and", PRED)
            for value in node.values:
                result = self.logic(name, result, self.truth(self.scalar(value, "a condition")))
                if isinstance(result, Const) and result.value == (name == "or"):
                    break
            return result
        yes, no, join = Block("true"), Block("false"), Block("bool")
        outer = self.scope
        self.condition(node, yes, no)
        for block, truth in ((yes, True), (no, False)):
            if self.place(block, outer):
                self.env = {**self.env, "bool?": Const(truth, PRED)}
                self.jump(join)
        self.place(join, outer)
        return self.env.pop("bool?")

    def condition(self, node: ast.expr, when: Block, otherwise: Block) -> None:
        """Branches on an expression; and, or, not become branches of their own where the right side
        may fault or has effects."""
        saved, self.node = self.node, node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.condition(node.operand, otherwise, when)
        elif isinstance(node, ast.BoolOp) and not all(map(self.is_pure, node.values[1:])):
            outer = self.scope
            for value in node.values[:-1]:
                more = Block("more")
                if isinstance(node.op, ast.And):
                    self.condition(value, more, otherwise)
                else:
                    self.condition(value, when, more)
                if not self.place(more, outer):
                    break
                outer = self.scope
            else:
                self.condition(node.values[-1], when, otherwise)
        else:
            self.branch(self.truth(self.scalar(node, "a condition")), when, otherwise)
        self.node = saved

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        if self.is_pure(node.body) and self.is_pure(node.orelse):
            test = self.scalar(node.test, "a condition")
            condition = self.truth(test)
            if isinstance(condition, Const):
                return self.evaluate(node.body if condition.value else node.orelse)
            a, b = self.evaluate(node.body), self.evaluate(node.orelse)
            if is_scalar(a) and is_scalar(b):
                return self.choose(condition, a, b)
        yes, no, join = Block("then"), Block("else"), Block("value")
        outer = self.scope
        self.condition(node.test, yes, no)
        arms = []
        for block, arm in ((yes, node.body), (no, node.orelse)):
            if self.place(block, outer):
                arms.append((self.evaluate(arm), self.block, self.env, self.scope))
        if not arms:
            raise self.error("no lane comes here")
        entities = [arm[0] for arm in arms]
        common = None
        if len(arms) == 2 and all(map(is_scalar, entities)):
            common = self._arm_type(entities[0], entities[1])
        for entity, block, env, scope in arms:
            self.block, self.env, self.scope = block, env, scope
            if common is not None:
                entity = self.to_type(entity, common)
            self.env = {**self.env, "if?": entity}
            self.jump(join)
        self.place(join, outer)
        result = self.env.pop("if?")
        if isinstance(result, Conflict):
            raise self.error(result.message.replace("if?", "the value"), "")
        return result

    def _arm_type(self, a: Any, b: Any) -> DType:
        if is_truth(a) and is_truth(b):
            return PRED
        return self.common_operand_type(self.numeric(a), self.numeric(b), "if-else")

    def choose(self, condition: Value, a: Any, b: Any) -> Any:
        """condition ? a : b of two scalars."""
        if is_truth(a) and is_truth(b):
            return self.logic(
                "or",
                self.logic("and", condition, a),
                self.logic("and", self.invert(condition), b),
            )
        a, b = self.numeric(a), self.numeric(b)
        type_ = self.common_operand_type(a, b, "if-else")
        a, b = self.to_type(a, type_), self.to_type(b, type_)
        if a is b or (isinstance(a, (Value, Const)) and a.same(b)):
            return a
        return self.select(condition, a, b, type_)

    def is_pure(self, node: ast.expr) -> bool:
        """True if computing the expression in lanes that do not need it cannot be noticed."""
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and not self.is_pure_call(part):
                return False
            if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.FloorDiv, ast.Mod)):
                if not isinstance(part.right, ast.Constant):
                    return False
        return True
