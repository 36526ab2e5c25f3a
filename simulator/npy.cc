// SPDX-License-Identifier: Apache-2.0
// The .npy format: magic, version, a header that is a Python dict literal, then raw elements.
//
// The header is text from anywhere, so the scanner below accepts exactly the literals that numpy
// writes (strings, True/False, tuples of non-negative integers, Python 2's trailing L) and answers
// everything else with a sentence. Sizes are checked against the file before anything is allocated.
#include "simulator/npy.h"

#include "isa/error.h"
#include "isa/file_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace pto::sim {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kHeaderAlignment = 64;

struct Header {
  NpyType type;
  bool is_big_endian = false;
  bool is_fortran_order = false;
  std::vector<uint64_t> shape;
};

/// Text of the file for a message: printable ASCII, at most 40 characters.
std::string quoted(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 40)) {
    result += (c >= ' ' && c <= '~') ? c : '?';
  }
  return fmt::format("'{}'{}", result, text.size() > 40 ? "..." : "");
}

/// numpy's type codes that a person may meet in a file and that no memory of ours can hold.
std::string_view unsupported_kind_name(char kind) {
  switch (kind) {
  case 'O':
    return "Python objects";
  case 'S':
  case 'a':
  case 'U':
    return "strings";
  case 'c':
    return "complex numbers";
  case 'm':
  case 'M':
    return "times";
  case 'V':
    return "records or raw bytes";
  default:
    return "";
  }
}

constexpr std::string_view kAcceptedTypes = "accepted are b1 i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 V2";

bool is_accepted(char kind, uint64_t size) {
  const bool is_power = size == 1 || size == 2 || size == 4 || size == 8;
  return ((kind == 'i' || kind == 'u') && is_power) || (kind == 'f' && is_power && size != 1) ||
         (kind == 'b' && size == 1) || (kind == 'V' && size == 2);
}

/// Reads "<f4" into the header.
bool parse_descr(std::string_view descr, Header& header, std::string& error) {
  std::string_view rest = descr;
  char order = '=';
  if (!rest.empty() && std::string_view("<>|=").find(rest.front()) != std::string_view::npos) {
    order = rest.front();
    rest.remove_prefix(1);
  }
  if (rest.empty()) {
    error = fmt::format("element type {} is not understood; {}", quoted(descr), kAcceptedTypes);
    return false;
  }
  const char kind = rest.front() == '?' ? 'b' : rest.front();
  std::string_view digits = rest.substr(1);
  if (rest == "?") {
    digits = "1";
  }
  uint64_t size = 0;
  const bool has_size =
      !digits.empty() && digits.size() <= 6 &&
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (has_size) {
    for (const char c : digits) {
      size = size * 10 + static_cast<uint64_t>(c - '0');
    }
  }
  if (!has_size || !is_accepted(kind, size)) {
    const std::string_view name = unsupported_kind_name(kind);
    error = fmt::format("element type {}{} is not supported; {}",
                        quoted(descr),
                        name.empty() ? "" : fmt::format(" ({})", name),
                        kAcceptedTypes);
    return false;
  }
  header.type = NpyType{kind, static_cast<uint8_t>(size)};
  header.is_big_endian = order == '>' && size > 1;
  return true;
}

/// Scanner over the header's dict literal.
class HeaderScanner {
public:
  HeaderScanner(std::string_view text, std::string& error) : text_(text), error_(error) {}

  std::optional<Header> scan() {
    Header header;
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    if (!expect('{', "the header's dictionary")) {
      return std::nullopt;
    }
    while (!accept('}')) {
      std::string_view key;
      if (!scan_string(key) || !expect(':', "the value after a key")) {
        return std::nullopt;
      }
      bool* seen = nullptr;
      bool is_good = false;
      if (key == "descr") {
        seen = &has_descr;
        is_good = scan_descr(header);
      } else if (key == "fortran_order") {
        seen = &has_order;
        is_good = scan_bool(header.is_fortran_order);
      } else if (key == "shape") {
        seen = &has_shape;
        is_good = scan_shape(header.shape);
      } else {
        return fail(fmt::format(
            "the header has the unknown key {}; expected descr, fortran_order and shape",
            quoted(key)));
      }
      if (!is_good) {
        return std::nullopt;
      }
      if (*seen) {
        return fail(fmt::format("the header has the key {} twice", quoted(key)));
      }
      *seen = true;
      if (!accept(',') && !is_next('}')) {
        return fail(unexpected("a comma or the closing brace"));
      }
    }
    skip_space();
    if (position_ != text_.size()) {
      return fail(unexpected("nothing after the dictionary"));
    }
    if (!has_descr || !has_order || !has_shape) {
      return fail(fmt::format("the header lacks the key '{}'",
                              !has_descr   ? "descr"
                              : !has_order ? "fortran_order"
                                           : "shape"));
    }
    return header;
  }

private:
  std::optional<Header> fail(std::string message) {
    error_ = std::move(message);
    return std::nullopt;
  }

  std::string unexpected(std::string_view expected) {
    if (position_ >= text_.size()) {
      return fmt::format("the header ends where {} was expected", expected);
    }
    return fmt::format("the header has {} at byte {} where {} was expected",
                       quoted(text_.substr(position_, 12)),
                       position_,
                       expected);
  }

  void skip_space() {
    while (position_ < text_.size() &&
           std::string_view(" \t\r\n\f\v").find(text_[position_]) != std::string_view::npos) {
      ++position_;
    }
  }

  bool is_next(char c) {
    skip_space();
    return position_ < text_.size() && text_[position_] == c;
  }

  bool accept(char c) {
    if (!is_next(c)) {
      return false;
    }
    ++position_;
    return true;
  }

  bool expect(char c, std::string_view what) {
    if (accept(c)) {
      return true;
    }
    error_ = unexpected(fmt::format("'{}' of {}", c, what));
    return false;
  }

  bool scan_string(std::string_view& result) {
    skip_space();
    if (position_ < text_.size() && text_[position_] == 'u') {
      ++position_; // Python 2 unicode literal
    }
    if (!is_next('\'') && !is_next('"')) {
      error_ = unexpected("a string");
      return false;
    }
    const char quote = text_[position_++];
    const size_t end = text_.find(quote, position_);
    if (end == std::string_view::npos) {
      error_ = "the header has a string without its closing quote";
      return false;
    }
    result = text_.substr(position_, end - position_);
    position_ = end + 1;
    return true;
  }

  bool scan_descr(Header& header) {
    if (is_next('[')) {
      error_ = fmt::format("the elements are records (a structured type); {}", kAcceptedTypes);
      return false;
    }
    std::string_view descr;
    return scan_string(descr) && parse_descr(descr, header, error_);
  }

  bool scan_bool(bool& result) {
    skip_space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(position_, word.size()) == word) {
        position_ += word.size();
        result = value;
        return true;
      }
    }
    error_ = unexpected("True or False");
    return false;
  }

  bool scan_shape(std::vector<uint64_t>& shape) {
    if (!expect('(', "the shape")) {
      return false;
    }
    shape.clear();
    while (!accept(')')) {
      uint64_t extent = 0;
      if (!scan_extent(extent)) {
        return false;
      }
      if (shape.size() == kMaxDimensions) {
        error_ = fmt::format("the shape has more than {} dimensions", kMaxDimensions);
        return false;
      }
      shape.push_back(extent);
      if (!accept(',') && !is_next(')')) {
        error_ = unexpected("a comma or the closing parenthesis of the shape");
        return false;
      }
    }
    return true;
  }

  bool scan_extent(uint64_t& extent) {
    skip_space();
    const size_t begin = position_;
    extent = 0;
    while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') {
      const auto digit = static_cast<uint64_t>(text_[position_] - '0');
      if (extent > (UINT64_MAX - digit) / 10) {
        error_ = "an extent of the shape does not fit into 64 bits";
        return false;
      }
      extent = extent * 10 + digit;
      ++position_;
    }
    if (position_ == begin) {
      error_ = unexpected("a non-negative extent of the shape");
      return false;
    }
    if (position_ < text_.size() && text_[position_] == 'L') {
      ++position_; // Python 2 long literal
    }
    return true;
  }

  static constexpr size_t kMaxDimensions = 32;

  std::string_view text_;
  std::string& error_;
  size_t position_ = 0;
};

void swap_elements(std::vector<std::byte>& data, size_t size) {
  for (size_t i = 0; i + size <= data.size(); i += size) {
    std::reverse(data.begin() + static_cast<ptrdiff_t>(i),
                 data.begin() + static_cast<ptrdiff_t>(i + size));
  }
}

/// Elements of a Fortran-ordered array (first index fastest) in C order.
std::vector<std::byte>
to_c_order(const std::vector<std::byte>& source, std::span<const uint64_t> shape, size_t size) {
  std::vector<std::byte> result(source.size());
  std::vector<uint64_t> stride(shape.size(), 1); // of the source, in elements
  for (size_t d = 1; d < shape.size(); ++d) {
    stride[d] = stride[d - 1] * shape[d - 1];
  }
  std::vector<uint64_t> index(shape.size(), 0);
  uint64_t from = 0;
  for (size_t to = 0; to < result.size(); to += size) {
    std::memcpy(result.data() + to, source.data() + from * size, size);
    for (size_t d = shape.size(); d-- > 0;) {
      from += stride[d];
      if (++index[d] < shape[d]) {
        break;
      }
      from -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
  return result;
}

uint64_t little_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    value = (value << 8) | std::to_integer<uint64_t>(bytes[i]);
  }
  return value;
}

} // namespace

std::string to_string(NpyType type) {
  return fmt::format("{}{}", type.kind, type.size_bytes);
}

std::optional<uint64_t> shape_bytes(std::span<const uint64_t> shape, uint64_t size_bytes) {
  // A zero extent makes the product zero whatever the others are.
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) {
    return 0;
  }
  uint64_t product = size_bytes;
  for (const uint64_t extent : shape) {
    if (__builtin_mul_overflow(product, extent, &product)) {
      return std::nullopt;
    }
  }
  return product;
}

std::string shape_to_string(std::span<const uint64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ","));
}

std::optional<NpyArray> parse_npy(std::span<const std::byte> file, std::string& error) {
  const auto fail = [&](std::string message) {
    error = std::move(message);
    return std::nullopt;
  };
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.empty()) {
    return fail("it is empty; a .npy file was expected");
  }
  if (text.substr(0, kMagic.size()) != kMagic.substr(0, std::min(text.size(), kMagic.size()))) {
    return fail(fmt::format("it starts with {}, not with the magic \\x93NUMPY of a .npy file",
                            quoted(text.substr(0, kMagic.size()))));
  }
  const auto truncated = [&](std::string_view part, uint64_t needed) {
    return fail(fmt::format(
        "it is truncated: it has {} bytes, the {} needs {}", file.size(), part, needed));
  };
  if (file.size() < kMagic.size() + 2) {
    return truncated("format version", kMagic.size() + 2);
  }
  const auto major = std::to_integer<unsigned>(file[6]);
  const auto minor = std::to_integer<unsigned>(file[7]);
  if (major < 1 || major > 3 || minor != 0) {
    return fail(
        fmt::format("its format version is {}.{}; accepted are 1.0, 2.0 and 3.0", major, minor));
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t header_begin = kMagic.size() + 2 + length_bytes;
  if (file.size() < header_begin) {
    return truncated("header length", header_begin);
  }
  const uint64_t header_size = little_endian(file.subspan(kMagic.size() + 2, length_bytes));
  if (file.size() - header_begin < header_size) {
    return truncated("header", header_begin + header_size);
  }
  std::optional<Header> header =
      HeaderScanner(text.substr(header_begin, header_size), error).scan();
  if (!header) {
    return std::nullopt;
  }
  const std::optional<uint64_t> wanted = shape_bytes(header->shape, header->type.size_bytes);
  if (!wanted) {
    return fail(fmt::format("its shape {} of {} has more bytes than 64 bits can count",
                            shape_to_string(header->shape),
                            to_string(header->type)));
  }
  const uint64_t present = file.size() - header_begin - header_size;
  if (present != *wanted) {
    return fail(fmt::format("its shape {} of {} needs {} bytes of data, the file has {}{}",
                            shape_to_string(header->shape),
                            to_string(header->type),
                            *wanted,
                            present,
                            present < *wanted ? " (truncated?)" : ""));
  }
  NpyArray array;
  array.type = header->type;
  array.shape = std::move(header->shape);
  const auto payload = file.subspan(header_begin + header_size);
  array.data.assign(payload.begin(), payload.end());
  if (header->is_big_endian) {
    swap_elements(array.data, array.type.size_bytes);
  }
  if (header->is_fortran_order && array.shape.size() > 1) {
    array.data = to_c_order(array.data, array.shape, array.type.size_bytes);
  }
  return array;
}

std::vector<std::byte>
format_npy(NpyType type, std::span<const uint64_t> shape, std::span<const std::byte> data) {
  if (shape_bytes(shape, type.size_bytes) != data.size()) {
    throw Error(fmt::format("format_npy: shape {} of {} does not have {} bytes",
                            shape_to_string(shape),
                            to_string(type),
                            data.size()));
  }
  std::string extents = fmt::format("{}", fmt::join(shape.begin(), shape.end(), ", "));
  if (shape.size() == 1) {
    extents += ',';
  }
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   type.size_bytes == 1 ? '|' : '<',
                                   to_string(type),
                                   extents);
  // The data begin at a multiple of 64 bytes; the header ends in a newline.
  const auto padded_size = [&](size_t prefix) {
    const size_t total = prefix + header.size() + 1;
    return (total + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment - prefix;
  };
  const size_t prefix_1 = kMagic.size() + 2 + 2;
  const bool is_long = padded_size(prefix_1) > UINT16_MAX;
  const size_t prefix = is_long ? prefix_1 + 2 : prefix_1;
  const size_t header_size = padded_size(prefix);
  header.resize(header_size - 1, ' ');
  header += '\n';
  std::string start(kMagic);
  start += is_long ? '\2' : '\1';
  start += '\0';
  for (size_t i = 0; i < (is_long ? 4U : 2U); ++i) {
    start += static_cast<char>((header_size >> (8 * i)) & 0xFF);
  }
  std::vector<std::byte> file(start.size() + header.size() + data.size());
  std::memcpy(file.data(), start.data(), start.size());
  std::memcpy(file.data() + start.size(), header.data(), header.size());
  std::copy(data.begin(),
            data.end(),
            file.begin() + static_cast<ptrdiff_t>(start.size() + header.size()));
  return file;
}

std::optional<NpyArray> read_npy(const std::string& path, std::string& error) {
  const std::optional<std::vector<std::byte>> file = isa::read_file(path, error);
  if (!file) {
    return std::nullopt;
  }
  std::string reason;
  std::optional<NpyArray> array = parse_npy(*file, reason);
  if (!array) {
    error = fmt::format("'{}' is not a usable .npy file: {}", path, reason);
  }
  return array;
}

bool write_npy(const std::string& path,
               NpyType type,
               std::span<const uint64_t> shape,
               std::span<const std::byte> data,
               std::string& error) {
  return isa::write_file_atomically(path, format_npy(type, shape, data), error);
}

} // namespace pto::sim
