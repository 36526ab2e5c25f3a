// SPDX-License-Identifier: Apache-2.0
// Decisions that a simulator would have got wrong: kernels of one group do the same work, so
// whoever believes it may take the slower one.
#pragma once

#include "runtime/profile/profile.h"

#include <functional>
#include <vector>

namespace pto::rt {

/// Two kernels of a group whose order on the device is not the predicted one, `a` before `b` by
/// name.
struct WrongOrder {
  const KernelProfile* a = nullptr;
  const KernelProfile* b = nullptr;
  double predicted_a = 0;
  double predicted_b = 0;
  [[nodiscard]] bool a_is_faster() const { return a->cycles < b->cycles; }
};

/// Those that the device tells apart by more than three standard errors. `predicted` gives the
/// cycles of a kernel; 0: unknown. The result points into `profile`.
[[nodiscard]] std::vector<WrongOrder>
find_wrong_orders(const Profile& profile,
                  const std::function<double(const KernelProfile&)>& predicted);

} // namespace pto::rt
