// SPDX-License-Identifier: Apache-2.0
// Parser of one `--arg` text. Which generators and options exist is a table.
#include "simulator/argument_spec.h"

#include "isa/clipped.h"
#include "isa/suggest.h"
#include "simulator/argument_files.h"
#include "simulator/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pto::sim {
namespace {

struct GeneratorRow {
  GeneratorKind kind;
  std::string_view name;
  std::vector<std::string_view> options;
};

const std::vector<GeneratorRow>& generator_rows() {
  static const std::vector<GeneratorRow> rows = {
      {GeneratorKind::kZeros, "zeros", {}},
      {GeneratorKind::kOnes, "ones", {}},
      {GeneratorKind::kFull, "full", {"value"}},
      {GeneratorKind::kRand, "rand", {"seed", "lo", "hi"}},
      {GeneratorKind::kRandn, "randn", {"seed", "mean", "std"}},
      {GeneratorKind::kIota, "iota", {"start", "step"}},
  };
  return rows;
}

const GeneratorRow* find_generator(std::string_view name) {
  for (const GeneratorRow& row : generator_rows()) {
    if (row.name == name) {
      return &row;
    }
  }
  return nullptr;
}

struct Alias {
  std::string_view from;
  std::string_view to;
};

constexpr std::array kOptionAliases = {
    Alias{"min", "lo"}, Alias{"max", "hi"}, Alias{"stddev", "std"}};

/// Names that people bring from numpy, C and Rust.
constexpr std::array kTypeAliases = {
    Alias{"float32", "f32"},   Alias{"float", "f32"},  Alias{"float16", "f16"},
    Alias{"half", "f16"},      Alias{"double", "f64"}, Alias{"float64", "f64"},
    Alias{"bfloat16", "bf16"}, Alias{"i8", "s8"},      Alias{"i16", "s16"},
    Alias{"i32", "s32"},       Alias{"i64", "s64"},    Alias{"int8", "s8"},
    Alias{"int16", "s16"},     Alias{"int32", "s32"},  Alias{"int", "s32"},
    Alias{"int64", "s64"},     Alias{"uint8", "u8"},   Alias{"uint16", "u16"},
    Alias{"uint32", "u32"},    Alias{"uint64", "u64"},
};

std::optional<std::string_view> likely_type(std::string_view name) {
  for (const Alias& alias : kTypeAliases) {
    if (alias.from == name) {
      return alias.to;
    }
  }
  return isa::nearest_name(name, element_type_names());
}

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '.';
  };
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_letter(c) || (c >= '0' && c <= '9');
         });
}

class ArgumentParser {
public:
  ArgumentParser(std::string_view text, isa::Diagnostics& diags) : diags_(diags) {
    const std::string_view name = text.substr(0, text.find('='));
    const std::string label = is_name(name) && name.size() < text.size()
                                  ? fmt::format("<argument {}>", isa::clipped(name))
                                  : std::string("<argument>");
    file_ = &diags.add_source(label, std::string(text));
    text_ = file_->text();
  }

  std::optional<ArgumentSpec> parse() {
    if (text_.size() > kMaxTextBytes) {
      diags_.error(range(0, 0), fmt::format("the argument has {} characters", text_.size()))
          .expect(fmt::format("at most {}", kMaxTextBytes));
      return std::nullopt;
    }
    const size_t equals = text_.find('=');
    if (equals == std::string_view::npos) {
      diags_.error(range(0, text_.size()), "an argument without '='")
          .expect("NAME=VALUE, such as n=1024 or a=rand:f32[1024]:seed=1");
      return std::nullopt;
    }
    spec_.name = part(0, equals);
    spec_.value = part(equals + 1, text_.size());
    if (!is_name(spec_.name.text)) {
      diags_.error(spec_.name.range, fmt::format("'{}' is no parameter name", spec_.name.text))
          .expect("NAME=VALUE, NAME being a parameter of the kernel");
      return std::nullopt;
    }
    if (spec_.value.text.empty()) {
      diags_.error(spec_.value.range, fmt::format("argument '{}' has no value", spec_.name.text))
          .expect("a number, a generator such as zeros:f32[1024], or @file.npy");
      return std::nullopt;
    }
    const bool is_good =
        spec_.value.text.front() == '@' ? parse_file(equals + 2) : parse_value(equals + 1);
    return is_good ? std::optional(spec_) : std::nullopt;
  }

private:
  static constexpr size_t kMaxTextBytes = 65536;

  [[nodiscard]] isa::SourceRange range(size_t begin, size_t end) const {
    return {file_, static_cast<uint32_t>(begin), static_cast<uint32_t>(end - begin)};
  }
  [[nodiscard]] SpecText part(size_t begin, size_t end) const {
    return {text_.substr(begin, end - begin), range(begin, end)};
  }

  bool parse_file(size_t begin) {
    spec_.kind = ArgumentKind::kFile;
    size_t end = text_.size();
    // The text after the last colon is a type unless it looks like a part of the path.
    const size_t colon = text_.rfind(':');
    if (colon != std::string_view::npos && colon >= begin &&
        text_.find_first_of("/.", colon) == std::string_view::npos) {
      end = colon;
      if (!parse_array_type(colon + 1, text_.size())) {
        return false;
      }
    }
    spec_.path = part(begin, end);
    if (spec_.path.text.empty()) {
      diags_.error(range(begin - 1, begin), "'@' without a file").expect("@file.npy or @file.bin");
      return false;
    }
    return true;
  }

  /// A scalar or a generator: the latter begins with a word and a colon, or is a generator's name.
  bool parse_value(size_t begin) {
    const size_t colon = std::min(text_.find(':', begin), text_.size());
    const SpecText word = part(begin, colon);
    const GeneratorRow* row = find_generator(word.text);
    if (row == nullptr && colon == text_.size()) {
      return parse_scalar(word);
    }
    if (row == nullptr) {
      unknown_generator(word);
      return false;
    }
    spec_.kind = ArgumentKind::kGenerator;
    spec_.generator = row->kind;
    const size_t type_end = std::min(text_.find(':', colon + 1), text_.size());
    if (colon == text_.size() || !parse_array_type(colon + 1, type_end)) {
      if (colon == text_.size()) {
        missing_shape(range(colon, colon), row->name);
      }
      return false;
    }
    if (!spec_.array.shape) {
      missing_shape(spec_.array.range, row->name);
      return false;
    }
    for (size_t at = type_end; at < text_.size();) {
      const size_t end = std::min(text_.find(':', at + 1), text_.size());
      if (!parse_option(at + 1, end, *row)) {
        return false;
      }
      at = end;
    }
    if (row->kind == GeneratorKind::kFull && spec_.find_option("value") == nullptr) {
      diags_.error(spec_.value.range, "full without a value")
          .expect(fmt::format("full:{}:value=NUMBER", spec_.array.shape ? "f32[1024]" : "f32[N]"));
      return false;
    }
    return true;
  }

  bool parse_scalar(const SpecText& word) {
    spec_.kind = ArgumentKind::kScalar;
    const char first = word.text.front();
    const std::string_view rest = first == '-' || first == '+' ? word.text.substr(1) : word.text;
    const bool is_number_like =
        !rest.empty() && ((rest.front() >= '0' && rest.front() <= '9') || rest.front() == '.');
    const bool is_word =
        rest == "inf" || rest == "infinity" || rest == "nan" || rest == "true" || rest == "false";
    if (is_number_like || is_word) {
      return true; // checked in full against the parameter's type
    }
    unknown_generator(word);
    return false;
  }

  void unknown_generator(const SpecText& word) {
    std::vector<std::string_view> names;
    for (const GeneratorRow& row : generator_rows()) {
      names.push_back(row.name);
    }
    isa::Diagnostic& diagnostic =
        diags_.error(word.range,
                     fmt::format("'{}' is neither a number nor a generator{}",
                                 word.text,
                                 isa::did_you_mean(word.text, names)));
    diagnostic.expect(fmt::format("a number, {}, or @file", fmt::join(names, ", ")));
    const std::string_view all = spec_.value.text;
    if (all.ends_with(".npy") || all.ends_with(".bin") || all.find('/') != std::string_view::npos) {
      diagnostic.advise(fmt::format("a file is written with an @: {}=@{}", spec_.name.text, all));
    }
  }

  void missing_shape(isa::SourceRange where, std::string_view generator) {
    diags_.error(where, fmt::format("{} without a shape", generator))
        .expect(fmt::format("{}:TYPE[EXTENTS], such as {}:f32[1024] or {}:f32[64,32]",
                            generator,
                            generator,
                            generator));
  }

  /// `f32`, `f32[64,32]` or `[64,32]`.
  bool parse_array_type(size_t begin, size_t end) {
    const std::string_view text = text_.substr(begin, end - begin);
    spec_.array.range = range(begin, end);
    const size_t bracket = std::min(text.find('['), text.size());
    const SpecText type = part(begin, begin + bracket);
    if (!type.text.empty()) {
      spec_.array.element = find_element_type(type.text);
      if (!spec_.array.element) {
        unknown_type(type);
        return false;
      }
    } else if (bracket == text.size()) {
      diags_.error(spec_.array.range, "an element type is missing")
          .expect("a type and a shape, such as f32[1024]");
      return false;
    }
    return bracket == text.size() || parse_shape(begin + bracket, end);
  }

  void unknown_type(const SpecText& type) {
    isa::Diagnostic& diagnostic =
        diags_.error(type.range, fmt::format("'{}' is no element type", type.text));
    diagnostic.expect(fmt::format("one of {}", fmt::join(element_type_names(), " ")));
    if (type.text == "f16x2") {
      diagnostic.advise("an array of f16x2 is one of f16 with twice the elements");
    } else if (const auto near = likely_type(type.text)) {
      diagnostic.advise(fmt::format("did you mean '{}'?", *near));
      diagnostic.replace(type.range, std::string(*near));
    }
  }

  /// `[64,32]` at `begin`, up to `end`.
  bool parse_shape(size_t begin, size_t end) {
    const std::string_view text = text_.substr(begin, end - begin);
    const auto wrong = [&](isa::SourceRange where, const std::string& message) {
      diags_.error(where, message).expect("a shape such as [1024] or [64,32]");
      return false;
    };
    if (text.size() < 2 || text.back() != ']') {
      return wrong(range(begin, end), "the shape has no closing ']'");
    }
    std::vector<uint64_t> shape;
    for (size_t at = begin + 1; at < end;) {
      const size_t stop = std::min(text_.find_first_of(",]", at), end - 1);
      const SpecText extent = part(at, stop);
      std::string reason;
      const std::optional<uint64_t> count = parse_count(extent.text, reason);
      if (!count) {
        return wrong(extent.range, fmt::format("'{}' is no extent of a shape", extent.text));
      }
      if (shape.size() == kMaxDimensions) {
        return wrong(extent.range,
                     fmt::format("the shape has more than {} dimensions", kMaxDimensions));
      }
      shape.push_back(*count);
      at = stop + 1;
    }
    spec_.array.shape = std::move(shape);
    return true;
  }

  bool parse_option(size_t begin, size_t end, const GeneratorRow& row) {
    const size_t equals = std::min(text_.find('=', begin), end);
    GeneratorOption option{part(begin, equals), part(std::min(equals + 1, end), end)};
    for (const Alias& alias : kOptionAliases) {
      if (alias.from == option.name.text) {
        option.name.text = alias.to;
      }
    }
    const auto& known = row.options;
    const std::string expected =
        known.empty() ? fmt::format("no option after {}", row.name)
                      : fmt::format("options of {}: {}", row.name, fmt::join(known, ", "));
    if (std::find(known.begin(), known.end(), option.name.text) == known.end()) {
      diags_
          .error(option.name.range,
                 fmt::format("{} has no option '{}'{}",
                             row.name,
                             option.name.text,
                             isa::did_you_mean(option.name.text, known)))
          .expect(expected);
      return false;
    }
    if (option.value.text.empty()) {
      diags_.error(range(end, end), fmt::format("option '{}' has no value", option.name.text))
          .expect(fmt::format("{}=NUMBER", option.name.text));
      return false;
    }
    if (const GeneratorOption* first = spec_.find_option(option.name.text)) {
      diags_.error(option.name.range, fmt::format("option '{}' is given twice", option.name.text))
          .note(first->name.range, "first given here");
      return false;
    }
    spec_.options.push_back(option);
    return true;
  }

  static constexpr size_t kMaxDimensions = 32;

  isa::Diagnostics& diags_;
  const isa::SourceFile* file_ = nullptr;
  std::string_view text_;
  ArgumentSpec spec_;
};

} // namespace

const GeneratorOption* ArgumentSpec::find_option(std::string_view option) const {
  for (const GeneratorOption& known : options) {
    if (known.name.text == option) {
      return &known;
    }
  }
  return nullptr;
}

std::optional<ArgumentSpec> parse_argument(std::string_view text, isa::Diagnostics& diags) {
  return ArgumentParser(text, diags).parse();
}

std::vector<std::string> argument_files(std::span<const std::string> texts) {
  std::vector<std::string> files;
  for (const std::string& text : texts) {
    isa::Diagnostics diags;
    const std::optional<ArgumentSpec> spec = parse_argument(text, diags);
    if (spec && spec->kind == ArgumentKind::kFile) {
      files.emplace_back(spec->path.text);
    }
  }
  return files;
}

std::string_view name(GeneratorKind kind) {
  for (const GeneratorRow& row : generator_rows()) {
    if (row.kind == kind) {
      return row.name;
    }
  }
  return "?";
}

} // namespace pto::sim
