// SPDX-License-Identifier: Apache-2.0
// `--arg`: every form, numbers of every type, and the message for each mistake.
#include "isa/file_io.h"
#include "simulator/argument.h"
#include "simulator/number_text.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <unistd.h>

using namespace pto::sim;
using pto::isa::Type;

namespace {

pto::isa::Function kernel_of(std::vector<pto::isa::Param> params) {
  pto::isa::Function kernel;
  kernel.name = "k";
  kernel.is_kernel = true;
  kernel.params = std::move(params);
  return kernel;
}

pto::isa::Param pointer(std::string name, Type element = Type::kNone) {
  return {std::move(name), Type::kU64, true, element};
}
pto::isa::Param scalar(std::string name, Type type) {
  return {std::move(name), type, false, Type::kNone};
}

struct Outcome {
  BoundArguments bound;
  std::string messages;
};

Outcome bind(const std::vector<pto::isa::Param>& params,
             const std::vector<std::string>& texts,
             uint64_t max_array_bytes = 1 << 20) {
  pto::isa::Diagnostics diags;
  Outcome outcome;
  outcome.bound = bind_arguments(texts, kernel_of(params), diags, {max_array_bytes});
  outcome.messages = pto::isa::render(diags);
  return outcome;
}

/// The only argument of a kernel with one parameter.
Argument bound_one(const pto::isa::Param& param, const std::string& text) {
  Outcome outcome = bind({param}, {text});
  REQUIRE_MESSAGE(outcome.bound.status == ArgumentStatus::kGood, outcome.messages);
  REQUIRE(outcome.bound.arguments.size() == 1);
  return outcome.bound.arguments[0];
}

void check_error(const Outcome& outcome, ArgumentStatus status, const std::string& part) {
  CHECK(outcome.bound.status == status);
  CHECK(outcome.bound.arguments.empty());
  const bool is_there = outcome.messages.find(part) != std::string::npos;
  CHECK_MESSAGE(is_there, "lacks: ", part, "\n", outcome.messages);
}

template <typename T> std::vector<T> values_of(const Argument& argument) {
  std::vector<T> values(argument.array.data.size() / sizeof(T));
  std::memcpy(values.data(), argument.array.data.data(), argument.array.data.size());
  return values;
}

/// A folder that is gone when the test is over.
struct Folder {
  Folder()
      : path(std::filesystem::temp_directory_path() /
             ("pto_argument_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
  [[nodiscard]] std::string file(const std::string& name) const { return (path / name).string(); }
  std::filesystem::path path;
};

} // namespace

TEST_CASE("argument: numbers of every type") {
  const auto bits = [](Type type, const std::string& text) {
    return bound_one(scalar("x", type), "x=" + text).bits;
  };
  CHECK(bits(Type::kU32, "1024") == 1024);
  CHECK(bits(Type::kU32, "0x10") == 16);
  CHECK(bits(Type::kU32, "0b1010") == 10);
  CHECK(bits(Type::kU32, "1_000_000") == 1000000);
  CHECK(bits(Type::kU32, "4294967295") == 0xffffffff);
  CHECK(bits(Type::kS32, "-1") == UINT64_MAX);
  CHECK(bits(Type::kS8, "-128") == static_cast<uint64_t>(-128));
  CHECK(bits(Type::kB32, "-1") == 0xffffffff);
  CHECK(bits(Type::kB32, "0xffffffff") == 0xffffffff);
  CHECK(bits(Type::kU64, "18446744073709551615") == UINT64_MAX);
  CHECK(bits(Type::kS64, "-9223372036854775808") == uint64_t{1} << 63);
  CHECK(bits(Type::kF32, "-1.5") == 0xbfc00000);
  CHECK(bits(Type::kF32, "2") == 0x40000000);
  CHECK(bits(Type::kF32, "0x1.8p1") == 0x40400000);
  CHECK(bits(Type::kF32, "0f3f800000") == 0x3f800000);
  CHECK(bits(Type::kF32, "1e-50") == 0);
  CHECK(bits(Type::kF32, "-1e-400") == 0x80000000);
  CHECK(bits(Type::kF32, "16777217") == 0x4b800000); // ties to even
  CHECK(bits(Type::kF32, "inf") == 0x7f800000);
  CHECK(bits(Type::kF32, "-inf") == 0xff800000);
  CHECK(bits(Type::kF32, "nan") == 0x7fffffff - 0x3fffff);
  CHECK(bits(Type::kF16, "1") == 0x3c00);
  CHECK(bits(Type::kF16, "65519") == 0x7bff);
  CHECK(bits(Type::kF16, "0h3c00") == 0x3c00);
  CHECK(bits(Type::kBF16, "-2.0") == 0xc000);
}

TEST_CASE("argument: numbers that are none, or do not fit") {
  const auto rejected = [](Type type, const std::string& text, const std::string& message) {
    CAPTURE(text);
    check_error(bind({scalar("x", type)}, {"x=" + text}), ArgumentStatus::kUsage, message);
  };
  rejected(Type::kU32, "-1", "-1 does not fit u32; expected 0 to 4294967295");
  rejected(Type::kU32, "4294967296", "4294967296 does not fit u32");
  rejected(Type::kS8, "128", "128 does not fit s8; expected -128 to 127");
  rejected(Type::kS64, "9223372036854775808", "does not fit s64");
  rejected(Type::kU64, "99999999999999999999999", "does not fit u64");
  rejected(Type::kU32, "1.5", "'1.5' is not an integer; expected one for u32");
  rejected(Type::kU32, "0x", "'0x' is not an integer");
  rejected(Type::kU32, "12k", "'12k' is not an integer");
  rejected(Type::kU32, "1_", "'1_' is not an integer");
  rejected(Type::kU32, "inf", "'inf' is not an integer");
  rejected(Type::kF32, "1e39", "1e39 is too large for f32; write inf if infinity is meant");
  rejected(Type::kF32, "1e999", "1e999 is too large for f32");
  rejected(Type::kF16, "65520", "65520 is too large for f16");
  rejected(Type::kF32, "1.5.2", "'1.5.2' is not a number");
  rejected(Type::kF32, "--1", "neither a number nor a generator");
  rejected(Type::kF32, "1,5", "'1,5' is not a number");
}

TEST_CASE("argument: generators") {
  CHECK(values_of<float>(bound_one(pointer("a"), "a=zeros:f32[3]")) == std::vector<float>{0, 0, 0});
  CHECK(values_of<uint16_t>(bound_one(pointer("a"), "a=ones:f16[2]")) ==
        std::vector<uint16_t>{0x3c00, 0x3c00});
  CHECK(values_of<float>(bound_one(pointer("a"), "a=full:f32[2]:value=-2.5")) ==
        std::vector<float>{-2.5F, -2.5F});
  CHECK(values_of<int32_t>(bound_one(pointer("a"), "a=iota:s32[3]:start=5:step=-2")) ==
        std::vector<int32_t>{5, 3, 1});
  CHECK(values_of<float>(bound_one(pointer("a"), "a=iota:f32[2,2]:step=0.5")) ==
        std::vector<float>{0, 0.5F, 1, 1.5F});
  CHECK(values_of<float>(bound_one(pointer("a"), "a=rand:f32[2]:seed=1")) ==
        std::vector<float>{0.7497482299804688F, 0.3723933696746826F});
  CHECK(values_of<float>(bound_one(pointer("a"), "a=rand:f32[1]:seed=1:min=-1:max=1")) ==
        std::vector<float>{0.49949646F});
  CHECK(values_of<int32_t>(bound_one(pointer("a"), "a=rand:s32[3]:seed=7:lo=10:hi=20")) ==
        std::vector<int32_t>{15, 13, 19});
  CHECK(values_of<uint32_t>(bound_one(pointer("a"), "a=randn:f32[2]:seed=3")) ==
        std::vector<uint32_t>{0x3f65d810, 0xbe275a9f});
  const Argument shaped = bound_one(pointer("a", Type::kF32), "a=ones:[64,32]");
  CHECK(shaped.array.shape == std::vector<uint64_t>{64, 32});
  CHECK(shaped.array.data.size() == 64 * 32 * 4);
  CHECK(to_string(*shaped.array.element) == "f32");
  CHECK(bound_one(pointer("a"), "a=zeros:f32[0]").array.data.empty());
}

TEST_CASE("argument: uniform integers stay in their range at the ends of the type") {
  for (const uint8_t value : values_of<uint8_t>(bound_one(pointer("a"), "a=rand:u8[500]:lo=250"))) {
    CHECK(value >= 250);
  }
  for (const int8_t value :
       values_of<int8_t>(bound_one(pointer("a"), "a=rand:s8[500]:lo=-128:hi=-120"))) {
    CHECK(value < -120);
  }
}

TEST_CASE("argument: mistakes in the text point at the place") {
  const auto rejected = [](const std::string& text, const std::string& message) {
    CAPTURE(text);
    check_error(bind({pointer("a"), scalar("n", Type::kU32)}, {text, "n=1"}),
                ArgumentStatus::kUsage,
                message);
  };
  rejected("a", "an argument without '='");
  rejected("=3", "'' is no parameter name");
  rejected("a=", "argument 'a' has no value");
  rejected("a=@", "'@' without a file");
  rejected("a=rnad:f32[4]", "'rnad' is neither a number nor a generator; did you mean 'rand'?");
  rejected("a=b.npy", "a file is written with an @: a=@b.npy");
  rejected("a=rand", "rand without a shape");
  rejected("a=rand:f32", "rand without a shape");
  rejected("a=rand:float32[4]", "did you mean 'f32'?");
  rejected("a=rand:f23[4]", "did you mean 'f32'?");
  rejected("a=rand:f16x2[4]", "f16 with twice the elements");
  rejected("a=rand:f32[4", "no closing ']'");
  rejected("a=rand:f32[4,x]", "'x' is no extent");
  rejected("a=rand:f32[]", "no extent");
  rejected("a=rand:f32[4]:sed=1", "rand has no option 'sed'; did you mean 'seed'?");
  rejected("a=rand:f32[4]:seed", "option 'seed' has no value");
  rejected("a=rand:f32[4]:seed=x", "option 'seed': 'x' is not an integer");
  rejected("a=rand:f32[4]:lo=1:min=2", "option 'lo' is given twice");
  rejected("a=rand:f32[4]:lo=2:hi=1", "lo at most hi");
  rejected("a=rand:u8[4]:lo=3:hi=3", "hi is not above lo");
  rejected("a=zeros:f32[4]:seed=1", "zeros has no option 'seed'");
  rejected("a=full:f32[4]", "full without a value");
  rejected("a=full:u8[4]:value=256", "option 'value': 256 does not fit u8");
  rejected("a=randn:s32[4]", "randn of type s32");
  rejected("a=zeros:[4]", "no element type for parameter 'a'");
  rejected("a=zeros:f32[4294967296,4294967296]", "more than 2^64 bytes");
  rejected("a=zeros:f32[300000]", "the array has 1200000 bytes");
  rejected("a=3", "a number for parameter 'a', which is a pointer");
  rejected("n=zeros:u32[4]", "which is a scalar of type u32");
  rejected("m=4", "kernel 'k' has no parameter 'm'");
  rejected("n=4", "argument 'n' is given twice");
}

TEST_CASE("argument: the message shows the argument with a caret") {
  const Outcome outcome = bind({pointer("a")}, {"a=rand:f23[4]"});
  CHECK(outcome.messages.find("<argument a>:1:8: error: 'f23' is no element type") !=
        std::string::npos);
  CHECK(outcome.messages.find("^~~") != std::string::npos);
}

TEST_CASE("argument: missing ones are named with an example") {
  const Outcome outcome = bind({pointer("a", Type::kF16), scalar("n", Type::kU32)}, {});
  check_error(outcome,
              ArgumentStatus::kUsage,
              "no argument for parameter 'a' of kernel k(ptr.f16 a, u32 n)");
  check_error(outcome, ArgumentStatus::kUsage, "--arg a=zeros:f16[N] or @file.npy");
  check_error(outcome, ArgumentStatus::kUsage, "--arg n=NUMBER");
}

TEST_CASE("argument: order is that of the parameters") {
  const Outcome outcome = bind({pointer("a"), scalar("n", Type::kU32), pointer("b")},
                               {"b=ones:u8[1]", "n=7", "a=zeros:u8[1]"});
  REQUIRE(outcome.bound.arguments.size() == 3);
  CHECK(outcome.bound.arguments[0].param.name == "a");
  CHECK(outcome.bound.arguments[1].bits == 7);
  CHECK(outcome.bound.arguments[2].array.data[0] == std::byte{1});
}

TEST_CASE("argument: files") {
  const Folder folder;
  std::string error;
  const std::vector<float> floats{1.5F, -2.0F, 3.25F, 70000.0F};
  const auto bytes = std::as_bytes(std::span(floats));
  const std::vector<uint64_t> shape{2, 2};
  const std::string npy = folder.file("a.npy");
  const std::string bin = folder.file("a.bin");
  REQUIRE(write_npy(npy, {'f', 4}, shape, bytes, error));
  REQUIRE(pto::isa::write_file_atomically(bin, bytes, error));
  REQUIRE(pto::isa::write_file_atomically(folder.file("odd.bin"), bytes.first(15), error));
  REQUIRE(pto::isa::write_file_atomically(folder.file("short.npy"), bytes, error));
  const pto::isa::Param f32 = pointer("a", Type::kF32);

  SUBCASE("numpy") {
    const Argument argument = bound_one(pointer("a"), "a=@" + npy);
    CHECK(values_of<float>(argument) == floats);
    CHECK(argument.array.shape == shape);
    CHECK(bound_one(f32, "a=@" + npy + ":f32[4]").array.shape == std::vector<uint64_t>{4});
  }
  SUBCASE("conversion") {
    const Argument half = bound_one(pointer("a", Type::kF16), "a=@" + npy + ":f16");
    CHECK(values_of<uint16_t>(half) == std::vector<uint16_t>{0x3e00, 0xc000, 0x4280, 0x7c00});
    check_error(bind({pointer("a")}, {"a=@" + npy + ":s32"}),
                ArgumentStatus::kBadInput,
                "element 0 is 1.5, which s32 does not hold");
  }
  SUBCASE("raw bytes") {
    CHECK(values_of<float>(bound_one(f32, "a=@" + bin)) == floats);
    CHECK(bound_one(pointer("a"), "a=@" + bin + ":u8[16]").array.shape[0] == 16);
    CHECK(!bound_one(pointer("a"), "a=@" + bin).array.element.has_value());
  }
  SUBCASE("a file that does not fit is bad input, not wrong usage") {
    const auto rejected =
        [&](const pto::isa::Param& param, const std::string& text, const std::string& message) {
          check_error(bind({param}, {"a=@" + text}), ArgumentStatus::kBadInput, message);
        };
    rejected(pointer("a", Type::kF16), npy, "elements of type f32 for parameter 'a'");
    rejected(pointer("a", Type::kS32), npy, "declares as ptr.s32");
    rejected(f32, npy + ":f32[5]", "has the shape [2,2], 4 elements");
    rejected(f32, bin + ":f32[5]", "expected: 20 bytes for f32[5]");
    rejected(f32, folder.file("odd.bin"), "has 15 bytes, no whole number of f32 elements");
    rejected(f32, folder.file("short.npy"), "is not a usable .npy file");
    rejected(f32, folder.file("none.npy"), "No such file or directory");
    rejected(f32, folder.path.string(), "it is a directory");
  }
  SUBCASE("a type on the command line that the kernel contradicts is wrong usage") {
    check_error(bind({f32}, {"a=@" + bin + ":f16[8]"}),
                ArgumentStatus::kUsage,
                "elements of type f16 for parameter 'a', which the kernel declares as ptr.f32");
  }
  SUBCASE("bf16 comes as u2") {
    const std::vector<uint16_t> raw{0x3f80};
    REQUIRE(
        write_npy(npy, {'u', 2}, std::vector<uint64_t>{1}, std::as_bytes(std::span(raw)), error));
    const Argument argument = bound_one(pointer("a", Type::kBF16), "a=@" + npy);
    CHECK(to_string(*argument.array.element) == "bf16");
    CHECK(values_of<uint16_t>(argument) == raw);
  }
}
