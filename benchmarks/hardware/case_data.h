// SPDX-License-Identifier: Apache-2.0
// Inputs of the hardware benchmarks, made from the rules in cases.json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
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

} // namespace pto::bench
