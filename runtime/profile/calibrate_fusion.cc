// SPDX-License-Identifier: Apache-2.0
// Fusion rules from pairs that take less than their parts, and from what the follow-up patterns and
// the hook say of them.
#include "runtime/profile/calibrate_parts.h"
#include "runtime/profile/microbench_insn.h"
#include "runtime/profile/pair_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace pto::rt::detail {
namespace {

/// What is known of one joined pair of insn keys.
struct PairFacts {
  JoinedPair pair;
  std::string connect = "any";
  std::vector<std::string> operands; // that connect, where not all do
  bool keeps_first = false;
  std::vector<std::string> open;
};

class FusionFit {
public:
  FusionFit(const Evidence& evidence, Calibration& calibration)
      : evidence_(evidence), calibration_(calibration),
        floor_(spaced_floor(spacer_cycles(evidence.slopes))) {}

  void run() {
    std::vector<PairFacts> facts;
    for (const JoinedPair& pair : joined_pairs(evidence_.measured)) {
      facts.push_back(look_closer(pair));
    }
    while (!facts.empty()) {
      take_rule(facts);
    }
    add_hook_pairs();
    drop_refuted();
  }

private:
  [[nodiscard]] const Slope* follow_up(const JoinedPair& pair, std::string_view variant) const {
    return find_slope(evidence_.slopes, "pair", pair.first, pair.second, variant);
  }

  [[nodiscard]] double latency(const std::string& key) const {
    const auto found = evidence_.latencies.find(key);
    return found == evidence_.latencies.end() ? 0 : found->second.cycles;
  }

  PairFacts look_closer(const JoinedPair& pair) const {
    PairFacts facts;
    facts.pair = pair;
    if (pair.is_unconnected) {
      facts.connect = "none";
      facts.keeps_first = true; // nothing reads it in the pattern: the careful choice costs nothing
      facts.open.emplace_back("whether the first result stays visible");
      return facts;
    }
    if (is_joined_unconnected(facts)) {
      facts.connect = "none";
    } else {
      find_operands(facts);
    }
    find_kept(facts);
    return facts;
  }

  /// first and second have no common register; the second's own chain is the loop.
  [[nodiscard]] bool is_joined_unconnected(PairFacts& facts) const {
    const Slope* slope = follow_up(facts.pair, "none");
    if (slope == nullptr) {
      facts.open.emplace_back("whether neighbours without a common register are joined too");
      return false;
    }
    // The first's register is written again after kMiddleCount rounds.
    const double first = latency(facts.pair.first) / kMiddleCount;
    const double apart = std::max({latency(facts.pair.second), 3.0, first});
    const double gap = apart - std::max({facts.pair.cycles, floor_, first});
    if (gap < std::max(0.5, 5 * slope->error)) {
      facts.open.emplace_back("whether neighbours without a common register are joined too (both "
                              "ways take the same time)");
      return false;
    }
    return apart - slope->value > gap / 2;
  }

  void find_operands(PairFacts& facts) const {
    const double gain = facts.pair.expected - facts.pair.measured;
    size_t tried = 0;
    std::vector<std::string> connecting;
    for (const Slope& slope : evidence_.slopes) {
      if (slope.tag.role != "pair" || slope.tag.first != facts.pair.first ||
          slope.tag.second != facts.pair.second || !slope.tag.variant.starts_with("to ")) {
        continue;
      }
      ++tried;
      if (facts.pair.expected - slope.value > gain / 2) {
        connecting.push_back(slope.tag.variant.substr(3));
      }
    }
    if (tried == 0) {
      facts.open.emplace_back("which operands connect the pair (measure the follow-up set)");
    } else if (connecting.size() < tried) {
      facts.operands = connecting;
    }
  }

  void find_kept(PairFacts& facts) const {
    const Slope* slope = follow_up(facts.pair, "kept");
    const double kept = std::max(floor_, latency(facts.pair.first));
    const double hidden = std::max(floor_, facts.pair.cycles);
    if (slope == nullptr || std::abs(kept - hidden) < std::max(0.5, 5 * slope->error)) {
      facts.open.emplace_back("whether the first result stays visible");
      return;
    }
    facts.keeps_first = std::abs(slope->value - kept) < std::abs(slope->value - hidden);
  }

  /// Takes the first pair and all others that one rule explains.
  void take_rule(std::vector<PairFacts>& facts) {
    const PairFacts lead = facts.front();
    std::vector<PairFacts> alike;
    std::vector<PairFacts> rest;
    for (PairFacts& fact : facts) {
      const bool same =
          key_base(fact.pair.first) == key_base(lead.pair.first) &&
          key_base(fact.pair.second) == key_base(lead.pair.second) &&
          fact.connect == lead.connect && fact.operands == lead.operands &&
          std::abs(fact.pair.cycles - lead.pair.cycles) <=
              std::max(0.75, 4 * std::hypot(fact.pair.cycles_error, lead.pair.cycles_error));
      (same ? alike : rest).push_back(std::move(fact));
    }
    facts = std::move(rest);
    std::set<std::string> firsts;
    std::set<std::string> seconds;
    for (const PairFacts& fact : alike) {
      firsts.insert(typed_key(fact.pair.first));
      seconds.insert(typed_key(fact.pair.second));
    }
    if (alike.size() == tried_pairs(lead)) {
      // All that were tried: a side that was tried with several types stands for its mnemonic.
      add_rule(pattern(firsts), pattern(seconds), alike);
      return;
    }
    for (const PairFacts& fact : alike) {
      add_rule(typed_key(fact.pair.first), typed_key(fact.pair.second), {fact});
    }
  }

  static std::string pattern(const std::set<std::string>& keys) {
    return keys.size() > 1 ? std::string(key_base(*keys.begin())) : *keys.begin();
  }

  [[nodiscard]] size_t tried_pairs(const PairFacts& lead) const {
    size_t count = 0;
    for (const Slope& slope : evidence_.slopes) {
      const std::string_view wanted = lead.pair.is_unconnected ? "none" : "all";
      const bool is_product = slope.tag.amount != 0;
      count += slope.tag.role == "pair" && slope.tag.variant == wanted &&
                       is_product == lead.pair.is_unconnected &&
                       key_base(slope.tag.first) == key_base(lead.pair.first) &&
                       key_base(slope.tag.second) == key_base(lead.pair.second)
                   ? 1
                   : 0;
    }
    return count;
  }

  void add_rule(const std::string& first,
                const std::string& second,
                const std::vector<PairFacts>& facts) {
    InferredRule inferred;
    double weight = 0;
    for (const PairFacts& fact : facts) {
      const double w = 1 / (fact.pair.cycles_error * fact.pair.cycles_error + 1e-6);
      inferred.measured += w * fact.pair.cycles;
      weight += w;
      inferred.evidence.push_back(fmt::format("{}, {}: {} cycles where {} were expected",
                                              fact.pair.first,
                                              fact.pair.second,
                                              short_number(fact.pair.measured),
                                              short_number(fact.pair.expected)));
    }
    inferred.measured /= weight;
    inferred.error = 1 / std::sqrt(weight);
    inferred.open = facts.front().open;
    isa::FusionRule& rule = inferred.rule;
    rule.first = first;
    rule.second = second;
    rule.latency_cycles =
        static_cast<uint32_t>(std::llround(std::max(1.0, std::min(1e7, inferred.measured))));
    rule.keeps_first = facts.front().keeps_first;
    rule.source = fmt::format("measured on {}: {}", calibration_.device, inferred.evidence.front());
    std::vector<std::string> connects = {facts.front().connect};
    if (!facts.front().operands.empty()) {
      connects.clear();
      const InsnForm* form = find_form(facts.front().pair.first);
      const std::string_view dst = isa::spec_of(form->insn, static_cast<unsigned>(form->dst)).name;
      for (const std::string& operand : facts.front().operands) {
        connects.push_back(fmt::format("{}->{}", dst, operand));
      }
    }
    for (const std::string& connect : connects) {
      rule.connect = connect;
      rule.name = rule_name(rule);
      calibration_.rules.push_back(inferred);
      calibration_.machine.fusion.push_back(rule);
    }
  }

  static std::string rule_name(const isa::FusionRule& rule) {
    std::string name = fmt::format("{}_{}", rule.first, rule.second);
    if (rule.connect != "any" && rule.connect != "none") {
      name += "_" + rule.connect.substr(rule.connect.find("->") + 2);
    }
    for (char& c : name) {
      c = c == '.' ? '_' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    return name;
  }

  /// A hook that sees two insns issue as one is evidence enough where no pattern was measured.
  void add_hook_pairs() {
    std::map<std::pair<std::string, std::string>, std::vector<const PairMeasurement*>> seen;
    for (const KernelProfile& kernel : evidence_.measured.kernels) {
      const bool is_held_out = std::any_of(
          calibration_.kernels.begin(), calibration_.kernels.end(), [&](const KernelPrediction& k) {
            return k.name == kernel.name && k.is_held_out;
          });
      if (is_held_out) {
        continue;
      }
      for (const PairMeasurement& pair : kernel.pairs) {
        if (pair.is_joined && !is_covered(pair)) {
          seen[{typed_key(pair.first), typed_key(pair.second)}].push_back(&pair);
        }
      }
    }
    for (const auto& [keys, pairs] : seen) {
      PairFacts facts;
      facts.pair.first = pairs.front()->first;
      facts.pair.second = pairs.front()->second;
      uint64_t count = 0;
      for (const PairMeasurement* pair : pairs) {
        facts.pair.cycles += pair->cycles * static_cast<double>(pair->count);
        count += pair->count;
      }
      facts.pair.cycles /= static_cast<double>(std::max<uint64_t>(1, count));
      facts.open = {"which operands connect the pair", "whether the first result stays visible"};
      InferredRule inferred;
      inferred.measured = facts.pair.cycles;
      inferred.evidence = {fmt::format("the hook saw {} then {} issue as one {} times, {} cycles",
                                       facts.pair.first,
                                       facts.pair.second,
                                       count,
                                       short_number(facts.pair.cycles))};
      inferred.open = facts.open;
      inferred.rule.first = keys.first;
      inferred.rule.second = keys.second;
      inferred.rule.latency_cycles =
          static_cast<uint32_t>(std::llround(std::max(1.0, std::min(1e7, inferred.measured))));
      inferred.rule.name = rule_name(inferred.rule);
      inferred.rule.source =
          fmt::format("measured on {}: {}", calibration_.device, inferred.evidence.front());
      calibration_.machine.fusion.push_back(inferred.rule);
      calibration_.rules.push_back(std::move(inferred));
    }
  }

  [[nodiscard]] bool is_covered(const PairMeasurement& pair) const {
    return std::any_of(
        calibration_.rules.begin(), calibration_.rules.end(), [&](const InferredRule& known) {
          return key_base(known.rule.first) == key_base(pair.first) &&
                 key_base(known.rule.second) == key_base(pair.second);
        });
  }

  /// A rule of the base profile whose pair was tried and found apart does not hold on this device.
  void drop_refuted() {
    std::set<std::string> new_names;
    for (const InferredRule& inferred : calibration_.rules) {
      new_names.insert(inferred.rule.name);
    }
    std::erase_if(calibration_.machine.fusion, [&](const isa::FusionRule& rule) {
      const bool is_measured = rule.source.starts_with("measured on " + calibration_.device);
      if (is_measured && new_names.count(rule.name) != 0) {
        return false;
      }
      const bool was_tried =
          std::any_of(evidence_.slopes.begin(), evidence_.slopes.end(), [&](const Slope& slope) {
            return slope.tag.role == "pair" && key_base(slope.tag.first) == key_base(rule.first) &&
                   key_base(slope.tag.second) == key_base(rule.second);
          });
      if (was_tried) {
        calibration_.warnings.push_back(fmt::format(
            "fusion rule {} of the base profile is replaced by what was measured", rule.name));
      }
      return was_tried;
    });
  }

  const Evidence& evidence_;
  Calibration& calibration_;
  double floor_; // of an insn with a nop behind it
};

} // namespace

void fit_fusion(const Evidence& evidence, Calibration& calibration) {
  FusionFit(evidence, calibration).run();
}

} // namespace pto::rt::detail
