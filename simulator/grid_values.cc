// SPDX-License-Identifier: Apache-2.0
#include "simulator/grid_values.h"

#include "isa/insn_desc.h"
#include "isa/linear.h"

#include <algorithm>

namespace pto::sim {

namespace {

using isa::AffineRegion;
using isa::AffineSources;
using isa::AffineValue;
using isa::HalfSpace;
using isa::OperandKind;
using isa::Special;

/// One warp, in which a row's function may compare two numbers.
class OneWarp final : public isa::SpanLanes {
public:
  explicit OneWarp(const isa::Insn& insn) : insn_(insn) {
    active_ = &kAllLanes;
    all_active_ = true;
    preds_ = words_.data();
    stride_pred_ = 1;
  }

  /// Of numbers whose difference has the sign of `sign`, while the predicate among the sources is
  /// `other`. Nullopt: the row cannot tell.
  std::optional<bool> outcome(int sign, bool other) {
    words_.fill(other ? kAllLanes : 0);
    isa::LinearSources sources;
    sources.at[1] = isa::LinearValue::uniform(sign > 0 ? 1 : 0);
    sources.at[2] = isa::LinearValue::uniform(sign < 0 ? 1 : 0);
    isa::LinearValue unused;
    return insn_.desc->linear.of_span(*this, insn_, sources, unused)
               ? std::optional(words_[insn_.operands[0].index] != 0)
               : std::nullopt;
  }

private:
  static constexpr uint32_t kAllLanes = ~0u;
  const isa::Insn& insn_;
  std::array<uint32_t, isa::kPredCount> words_{};
};

/// Outcomes for a negative, no and a positive difference.
using Signs = std::array<bool, 3>;

std::optional<Signs> outcomes(OneWarp& warp, bool other) {
  Signs signs{};
  for (int sign = -1; sign <= 1; ++sign) {
    const std::optional<bool> holds = warp.outcome(sign, other);
    if (!holds) {
      return std::nullopt;
    }
    signs[static_cast<size_t>(sign + 1)] = *holds;
  }
  return signs;
}

/// Where the difference of two numbers has such a sign.
std::optional<GridCondition>
where(const Signs& signs, const AffineValue& difference, const AffineRegion& region) {
  HalfSpace half{difference.signed_steps(), 0};
  const std::optional<isa::Bounds> bounds = region.bounds(half.steps);
  if (!bounds) {
    return std::nullopt;
  }
  const auto base = static_cast<int64_t>(difference.base); // of 33 bits
  const Signs occurs = {bounds->lowest < -base,
                        bounds->lowest <= -base && bounds->highest >= -base,
                        bounds->highest > -base};
  std::optional<bool> same;
  bool differs = false;
  for (size_t i = 0; i < signs.size(); ++i) {
    if (occurs[i]) {
      differs = differs || (same && *same != signs[i]);
      same = signs[i];
    }
  }
  if (!differs) {
    return GridCondition::constant(same.value_or(false)); // no lane at all
  }
  if (signs[0] == signs[2]) {
    return std::nullopt;
  }
  half.most = signs[0] == signs[1] ? -base : -base - 1; // no difference counts as a negative one
  return GridCondition{{half}, !signs[0]};
}

std::optional<GridCondition> as_conjunction(const GridCondition& condition) {
  if (!condition.is_negated || condition.all_of.empty()) {
    return condition;
  }
  const auto other = condition.all_of.size() == 1 ? condition.all_of[0].complement() : std::nullopt;
  return other ? std::optional(GridCondition{{*other}, false}) : std::nullopt;
}

std::optional<GridCondition> both(const GridCondition& a, const GridCondition& b) {
  if (a.holds_nowhere() || b.holds_everywhere()) {
    return a;
  }
  if (b.holds_nowhere() || a.holds_everywhere()) {
    return b;
  }
  std::optional<GridCondition> all = as_conjunction(a);
  const std::optional<GridCondition> other = as_conjunction(b);
  if (!all || !other) {
    return std::nullopt;
  }
  all->all_of.insert(all->all_of.end(), other->all_of.begin(), other->all_of.end());
  return all;
}

std::optional<GridCondition> either(const GridCondition& a, const GridCondition& b) {
  const std::optional<GridCondition> neither = both(a.negation(), b.negation());
  return neither ? std::optional(neither->negation()) : std::nullopt;
}

/// One that goes up along an axis.
bool affine_special(const Dim3& block, Special special, AffineValue& value) {
  const std::optional<SpecialOfAxis> at = special_of_axis(special);
  if (!at) {
    return false;
  }
  value = {};
  uint64_t& per_block = value.steps[isa::kFirstBlockAxis + at->axis];
  if (at->group == Special::kCtaidX) {
    per_block = 1;
  } else {
    value.steps[at->axis] = 1;
    per_block = at->group == Special::kGidX ? along(block, at->axis) : 0;
  }
  return true;
}

} // namespace

void GridCondition::cut(AffineRegion& region) const {
  if (const std::optional<GridCondition> plain = as_conjunction(*this)) {
    for (const HalfSpace& half : plain->all_of) {
      region.cut(half);
    }
  }
}

GridValues::GridValues(const LaunchImage& image) : image_(&image) {
  for (unsigned i = 0; i < isa::kReg32Count; ++i) {
    known_.add_reg32(i); // zero
  }
  for (unsigned i = 0; i < isa::kReg64Count; ++i) {
    known_.add_reg64(i);
  }
  preds_.fill(GridCondition::constant(false));
}

void GridValues::forget(const ResourceSet& set) {
  known_.reg32[0] &= ~set.reg32[0];
  known_.reg32[1] &= ~set.reg32[1];
  known_.reg64 &= ~set.reg64;
  for (unsigned i = 0; i < isa::kPredCount; ++i) {
    if (((set.preds >> i) & 1) != 0) {
      preds_[i].reset();
    }
  }
}

std::optional<GridCondition> GridValues::condition(isa::Guard guard) const {
  const std::optional<GridCondition>& holds = preds_[guard.pred];
  return holds && guard.negated ? holds->negation() : holds;
}

void GridValues::follow(const ProgramInsn& decoded, const AffineRegion& region) {
  const isa::Insn& insn = decoded.insn;
  const isa::LinearFns& linear = insn.desc->linear;
  AffineSources sources;
  sources.region = &region;
  const isa::Operand dst = insn.operands[0];
  AffineValue result;
  std::optional<GridCondition> holds;
  bool is_value = false;
  if (linear.of_span != nullptr && sources_of(decoded, sources)) {
    if (dst.kind == OperandKind::kPred) {
      holds = compare(decoded, sources);
    } else if (linear.of_grid != nullptr) {
      OneWarp warp(insn);
      is_value = linear.of_grid(warp, insn, sources, result);
    }
  }
  forget(decoded.writes);
  if (dst.kind == OperandKind::kPred) {
    preds_[dst.index] = std::move(holds);
  } else if (is_value && dst.kind == OperandKind::kReg32) {
    at32_[dst.index] = result.low_half();
    known_.add_reg32(dst.index);
  } else if (is_value && dst.kind == OperandKind::kReg64) {
    at64_[dst.index] = result;
    known_.add_reg64(dst.index);
  }
}

bool GridValues::sources_of(const ProgramInsn& decoded, AffineSources& sources) const {
  const isa::Insn& insn = decoded.insn;
  const auto special = [&](Special which, AffineValue& value) {
    return affine_special(image_->block, which, value);
  };
  const size_t end = std::min<size_t>(insn.operand_count, sources.at.size());
  for (size_t i = 1; i < end; ++i) {
    if (!source_value(insn.operands[i], *image_, registers(), special, sources.at[i])) {
      return false;
    }
  }
  return decoded.reads.is_within(known_);
}

std::optional<GridCondition> GridValues::compare(const ProgramInsn& decoded,
                                                 const AffineSources& sources) const {
  const isa::Insn& insn = decoded.insn;
  OneWarp warp(insn);
  const std::optional<Signs> without = outcomes(warp, false);
  const std::optional<Signs> with = outcomes(warp, true);
  const bool is_signed = isa::is_signed(insn.type);
  const auto a = sources.widened(1, is_signed);
  const auto b = sources.widened(2, is_signed);
  if (!without || !with || !a || !b) {
    return std::nullopt;
  }
  const auto place = [&](const Signs& signs) { return where(signs, *a - *b, *sources.region); };
  if (*without == *with) { // no other predicate counts
    return place(*with);
  }
  const isa::Operand other = insn.operand(3);
  const std::optional<GridCondition>& holds = preds_[other.index];
  const auto if_clear = place(*without);
  const auto if_set = place(*with);
  if (!holds || !if_clear || !if_set) {
    return std::nullopt;
  }
  if (if_set->holds_nowhere()) {
    return both(holds->negation(), *if_clear);
  }
  if (if_clear->holds_nowhere()) {
    return both(*holds, *if_set);
  }
  if (if_set->holds_everywhere()) {
    return either(*holds, *if_clear);
  }
  return if_clear->holds_everywhere() ? either(holds->negation(), *if_set) : std::nullopt;
}

std::optional<AffineValue> GridValues::address(const isa::MemRef& mem,
                                               const AffineRegion& region) const {
  auto base = static_cast<uint64_t>(int64_t{mem.offset});
  if (mem.base == isa::BaseKind::kParam) {
    base += image_->params[mem.base_index];
  } else if (mem.base == isa::BaseKind::kSymbol) {
    base += image_->program->object().symbols[mem.base_index].offset;
  } else if (mem.base != isa::BaseKind::kReg) {
    return std::nullopt;
  }
  const auto widened = [&](const AffineValue& value, bool is_signed) {
    return region.widened(value, is_signed);
  };
  return lane_address(mem, base, false, registers(), widened);
}

} // namespace pto::sim
