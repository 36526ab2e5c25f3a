// SPDX-License-Identifier: Apache-2.0
// Inputs of the hardware benchmarks, made from the rules in cases.json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace pto::bench {

/// Bytes of one buffer by its rule: {"zeros": bytes}, {"random": n, "below": m}, {"ramp": n,
/// "step": s}, {"fill": n, "value": v}, {"line": n, "times": a, "plus": b, "mod": m}, {"hash_keys":
/// n}, and the parts of one sparse matrix: {"rows": r, "most": m}, {"row_columns": c},
/// {"like_columns": bytes}. Those of a matrix must come in this order.
class BufferMaker {
public:
  std::vector<uint8_t> make(const nlohmann::ordered_json& rule);

private:
  std::vector<uint32_t> row_lengths_;
  uint64_t entries_ = 0;
};

/// One case, measured and predicted, in the same unit.
struct Outcome {
  std::string id;
  std::string family;
  double measured = 0;
  double predicted = 0;
  [[nodiscard]] double error() const { return predicted / measured - 1; }
};

struct Summary {
  size_t count = 0;
  double mape = 0; // mean of |error|, in per cent
  double median = 0;
  double worst = 0;
  std::string worst_id;
  double tau = 0; // Kendall's tau-b of measured and predicted
  bool has_tau = false;
};
[[nodiscard]] Summary summarise(const std::vector<Outcome>& outcomes);
/// tau-b; pairs within one per cent of each other in the measurement count as ties.
[[nodiscard]] double kendall_tau(const std::vector<Outcome>& outcomes, bool& has_pairs);

} // namespace pto::bench
