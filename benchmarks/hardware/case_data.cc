// SPDX-License-Identifier: Apache-2.0
// Buffers by rule.
#include "benchmarks/hardware/case_data.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <random>
#include <stdexcept>

namespace pto::bench {

namespace {

template <class T> std::vector<uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// 80 % of the keys start in buckets of their own, 20 % meet one of them; shuffled.
std::vector<uint64_t> hash_keys(uint64_t count) {
  constexpr uint64_t kHash = 11400714819323198485u;
  const uint64_t mask = count * 2 - 1;
  std::vector<uint64_t> keys(count);
  const uint64_t own = count * 4 / 5;
  for (uint64_t i = 0; i < count; ++i) {
    keys[i] = i < own ? ((i * kHash) & mask) + 1 : keys[i - own] + (mask + 1);
  }
  std::mt19937 random(20260716);
  for (uint64_t i = count; i > 1; --i) {
    std::swap(keys[i - 1], keys[random() % i]);
  }
  return keys;
}

} // namespace

std::vector<uint8_t> BufferMaker::make(const nlohmann::ordered_json& rule) {
  std::mt19937 random(42);
  if (rule.contains("zeros")) {
    return std::vector<uint8_t>(rule["zeros"].get<uint64_t>());
  }
  if (rule.contains("random")) {
    std::vector<uint32_t> values(rule["random"].get<size_t>());
    const auto below = rule["below"].get<uint32_t>();
    std::generate(values.begin(), values.end(), [&] { return random() % below; });
    return bytes_of(values);
  }
  if (rule.contains("ramp")) {
    std::vector<float> values(rule["ramp"].get<size_t>());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(static_cast<double>(i) * rule["step"].get<double>());
    }
    return bytes_of(values);
  }
  if (rule.contains("fill")) {
    return bytes_of(
        std::vector<uint32_t>(rule["fill"].get<size_t>(), rule["value"].get<uint32_t>()));
  }
  if (rule.contains("line")) {
    std::vector<uint32_t> values(rule["line"].get<size_t>());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] =
          static_cast<uint32_t>((i * rule["times"].get<uint64_t>() + rule["plus"].get<uint64_t>()) %
                                rule["mod"].get<uint64_t>());
    }
    return bytes_of(values);
  }
  if (rule.contains("hash_keys")) {
    return bytes_of(hash_keys(rule["hash_keys"].get<uint64_t>()));
  }
  if (rule.contains("rows")) {
    std::vector<uint32_t> starts = {0};
    row_lengths_.resize(rule["rows"].get<size_t>());
    for (uint32_t& length : row_lengths_) {
      length = 1 + static_cast<uint32_t>(random() % rule["most"].get<uint32_t>());
      starts.push_back(starts.back() + length);
    }
    entries_ = starts.back();
    return bytes_of(starts);
  }
  if (rule.contains("row_columns")) {
    const auto columns = rule["row_columns"].get<uint32_t>();
    std::vector<uint32_t> all(columns);
    for (uint32_t c = 0; c < columns; ++c) {
      all[c] = c;
    }
    std::vector<uint32_t> values;
    for (const uint32_t length : row_lengths_) {
      std::vector<uint32_t> row;
      std::sample(all.begin(), all.end(), std::back_inserter(row), length, random);
      values.insert(values.end(), row.begin(), row.end());
    }
    return bytes_of(values);
  }
  if (rule.contains("like_columns")) {
    return std::vector<uint8_t>(entries_ * rule["like_columns"].get<uint64_t>());
  }
  throw std::runtime_error("cases.json: no such rule: " + rule.dump());
}

} // namespace pto::bench
