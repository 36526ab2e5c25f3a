// SPDX-License-Identifier: Apache-2.0
// Pairs that take less time together than one after the other.
//
// The pattern is first, second, nop, closing insn, nop, in a loop of dependences. Apart it takes
// L(first) + max(L(second), F) + max(L(closing), F) cycles, where F is an issue and a nop, 2 in
// most machines; joined, the pair's own latency stands in place of the first two. A pair counts as
// joined where the difference is beyond all measurement errors together, so that noise invents
// none.
#include "runtime/profile/pair_screen.h"

#include "runtime/profile/slopes.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace pto::rt {

using namespace detail;

namespace {

constexpr double kLeastGain = 0.5;      // cycles
constexpr double kGainInErrors = 6;     // of all figures that the comparison needs
constexpr double kLeastGainPart = 0.01; // of what is expected

struct Expected {
  double cycles = 0;
  double error = 0;
  double rest = 0; // of the pattern beside the pair
};

class Screen {
public:
  explicit Screen(const Profile& profile)
      : slopes_(micro_slopes(profile, problems_)), latencies_(chain_latencies(slopes_, problems_)) {
  }

  std::vector<JoinedPair> joined() const {
    std::vector<JoinedPair> pairs;
    for (const Slope& slope : slopes_) {
      const bool is_unconnected = slope.tag.variant == "none" && slope.tag.amount != 0;
      if (slope.tag.role != "pair" || (slope.tag.variant != "all" && !is_unconnected)) {
        continue;
      }
      const std::optional<Expected> expected =
          is_unconnected ? expected_of_product(slope) : expected_of(slope);
      if (!expected) {
        continue;
      }
      const double error = std::sqrt(slope.error * slope.error + expected->error * expected->error);
      const double gain = expected->cycles - slope.value;
      if (gain > std::max({kLeastGain, kGainInErrors * error, kLeastGainPart * expected->cycles})) {
        JoinedPair pair;
        pair.first = slope.tag.first;
        pair.second = slope.tag.second;
        pair.is_unconnected = is_unconnected;
        pair.cycles = std::max(1.0, slope.value - expected->rest);
        pair.cycles_error = error;
        pair.expected = expected->cycles;
        pair.measured = slope.value;
        pairs.push_back(std::move(pair));
      }
    }
    return pairs;
  }

private:
  std::optional<ChainLatency> latency(const std::string& key) const {
    const auto found = latencies_.find(key);
    return found == latencies_.end() ? std::nullopt : std::optional<ChainLatency>(found->second);
  }

  std::optional<Expected> expected_of(const Slope& slope) const {
    const InsnForm* second = find_form(slope.tag.second);
    const auto a = latency(slope.tag.first);
    const auto b = latency(slope.tag.second);
    if (second == nullptr || !a || !b) {
      return std::nullopt;
    }
    Expected expected;
    if (second->is_store) {
      const Slope* fence = nullptr;
      for (const Slope& other : slopes_) {
        fence = other.tag.variant == "issue" ? &other : fence;
      }
      if (fence == nullptr) {
        return std::nullopt;
      }
      expected.rest = fence->value;
      expected.cycles = a->cycles + b->cycles + fence->value;
      expected.error = std::hypot(a->error, b->error, fence->error);
      return expected;
    }
    const auto closing = latency(closing_link(second->dst_class).key);
    if (!closing) {
      return std::nullopt;
    }
    const double floor = spaced_floor(spacer_cycles(slopes_));
    expected.rest = std::max(floor, closing->cycles);
    expected.cycles = a->cycles + std::max(floor, b->cycles) + expected.rest;
    expected.error = std::hypot(a->error, b->error, closing->error);
    return expected;
  }

  /// A load between matrix products: the products alone set the pace.
  std::optional<Expected> expected_of_product(const Slope& slope) const {
    for (const Slope& product : slopes_) {
      if (product.tag.role == "latency" && product.tag.first == slope.tag.second &&
          product.tag.amount == slope.tag.amount) {
        const auto load = latency(slope.tag.first);
        Expected expected;
        // The load's register is written again after kMiddleCount rounds.
        const double again = load ? load->cycles / kMiddleCount : 0;
        expected.cycles = std::max({product.value, again, 3.0});
        expected.error = std::hypot(product.error, load ? load->error : 0);
        return expected;
      }
    }
    return std::nullopt;
  }

  std::vector<std::string> problems_;
  std::vector<Slope> slopes_;
  std::map<std::string, ChainLatency> latencies_;
};

/// f32 where the row has it, and a 32-bit type of another class.
std::vector<const InsnForm*> representatives(const std::vector<const InsnForm*>& forms) {
  const InsnForm* first = nullptr;
  const InsnForm* second = nullptr;
  for (const InsnForm* form : forms) {
    const bool is_f32 = form->insn.type == isa::Type::kF32;
    if (is_f32 && first == nullptr) {
      first = form;
    } else if (!is_f32 && second == nullptr) {
      second = form;
    }
  }
  if (first == nullptr) {
    first = second;
  }
  return {first, second == nullptr ? first : second};
}

} // namespace

namespace detail {

std::vector<PairForms> likely_pairs(const std::vector<InsnForm>& forms) {
  // By row and memory space, in the order of the table.
  std::vector<std::vector<const InsnForm*>> rows;
  std::vector<std::string> names;
  for (const InsnForm& form : forms) {
    const isa::InsnDesc& row = *form.insn.desc;
    const bool is_32_bit =
        isa::bits(form.insn.type) == 32 &&
        (form.insn.type2 == isa::Type::kNone || isa::bits(form.insn.type2) == 32);
    const bool is_likely = row.scope == isa::Scope::kLane && row.unit != isa::Unit::kX &&
                           !row.has(isa::kAtomic) && is_32_bit && form.dst_class != RegClass::kD;
    if (!is_likely) {
      continue;
    }
    std::string name(row.mnemonic);
    if (form.mem != -1) {
      name += isa::name(form.insn.operand(static_cast<unsigned>(form.mem)).mem().space);
    }
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) {
      names.push_back(name);
      rows.push_back({&form});
    } else {
      rows[static_cast<size_t>(at - names.begin())].push_back(&form);
    }
  }
  std::vector<PairForms> pairs;
  const auto add = [&](const InsnForm* first, const InsnForm* second) {
    // The second reads what the first writes; an address must not come from arithmetic.
    const bool reads =
        std::find(second->source_classes.begin(), second->source_classes.end(), first->dst_class) !=
        second->source_classes.end();
    if (first->entry_of(RegClass::kR) != -1 && first->dst_class != RegClass::kNone && reads &&
        !second->is_load && std::none_of(pairs.begin(), pairs.end(), [&](const PairForms& pair) {
          return pair.first == first && pair.second == second;
        })) {
      pairs.push_back({first, second});
    }
  };
  for (const auto& first : rows) {
    const auto a = representatives(first);
    for (const auto& second : rows) {
      const auto b = representatives(second);
      add(a[0], b[0]);
      add(a[1], b[1]);
    }
  }
  return pairs;
}

} // namespace detail

std::vector<JoinedPair> joined_pairs(const Profile& profile) {
  return Screen(profile).joined();
}

} // namespace pto::rt
