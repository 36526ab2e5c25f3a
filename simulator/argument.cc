// SPDX-License-Identifier: Apache-2.0
// From argument texts and a kernel's parameters to scalars and arrays.
#include "simulator/argument.h"

#include "isa/error.h"
#include "isa/file_io.h"
#include "isa/suggest.h"
#include "simulator/generator.h"
#include "simulator/npy.h"
#include "simulator/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>

namespace pto::sim {
namespace {

/// Binds one argument to its parameter.
class Binder {
public:
  Binder(isa::Diagnostics& diags, const ArgumentLimits& limits, ArgumentStatus& status)
      : diags_(diags), limits_(limits), status_(status) {}

  std::optional<Argument> bind(const ArgumentSpec& spec, const isa::Param& param) {
    Argument argument{param, 0, {}};
    const bool is_good =
        param.is_pointer ? bind_array(spec, argument) : bind_scalar(spec, argument);
    return is_good ? std::optional(std::move(argument)) : std::nullopt;
  }

private:
  isa::Diagnostic& usage(isa::SourceRange range, std::string message) {
    status_ = ArgumentStatus::kUsage;
    return diags_.error(range, std::move(message));
  }
  isa::Diagnostic& bad_input(isa::SourceRange range, std::string message) {
    status_ = std::max(status_, ArgumentStatus::kBadInput);
    return diags_.error(range, std::move(message));
  }

  bool bind_scalar(const ArgumentSpec& spec, Argument& argument) {
    const isa::Param& param = argument.param;
    if (spec.kind != ArgumentKind::kScalar) {
      usage(spec.value.range,
            fmt::format("an array for parameter '{}', which is a scalar of type "
                        "{}",
                        param.name,
                        isa::name(param.type)))
          .expect(fmt::format("{}=NUMBER", param.name));
      return false;
    }
    const std::optional<ElementType> type = element_type(param.type);
    PTO_CHECK(type.has_value());
    std::string reason;
    const std::optional<uint64_t> bits = parse_number(spec.value.text, *type, reason);
    if (!bits) {
      usage(spec.value.range, fmt::format("parameter '{}': {}", param.name, reason));
      return false;
    }
    argument.bits = *bits;
    return true;
  }

  bool bind_array(const ArgumentSpec& spec, Argument& argument) {
    const isa::Param& param = argument.param;
    if (spec.kind == ArgumentKind::kScalar) {
      usage(spec.value.range,
            fmt::format("a number for parameter '{}', which is a pointer", param.name))
          .expect(fmt::format("an array such as {0}=zeros:{1}[1024] or {0}=@file.npy",
                              param.name,
                              declared(param) ? to_string(*declared(param)) : "f32"));
      return false;
    }
    return spec.kind == ArgumentKind::kGenerator ? generate(spec, argument) : load(spec, argument);
  }

  static std::optional<ElementType> declared(const isa::Param& param) {
    return element_type(param.element);
  }

  /// Reports and returns false if the kernel declares another element type than `type`.
  bool check_element(const ArgumentSpec& spec,
                     const isa::Param& param,
                     ElementType type,
                     bool is_from_file) {
    const std::optional<ElementType> wanted = declared(param);
    if (!wanted || is_compatible(type, *wanted)) {
      return true;
    }
    const isa::SourceRange where = is_from_file ? spec.path.range : spec.array.range;
    const std::string message =
        fmt::format("elements of type {} for parameter '{}', which the kernel declares as ptr.{}",
                    to_string(type),
                    param.name,
                    to_string(*wanted));
    if (!is_from_file) {
      usage(where, message).expect(fmt::format("type {}", to_string(*wanted)));
      return false;
    }
    bad_input(where, message)
        .expect(fmt::format("a file of {}", npy_name(*wanted)))
        .advise(
            fmt::format("write @{}:{} to convert the values", spec.path.text, to_string(*wanted)));
    return false;
  }

  static std::string npy_name(ElementType type) {
    const std::string stored = to_string(npy_type(type));
    const std::string own = to_string(type);
    return own == stored ? own : fmt::format("{} (numpy's {})", own, stored);
  }

  bool generate(const ArgumentSpec& spec, Argument& argument) {
    const std::optional<ElementType> element =
        spec.array.element ? spec.array.element : declared(argument.param);
    if (!element) {
      usage(spec.array.range,
            fmt::format("no element type for parameter '{}', which is a plain ptr",
                        argument.param.name))
          .expect(fmt::format("{}:TYPE{}, such as {}:f32{}",
                              name(spec.generator),
                              shape_to_string(*spec.array.shape),
                              name(spec.generator),
                              shape_to_string(*spec.array.shape)));
      return false;
    }
    if (!check_element(spec, argument.param, *element, false)) {
      return false;
    }
    const std::optional<uint64_t> bytes = shape_bytes(*spec.array.shape, element->size_bytes);
    if (!bytes || *bytes > limits_.max_array_bytes) {
      usage(spec.array.range,
            fmt::format("the array has {} bytes",
                        bytes ? std::to_string(*bytes) : std::string("more than 2^64")))
          .expect(fmt::format("at most {} bytes", limits_.max_array_bytes));
      return false;
    }
    argument.array.element = element;
    argument.array.shape = *spec.array.shape;
    try {
      argument.array.data.resize(*bytes);
    } catch (const std::bad_alloc&) {
      bad_input(spec.array.range, fmt::format("the host has no memory for {} bytes", *bytes));
      return false;
    }
    return fill(spec, *element, argument.array.data);
  }

  /// An option as bits of the element type, `fallback` where it is not given.
  std::optional<uint64_t>
  number(const ArgumentSpec& spec, std::string_view option, ElementType type, uint64_t fallback) {
    const GeneratorOption* given = spec.find_option(option);
    if (given == nullptr) {
      return fallback;
    }
    std::string reason;
    const std::optional<uint64_t> bits = parse_number(given->value.text, type, reason);
    if (!bits) {
      usage(given->value.range, fmt::format("option '{}': {}", option, reason));
    }
    return bits;
  }

  /// An option as a double, for generators of floats.
  std::optional<double> real(const ArgumentSpec& spec, std::string_view option, double fallback) {
    constexpr ElementType kDouble{ElementClass::kFloat, 8};
    const auto bits = number(spec, option, kDouble, std::bit_cast<uint64_t>(fallback));
    return bits ? std::optional(std::bit_cast<double>(*bits)) : std::nullopt;
  }

  bool fill(const ArgumentSpec& spec, ElementType type, std::span<std::byte> data) {
    constexpr ElementType kSeedType{ElementClass::kBits, 8};
    const std::optional<uint64_t> seed = number(spec, "seed", kSeedType, 0);
    if (!seed) {
      return false;
    }
    switch (spec.generator) {
    case GeneratorKind::kZeros:
      return true;
    case GeneratorKind::kOnes:
      return fill_ones(type, data);
    case GeneratorKind::kFull: {
      const std::optional<uint64_t> bits = number(spec, "value", type, 0);
      if (bits) {
        fill_constant(data, type, *bits);
      }
      return bits.has_value();
    }
    case GeneratorKind::kRand:
      return type.is_float() ? fill_rand_real(spec, type, *seed, data)
                             : fill_rand_integer(spec, type, *seed, data);
    case GeneratorKind::kRandn:
      return fill_randn(spec, type, *seed, data);
    case GeneratorKind::kIota:
      return fill_iota(spec, type, data);
    }
    return false;
  }

  static bool fill_ones(ElementType type, std::span<std::byte> data) {
    std::string reason;
    const std::optional<uint64_t> one = parse_number("1", type, reason);
    PTO_CHECK(one.has_value());
    fill_constant(data, type, *one);
    return true;
  }

  bool fill_rand_real(const ArgumentSpec& spec,
                      ElementType type,
                      uint64_t seed,
                      std::span<std::byte> data) {
    const std::optional<double> lo = real(spec, "lo", 0.0);
    const std::optional<double> hi = lo ? real(spec, "hi", std::max(1.0, *lo + 1.0)) : std::nullopt;
    if (!lo || !hi) {
      return false;
    }
    if (!(*lo <= *hi) || !std::isfinite(*hi - *lo)) {
      usage(spec.value.range, fmt::format("rand from lo={} to hi={}", *lo, *hi))
          .expect("finite numbers, lo at most hi");
      return false;
    }
    fill_uniform_real(data, type, seed, *lo, *hi);
    return true;
  }

  bool fill_rand_integer(const ArgumentSpec& spec,
                         ElementType type,
                         uint64_t seed,
                         std::span<std::byte> data) {
    const bool is_whole_range =
        spec.find_option("lo") == nullptr && spec.find_option("hi") == nullptr;
    if (type.element_class == ElementClass::kBool) {
      fill_uniform_integer(data, type, seed, 0, 2);
      return true;
    }
    if (is_whole_range) {
      fill_uniform_integer(data, type, seed, 0, 0);
      return true;
    }
    const std::optional<uint64_t> lo = number(spec, "lo", type, 0);
    const std::optional<uint64_t> hi = number(spec, "hi", type, 0);
    if (!lo || !hi) {
      return false;
    }
    const bool has_hi = spec.find_option("hi") != nullptr;
    const bool is_ordered =
        type.is_signed() ? static_cast<int64_t>(*lo) < static_cast<int64_t>(*hi) : *lo < *hi;
    if (has_hi && !is_ordered) {
      usage(spec.value.range, fmt::format("rand without a value: hi is not above lo"))
          .expect("lo below hi; lo is the smallest value, hi is not reached");
      return false;
    }
    // Without hi: to the largest value of the type.
    const unsigned width = 8U * type.size_bytes;
    const uint64_t largest =
        type.is_signed() ? UINT64_MAX >> (65 - width) : UINT64_MAX >> (64 - width);
    fill_uniform_integer(data, type, seed, *lo, has_hi ? *hi - *lo : largest - *lo + 1);
    return true;
  }

  bool
  fill_randn(const ArgumentSpec& spec, ElementType type, uint64_t seed, std::span<std::byte> data) {
    if (!type.is_float()) {
      usage(spec.array.range, fmt::format("randn of type {}", to_string(type)))
          .expect("a float type: f32, f16, bf16 or f64");
      return false;
    }
    const std::optional<double> mean = real(spec, "mean", 0.0);
    const std::optional<double> deviation = real(spec, "std", 1.0);
    if (!mean || !deviation) {
      return false;
    }
    fill_normal(data, type, seed, *mean, *deviation);
    return true;
  }

  bool fill_iota(const ArgumentSpec& spec, ElementType type, std::span<std::byte> data) {
    if (type.is_float()) {
      const std::optional<double> start = real(spec, "start", 0.0);
      const std::optional<double> step = real(spec, "step", 1.0);
      if (start && step) {
        fill_iota_real(data, type, *start, *step);
      }
      return start && step;
    }
    if (type.element_class == ElementClass::kBool) {
      usage(spec.array.range, "iota of type bool").expect("a type of numbers");
      return false;
    }
    const std::optional<uint64_t> start = number(spec, "start", type, 0);
    // A negative step counts down in unsigned types too.
    constexpr ElementType kStepType{ElementClass::kBits, 8};
    const std::optional<uint64_t> step = number(spec, "step", kStepType, 1);
    if (start && step) {
      fill_iota_integer(data, type, *start, *step);
    }
    return start && step;
  }

  bool load(const ArgumentSpec& spec, Argument& argument) {
    const std::string path(spec.path.text);
    std::string reason;
    std::optional<std::vector<std::byte>> file =
        isa::read_file(path, reason, limits_.max_array_bytes);
    if (!file) {
      bad_input(spec.path.range, reason);
      return false;
    }
    constexpr std::string_view kNumpyMagic = "\x93NUMPY";
    const std::string_view start(reinterpret_cast<const char*>(file->data()),
                                 std::min(file->size(), kNumpyMagic.size()));
    const bool is_npy = path.ends_with(".npy") || start == kNumpyMagic;
    return is_npy ? load_npy(spec, argument, *file) : load_raw(spec, argument, std::move(*file));
  }

  bool load_npy(const ArgumentSpec& spec, Argument& argument, const std::vector<std::byte>& file) {
    std::string reason;
    std::optional<NpyArray> npy = parse_npy(file, reason);
    if (!npy) {
      bad_input(spec.path.range,
                fmt::format("'{}' is not a usable .npy file: {}", spec.path.text, reason));
      return false;
    }
    HostArray array{element_type(npy->type), std::move(npy->shape), std::move(npy->data)};
    // numpy has no bf16: u2 bits pass for it where that is wanted.
    const std::optional<ElementType> wanted =
        spec.array.element ? spec.array.element : declared(argument.param);
    if (wanted && is_compatible(*array.element, *wanted)) {
      array.element = wanted;
    } else if (spec.array.element) {
      std::optional<HostArray> converted = convert_array(array, *spec.array.element, reason);
      if (!converted) {
        bad_input(spec.path.range, fmt::format("'{}': {}", spec.path.text, reason));
        return false;
      }
      array = std::move(*converted);
    }
    if (!check_element(spec, argument.param, *array.element, !spec.array.element)) {
      return false;
    }
    if (spec.array.shape) {
      const uint64_t present = array.data.size() / array.element->size_bytes;
      const std::optional<uint64_t> count = shape_bytes(*spec.array.shape, 1);
      if (count != present) {
        bad_input(spec.path.range,
                  fmt::format("'{}' has the shape {}, {} elements",
                              spec.path.text,
                              shape_to_string(array.shape),
                              present))
            .expect(fmt::format("shape {}", shape_to_string(*spec.array.shape)));
        return false;
      }
      array.shape = *spec.array.shape;
    }
    argument.array = std::move(array);
    return true;
  }

  bool load_raw(const ArgumentSpec& spec, Argument& argument, std::vector<std::byte> file) {
    const std::optional<ElementType> element =
        spec.array.element ? spec.array.element : declared(argument.param);
    if (element && !check_element(spec, argument.param, *element, false)) {
      return false;
    }
    const uint64_t size_bytes = element ? element->size_bytes : 1;
    if (file.size() % size_bytes != 0) {
      bad_input(spec.path.range,
                fmt::format("'{}' has {} bytes, no whole number of {} elements",
                            spec.path.text,
                            file.size(),
                            to_string(*element)))
          .expect(fmt::format("a multiple of {} bytes", size_bytes));
      return false;
    }
    if (spec.array.shape && shape_bytes(*spec.array.shape, size_bytes) != file.size()) {
      const std::optional<uint64_t> wanted = shape_bytes(*spec.array.shape, size_bytes);
      bad_input(spec.path.range, fmt::format("'{}' has {} bytes", spec.path.text, file.size()))
          .expect(fmt::format("{} bytes for {}{}",
                              wanted ? std::to_string(*wanted) : std::string("more than 2^64"),
                              element ? to_string(*element) : std::string(),
                              shape_to_string(*spec.array.shape)));
      return false;
    }
    argument.array.element = element;
    argument.array.shape =
        spec.array.shape ? *spec.array.shape : std::vector<uint64_t>{file.size() / size_bytes};
    argument.array.data = std::move(file);
    return true;
  }

  isa::Diagnostics& diags_;
  const ArgumentLimits& limits_;
  ArgumentStatus& status_;
};

std::string signature(const isa::Function& kernel) {
  std::vector<std::string> params;
  for (const isa::Param& param : kernel.params) {
    params.push_back(to_string(param));
  }
  return fmt::format("{}({})", kernel.name, fmt::join(params, ", "));
}

std::string example_value(const isa::Param& param) {
  if (!param.is_pointer) {
    return "NUMBER";
  }
  const std::optional<ElementType> element = element_type(param.element);
  return fmt::format("zeros:{}[N] or @file.npy", element ? to_string(*element) : "f32");
}

} // namespace

std::string to_string(const isa::Param& param) {
  if (!param.is_pointer) {
    return fmt::format("{} {}", isa::name(param.type), param.name);
  }
  return param.element == isa::Type::kNone
             ? fmt::format("ptr {}", param.name)
             : fmt::format("ptr.{} {}", isa::name(param.element), param.name);
}

BoundArguments bind_arguments(std::span<const std::string> texts,
                              const isa::Function& kernel,
                              isa::Diagnostics& diags,
                              const ArgumentLimits& limits) {
  BoundArguments result;
  const size_t count = kernel.params.size();
  std::vector<std::optional<ArgumentSpec>> specs(count);
  std::vector<bool> is_named(count, false); // some text, good or bad, meant this parameter
  std::vector<std::string_view> names;
  for (const isa::Param& param : kernel.params) {
    names.push_back(param.name);
  }
  const auto index_of = [&](std::string_view name) {
    return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  for (const std::string& text : texts) {
    std::optional<ArgumentSpec> spec = parse_argument(text, diags);
    if (!spec) {
      result.status = ArgumentStatus::kUsage;
      const size_t index = index_of(std::string_view(text).substr(0, text.find('=')));
      if (index < count) {
        is_named[index] = true;
      }
      continue;
    }
    const size_t index = index_of(spec->name.text);
    if (index == count) {
      result.status = ArgumentStatus::kUsage;
      diags
          .error(spec->name.range,
                 fmt::format("kernel '{}' has no parameter '{}'{}",
                             kernel.name,
                             spec->name.text,
                             isa::did_you_mean(spec->name.text, names)))
          .expect(fmt::format("a parameter of {}", signature(kernel)));
      continue;
    }
    if (specs[index]) {
      result.status = ArgumentStatus::kUsage;
      diags.error(spec->name.range, fmt::format("argument '{}' is given twice", spec->name.text))
          .note(specs[index]->name.range, "first given here");
      continue;
    }
    is_named[index] = true;
    specs[index] = std::move(spec);
  }
  for (size_t i = 0; i < count; ++i) {
    const isa::Param& param = kernel.params[i];
    if (!is_named[i]) {
      result.status = ArgumentStatus::kUsage;
      diags
          .error({},
                 fmt::format(
                     "no argument for parameter '{}' of kernel {}", param.name, signature(kernel)))
          .expect(fmt::format("--arg {}={}", param.name, example_value(param)));
    } else if (specs[i]) {
      std::optional<Argument> argument =
          Binder(diags, limits, result.status).bind(*specs[i], param);
      if (argument) {
        result.arguments.push_back(std::move(*argument));
      }
    }
  }
  if (result.status != ArgumentStatus::kGood) {
    result.arguments.clear();
  }
  return result;
}

std::optional<HostArray>
convert_array(const HostArray& array, ElementType type, std::string& error) {
  PTO_CHECK(array.element.has_value());
  const ElementType from = *array.element;
  const uint64_t count = array.data.size() / from.size_bytes;
  HostArray result{type, array.shape, std::vector<std::byte>(count * type.size_bytes)};
  for (uint64_t i = 0; i < count; ++i) {
    const std::byte* source = array.data.data() + i * from.size_bytes;
    std::byte* target = result.data.data() + i * type.size_bytes;
    if (type.is_float()) {
      store_real(type, load_as_double(from, source), target);
      continue;
    }
    // By way of text, which carries all limits of the integer types.
    std::string reason;
    std::string text = from.is_float() ? fmt::format("{:.0f}", load_real(from, source))
                       : from.is_signed()
                           ? fmt::format("{}", static_cast<int64_t>(load_integer(from, source)))
                           : fmt::format("{}", load_integer(from, source));
    const bool is_integral =
        !from.is_float() || load_real(from, source) == std::trunc(load_real(from, source));
    const std::optional<uint64_t> bits =
        is_integral ? parse_number(text, type, reason) : std::nullopt;
    if (!bits) {
      error = fmt::format("element {} is {}, which {} does not hold",
                          i,
                          format_element(from, source),
                          to_string(type));
      return std::nullopt;
    }
    store_bits(type, *bits, target);
  }
  return result;
}

} // namespace pto::sim
