// SPDX-License-Identifier: Apache-2.0
// What a session drives: a launch that runs until its gate says stop, and can be put back. Private
// to the debugger.
#pragma once

#include "simulator/timed.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace pto::dbg {

class EngineState {
public:
  virtual ~EngineState() = default;
  [[nodiscard]] virtual uint64_t size_bytes() const = 0;
  [[nodiscard]] virtual sim::HbmHistory::Mark mark() const = 0;
};

class Engine {
public:
  virtual ~Engine() = default;
  /// Until the end, a fault, the limit, the interrupt or the gate's wish; again and again.
  virtual sim::RunStatus run() = 0;
  virtual void set_max_insns(uint64_t max_insns) = 0;
  [[nodiscard]] virtual bool is_finished() const = 0;
  /// Some warp has yet to execute something, or a block to start.
  [[nodiscard]] virtual bool has_work_left() const = 0;
  [[nodiscard]] virtual const std::optional<sim::Fault>& fault() const = 0;
  [[nodiscard]] virtual uint64_t position() const = 0;
  [[nodiscard]] virtual uint64_t cycle() const = 0; // of the latest issue
  [[nodiscard]] virtual uint32_t place_count() const = 0;
  [[nodiscard]] virtual sim::BlockRun* block_at(uint32_t place) const = 0;
  [[nodiscard]] virtual std::unique_ptr<const EngineState> save(sim::HbmHistory& history) const = 0;
  [[nodiscard]] virtual bool restore(const EngineState& state, sim::HbmHistory& history) = 0;
  /// Null without timing.
  [[nodiscard]] virtual const sim::TimingModel* model() const = 0;
  [[nodiscard]] virtual std::optional<sim::TimedResult> timed_result() const = 0;
  [[nodiscard]] virtual sim::RunResult run_result() const = 0;
};

/// `launch` and `shared` must outlive it.
std::unique_ptr<Engine>
make_timed_engine(sim::Launch& launch, sim::SharedMemory& shared, const sim::TimedOptions& options);
std::unique_ptr<Engine> make_lockstep_engine(sim::Launch& launch, const sim::TimedOptions& options);

} // namespace pto::dbg
