// SPDX-License-Identifier: Apache-2.0
// What of hbm a kernel may write to. Private to the simulator.
#pragma once

#include <vector>

namespace pto::sim {

class Launch;

/// Of each of the hbm's live allocations, whether the kernel writes to it, if every access stays in
/// the allocation of the parameter that its address comes from; all where that cannot be told. So
/// who relies on it must refuse a write to another one.
std::vector<bool> written_allocations(const Launch& launch);

} // namespace pto::sim
