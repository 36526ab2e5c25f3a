// SPDX-License-Identifier: Apache-2.0
// What a check found in a run: a value that names both places, the data and a way out.
#pragma once

#include "isa/insn.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace pto::sim {

class BlockRun;
class Program;

enum class CheckKind : uint8_t { kMem, kInit, kRace, kSync, kNan };
std::string_view name(CheckKind kind); // "mem", "init", ...

/// One side of a finding.
struct FindingSite {
  uint32_t pc = 0;
  uint64_t block = 0; // linear index
  uint32_t warp = 0;
  uint32_t lane_mask = 0; // lanes of that warp; 0: the warp or a copy as a whole
  std::string what;       // "store of 4 bytes", "copy from hbm"
};

struct Finding {
  CheckKind kind = CheckKind::kRace;
  std::string message;              // one line
  std::string hint;                 // one line: a way out; may be empty
  FindingSite here;                 // where the run noticed it
  std::optional<FindingSite> there; // the earlier conflicting access, or where a value came from
  bool has_address = false;
  isa::Space space = isa::Space::kHbm;
  uint64_t address = 0;
  uint64_t size_bytes = 0;       // of the whole access of one lane
  std::string location;          // "allocation a + 16", "shared s + 4"
  uint64_t conflict_address = 0; // race: the bytes that both accesses touch
  uint64_t conflict_bytes = 0;   // 0: unknown, or all
  bool is_stop = false;          // the fault or deadlock that ended the run
  uint64_t count = 1;            // how often it was seen between the same two insns
};

/// The findings of a run, equal ones once with a count, in the order in which they were first seen.
/// Two findings are equal if kind, message kind and both insns are.
class Findings {
public:
  /// Stands for the other insn where a finding has none.
  static constexpr uint32_t kNoPc = 0xffffffff;
  /// Findings kept at most; further ones are only counted.
  static constexpr size_t kLimit = 1000;

  /// `topic` tells different findings of one kind at the same two insns apart.
  void add(Finding finding, unsigned topic = 0);
  /// True if a finding with these insns was added: lets a check skip the work of describing it, and
  /// counts it.
  bool count_known(CheckKind kind, uint32_t here_pc, uint32_t there_pc, unsigned topic = 0);

  const std::vector<Finding>& list() const { return list_; }
  bool empty() const { return list_.empty() && dropped_ == 0; }
  uint64_t dropped() const { return dropped_; }

private:
  using Key = std::tuple<CheckKind, uint32_t, uint32_t, unsigned>;
  std::vector<Finding> list_;
  std::map<Key, size_t> index_;
  uint64_t dropped_ = 0;
};

/// Several lines, as compute-sanitizer would print it: what, kernel, insn and source line, block,
/// warp, lanes, address and allocation, the earlier access, the hint, the count.
std::string format_finding(const Finding& finding, const Program& program);
/// The same as one JSON object.
std::string finding_json(const Finding& finding, const Program& program);

/// "lane 3", "lanes 0-15,31".
std::string format_lanes(uint32_t mask);

/// Names a place: the allocation, symbol or tile that holds the address.
std::string describe_address(const BlockRun& block, isa::Space space, uint64_t address);

} // namespace pto::sim
