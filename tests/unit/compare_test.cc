// SPDX-License-Identifier: Apache-2.0
// `--expect`: the allclose rule, integers, NaN, and the text of a difference.
#include "simulator/compare.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace pto::sim;

namespace {

template <typename T> struct TypeOf;
template <> struct TypeOf<float> { static constexpr ElementType kType{ElementClass::kFloat, 4}; };
template <> struct TypeOf<double> { static constexpr ElementType kType{ElementClass::kFloat, 8}; };
template <> struct TypeOf<int32_t> {
  static constexpr ElementType kType{ElementClass::kSigned, 4};
};
template <> struct TypeOf<uint32_t> {
  static constexpr ElementType kType{ElementClass::kUnsigned, 4};
};
template <> struct TypeOf<int64_t> {
  static constexpr ElementType kType{ElementClass::kSigned, 8};
};

template <typename T>
HostArray array(const std::vector<T>& values, std::vector<uint64_t> shape = {}) {
  HostArray result{
      TypeOf<T>::kType, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
  if (result.shape.empty()) {
    result.shape = {values.size()};
  }
  std::memcpy(result.data.data(), values.data(), result.data.size());
  return result;
}

Comparison compared(const HostArray& got, const HostArray& expected, Tolerance tolerance = {}) {
  std::string error;
  const std::optional<Comparison> result = compare_arrays(got, expected, tolerance, error);
  REQUIRE_MESSAGE(result.has_value(), error);
  return *result;
}

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();

} // namespace

TEST_CASE("compare: the allclose rule") {
  const HostArray expected = array<float>({100.0F, 0.0F, -100.0F});
  CHECK(compared(array<float>({100.0F, -0.0F, -100.0F}), expected).is_equal());
  const HostArray near = array<float>({100.5F, 0.25F, -100.5F});
  CHECK(compared(near, expected).differing == 3);
  CHECK(compared(near, expected, {.rtol = 0.005}).differing == 1); // 0.25 against 0
  CHECK(compared(near, expected, {.rtol = 0.005, .atol = 0.25}).is_equal());
  CHECK(compared(near, expected, {.rtol = 0.0049, .atol = 0.0}).differing == 3);
  const Comparison result = compared(near, expected, {.rtol = 0.005, .atol = 0.25});
  CHECK(result.max_absolute == 0.5);
  CHECK(std::isinf(result.max_relative));
}

TEST_CASE("compare: NaN and infinity") {
  const HostArray special = array<float>({kNanF, kInf, -kInf});
  CHECK(compared(special, special).is_equal());
  CHECK(compared(special, special, {.nan_equals_nan = false}).differing == 1);
  CHECK(compared(array<float>({kInf}), array<float>({-kInf}), {.rtol = 1, .atol = 1}).differing ==
        1);
  CHECK(compared(array<float>({3e38F}), array<float>({kInf}), {.rtol = 1, .atol = 1}).differing ==
        1);
  CHECK(compared(array<float>({kNanF}), array<float>({1.0F}), {.rtol = 1, .atol = 9}).differing ==
        1);
}

TEST_CASE("compare: integers are exact whatever the tolerance") {
  const HostArray expected = array<int32_t>({1, -2, 1 << 30});
  CHECK(compared(expected, expected).is_equal());
  CHECK(compared(array<int32_t>({1, -2, (1 << 30) + 1}), expected, {.rtol = 1}).differing == 1);
  CHECK(compared(expected, array<int64_t>({1, -2, 1 << 30})).is_equal());
  CHECK(compared(array<uint32_t>({0xffffffff}), array<int64_t>({-1})).differing == 1);
}

TEST_CASE("compare: floats of different formats compare by value") {
  CHECK(compared(array<float>({0.5F}), array<double>({0.5})).is_equal());
  CHECK(compared(array<float>({0.1F}), array<double>({0.1})).differing == 1);
  CHECK(compared(array<float>({0.1F}), array<double>({0.1}), {.rtol = 1e-7}).is_equal());
}

TEST_CASE("compare: first, worst and ulps") {
  const HostArray expected = array<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const HostArray got = array<float>({1, std::nextafter(2.0F, 3.0F), 3, 4, 9, 6});
  const Comparison result = compared(got, expected);
  CHECK(result.differing == 2);
  REQUIRE(result.first);
  CHECK(result.first->index == 1);
  CHECK(result.first->ulps == 1);
  CHECK(result.worst->index == 4);
  CHECK(result.worst->absolute == 4);
  CHECK(result.worst->relative == doctest::Approx(0.8));
  CHECK(describe_difference("o", result, got, expected, {}) ==
        "o: 2 of 6 elements differ, 33.3 % (wanted: exactly equal)\n"
        "  first  o[0,1]: got 2.0000002, expected 2 (error 2.384e-07, relative 1.19e-07, 1 ulp)\n"
        "  worst  o[1,1]: got 9, expected 5 (error 4, relative 0.8, 7340032 ulp)\n"
        "  index     [0,0]      [0,1]  [0,2]  [1,0]  [1,1]\n"
        "  got           1  2.0000002      3      4      9\n"
        "  expected      1          2      3      4      5\n");
  // Across zero: the smallest subnormals of both signs are two apart.
  const float tiny = std::numeric_limits<float>::denorm_min();
  CHECK(compared(array<float>({tiny}), array<float>({-tiny})).first->ulps == 2);
}

TEST_CASE("compare: a NaN is the worst difference") {
  const HostArray expected = array<float>({1, 2, 3});
  const Comparison result = compared(array<float>({1e9F, kNanF, -1e9F}), expected);
  CHECK(result.worst->index == 1);
  CHECK(describe_difference("o", result, array<float>({1e9F, kNanF, -1e9F}), expected, {})
            .find("worst  o[1]: got nan, expected 2 (NaN against a number)") != std::string::npos);
}

TEST_CASE("compare: what cannot be compared") {
  std::string error;
  CHECK_FALSE(compare_arrays(array<float>({1, 2}), array<float>({1}), {}, error));
  CHECK(error == "it has 8 bytes, 2 elements of f32; the expected array [1] has 1 elements of f32");
  CHECK_FALSE(compare_arrays(array<float>({1}), array<int32_t>({1}), {}, error));
  CHECK(error.find("its elements are f32, the expected ones s32") != std::string::npos);
}

TEST_CASE("compare: bytes without a type take that of the expected data") {
  HostArray raw = array<float>({1, 2});
  raw.element.reset();
  raw.shape = {8};
  CHECK(compared(raw, array<float>({1, 2})).is_equal());
  CHECK(compared(array<float>({1, 2}), raw).is_equal());
  CHECK(compared(raw, raw).count == 8);
}

TEST_CASE("compare: agreement in one line") {
  const HostArray expected = array<float>({1, 2});
  const Tolerance tolerance{.rtol = 1e-5, .atol = 1e-8};
  CHECK(describe_agreement("o", "e.npy", compared(expected, expected, tolerance), tolerance) ==
        "o: all 2 elements agree with e.npy within rtol 1e-05, atol 1e-08");
  CHECK(describe_agreement("o", "e.npy", compared(expected, expected), {}) ==
        "o: all 2 elements agree with e.npy exactly");
  const HostArray ints = array<int32_t>({1});
  CHECK(describe_agreement("o", "e.npy", compared(ints, ints), tolerance) ==
        "o: all 1 elements agree with e.npy");
  CHECK(index_to_string(113, {8, 32}) == "[3,17]");
}
