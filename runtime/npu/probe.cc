// SPDX-License-Identifier: Apache-2.0
#include "runtime/npu/probe.h"

#include "isa/cfg.h"
#include "isa/insn_desc.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::rt {

namespace {

bool can_be_timed(const isa::InsnDesc& row) {
  return !row.has(isa::kBranch) && !row.has(isa::kCall) && !row.has(isa::kReturn) &&
         !row.has(isa::kEndsLane) && !row.has(isa::kPrints);
}

/// Cuts a run of insns that can be timed into regions.
void cut(const isa::Object& object,
         uint32_t begin,
         uint32_t end,
         Instrument instrument,
         std::vector<ProbeRegion>& out) {
  const uint32_t length = instrument == Instrument::kBlocks  ? end - begin
                          : instrument == Instrument::kInsns ? 1
                                                             : 2;
  uint32_t pc = instrument == Instrument::kPairsFromSecond ? begin + 1 : begin;
  for (; pc < end && end - pc >= length; pc += length) {
    bool is_of_block = false;
    for (uint32_t i = 0; i < length && instrument != Instrument::kBlocks; ++i) {
      is_of_block = is_of_block || object.code[pc + i].desc->scope == isa::Scope::kBlock;
    }
    out.push_back({pc, pc + length, is_of_block});
  }
}

} // namespace

std::vector<ProbeRegion>
probe_regions(const isa::Object& object, const isa::Function& function, Instrument instrument) {
  std::vector<ProbeRegion> regions;
  if (instrument == Instrument::kNone || instrument == Instrument::kKernel) {
    return regions;
  }
  const isa::Cfg cfg(object, function);
  for (const isa::BasicBlock& block : cfg.blocks()) {
    if (!block.is_reachable) {
      continue;
    }
    uint32_t begin = block.first_pc;
    for (uint32_t pc = block.first_pc; pc <= block.end_pc; ++pc) {
      if (pc == block.end_pc || !can_be_timed(*object.code[pc].desc)) {
        cut(object, begin, pc, instrument, regions);
        begin = pc + 1;
      }
    }
  }
  std::sort(regions.begin(), regions.end(), [](const ProbeRegion& a, const ProbeRegion& b) {
    return a.first_pc < b.first_pc;
  });
  return regions;
}

namespace {

/// Entries are pairs of words.
struct Entry {
  uint64_t first = 0;
  uint64_t second = 0;
};
Entry entry_at(std::span<const uint64_t> words, size_t index) {
  return {words[index * 2], words[index * 2 + 1]};
}

double
longest_block(std::span<const uint64_t> words, uint64_t warps_per_block, std::string& error) {
  uint64_t longest = 0;
  const uint64_t warps = words.size() / 2;
  for (uint64_t block = 0; block * warps_per_block < warps; ++block) {
    uint64_t begin = UINT64_MAX;
    uint64_t end = 0;
    for (uint64_t w = 0; w < warps_per_block; ++w) {
      const Entry entry = entry_at(words, block * warps_per_block + w);
      if (entry.second <= entry.first) {
        error = fmt::format("warp {} of block {} began at clock {} and ended at clock {}",
                            w,
                            block,
                            entry.first,
                            entry.second);
        return 0;
      }
      begin = std::min(begin, entry.first);
      end = std::max(end, entry.second);
    }
    longest = std::max(longest, end - begin);
  }
  return static_cast<double>(longest);
}

double median_overhead(std::span<const uint64_t> words, size_t entries, std::string& error) {
  std::vector<double> overheads;
  for (size_t at = 0; at < words.size() / 2; at += entries) {
    const Entry entry = entry_at(words, at);
    if (entry.second == 0) {
      error = fmt::format("warp {} left no clock reads", at / entries);
      return 0;
    }
    overheads.push_back(static_cast<double>(entry.first) / static_cast<double>(entry.second));
  }
  const auto middle = overheads.begin() + static_cast<std::ptrdiff_t>(overheads.size() / 2);
  std::nth_element(overheads.begin(), middle, overheads.end());
  return *middle;
}

} // namespace

ProbeResult read_probe(std::span<const uint64_t> words,
                       const std::vector<ProbeRegion>& regions,
                       Instrument instrument,
                       uint64_t warps_per_block,
                       std::string& error) {
  ProbeResult result;
  if (instrument == Instrument::kKernel) {
    result.span_cycles = longest_block(words, warps_per_block, error);
    return result;
  }
  const size_t entries = 1 + regions.size();
  result.overhead_cycles = median_overhead(words, entries, error);
  for (size_t r = 0; r < regions.size(); ++r) {
    ProbeResult::Sum sum{regions[r], 0, 0};
    const size_t step = regions[r].is_of_block ? entries * warps_per_block : entries;
    for (size_t at = 1 + r; at < words.size() / 2; at += step) {
      const Entry entry = entry_at(words, at);
      sum.cycles += static_cast<double>(entry.first);
      sum.count += entry.second;
    }
    if (sum.count != 0) {
      result.regions.push_back(sum);
    }
  }
  return result;
}

} // namespace pto::rt
