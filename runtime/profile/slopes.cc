// SPDX-License-Identifier: Apache-2.0
// Slopes over repeats, then chains link by link: those that feed themselves first, then those that
// a known insn closes.
#include "runtime/profile/slopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace pto::rt::detail {
namespace {

/// So far above the least that a spaced link can take it says nothing; the chain without nops
/// decides.
constexpr double kResolvedAbove = 0.5;
/// A nop that holds a warp for longer may or may not do so while the link's result is under way.
constexpr double kLongSpacer = 1.5;

using Group = std::tuple<std::string, std::string, std::string, std::string, double>;

Group group_of(const MicroTag& tag) {
  return {tag.role, tag.first, tag.second, tag.variant, tag.amount};
}

std::string pattern_name(const MicroTag& tag) {
  return fmt::format("{} {}{}{} ({})",
                     tag.role,
                     tag.first,
                     tag.second.empty() ? "" : ", ",
                     tag.second,
                     tag.variant);
}

double both(double a, double b) {
  return std::sqrt(a * a + b * b);
}

class ChainSolver {
public:
  explicit ChainSolver(const std::vector<Slope>& slopes) : spacer_(spacer_cycles(slopes)) {
    for (const Slope& slope : slopes) {
      if (slope.tag.role == "latency") {
        by_key_[slope.tag.first].push_back(&slope);
      }
    }
  }

  std::map<std::string, ChainLatency> solve(std::vector<std::string>& problems) {
    for (bool has_grown = true; has_grown;) {
      has_grown = false;
      for (const auto& [key, slopes] : by_key_) {
        if (known_.count(key) == 0 && solve_key(key, slopes)) {
          has_grown = true;
        }
      }
    }
    for (const auto& [key, slopes] : by_key_) {
      const std::string& variant = slopes.front()->tag.variant;
      if (known_.count(key) == 0 && variant != "issue" && variant != "spacer") {
        problems.push_back(fmt::format("{}: its chain is closed by {}, whose latency is not known",
                                       key,
                                       slopes.front()->tag.second));
      }
    }
    return std::move(known_);
  }

private:
  static const Slope* variant(const std::vector<const Slope*>& slopes, std::string_view name) {
    const Slope* found = nullptr;
    for (const Slope* slope : slopes) {
      // Of several sizes (matrix products) the middle one stands for the key.
      if (slope->tag.variant == name && (found == nullptr || slope->tag.amount == 16)) {
        found = slope;
      }
    }
    return found;
  }

  bool solve_key(const std::string& key, const std::vector<const Slope*>& slopes) {
    if (const Slope* branch = variant(slopes, "branch")) {
      known_[key] = {branch->value,
                     branch->error,
                     "issue to issue of the target",
                     fmt::format("{} jumps in a row", short_number(branch->tag.repeats))};
      return true;
    }
    if (const Slope* nested = variant(slopes, "nested")) {
      known_[key] = {
          nested->value,
          nested->error,
          "issue to issue of the target",
          fmt::format("{} calls, each within the one before", short_number(nested->tag.repeats))};
      return true;
    }
    if (const Slope* both_ways = variant(slopes, "return")) {
      return solve_return(key, *both_ways);
    }
    if (const Slope* fence = variant(slopes, "fence")) {
      return solve_store(key, *fence);
    }
    const Slope* spaced = variant(slopes, "spaced");
    const Slope* tight = variant(slopes, "tight");
    if (spaced == nullptr) {
      return false;
    }
    double rest = 0; // of the insn that closes the chain, with a nop
    double rest_tight = 0;
    double rest_error = 0;
    if (!spaced->tag.second.empty()) {
      const auto back = known_.find(spaced->tag.second);
      if (back == known_.end()) {
        return false;
      }
      rest = std::max(spaced_floor(spacer_), back->second.cycles);
      rest_tight = back->second.cycles;
      rest_error = back->second.error;
    }
    ChainLatency latency;
    latency.cycles = spaced->value - rest;
    latency.error = both(spaced->error, rest_error);
    latency.evidence = fmt::format("chain with nops{}{}: {} cycles a link",
                                   spaced->tag.second.empty() ? "" : " closed by ",
                                   spaced->tag.second,
                                   short_number(spaced->value));
    const double alone = tight == nullptr ? 0 : tight->value - rest_tight;
    const double links = spaced->tag.second.empty() ? 1 : 2;
    if (tight != nullptr && spacer_ > kLongSpacer &&
        std::abs(spaced->value - tight->value - links * spacer_) <=
            0.5 + 3 * both(spaced->error, tight->error)) {
      // Nops came on top of the links, and nothing was joined without them.
      latency.cycles = alone;
      latency.error = both(tight->error, rest_error);
      latency.evidence += fmt::format("; without nops, which take {} each, {}",
                                      short_number(spacer_),
                                      short_number(tight->value));
    } else if (latency.cycles < spaced_floor(spacer_) + kResolvedAbove && tight != nullptr) {
      // As short as a nop hides. Without nops the chain tells, unless firmware joins its links;
      // then one is what it may be at least.
      latency.cycles = alone > 1.5 ? std::max(1.0, std::min(alone, latency.cycles)) : 1;
      latency.error = both(tight->error, rest_error);
      latency.evidence += fmt::format("; without nops {}", short_number(tight->value));
    }
    known_[key] = latency;
    return true;
  }

  /// A call and a return, less the call.
  bool solve_return(const std::string& key, const Slope& slope) {
    const auto call = known_.find(slope.tag.second);
    if (call == known_.end()) {
      return false;
    }
    known_[key] = {slope.value - call->second.cycles,
                   both(slope.error, call->second.error),
                   "issue to issue of the target",
                   fmt::format("{} and back: {} cycles, less the way there",
                               slope.tag.second,
                               short_number(slope.value))};
    return true;
  }

  bool solve_store(const std::string& key, const Slope& slope) {
    const auto fence = by_key_.find(slope.tag.second);
    const Slope* issue = fence == by_key_.end() ? nullptr : variant(fence->second, "issue");
    if (issue == nullptr) {
      return false;
    }
    known_[key] = {
        slope.value - issue->value,
        both(slope.error, issue->error),
        fmt::format("issue to the issue of {}", slope.tag.second),
        fmt::format("with {} after each: {} cycles", slope.tag.second, short_number(slope.value))};
    return true;
  }

  double spacer_;
  std::map<std::string, std::vector<const Slope*>> by_key_;
  std::map<std::string, ChainLatency> known_;
};

} // namespace

std::vector<Slope> micro_slopes(const Profile& profile, std::vector<std::string>& problems) {
  std::map<Group, std::vector<const KernelProfile*>> groups;
  for (const KernelProfile& kernel : profile.kernels) {
    if (kernel.micro.is_set() && kernel.micro.role != "launch") {
      groups[group_of(kernel.micro)].push_back(&kernel);
    }
  }
  std::vector<Slope> slopes;
  for (const auto& [group, kernels] : groups) {
    std::vector<LinePoint> points;
    Slope slope;
    slope.tag = kernels.front()->micro;
    slope.lanes = static_cast<uint32_t>(kernels.front()->block.total());
    for (const KernelProfile* kernel : kernels) {
      points.push_back({kernel->micro.repeats, kernel->cycles, kernel->error});
      slope.tag.repeats = std::max(slope.tag.repeats, kernel->micro.repeats);
    }
    std::string why;
    const std::optional<LineFit> fit = fit_line(points, why);
    if (!fit) {
      problems.push_back(fmt::format("{}: {}", pattern_name(slope.tag), why));
      continue;
    }
    slope.fit = *fit;
    slope.value = fit->step;
    slope.error = fit->step_error;
    slopes.push_back(std::move(slope));
  }
  return slopes;
}

const Slope* find_slope(const std::vector<Slope>& slopes,
                        std::string_view role,
                        std::string_view first,
                        std::string_view second,
                        std::string_view variant) {
  for (const Slope& slope : slopes) {
    if (slope.tag.role == role && slope.tag.first == first && slope.tag.second == second &&
        slope.tag.variant == variant) {
      return &slope;
    }
  }
  return nullptr;
}

double spacer_cycles(const std::vector<Slope>& slopes) {
  const Slope* spacer = find_slope(slopes, "latency", "NOP", "", "spacer");
  return spacer == nullptr ? 1 : std::max(1.0, spacer->value);
}

std::map<std::string, ChainLatency> chain_latencies(const std::vector<Slope>& slopes,
                                                    std::vector<std::string>& problems) {
  return ChainSolver(slopes).solve(problems);
}

} // namespace pto::rt::detail
