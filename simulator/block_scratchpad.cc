// SPDX-License-Identifier: Apache-2.0
// Tiles, ranges of scratchpad and asynchronous copies: what block-scoped insns do.
#include "simulator/block_context.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace pto::sim {

using isa::Outcome;
using isa::Space;

namespace {

/// Rows of tiles are short: a call for each would take longer than the bytes. The sides are apart.
PTO_HOST_LOOP void copy_rows(uint8_t* __restrict to,
                             int64_t to_stride,
                             const uint8_t* __restrict from,
                             int64_t from_stride,
                             const isa::CopyShape& shape) {
  constexpr uint64_t kShortBytes = 1024;
  constexpr uint64_t kPieceBytes = 64;
  const uint64_t bytes = shape.row_bytes;
  for (uint32_t row = 0; row < shape.rows; ++row, to += to_stride, from += from_stride) {
    if (bytes > kShortBytes || bytes < kPieceBytes) {
      std::memcpy(to, from, bytes);
      continue;
    }
    // The last piece ends with the row and may repeat bytes of the one before.
    for (uint64_t at = 0; at < bytes - kPieceBytes; at += kPieceBytes) {
      std::memcpy(to + at, from + at, kPieceBytes);
    }
    std::memcpy(to + bytes - kPieceBytes, from + bytes - kPieceBytes, kPieceBytes);
  }
}

} // namespace

uint64_t BlockContext::uniform_value(const isa::Operand& operand, isa::Type type) {
  return run_.source_value(operand, type, first_ * isa::kWarpLanes + lowest_lane());
}

/// Offset of a tile, symbol or l1[...] operand and how far it may reach; `ok` false after a fault.
uint64_t BlockContext::l1_offset(const isa::Operand& operand, uint64_t& limit, bool& ok) {
  ok = true;
  limit = UINT64_MAX;
  if (operand.kind == isa::OperandKind::kSymbol) {
    const isa::Symbol& symbol = image_.program->object().symbols[operand.index];
    limit = symbol.size_bytes;
    return symbol.offset;
  }
  if (operand.kind == isa::OperandKind::kTile) {
    const TileState& tile = state_.tiles[operand.index];
    if (!tile.is_live) {
      ok = false;
      raise(make_fault(FaultKind::kTile,
                       fmt::format("t{} holds no tile: alloc_local it first", operand.index)));
      return 0;
    }
    limit = tile.size_bytes;
    return tile.offset;
  }
  AddressForm form;
  if (!resolve(operand, form)) {
    ok = false;
    return 0;
  }
  return run_.address(operand, first_ * isa::kWarpLanes + lowest_lane());
}

uint8_t*
BlockContext::l1_range(const isa::Operand& operand, uint64_t size_bytes, bool reads, bool writes) {
  uint64_t limit = 0;
  bool ok = false;
  const uint64_t offset = l1_offset(operand, limit, ok);
  if (!ok) {
    return nullptr;
  }
  if (size_bytes > limit || !state_.scratchpad.holds(offset, size_bytes)) {
    std::string message =
        size_bytes > limit
            ? fmt::format("{} of {} bytes of a tile of {} bytes: make the tile larger or the "
                          "operation smaller",
                          writes ? "write" : "read",
                          size_bytes,
                          limit)
            : fmt::format("{} of {} bytes at l1 offset {}, outside every allocation",
                          writes ? "write" : "read",
                          size_bytes,
                          static_cast<int64_t>(offset));
    Fault fault = make_fault(FaultKind::kOutOfBounds, std::move(message));
    fault.has_address = true;
    fault.space = Space::kL1;
    fault.address = offset;
    fault.size_bytes = size_bytes;
    fault.details = state_.scratchpad.map();
    raise(std::move(fault));
    return nullptr;
  }
  if (is_recording_ && record_.l1_count < record_.l1.size()) {
    record_.l1[record_.l1_count++] = {
        .offset = offset, .size_bytes = size_bytes, .reads = reads, .writes = writes};
  }
  return state_.scratchpad.data() + offset;
}

uint64_t BlockContext::tile_bytes(const isa::Operand& tile) {
  uint64_t limit = 0;
  bool ok = false;
  l1_offset(tile, limit, ok);
  return ok ? limit : 0;
}

Outcome BlockContext::alloc_tile(const isa::Operand& tile, uint64_t size_bytes) {
  TileState& state = state_.tiles[tile.index];
  if (state.is_live) {
    return raise(make_fault(FaultKind::kTile,
                            fmt::format("t{} holds a tile of {} bytes already: free_local it "
                                        "before it is allocated again",
                                        tile.index,
                                        state.size_bytes)));
  }
  if (size_bytes == 0) {
    return fault("alloc_local of 0 bytes: a tile has at least one byte");
  }
  const std::optional<uint32_t> offset = state_.scratchpad.alloc(size_bytes, tile.index, pc_);
  if (!offset) {
    Fault fault =
        make_fault(FaultKind::kScratchpad,
                   fmt::format("no room for a tile of {} bytes: {} of {} bytes of scratchpad are "
                               "held, the largest gap has {}: free tiles or make them smaller",
                               size_bytes,
                               state_.scratchpad.used_bytes(),
                               state_.scratchpad.capacity_bytes(),
                               state_.scratchpad.largest_gap_bytes()));
    fault.details = state_.scratchpad.map();
    return raise(std::move(fault));
  }
  state = {.is_live = true, .offset = *offset, .size_bytes = static_cast<uint32_t>(size_bytes)};
  if (is_recording_) {
    record_.tile = static_cast<int>(tile.index);
    record_.l1[record_.l1_count++] = {.offset = *offset, .size_bytes = size_bytes, .writes = true};
  }
  if (observers().wants(kWantsTile)) {
    const ScratchpadSegment segment = *state_.scratchpad.find(*offset);
    observers().notify(kWantsTile,
                       [&](Observer& observer) { observer.tile_alloc(site(first_), segment); });
  }
  return Outcome::kNext;
}

Outcome BlockContext::free_tile(const isa::Operand& tile) {
  TileState& state = state_.tiles[tile.index];
  if (!state.is_live) {
    return raise(make_fault(FaultKind::kTile,
                            fmt::format("free_local of t{}, which holds no tile", tile.index)));
  }
  const ScratchpadSegment segment = *state_.scratchpad.find(state.offset);
  state_.scratchpad.free(state.offset);
  if (is_recording_) {
    record_.tile = static_cast<int>(tile.index);
    record_.l1[record_.l1_count++] = {.offset = state.offset, .size_bytes = state.size_bytes};
  }
  state = {};
  observers().notify(kWantsTile,
                     [&](Observer& observer) { observer.tile_free(site(first_), segment); });
  return Outcome::kNext;
}

// ---------------------------------------------------------------- copies

std::optional<BlockContext::CopyEnds> BlockContext::whole_copy(const CopyRecord& copy,
                                                               uint64_t l1_limit) {
  constexpr int64_t kMostStride = int64_t{1} << 31;
  const isa::CopyShape& shape = copy.shape;
  if (shape.rows == 0 || shape.row_bytes == 0 || shape.hbm_stride < 0 || shape.l1_stride < 0 ||
      shape.hbm_stride > kMostStride || shape.l1_stride > kMostStride) {
    return std::nullopt;
  }
  const uint64_t steps = shape.rows - 1; // below 2^32, so neither product overflows
  const uint64_t hbm_bytes = steps * static_cast<uint64_t>(shape.hbm_stride) + shape.row_bytes;
  const uint64_t l1_bytes = steps * static_cast<uint64_t>(shape.l1_stride) + shape.row_bytes;
  if (l1_bytes > l1_limit || !state_.scratchpad.holds(copy.l1_offset, l1_bytes)) {
    return std::nullopt;
  }
  uint8_t* hbm = range_host(Space::kHbm, copy.hbm_address, hbm_bytes);
  if (hbm == nullptr) {
    return std::nullopt;
  }
  return CopyEnds{.hbm = hbm, .l1 = state_.scratchpad.data() + copy.l1_offset};
}

bool BlockContext::copy_row_fits(const CopyRecord& copy, uint64_t l1_limit, uint32_t row) const {
  const uint32_t bytes = copy.shape.row_bytes;
  const uint64_t reach = copy.l1_row(row) - copy.l1_offset;
  return state_.scratchpad.holds(copy.l1_row(row), bytes) &&
         (l1_limit == UINT64_MAX || (reach <= l1_limit && bytes <= l1_limit - reach)) &&
         hbm_.host(copy.hbm_row(row), bytes) != nullptr;
}

Outcome BlockContext::copy_fault(const CopyRecord& copy, uint64_t limit, uint32_t row) {
  const isa::CopyShape& shape = copy.shape;
  const bool is_in = copy.direction == isa::CopyDirection::kHbmToL1;
  const uint64_t l1_row = copy.l1_row(row);
  const uint64_t hbm_row = copy.hbm_row(row);
  const uint64_t reach = l1_row - copy.l1_offset;
  const bool fits_hbm = hbm_.host(hbm_row, shape.row_bytes) != nullptr;
  const std::string part = shape.rows == 1
                               ? fmt::format("copy of {} bytes", shape.row_bytes)
                               : fmt::format("row {} ({} bytes) of a copy", row, shape.row_bytes);
  Fault fault = fits_hbm
                    ? make_fault(FaultKind::kOutOfBounds,
                                 limit == UINT64_MAX
                                     ? fmt::format("{} {} l1 offset {}, outside every allocation",
                                                   part,
                                                   is_in ? "to" : "from",
                                                   static_cast<int64_t>(l1_row))
                                     : fmt::format("{} {} byte {} of a tile of {} bytes",
                                                   part,
                                                   is_in ? "to" : "from",
                                                   static_cast<int64_t>(reach),
                                                   limit))
                    : make_fault(hbm_.find_freed(hbm_row) != nullptr ? FaultKind::kFreed
                                                                     : FaultKind::kOutOfBounds,
                                 fmt::format("{} {} hbm address {:#x}, outside every allocation",
                                             part,
                                             is_in ? "from" : "to",
                                             hbm_row));
  fault.has_address = true;
  fault.space = fits_hbm ? Space::kL1 : Space::kHbm;
  fault.address = fits_hbm ? l1_row : hbm_row;
  fault.size_bytes = shape.row_bytes;
  if (!fits_hbm) {
    fault.allocation = hbm_.describe(hbm_row, shape.row_bytes);
  } else {
    fault.details = state_.scratchpad.map();
  }
  return raise(std::move(fault));
}

Outcome BlockContext::start_copy(isa::CopyDirection direction,
                                 const isa::Operand& l1,
                                 const isa::Operand& hbm,
                                 const isa::CopyShape& shape,
                                 const isa::Operand* event) {
  CopyRecord copy;
  copy.direction = direction;
  copy.shape = shape;
  copy.event = event != nullptr ? static_cast<int>(event->index) : -1;
  copy.pc = pc_;
  copy.hbm_address = run_.address(hbm, first_ * isa::kWarpLanes + lowest_lane());
  uint64_t limit = 0;
  bool ok = false;
  copy.l1_offset = l1_offset(l1, limit, ok);
  if (!ok) {
    return Outcome::kFault;
  }
  const std::optional<CopyEnds> ends = whole_copy(copy, limit);
  if (!ends.has_value()) {
    for (uint32_t row = 0; row < shape.rows && shape.row_bytes != 0; ++row) {
      if (!copy_row_fits(copy, limit, row)) {
        return copy_fault(copy, limit, row);
      }
    }
  }
  copy.id = state_.copies_started++;
  if (copy.event >= 0) {
    state_.events_used |= static_cast<uint8_t>(1u << copy.event);
  }
  state_.pending.push_back(copy);
  if (is_recording_) {
    record_copy_ = copy;
    record_.copy = &record_copy_;
  }
  observers().notify(kWantsCopy,
                     [&](Observer& observer) { observer.copy_start(site(first_), copy); });
  if (run_.launch_.copy_policy() == CopyPolicy::kAtIssue) {
    complete_copy(state_.pending.size() - 1, false);
  } else {
    prefetch_source(copy, ends);
  }
  return gate_stopped_ ? Outcome::kFault : Outcome::kNext;
}

void BlockContext::prefetch_source(const CopyRecord& copy, const std::optional<CopyEnds>& ends) {
  constexpr uint64_t kMostBytes = 64 * 1024; // what second-level caches hold beside other things
  constexpr uint64_t kLineBytes = 64;
  const isa::CopyShape& shape = copy.shape;
  if (copy.direction != isa::CopyDirection::kHbmToL1 || copy.bytes() > kMostBytes ||
      !ends.has_value()) {
    return;
  }
  for (uint32_t row = 0; row < shape.rows; ++row) {
    const uint8_t* host = ends->hbm + int64_t{row} * shape.hbm_stride;
    for (uint64_t at = 0; at < shape.row_bytes; at += kLineBytes) {
      __builtin_prefetch(host + at, 0, 2);
    }
  }
}

void BlockContext::move_copy(const CopyRecord& copy) {
  const isa::CopyShape& shape = copy.shape;
  const bool is_in = copy.direction == isa::CopyDirection::kHbmToL1;
  const bool has_watchers = has_hooks(Space::kHbm, !is_in);
  const auto pass_row = [&](uint32_t row) {
    return pass_hooks(copy.hbm_row(row), shape.row_bytes, is_in, !is_in);
  };
  if (const std::optional<CopyEnds> ends = whole_copy(copy, UINT64_MAX)) {
    if (has_watchers && (!is_in || gate_->is_watched(*last_allocation_))) {
      for (uint32_t row = 0; row < shape.rows; ++row) {
        if (!pass_row(row)) {
          return;
        }
      }
    }
    if (is_in) {
      isa::host_loop<copy_rows>(ends->l1, shape.l1_stride, ends->hbm, shape.hbm_stride, shape);
    } else {
      isa::host_loop<copy_rows>(ends->hbm, shape.hbm_stride, ends->l1, shape.l1_stride, shape);
    }
    return;
  }
  for (uint32_t row = 0; row < shape.rows && shape.row_bytes != 0; ++row) {
    uint8_t* hbm = range_host(Space::kHbm, copy.hbm_row(row), shape.row_bytes);
    if (has_watchers && !pass_row(row)) {
      return;
    }
    // A tile may have been freed meanwhile; its bytes stay with the block.
    uint8_t* l1 = state_.scratchpad.data() + copy.l1_row(row);
    std::memcpy(is_in ? l1 : hbm, is_in ? hbm : l1, shape.row_bytes);
  }
}

void BlockContext::complete_copy(size_t i, bool forced) {
  const CopyRecord copy = state_.pending[i];
  move_copy(copy);
  state_.pending.erase(state_.pending.begin() + static_cast<std::ptrdiff_t>(i));
  observers().notify(kWantsCopy,
                     [&](Observer& observer) { observer.copy_complete(run_, copy, forced); });
}

void BlockContext::complete_all_copies(bool forced) {
  while (!state_.pending.empty()) {
    complete_copy(0, forced);
  }
}

} // namespace pto::sim
