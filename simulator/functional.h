// SPDX-License-Identifier: Apache-2.0
// Runs a launch for its results alone: blocks in order, each as far as it gets.
#pragma once

#include "simulator/launch.h"

namespace pto::sim {

/// Runs every block of the launch. Results, counts, prints and faults depend on nothing but the
/// program and its inputs: not on options.host_threads, the host's speed or observers.
///
/// One block runs at a time until it ends or has executed a quantum; then the next of the resident
/// ones (cores * blocks_per_core) has its turn, so that blocks that wait for each other make
/// progress. Several host threads run blocks ahead, and do it over in order where that could be
/// seen (see parallel.h).
RunResult run_functional(Launch& launch, const RunOptions& options = {});

/// The same for the blocks that have not started yet, on one host thread and without telling
/// observers of a launch. Of the grid no more than its first `max_blocks` run: a limit as well.
RunResult
run_remaining(Launch& launch, const RunOptions& options, uint64_t max_blocks = UINT64_MAX);

} // namespace pto::sim
