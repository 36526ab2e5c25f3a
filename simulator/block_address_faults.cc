// SPDX-License-Identifier: Apache-2.0
// Accesses that are looked up a lane at a time, and what is said of the first lane that has no
// business where it points.
#include "simulator/block_context.h"

#include <fmt/format.h>

#include <utility>

namespace pto::sim {

using isa::Outcome;
using isa::Space;

bool BlockContext::check_lanes(Space space, uint32_t access_bytes) {
  unsigned bad = lanes_;
  for_each_lane(active_, count_, [&](unsigned i) {
    pointers_[i] = addresses_[i] % access_bytes == 0
                       ? range_host(space, addresses_[i], access_bytes)
                       : nullptr;
    if (pointers_[i] == nullptr && bad == lanes_) {
      bad = i;
    }
  });
  if (bad == lanes_) {
    return true;
  }
  address_fault(space, bad, access_bytes);
  return false;
}

Outcome BlockContext::address_fault(Space space, unsigned lane, uint32_t access_bytes) {
  const uint64_t address = addresses_[lane];
  const bool is_inside = range_host(space, address, access_bytes) != nullptr;
  FaultKind kind = is_inside ? FaultKind::kMisaligned : FaultKind::kOutOfBounds;
  std::string where;
  if (space == Space::kHbm) {
    where = hbm_.describe(address, access_bytes);
    if (!is_inside && hbm_.find_freed(address) != nullptr) {
      kind = FaultKind::kFreed;
    }
  } else if (space == Space::kL1) {
    const uint32_t held = state_.scratchpad.used_bytes();
    where = fmt::format(
        "l1[{}]: the block holds {} bytes of scratchpad", static_cast<int64_t>(address), held);
    if (held == 0) {
      where += " (no .shared, .tile or alloc_local)";
    }
  } else {
    where = fmt::format("const[{}]: the program has {} bytes of constants",
                        static_cast<int64_t>(address),
                        image_.program->object().const_data.size());
  }
  const bool writes = insn_->insn.desc->has(isa::kWritesMem);
  std::string message;
  if (kind == FaultKind::kMisaligned) {
    message = fmt::format("{} of {} bytes at {} address {:#x}: expected a multiple of {}",
                          writes ? "write" : "read",
                          access_bytes,
                          isa::name(space),
                          address,
                          access_bytes);
  } else {
    message =
        fmt::format("{} of {} bytes at {} {}, {}",
                    writes ? "write" : "read",
                    access_bytes,
                    isa::name(space),
                    space == Space::kHbm ? fmt::format("address {:#x}", address)
                                         : fmt::format("offset {}", static_cast<int64_t>(address)),
                    kind == FaultKind::kFreed ? "in freed memory" : "outside every allocation");
  }
  Fault fault = make_fault(kind, std::move(message));
  const unsigned w = lane / isa::kWarpLanes;
  fault.warp = first_ + w;
  fault.lane = static_cast<int>(lane % isa::kWarpLanes);
  fault.lane_mask = 0;
  for_each_lane(active_ + w, 1, [&](unsigned i) {
    if (pointers_[w * isa::kWarpLanes + i] == nullptr) {
      fault.lane_mask |= 1u << i;
    }
  });
  fault.has_address = true;
  fault.space = space;
  fault.address = address;
  fault.size_bytes = access_bytes;
  fault.allocation = std::move(where);
  return raise(std::move(fault));
}

} // namespace pto::sim
