// SPDX-License-Identifier: Apache-2.0
#include "runtime/profile/wrong_order.h"

#include <cmath>

namespace pto::rt {

std::vector<WrongOrder>
find_wrong_orders(const Profile& profile,
                  const std::function<double(const KernelProfile&)>& predicted) {
  std::vector<WrongOrder> wrong;
  for (const KernelProfile& a : profile.kernels) {
    for (const KernelProfile& b : profile.kernels) {
      if (a.group.empty() || a.group != b.group || a.name >= b.name) {
        continue;
      }
      const WrongOrder order{&a, &b, predicted(a), predicted(b)};
      const double device = a.cycles - b.cycles;
      const bool is_known = order.predicted_a != 0 && order.predicted_b != 0;
      if (is_known && std::abs(device) > 3 * std::hypot(a.error, b.error) &&
          device * (order.predicted_a - order.predicted_b) <= 0) {
        wrong.push_back(order);
      }
    }
  }
  return wrong;
}

} // namespace pto::rt
