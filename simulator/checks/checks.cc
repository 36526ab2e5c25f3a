// SPDX-License-Identifier: Apache-2.0
// Which checks there are, and what a fault looks like as a finding.
#include "simulator/checks/checks.h"

#include "isa/suggest.h"
#include "simulator/checks/init_check.h"
#include "simulator/checks/nan_check.h"
#include "simulator/checks/race_check.h"
#include "simulator/checks/sync_check.h"
#include "simulator/grid_proof.h"
#include "simulator/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

namespace pto::sim {

namespace {

constexpr std::array kKinds = {
    CheckKind::kMem, CheckKind::kInit, CheckKind::kRace, CheckKind::kSync, CheckKind::kNan};

} // namespace

std::optional<CheckSet> parse_checks(std::string_view text, std::string& error) {
  CheckSet set;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    bool is_known = word == "none" || word == "all";
    for (const CheckKind kind : kKinds) {
      if (word == "all" || word == name(kind)) {
        set.add(kind);
        is_known = true;
      }
    }
    if (!is_known) {
      std::vector<std::string_view> names = {"all", "none"};
      for (const CheckKind kind : kKinds) {
        names.push_back(name(kind));
      }
      const auto nearest = isa::nearest_name(word, names);
      error = fmt::format("no check is called '{}'{}; there are mem, init, race, sync, nan and all",
                          word,
                          nearest ? fmt::format(" (did you mean '{}'?)", *nearest) : std::string());
      return std::nullopt;
    }
  }
  return set;
}

Checks::Checks(CheckSet set) : set_(set) {
  const auto add = [&]<class Check>(CheckKind kind, std::type_identity<Check>) {
    if (set_.contains(kind)) {
      kinds_.push_back(kind);
      observers_.push_back(std::make_unique<Check>(findings_));
    }
  };
  add(CheckKind::kInit, std::type_identity<InitCheck>());
  add(CheckKind::kRace, std::type_identity<RaceCheck>());
  add(CheckKind::kSync, std::type_identity<SyncCheck>());
  add(CheckKind::kNan, std::type_identity<NanCheck>());
}

Checks::~Checks() = default;

void Checks::attach(Launch& launch) {
  const auto is_about_others = [](CheckKind kind) {
    return kind == CheckKind::kRace || kind == CheckKind::kSync;
  };
  const std::optional<GridProof> proof = std::any_of(kinds_.begin(), kinds_.end(), is_about_others)
                                             ? prove_grid(launch)
                                             : std::nullopt;
  const bool are_alone = proof && proof->are_lanes_apart;
  for (size_t i = 0; i < observers_.size(); ++i) {
    if (!are_alone || !is_about_others(kinds_[i])) {
      launch.observers().attach(*observers_[i]);
    }
  }
}

void Checks::add_result(const Launch&, const RunResult& result) {
  if (!result.fault) {
    return;
  }
  const Fault& fault = *result.fault;
  const bool is_deadlock = fault.kind == FaultKind::kDeadlock;
  const CheckKind kind = is_deadlock ? CheckKind::kSync : CheckKind::kMem;
  if (!set_.contains(kind)) {
    return;
  }
  findings_.add({.kind = kind,
                 .message = fault.message,
                 .hint = fault.details,
                 .here = {.pc = fault.pc,
                          .block = fault.block,
                          .warp = fault.warp,
                          .lane_mask = fault.lane_mask,
                          .what = std::string(name(fault.kind))},
                 .has_address = fault.has_address,
                 .space = fault.space,
                 .address = fault.address,
                 .size_bytes = fault.size_bytes,
                 .location = fault.allocation,
                 .is_stop = true});
}

} // namespace pto::sim
