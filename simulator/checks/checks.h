// SPDX-License-Identifier: Apache-2.0
// The checks as one: which are on, attached to a launch, and what they found.
#pragma once

#include "simulator/checks/finding.h"
#include "simulator/observer.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pto::sim {

class Launch;

/// A set of checks; `all` has every one.
class CheckSet {
public:
  constexpr CheckSet() = default;
  static constexpr CheckSet all() { return CheckSet(0x1f); }
  constexpr void add(CheckKind kind) { bits_ |= 1u << static_cast<unsigned>(kind); }
  constexpr bool contains(CheckKind kind) const {
    return (bits_ >> static_cast<unsigned>(kind) & 1) != 0;
  }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool operator==(const CheckSet&) const = default;

private:
  constexpr explicit CheckSet(unsigned bits) : bits_(bits) {}
  unsigned bits_ = 0;
};

/// "mem,race", "all", "none" or "". nullopt and a message that names the unknown word, the nearest
/// check and all of them.
std::optional<CheckSet> parse_checks(std::string_view text, std::string& error);

/// The checks of one launch. Attach before the run; costs nothing for checks that are off.
class Checks {
public:
  explicit Checks(CheckSet set);
  ~Checks();
  Checks(const Checks&) = delete;
  Checks& operator=(const Checks&) = delete;

  /// `launch` and this object must live until the run is over. Where it is proven that no two lanes
  /// of the launch meet (grid_proof.h), the checks for races and synchronisation, which could find
  /// nothing, stay away.
  void attach(Launch& launch);
  /// Adds what the run itself stopped for: a fault is a finding of kind mem, a deadlock of kind
  /// sync. Call it once with the result of the run.
  void add_result(const Launch& launch, const RunResult& result);

  const Findings& findings() const { return findings_; }
  /// One a check, for whoever passes a launch's events on.
  const std::vector<std::unique_ptr<Observer>>& observers() const { return observers_; }

private:
  CheckSet set_;
  Findings findings_;
  std::vector<CheckKind> kinds_; // of observers_
  std::vector<std::unique_ptr<Observer>> observers_;
};

} // namespace pto::sim
