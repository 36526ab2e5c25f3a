// SPDX-License-Identifier: Apache-2.0
// Registers that still lie where they were loaded from.
//
// A load of neighbouring elements by every lane of a span moves nothing: the register is a *view*
// of the memory until it is overwritten, and insns read its lanes there (ExecContext::value32).
// Whatever might change that memory first copies the lanes to the register's storage (settles it):
// a store those views that lie in the bytes it may write, every other insn that is not known to
// leave memory alone (ProgramInsn::keeps_memory) all of them. Nobody else writes while a span runs.
// As with linear registers (block_linear.cc) nobody outside of a span sees a view.
#include "simulator/block_context.h"
#include "simulator/each_bit.h"

#include <algorithm>

namespace pto::sim {

namespace {

bool overlap(const void* view, uint64_t view_bytes, const uint8_t* begin, uint64_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(view);
  const auto from = reinterpret_cast<uintptr_t>(begin);
  return at < from + bytes && from < at + view_bytes;
}

} // namespace

void BlockContext::keep_view() {
  const isa::Operand& dst = insn_->insn.operand(0);
  if (dst.kind == isa::OperandKind::kReg64) {
    views64_[dst.index] = reinterpret_cast<const uint64_t*>(loaded_view_);
    viewed64_ |= uint64_t{1} << dst.index;
  } else {
    views32_[dst.index] = reinterpret_cast<const uint32_t*>(loaded_view_);
    viewed32_[dst.index / 64] |= uint64_t{1} << (dst.index % 64);
  }
  loaded_view_ = nullptr;
}

void BlockContext::settle_views(const ResourceSet& set) {
  for (unsigned half = 0; half < 2; ++half) {
    for_each_bit(set.reg32[half] & viewed32_[half], half * 64, [&](unsigned i) {
      std::copy_n(views32_[i], lanes_, reg32(i));
    });
  }
  for_each_bit(
      set.reg64 & viewed64_, 0, [&](unsigned i) { std::copy_n(views64_[i], lanes_, reg64(i)); });
  drop_views(set);
}

void BlockContext::settle_views_in(const uint8_t* begin, uint64_t bytes, const ResourceSet& kept) {
  ResourceSet touched;
  for (unsigned half = 0; half < 2; ++half) {
    for_each_bit(viewed32_[half] & ~kept.reg32[half], half * 64, [&](unsigned i) {
      if (overlap(views32_[i], lanes_ * sizeof(uint32_t), begin, bytes)) {
        touched.add_reg32(i);
      }
    });
  }
  for_each_bit(viewed64_ & ~kept.reg64, 0, [&](unsigned i) {
    if (overlap(views64_[i], lanes_ * sizeof(uint64_t), begin, bytes)) {
      touched.add_reg64(i);
    }
  });
  if (!touched.empty()) {
    settle_views(touched);
  }
}

void BlockContext::settle_views_under(const Lanes& lanes,
                                      isa::Space space,
                                      uint32_t element_bytes) {
  if (lanes.is_contiguous) {
    settle_views_in(lanes.host, uint64_t{lanes_} * element_bytes);
  } else if (space == isa::Space::kL1) {
    settle_views_in(state_.scratchpad.data(), state_.scratchpad.data_bytes());
  } else if (!lanes.is_scattered) {
    settle_views_in(last_allocation_->host, last_allocation_->size_bytes);
  } else {
    settle_views(all_registers_);
  }
}

} // namespace pto::sim
