// SPDX-License-Identifier: Apache-2.0
// Lockstep, greedy and random orders over the resident blocks.
#include "simulator/schedule.h"

#include "simulator/block.h"
#include "simulator/run_loop.h"

#include <fmt/format.h>

#include <charconv>

namespace pto::sim {

namespace {

/// splitmix64: the same numbers on every host.
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Below `limit`, which is not 0; the bias of the remainder is of no matter here.
  uint64_t below(uint64_t limit) { return next() % limit; }

private:
  uint64_t state_;
};

/// Greedy and random runs give other warps a chance after so many steps: what spins must not spin
/// for ever.
constexpr uint64_t kGreedySteps = 4096;

/// Insns of all warps of a block that let each execute some thousands (SpinWatch).
uint64_t spin_window(const Launch& launch) {
  return 2 * kGreedySteps * launch.image().warps;
}

class Driver {
public:
  Driver(Launch& launch, const Schedule& schedule, const RunOptions& options)
      : launch_(launch), schedule_(schedule), loop_(launch, options, spin_window(launch)),
        random_(schedule.seed) {
    places_.resize(launch.resident_limit());
  }

  RunResult run() {
    while (fill()) {
      if (schedule_.policy == SchedulePolicy::kRandom) {
        random_steps();
      } else {
        for (size_t place = 0; place < places_.size() && is_open_; ++place) {
          if (places_[place] != nullptr) {
            turn(place);
          }
        }
      }
    }
    for (std::unique_ptr<BlockRun>& block : places_) {
      if (block != nullptr) {
        launch_.retire_block(std::move(block));
      }
    }
    return loop_.result();
  }

private:
  /// Puts blocks on free places; false when nothing is left to run.
  bool fill() {
    const uint32_t cores = std::max(1u, launch_.machine().profile.cores);
    bool any = false;
    for (size_t place = 0; place < places_.size(); ++place) {
      if (places_[place] == nullptr && launch_.has_next_block()) {
        places_[place] = launch_.next_block(static_cast<uint32_t>(place % cores));
      }
      any = any || places_[place] != nullptr;
    }
    is_open_ = is_open_ && loop_.goes_on(any);
    return is_open_;
  }

  /// One step; retires the block when it is done. False if the warp cannot go on now.
  bool step(size_t place, uint32_t warp) {
    BlockRun& block = *places_[place];
    is_open_ = loop_.goes_on(true);
    if (!is_open_) {
      return false;
    }
    loop_.step(block, warp);
    loop_.look_for_spinning(places_);
    if (block.has_fault()) {
      loop_.end_with(*block.fault());
      is_open_ = false;
      return false;
    }
    if (block.is_done()) {
      launch_.retire_block(std::move(places_[place]));
      return false;
    }
    return block.is_ready(warp);
  }

  /// The block has no ready warp: move a copy that holds one up, or it is a deadlock.
  void unblock(BlockRun& block) {
    if (!block.pending_copies().empty()) {
      block.complete_copy(0);
    } else {
      loop_.end_with(block.deadlock_fault());
      is_open_ = false;
    }
  }

  void turn(size_t place) {
    const uint64_t steps = schedule_.policy == SchedulePolicy::kGreedy ? kGreedySteps : 1;
    const uint32_t warps = places_[place]->warp_count();
    bool any = false;
    for (uint32_t w = 0; w < warps; ++w) {
      if (places_[place] == nullptr || !is_open_) {
        return;
      }
      if (!places_[place]->is_ready(w)) {
        continue;
      }
      any = true;
      for (uint64_t i = 0; i < steps && step(place, w); ++i) {
      }
    }
    if (!any && places_[place] != nullptr && is_open_) {
      unblock(*places_[place]);
    }
  }

  /// A batch of random choices: a place, then a ready warp or a pending copy of it.
  void random_steps() {
    occupied_.clear();
    for (size_t place = 0; place < places_.size(); ++place) {
      if (places_[place] != nullptr) {
        occupied_.push_back(place);
      }
    }
    const size_t place = occupied_[random_.below(occupied_.size())];
    // Runs of one warp of random length reach orders that single steps hardly ever do.
    BlockRun& block = *places_[place];
    std::vector<uint32_t>& ready = ready_;
    ready.clear();
    for (uint32_t w = 0; w < block.warp_count(); ++w) {
      if (block.is_ready(w)) {
        ready.push_back(w);
      }
    }
    const size_t copies = block.pending_copies().size();
    if (copies != 0 && (ready.empty() || random_.below(16) == 0)) {
      block.complete_copy(random_.below(copies));
      return;
    }
    if (ready.empty()) {
      unblock(block);
      return;
    }
    const uint32_t warp = ready[random_.below(ready.size())];
    const uint64_t steps = uint64_t{1} << random_.below(8);
    for (uint64_t i = 0; i < steps && step(place, warp); ++i) {
    }
  }

  Launch& launch_;
  Schedule schedule_;
  RunLoop loop_;
  Random random_;
  std::vector<std::unique_ptr<BlockRun>> places_;
  std::vector<size_t> occupied_;
  std::vector<uint32_t> ready_;
  bool is_open_ = true;
};

} // namespace

std::optional<Schedule> parse_schedule(std::string_view text, std::string& error) {
  if (text == "lockstep") {
    return Schedule{SchedulePolicy::kLockstep, 0};
  }
  if (text == "greedy") {
    return Schedule{SchedulePolicy::kGreedy, 0};
  }
  constexpr std::string_view kRandomName = "random";
  if (text.substr(0, kRandomName.size()) == kRandomName) {
    std::string_view rest = text.substr(kRandomName.size());
    Schedule schedule{SchedulePolicy::kRandom, 0};
    if (rest.empty()) {
      return schedule;
    }
    if (rest.front() == ':' && rest.size() > 1) {
      rest.remove_prefix(1);
      const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), schedule.seed);
      if (parsed.ec == std::errc{} && parsed.ptr == rest.data() + rest.size()) {
        return schedule;
      }
    }
    error = fmt::format(
        "schedule '{}': expected random:SEED with a seed from 0 to 2^64-1, such as random:7", text);
    return std::nullopt;
  }
  error =
      fmt::format("unknown schedule '{}'; expected timed, lockstep, greedy or random:SEED", text);
  return std::nullopt;
}

std::string to_string(const Schedule& schedule) {
  if (schedule.policy == SchedulePolicy::kRandom) {
    return fmt::format("random:{}", schedule.seed);
  }
  return schedule.policy == SchedulePolicy::kGreedy ? "greedy" : "lockstep";
}

RunResult run_scheduled(Launch& launch, const Schedule& schedule, const RunOptions& options) {
  launch.set_copy_policy(schedule.policy == SchedulePolicy::kRandom ? CopyPolicy::kByDriver
                                                                    : options.copies);
  launch.observers().notify(kWantsLaunch,
                            [&](Observer& observer) { observer.launch_begin(launch); });
  RunResult result = Driver(launch, schedule, options).run();
  launch.observers().notify(kWantsLaunch,
                            [&](Observer& observer) { observer.launch_end(launch, result); });
  return result;
}

} // namespace pto::sim
