// SPDX-License-Identifier: Apache-2.0
// Generators against values of an independent computation (Python's integers and statistics
// module).
#include "simulator/generator.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

using namespace pto::sim;

namespace {

constexpr ElementType kF32{ElementClass::kFloat, 4};
constexpr ElementType kF64{ElementClass::kFloat, 8};

template <typename T> std::vector<T> as(const std::vector<std::byte>& data) {
  std::vector<T> values(data.size() / sizeof(T));
  std::memcpy(values.data(), data.data(), data.size());
  return values;
}

} // namespace

TEST_CASE("generator: random bits are SplitMix64 in counter form") {
  CHECK(random_bits(0, 0) == 0xe220a8397b1dcdafU); // the published first output for state 0
  CHECK(random_bits(0, 1) == 0x6e789e6aa1b965f4U);
  CHECK(random_bits(1, 0) == 0xbfef8030ddc2d772U);
  CHECK(random_bits(1, 2) == 0x70335fc3daf3d8a7U);
}

TEST_CASE("generator: uniform reals are exact in [0, 1)") {
  std::vector<std::byte> data(4 * sizeof(float));
  fill_uniform_real(data, kF32, 1, 0, 1);
  CHECK(as<uint32_t>(data) ==
        std::vector<uint32_t>{0x3f3fef80, 0x3ebeaa58, 0x3ee066be, 0x3f7440fe});
  fill_uniform_real(data, kF32, 1, -1, 1);
  CHECK(as<float>(data) == std::vector<float>{0.49949646F, -0.25521326F, -0.12343228F, 0.9082334F});
  std::vector<std::byte> small(4 * 2);
  fill_uniform_real(small, {ElementClass::kBrainFloat, 2}, 1, 0, 1);
  // 0.74609375 0.37109375 0.4375 0.953125
  CHECK(as<uint16_t>(small) == std::vector<uint16_t>{0x3f3f, 0x3ebe, 0x3ee0, 0x3f74});
}

TEST_CASE("generator: uniform integers keep their range") {
  std::vector<std::byte> data(8 * sizeof(int32_t));
  fill_uniform_integer(data, {ElementClass::kSigned, 4}, 7, 10, 10);
  CHECK(as<int32_t>(data) == std::vector<int32_t>{15, 13, 19, 18, 16, 13, 13, 16});
  std::vector<std::byte> bytes(8);
  fill_uniform_integer(bytes, {ElementClass::kSigned, 1}, 7, 0, 0);
  CHECK(as<int8_t>(bytes) == std::vector<int8_t>{-122, 77, -16, -30, -87, 88, 102, -102});
}

TEST_CASE("generator: normal values follow the inverse distribution") {
  CHECK(normal_quantile(0.5) == 0.0);
  CHECK(normal_quantile(1e-300) == doctest::Approx(-37.0470962993612).epsilon(1e-14));
  CHECK(normal_quantile(1e-20) == doctest::Approx(-9.262340089798405).epsilon(1e-14));
  CHECK(normal_quantile(1e-10) == doctest::Approx(-6.361340902404056).epsilon(1e-14));
  CHECK(normal_quantile(0.01) == doctest::Approx(-2.3263478740408408).epsilon(1e-14));
  CHECK(normal_quantile(0.3) == doctest::Approx(-0.5244005127080407).epsilon(1e-14));
  CHECK(normal_quantile(0.999999) == doctest::Approx(4.753424308817089).epsilon(1e-12));
  std::vector<std::byte> data(4 * sizeof(float));
  fill_normal(data, kF32, 3, 0, 1);
  CHECK(as<uint32_t>(data) ==
        std::vector<uint32_t>{0x3f65d810, 0xbe275a9f, 0xbe80a2e1, 0x3f6f514d});
  std::vector<std::byte> wide(4 * sizeof(double));
  fill_normal(wide, kF64, 3, 0, 1);
  CHECK(as<double>(wide)[0] == doctest::Approx(0.8978281227060009).epsilon(1e-14));
  CHECK(as<double>(wide)[3] == doctest::Approx(0.9348342946947255).epsilon(1e-14));

  std::vector<std::byte> many(20000 * sizeof(double));
  fill_normal(many, kF64, 5, 2, 3);
  double sum = 0;
  double squares = 0;
  for (const double value : as<double>(many)) {
    sum += value;
    squares += (value - 2) * (value - 2);
  }
  CHECK(std::abs(sum / 20000 - 2) < 0.06);
  CHECK(std::abs(std::sqrt(squares / 20000) - 3) < 0.06);
}

TEST_CASE("generator: a longer array begins with a shorter one") {
  std::vector<std::byte> shorter(100 * sizeof(float));
  std::vector<std::byte> longer(1000 * sizeof(float));
  fill_normal(shorter, kF32, 9, 0, 1);
  fill_normal(longer, kF32, 9, 0, 1);
  CHECK(std::memcmp(shorter.data(), longer.data(), shorter.size()) == 0);
}

TEST_CASE("generator: iota and constants") {
  std::vector<std::byte> data(4);
  fill_iota_integer(data, {ElementClass::kUnsigned, 1}, 254, 1);
  CHECK(as<uint8_t>(data) == std::vector<uint8_t>{254, 255, 0, 1});
  fill_constant(data, {ElementClass::kUnsigned, 2}, 0xbeef);
  CHECK(as<uint16_t>(data) == std::vector<uint16_t>{0xbeef, 0xbeef});
  std::vector<std::byte> reals(3 * sizeof(float));
  fill_iota_real(reals, kF32, 1, -0.5);
  CHECK(as<float>(reals) == std::vector<float>{1.0F, 0.5F, 0.0F});
}
