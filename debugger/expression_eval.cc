// SPDX-License-Identifier: Apache-2.0
// Tree -> value.
#include "debugger/expression_tree.h"
#include "debugger/session.h"
#include "simulator/block.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::dbg {

namespace {

class Evaluator {
public:
  Evaluator(const std::vector<Node>& nodes, const EvalContext& context, std::string& error)
      : nodes_(nodes), context_(context), error_(error) {}

  bool eval(int index, Evaluated& out) {
    const Node& node = nodes_[static_cast<size_t>(index)];
    switch (node.kind) {
    case NodeKind::kConstant:
      out.value = node.constant;
      return true;
    case NodeKind::kRegister:
      return read_register(node.reg, context_.warp * isa::kWarpLanes + context_.lane, out);
    case NodeKind::kSpecial:
      return needs_block() && special(static_cast<isa::Special>(node.number), out);
    case NodeKind::kVariable:
      return variable(static_cast<Variable>(node.number), out);
    case NodeKind::kHistory:
      return history(node, out);
    case NodeKind::kParam:
      return param(node.number, out);
    case NodeKind::kSymbol:
      return symbol(node.number, out);
    case NodeKind::kAddress:
      return address(node, out);
    case NodeKind::kIndex:
      return element(node, out);
    case NodeKind::kDeref:
      return deref(node, out);
    case NodeKind::kAddressOf:
      return address_of(node, out);
    case NodeKind::kCast:
      return cast(node, out);
    case NodeKind::kCount:
      return count(node, out);
    case NodeKind::kLanes:
      return lanes(node, out);
    case NodeKind::kUnary:
      return unary(node, out);
    case NodeKind::kBinary:
      return binary(node, out);
    case NodeKind::kChoice: {
      Evaluated condition;
      return eval(node.left, condition) &&
             eval(condition.value.is_true() ? node.right : node.third, out);
    }
    }
    return false;
  }

private:
  bool fail(std::string message) {
    error_ = std::move(message);
    return false;
  }

  bool needs_block() {
    if (context_.block != nullptr) {
      return true;
    }
    const uint64_t block = context_.session->focus().block;
    return fail(fmt::format("block {} has {}, so it has no registers; focus on a resident block "
                            "(info blocks)",
                            block,
                            context_.session->phase(block) == BlockPhase::kWaiting ? "not started"
                                                                                   : "ended"));
  }

  [[nodiscard]] const sim::Program& program() const { return context_.session->program(); }
  [[nodiscard]] uint64_t block_index() const {
    return context_.block != nullptr ? context_.block->index() : context_.session->focus().block;
  }
  [[nodiscard]] uint32_t pc() const { return context_.block->warp(context_.warp).pc; }

  // ------------------------------------------------ leaves
  bool read_register(RegisterRef reg, uint32_t lane, Evaluated& out) {
    if (!needs_block()) {
      return false;
    }
    out.value = register_value(reg, lane, register_type(program(), reg, pc()));
    if (reg.file == RegisterFile::kTile) {
      if (!context_.block->tiles()[reg.index].is_live) {
        return fail(fmt::format("t{} holds no tile", reg.index));
      }
      out.is_pointer = true;
      out.space = isa::Space::kL1;
      return true;
    }
    out.place.kind = Place::Kind::kRegister;
    out.place.type = out.value.type;
    out.place.reg = reg;
    out.place.first_lane = lane;
    return true;
  }

  [[nodiscard]] Value register_value(RegisterRef reg, uint32_t lane, isa::Type type) const {
    Value value;
    value.type = type;
    value.bits = register_bits(*context_.block, reg, lane);
    return value;
  }

  bool special(isa::Special special, Evaluated& out) {
    const uint32_t lane = context_.warp * isa::kWarpLanes + context_.lane;
    out.value.bits = context_.block->special_value(special, lane);
    out.value.type = isa::info(special).bits == 64 ? isa::Type::kU64 : isa::Type::kU32;
    return true;
  }

  bool variable(Variable which, Evaluated& out) {
    uint64_t bits = 0;
    switch (which) {
    case Variable::kPc:
      if (!needs_block()) {
        return false;
      }
      bits = pc();
      break;
    case Variable::kLane:
      bits = context_.lane;
      break;
    case Variable::kWarp:
      bits = context_.warp;
      break;
    case Variable::kBlock:
      bits = block_index();
      break;
    case Variable::kCore:
      if (!needs_block()) {
        return false;
      }
      bits = context_.block->core();
      break;
    case Variable::kCycle:
      bits = context_.session->cycle();
      break;
    case Variable::kTid:
      bits = context_.warp * isa::kWarpLanes + context_.lane;
      break;
    case Variable::kPosition:
      bits = context_.session->position();
      break;
    }
    out.value = {isa::Type::kS64, false, bits, 0};
    return true;
  }

  bool history(const Node& node, Evaluated& out) {
    const size_t size = context_.history.size();
    const bool is_there =
        node.is_from_end ? node.number < size : node.number != 0 && node.number <= size;
    const size_t index = node.is_from_end ? size - node.number : node.number;
    if (!is_there) {
      return fail(
          size == 0 ? std::string("nothing has been printed yet")
                    : fmt::format("there is no value ${}; there are $1 to ${}", node.number, size));
    }
    out = context_.history[index - 1];
    return true;
  }

  bool param(uint32_t index, Evaluated& out) {
    const isa::Param& param = program().kernel().params[index];
    out.value = {param.is_pointer ? isa::Type::kU64 : param.type,
                 false,
                 context_.session->launch().image().params[index],
                 0};
    out.is_pointer = param.is_pointer;
    out.pointee = param.element;
    return true;
  }

  bool symbol(uint32_t index, Evaluated& out) {
    const isa::Symbol& symbol = program().object().symbols[index];
    out.place.kind = Place::Kind::kMemory;
    out.place.type = symbol.type;
    out.place.space = symbol.kind == isa::SymbolKind::kConst ? isa::Space::kConst : isa::Space::kL1;
    out.place.address = symbol.offset;
    out.rows = symbol.rows;
    out.cols = symbol.cols;
    const uint64_t total = uint64_t{symbol.rows} * symbol.cols;
    return total > 1 ? load_array(total, out) : load(out);
  }

  // ------------------------------------------------ memory
  bool load(Evaluated& out) {
    const unsigned size = std::max(1u, isa::size_bytes(out.place.type));
    out.value = {};
    out.value.type = out.place.type;
    return context_.session->read_memory(out.place.space,
                                         block_index(),
                                         out.place.address,
                                         {reinterpret_cast<uint8_t*>(&out.value.bits), size},
                                         error_);
  }

  bool load_array(uint64_t count, Evaluated& out) {
    const unsigned size = std::max(1u, isa::size_bytes(out.place.type));
    out.is_array = true;
    out.is_truncated = count > Evaluated::kMaxElements;
    count = std::min<uint64_t>(count, Evaluated::kMaxElements);
    std::vector<uint8_t> bytes(count * size);
    if (!context_.session->read_memory(
            out.place.space, block_index(), out.place.address, bytes, error_)) {
      return false;
    }
    out.array.clear();
    for (uint64_t i = 0; i < count; ++i) {
      out.array.push_back(Value::of_bytes(out.place.type, {bytes.data() + i * size, size}));
    }
    out.value = count != 0 ? out.array[0] : Value{};
    return true;
  }

  static isa::Type pointee_of(const Evaluated& value) {
    return value.pointee == isa::Type::kNone ? isa::Type::kF32 : value.pointee;
  }

  bool address(const Node& node, Evaluated& out) {
    Evaluated inner;
    if (!eval(node.left, inner)) {
      return false;
    }
    if (inner.place.kind == Place::Kind::kMemory && inner.place.space == node.space) {
      out = std::move(inner); // hbm:a[3] is a[3]
      return true;
    }
    out.place.kind = Place::Kind::kMemory;
    out.place.space = node.space;
    out.place.type = pointee_of(inner);
    int64_t at = 0;
    if (!whole(inner, "an address", at)) {
      return false;
    }
    out.place.address = static_cast<uint64_t>(at);
    return load(out);
  }

  /// A float is cut nowhere: an index of 1.5 is a mistake.
  bool whole(const Evaluated& from, std::string_view what, int64_t& to) {
    to = from.value.as_integer();
    return (!from.value.is_float() || from.value.as_real() == static_cast<double>(to)) ||
           fail(fmt::format("{} is {}; expected a whole number", what, to_string(from.value)));
  }

  bool element(const Node& node, Evaluated& out) {
    Evaluated base;
    Evaluated index;
    int64_t i = 0;
    if (!eval(node.left, base) || !eval(node.right, index) || !whole(index, "an index", i)) {
      return false;
    }
    if (base.is_lanes) {
      if (i < 0 || static_cast<uint64_t>(i) >= base.array.size()) {
        return fail(fmt::format("there is no element {}: there are {}", i, base.array.size()));
      }
      out.value = base.array[static_cast<size_t>(i)];
      return true;
    }
    out.place.kind = Place::Kind::kMemory;
    if (base.is_pointer) {
      out.place.space = base.space;
      out.place.type = pointee_of(base);
      out.place.address = static_cast<uint64_t>(base.value.as_integer()) +
                          static_cast<uint64_t>(i) * isa::size_bytes(out.place.type);
      return load(out);
    }
    if (base.place.kind != Place::Kind::kMemory) {
      return fail("only a pointer, an array or a symbol can be indexed");
    }
    const bool is_row = base.rows > 1 && base.cols > 1;
    const uint64_t extent = is_row                      ? base.rows
                            : base.rows * base.cols > 1 ? base.rows * base.cols
                            : base.is_array             ? base.array.size()
                                                        : 0;
    if (extent != 0 && (i < 0 || static_cast<uint64_t>(i) >= extent)) {
      return fail(
          fmt::format("there is no element {}: there are {} (0 to {})", i, extent, extent - 1));
    }
    out.place = base.place;
    const unsigned size = std::max(1u, isa::size_bytes(base.place.type));
    out.place.address += static_cast<uint64_t>(i) * size * (is_row ? base.cols : 1);
    if (is_row) {
      out.rows = 1;
      out.cols = base.cols;
      return load_array(base.cols, out);
    }
    return load(out);
  }

  bool deref(const Node& node, Evaluated& out) {
    Evaluated pointer;
    if (!eval(node.left, pointer)) {
      return false;
    }
    if (!pointer.is_pointer) {
      return fail("only a pointer can be dereferenced; write hbm:ADDRESS or l1:ADDRESS for a "
                  "number");
    }
    out.place.kind = Place::Kind::kMemory;
    out.place.space = pointer.space;
    out.place.type = pointee_of(pointer);
    out.place.address = static_cast<uint64_t>(pointer.value.as_integer());
    return load(out);
  }

  bool address_of(const Node& node, Evaluated& out) {
    Evaluated target;
    if (!eval(node.left, target)) {
      return false;
    }
    if (target.place.kind != Place::Kind::kMemory) {
      return fail("only memory has an address");
    }
    out.value = {isa::Type::kU64, false, target.place.address, 0};
    out.is_pointer = true;
    out.space = target.place.space;
    out.pointee = target.place.type;
    return true;
  }

  // ------------------------------------------------ types and ranges
  bool cast(const Node& node, Evaluated& out) {
    Evaluated inner;
    if (!eval(node.left, inner)) {
      return false;
    }
    if (node.is_pointer) {
      out = inner;
      out.is_pointer = true;
      out.pointee = node.type;
      out.value.type = isa::Type::kU64;
      out.place = {};
      return true;
    }
    if (inner.place.kind == Place::Kind::kMemory && node.type != isa::Type::kPred) {
      const unsigned old_size = std::max(1u, isa::size_bytes(inner.place.type));
      const unsigned size = std::max(1u, isa::size_bytes(node.type));
      out.place = inner.place;
      out.place.type = node.type;
      return inner.is_array ? load_array(inner.array.size() * old_size / size, out) : load(out);
    }
    if (inner.place.kind == Place::Kind::kRegister) { // the same bits
      out = inner;
      out.value.type = node.type;
      out.place.type = node.type;
      for (Value& value : out.array) {
        value.type = node.type;
      }
      return true;
    }
    out.value = convert(inner.value, node.type);
    return true;
  }

  bool count(const Node& node, Evaluated& out) {
    Evaluated first;
    Evaluated number;
    int64_t n = 0;
    if (!eval(node.left, first) || !eval(node.right, number) ||
        !whole(number, "the number of elements", n)) {
      return false;
    }
    if (first.place.kind != Place::Kind::kMemory) {
      return fail("'@' with a number needs memory on its left: a[0]@8, l1:0@16; lanes of a "
                  "register are $r0@*, $r0@0-7");
    }
    if (n < 0) {
      return fail(fmt::format("{} elements are none; expected 0 or more", n));
    }
    out.place = first.place;
    return load_array(static_cast<uint64_t>(n), out);
  }

  bool lanes(const Node& node, Evaluated& out) {
    if (!needs_block()) {
      return false;
    }
    const uint32_t total = context_.block->image().lanes;
    const uint32_t first = node.has_all_lanes ? 0 : node.first_lane;
    const uint32_t last = node.has_all_lanes ? total - 1 : node.last_lane;
    if (last >= total) {
      return fail(
          fmt::format("there is no lane {}: the block has {} (0 to {})", last, total, total - 1));
    }
    const Node& inner = nodes_[static_cast<size_t>(node.left)];
    const bool is_register =
        inner.kind == NodeKind::kRegister && inner.reg.file != RegisterFile::kTile;
    const EvalContext kept = context_;
    out.is_array = first != last || node.has_all_lanes;
    out.is_lanes = true;
    out.first_lane = first;
    const isa::Type type =
        is_register ? register_type(program(), inner.reg, pc()) : isa::Type::kNone;
    for (uint32_t lane = first; lane <= last; ++lane) {
      if (is_register) {
        out.array.push_back(register_value(inner.reg, lane, type));
        continue;
      }
      context_.warp = lane / isa::kWarpLanes;
      context_.lane = lane % isa::kWarpLanes;
      Evaluated one;
      if (!eval(node.left, one)) {
        return false;
      }
      out.array.push_back(one.value);
    }
    context_ = kept;
    out.value = out.array[0];
    if (is_register) {
      out.place.kind = Place::Kind::kRegister;
      out.place.type = type;
      out.place.reg = inner.reg;
      out.place.first_lane = first;
    }
    return true;
  }

  // ------------------------------------------------ operators
  bool unary(const Node& node, Evaluated& out) {
    Evaluated inner;
    if (!eval(node.left, inner)) {
      return false;
    }
    const Value& value = inner.value;
    switch (node.op) {
    case Op::kNot:
      out.value = Value::integer(value.is_true() ? 0 : 1);
      return true;
    case Op::kComplement:
      if (value.is_float()) {
        return fail("'~' needs an integer");
      }
      out.value = Value::integer(~value.as_integer());
      return true;
    case Op::kNegate:
      out.value = value.is_float() ? Value::of_real(-value.as_real())
                                   : Value::integer(static_cast<int64_t>(
                                         uint64_t{0} - static_cast<uint64_t>(value.as_integer())));
      return true;
    default:
      out.value =
          value.is_float() ? Value::of_real(value.as_real()) : Value::integer(value.as_integer());
      return true;
    }
  }

  bool binary(const Node& node, Evaluated& out) {
    Evaluated left;
    if (!eval(node.left, left)) {
      return false;
    }
    if (node.op == Op::kLogicalAnd || node.op == Op::kLogicalOr) {
      const bool is_decided = left.value.is_true() == (node.op == Op::kLogicalOr);
      Evaluated right;
      if (!is_decided && !eval(node.right, right)) {
        return false;
      }
      out.value =
          Value::integer((is_decided ? left.value.is_true() : right.value.is_true()) ? 1 : 0);
      return true;
    }
    Evaluated right;
    if (!eval(node.right, right)) {
      return false;
    }
    const bool keeps_pointer =
        (node.op == Op::kAdd || node.op == Op::kSubtract) && left.is_pointer && !right.is_pointer;
    const bool is_good = compute(node.op, left.value, right.value, out.value, error_);
    if (is_good && (keeps_pointer || (node.op == Op::kAdd && right.is_pointer))) {
      const Evaluated& pointer = keeps_pointer ? left : right;
      out.is_pointer = true;
      out.space = pointer.space;
      out.pointee = pointer.pointee;
      out.value.type = isa::Type::kU64;
    }
    return is_good;
  }

  const std::vector<Node>& nodes_;
  EvalContext context_;
  std::string& error_;
};

} // namespace

std::optional<Evaluated> Expression::evaluate(const EvalContext& context,
                                              std::string& error) const {
  Evaluated result;
  Evaluator evaluator(tree_->nodes, context, error);
  if (!evaluator.eval(tree_->root, result)) {
    return std::nullopt;
  }
  return result;
}

} // namespace pto::dbg
