// SPDX-License-Identifier: Apache-2.0
// How the set of microbenchmarks is made: bodies of kernels, and the patterns of each role. Private
// to runtime/profile/.
#pragma once

#include "runtime/profile/microbench.h"
#include "runtime/profile/microbench_insn.h"
#include "runtime/profile/pair_screen.h"

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pto::rt::detail {

// Slopes need a short and a long kernel; a third length in between is held out, it shows whether
// the pattern really costs the same each time.
inline constexpr std::array<unsigned, 3> kChainRepeats = {8, 16, 48};
// Pairs use kMiddleCount registers in turn: a first insn that takes long lets as many rounds start
// at once and then waits, so only whole turns make a straight line.
inline constexpr std::array<unsigned, 2> kPairRepeats = {2 * kMiddleCount, 6 * kMiddleCount};
inline constexpr std::array<unsigned, 2> kStreamRepeats = {16, 48};
inline constexpr std::array<unsigned, 2> kHeavyRepeats = {4, 12};
inline constexpr unsigned kStreamLanes = 1024;

/// The body of one kernel: insns by role, and what registers they need set up before.
class Body {
public:
  void add(const isa::Insn& insn);
  void line(std::string text) { lines_.push_back("    " + std::move(text)); }
  void label(const std::string& name) { lines_.push_back(name + ":"); }
  void nop() { line("nop"); }
  void uses(unsigned reg32) { reg32_.insert(reg32); }
  void declare(std::string text) { declarations_ += text + "\n"; }
  void start(std::string text) { setup_ += "    " + std::move(text) + "\n"; }
  /// A function that the body may call; `text` is its insns, a line each.
  void function(const std::string& name, const std::string& text);

  /// The whole program.
  [[nodiscard]] std::string text(const std::string& name) const;

private:
  [[nodiscard]] bool has(unsigned reg) const { return reg32_.count(reg) != 0; }

  [[nodiscard]] std::string prologue() const;

  /// Results are used, so that nothing may leave the pattern out.
  [[nodiscard]] std::string epilogue() const;

  std::set<unsigned> reg32_;
  std::set<unsigned> reg64_;
  std::set<unsigned> preds_;
  bool uses_shared_ = false;
  bool uses_const_ = false;
  std::string functions_;
  std::string declarations_;
  std::string setup_;
  std::vector<std::string> lines_;
};

/// The tag of a kernel, its numbers as patterns count them.
struct Pattern {
  std::string role;
  std::string first;
  std::string second;
  std::string variant;
  uint64_t repeats = 0;
  uint64_t amount = 0;
  [[nodiscard]] MicroTag tag() const {
    return {
        role, first, second, variant, static_cast<double>(repeats), static_cast<double>(amount)};
  }
};

/// The name of a kernel: an identifier that tells the tag.
[[nodiscard]] std::string identifier(const MicroTag& tag);
/// The shape without operands of a row whose operands are all optional (FENCE).
[[nodiscard]] std::string bare_text(const isa::InsnDesc& row);
[[nodiscard]] std::string bare_key(const isa::InsnDesc& row);

/// Leaves the patterns of these keys, of those below them and of what closes their chains.
void keep_keys(std::vector<Microbench>& set, const std::vector<std::string>& keys);

/// Makes the patterns of all roles, one after the other.
class SetMaker {
public:
  SetMaker(const isa::MachineProfile& machine, const MicrobenchOptions& options);
  std::vector<Microbench> make();

private:
  [[nodiscard]] bool wants(std::string_view role) const;

  /// Leaves so many forms of each entry of the latency table; forms that others need as bridges or
  /// in pairs come first in the table's order, so they stay.
  void thin_out();

  /// f32 before other 32-bit types before the rest.
  static int rank(const InsnForm& form);
  Microbench& add(const Pattern& pattern, const Body& body, uint32_t lanes);

  // ------------------------------------------------------------ chains

  /// For each form that does not feed itself, a form that leads back, whose own latency some other
  /// chain tells. Rounds: forms that feed themselves are known; what a known form closes is known.
  void find_bridges();

  /// A load's address must stay what it is: the bridge has to make zero of zero. Counting and
  /// conversions do, arithmetic with the constant does not.
  [[nodiscard]] static bool leads_back(const InsnForm& form, const InsnForm& bridge);
  void make_latencies();

  /// A store's result shows where a fence waits for it.
  void make_store_latencies();

  /// Jumps to the next insn: each holds the warp until its target is known.
  void make_branches();

  /// Calls, each from within the one before, until the deepest ends the lane: calls that nobody
  /// returns from. And calls of a function that returns at once, which cost a return each more.
  void make_calls();

  /// What stands between the links of a chain costs on a device, by itself.
  void make_spacers();

  /// A product that accumulates: the tile is both source and result. By size, for the formula.
  void make_matrix();
  void add_products(const isa::InsnDesc& row,
                    const std::string& suffix,
                    unsigned edge,
                    const std::string& variant);
  static void matrix_tiles(Body& body, unsigned edge);

  /// ".f32.f32", ...: the widest first.
  static std::vector<std::string> matrix_types(const isa::InsnDesc& row);

  // ------------------------------------------------------------ streams

  [[nodiscard]] uint32_t stream_lanes() const;

  /// Every warp of a full block issues insns whose results nobody reads: the unit is the limit.
  void make_intervals();

  /// Streams read and write one element a lane; constants have one address.
  static int memory_entry(const InsnForm& form);
  static unsigned stream_results(RegClass reg_class);

  // ------------------------------------------------------------ pairs

  void make_pairs();
  static Pattern pattern_of(const PairForms& pair, std::string variant, unsigned repeats);

  /// first, second, nop and what closes the loop. `operand`: which source of the second takes the
  /// first's result; -1: all that can.
  void add_connected(Body& body, const PairForms& pair, int operand, unsigned round);

  /// In turn, so that a first result that stays visible for longer than the pair takes does not
  /// hold the next round up.
  static unsigned middle_register(RegClass reg_class, unsigned round);
  static isa::Insn store_of(const PairForms& pair, unsigned value);

  /// Makes r0 = 0 depend on the second insn's result.
  static void close(Body& body, const InsnForm& second);

  /// A load and a product share no register; firmware joins them all the same.
  void make_matrix_pairs();

  /// Second round: what must connect the pair, and is the first result still visible?
  void make_follow_ups();
  void follow_up_operands(const PairForms& pair, unsigned repeats);

  /// Neighbours without a common register; the second's own chain makes the loop.
  void follow_up_none(const PairForms& pair, unsigned repeats);

  /// The loop runs through the first's result; the second reads it and is otherwise unused.
  void follow_up_kept(const PairForms& pair, unsigned repeats);

  // ------------------------------------------------------------ memory

  void make_memory();
  void strided(unsigned bytes_apart);
  void conflict(unsigned degree, uint32_t bytes_apart);
  void bandwidth(unsigned kib);

  // ------------------------------------------------------------ the rest

  /// `amount` lanes of one warp on one address.
  void make_atomics();
  void make_barriers();

  /// Start a copy, wait for it, again.
  void make_copies();
  /// Waits for a copy that is done.
  void make_waits();

  /// Blocks that do nothing: what a launch and each further block cost.
  void make_launches();

  const isa::MachineProfile& machine_;
  const MicrobenchOptions& options_;
  std::vector<InsnForm> forms_;
  std::map<const InsnForm*, const InsnForm*> bridge_;
  std::vector<Microbench> out_;
};

} // namespace pto::rt::detail
