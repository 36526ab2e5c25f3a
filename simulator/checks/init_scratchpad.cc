// SPDX-License-Identifier: Apache-2.0
// The bytes of scratchpad as the init check follows them: loads and stores, copies, matrix
// products.
#include "isa/error.h"
#include "isa/insn_desc.h"
#include "isa/insns/modifiers.h"
#include "simulator/block.h"
#include "simulator/checks/init_check.h"
#include "simulator/each_lane.h"
#include "simulator/program.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <type_traits>

namespace pto::sim {

namespace {

/// Flags of the widest access of a lane.
constexpr std::array<uint8_t, 32> kAllDefined = [] {
  std::array<uint8_t, 32> flags{};
  flags.fill(1);
  return flags;
}();

/// Calls act with the size as a constant, for which a few bytes are set or compared at once.
template <class Act> void with_constant_bytes(uint32_t bytes, Act&& act) {
  switch (bytes) {
  case 1:
    return act(std::integral_constant<size_t, 1>());
  case 2:
    return act(std::integral_constant<size_t, 2>());
  case 4:
    return act(std::integral_constant<size_t, 4>());
  case 8:
    return act(std::integral_constant<size_t, 8>());
  case 16:
    return act(std::integral_constant<size_t, 16>());
  default:
    PTO_CHECK(bytes <= kAllDefined.size());
    return act(size_t{bytes});
  }
}

uint64_t span_bytes(const SpanRecord& span) {
  return uint64_t{span.access_bytes} * isa::kWarpLanes * span.warp_count;
}

/// All lanes access, each the bytes next to those of the lane before.
bool is_one_range(const SpanRecord& span) {
  return span.is_contiguous() && std::all_of(span.exec_masks,
                                             span.exec_masks + span.warp_count,
                                             [](uint32_t mask) { return mask == ~0u; });
}

} // namespace

void InitCheck::BlockData::define_l1(uint64_t offset, uint64_t bytes) {
  std::memset(l1.data() + offset, 1, bytes);
  l1_end = std::max(l1_end, offset + bytes);
}

void InitCheck::BlockData::spoil_l1(uint64_t offset, uint64_t bytes, const Origin& origin) {
  spoiled_by.resize(l1.size());
  if (spoils.empty() || spoils.back() != origin) {
    spoils.push_back(origin);
  }
  std::fill_n(l1.begin() + static_cast<std::ptrdiff_t>(offset), bytes, uint8_t{0});
  std::fill_n(spoiled_by.begin() + static_cast<std::ptrdiff_t>(offset),
              bytes,
              static_cast<uint32_t>(spoils.size()));
  l1_end = std::max(l1_end, offset + bytes);
}

InitCheck::Origin InitCheck::BlockData::l1_origin(uint64_t offset, uint32_t pc) const {
  const uint32_t spoil = spoiled_by.empty() ? 0 : spoiled_by[offset];
  return spoil != 0 ? spoils[spoil - 1] : Origin{.pc = pc, .is_memory = true, .address = offset};
}

// Nothing is tainted and no operand is suspect: the values stored are defined, and so is an
// atomic's sum of defined values.
void InitCheck::after_span(const SpanRecord& span) {
  if (!span.has_access || span.space != isa::Space::kL1) {
    return;
  }
  if (span.reads_memory) {
    span_loads_from_l1(span);
  } else {
    span_stores_to_l1(span);
  }
}

void InitCheck::span_stores_to_l1(const SpanRecord& span) {
  BlockData& in_block = blocks_.at(span.block->index());
  if (is_one_range(span)) {
    in_block.define_l1(span.at.base, span_bytes(span));
    return;
  }
  uint8_t* const l1 = in_block.l1.data();
  uint64_t last = 0;
  with_constant_bytes(span.access_bytes, [&](auto bytes) {
    for_each_lane(span.exec_masks, span.warp_count, [&](unsigned lane) {
      const uint64_t address = span.address(lane);
      std::memcpy(l1 + address, kAllDefined.data(), bytes);
      last = std::max(last, address);
    });
  });
  in_block.l1_end = std::max(in_block.l1_end, last + span.access_bytes);
}

void InitCheck::span_loads_from_l1(const SpanRecord& span) {
  const uint8_t* l1 = blocks_.at(span.block->index()).l1.data();
  if (is_one_range(span) && std::memchr(l1 + span.at.base, 0, span_bytes(span)) == nullptr) {
    return;
  }
  operands_ = {};
  elements_.clear();
  for (uint32_t w = 0; w < span.warp_count; ++w) {
    const uint32_t first = w * isa::kWarpLanes;
    bool is_defined = true;
    with_constant_bytes(span.access_bytes, [&](auto bytes) {
      for_each_lane(span.exec_masks + w, 1, [&](unsigned lane) {
        is_defined &= std::memcmp(l1 + span.address(first + lane), kAllDefined.data(), bytes) == 0;
      });
    });
    if (is_defined) {
      continue;
    }
    L1Access access{.block = *span.block,
                    .insn = span.decoded->insn,
                    .pc = span.pc,
                    .warp = span.first_warp + w,
                    .mask = span.exec_masks[w],
                    .access_bytes = span.access_bytes,
                    .element_bytes = span.element_bytes,
                    .writes = span.writes_memory,
                    .is_atomic = span.is_atomic};
    for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
      access.addresses[lane] = span.address(first + lane);
    }
    load_from_l1(access);
  }
}

bool InitCheck::l1_defined(BlockData& data,
                           uint64_t offset,
                           uint64_t bytes,
                           uint64_t& first_undefined) {
  if (offset >= data.l1.size()) {
    return true;
  }
  const uint8_t* flags = data.l1.data();
  const void* found = std::memchr(flags + offset, 0, std::min(bytes, data.l1.size() - offset));
  if (found == nullptr) {
    return true;
  }
  first_undefined = static_cast<uint64_t>(static_cast<const uint8_t*>(found) - flags);
  return false;
}

void InitCheck::load_from_l1(const L1Access& access) {
  BlockData& in_block = blocks_.at(access.block.index());
  const isa::Insn& insn = access.insn;
  const unsigned count = std::max(1u, access.access_bytes / std::max(access.element_bytes, 1u));
  const bool is_exchange = access.is_atomic && isa::has_mod(insn, isa::kAtomicOps, "exch");
  for (unsigned element = 0; element < count; ++element) {
    uint32_t undefined = 0;
    Origin origin;
    for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
      uint64_t first = 0;
      if ((access.mask >> lane & 1) != 0 &&
          !l1_defined(in_block,
                      access.addresses[lane] + uint64_t{element} * access.element_bytes,
                      access.element_bytes,
                      first)) {
        const Origin from = in_block.l1_origin(first, access.pc);
        if (undefined == 0) {
          origin = from;
        }
        undefined |= 1u << lane;
        if (is_exchange) {
          in_block.define_l1(access.addresses[lane], access.access_bytes);
        } else if (access.is_atomic) { // what it makes of them is undefined, and it stored that
          in_block.spoil_l1(access.addresses[lane], access.access_bytes, from);
        }
      }
    }
    const isa::Operand& to = insn.operands[0];
    // In the quiet state a destination that is fully defined stays so.
    if (to.kind != isa::OperandKind::kDiscard &&
        (undefined != 0 || interests_[access.pc] == Interest::kWarp)) {
      define(access.block.index(),
             access.warp,
             slot_of(to.kind, to.index) + element,
             access.mask,
             undefined,
             origin);
    }
  }
  // An atomic other than an exchange stores a value that is as defined as the old one and its
  // operands: bytes that were undefined stay so, and an undefined operand makes them so.
  if (access.writes && operands_.lanes != 0) {
    store_to_l1(access);
  }
}

void InitCheck::store_to_l1(const L1Access& access) {
  BlockData& in_block = blocks_.at(access.block.index());
  const unsigned element_bytes = std::max(access.element_bytes, 1u);
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((access.mask >> lane & 1) == 0) {
      continue;
    }
    for (uint64_t at = 0; at < access.access_bytes; ++at) {
      const uint64_t element = access.is_atomic ? 0 : at / element_bytes;
      const uint32_t undefined = access.is_atomic             ? operands_.lanes
                                 : element < elements_.size() ? elements_[element].lanes
                                                              : 0;
      const uint64_t byte = access.addresses[lane] + at;
      if (byte >= in_block.l1.size()) {
        continue;
      }
      if ((undefined >> lane & 1) != 0) {
        in_block.spoil_l1(byte, 1, access.is_atomic ? operands_.origin : elements_[element].origin);
      } else if (!access.is_atomic) {
        in_block.define_l1(byte, 1);
      }
    }
  }
}

// C[i][j] is undefined where row i of A, column j of B or C itself is, in part.
void InitCheck::matrix_product(const BlockRun& block, const IssueRecord& record) {
  if (record.l1_count < 3) {
    return;
  }
  BlockData& in_block = blocks_.at(block.index());
  const isa::Insn& insn = *record.insn;
  const uint32_t lane = static_cast<uint32_t>(std::countr_zero(record.exec_mask));
  const auto leading = [&](unsigned i, uint32_t otherwise) {
    return insn.has_operand(i) ? block.source_value(insn.operands[i], isa::Type::kU32, lane)
                               : otherwise;
  };
  const uint64_t in_bytes = isa::size_bytes(insn.type2);
  const uint64_t lda = leading(6, record.k) * in_bytes;
  const uint64_t ldb = leading(7, record.n) * in_bytes;
  const uint64_t ldc = leading(8, record.n) * 4;
  uint64_t first = 0;
  const auto are_rows_defined =
      [&](const L1Record& tile, uint32_t rows, uint64_t row, uint64_t to_next) {
        if (row == to_next) {
          return l1_defined(in_block, tile.offset, rows * row, first);
        }
        bool all = true;
        for (uint32_t i = 0; i < rows && all; ++i) {
          all = l1_defined(in_block, tile.offset + i * to_next, row, first);
        }
        return all;
      };
  if (are_rows_defined(record.l1[1], record.m, record.k * in_bytes, lda) &&
      are_rows_defined(record.l1[2], record.k, record.n * in_bytes, ldb) &&
      are_rows_defined(record.l1[0], record.m, uint64_t{record.n} * 4, ldc)) {
    return; // and C stays so
  }
  std::vector<std::optional<Origin>> columns(record.n); // what spoils one, if anything
  for (uint32_t k = 0; k < record.k; ++k) {
    for (uint32_t j = 0; j < record.n; ++j) {
      const uint64_t b = record.l1[2].offset + k * ldb + j * in_bytes;
      if (!columns[j] && !l1_defined(in_block, b, in_bytes, first)) {
        columns[j] = in_block.l1_origin(first, record.pc);
      }
    }
  }
  for (uint32_t i = 0; i < record.m; ++i) {
    std::optional<Origin> row;
    if (!l1_defined(in_block, record.l1[1].offset + i * lda, record.k * in_bytes, first)) {
      row = in_block.l1_origin(first, record.pc);
    }
    for (uint32_t j = 0; j < record.n; ++j) {
      const uint64_t c = record.l1[0].offset + i * ldc + j * 4;
      if (row || columns[j]) {
        in_block.spoil_l1(c, 4, row ? *row : *columns[j]);
      } else if (!l1_defined(in_block, c, 4, first)) {
        in_block.spoil_l1(c, 4, in_block.l1_origin(first, record.pc));
      }
    }
  }
}

void InitCheck::copy_start(const EventSite& site, const CopyRecord& copy) {
  BlockData& in_block = blocks_.at(site.block.index());
  for (uint32_t row = 0; row < copy.shape.rows; ++row) {
    const uint64_t offset = copy.l1_row(row);
    if (copy.direction == isa::CopyDirection::kHbmToL1) {
      in_block.define_l1(offset, copy.shape.row_bytes);
      continue;
    }
    uint64_t first = 0;
    if (!l1_defined(in_block, offset, copy.shape.row_bytes, first)) {
      Undefined undefined;
      undefined.add(1, in_block.l1_origin(first, site.pc));
      report(site, undefined, "is copied to hbm");
      return;
    }
  }
}

} // namespace pto::sim
