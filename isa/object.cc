// SPDX-License-Identifier: Apache-2.0
// The file form of an object (docs/object-format.md): a header of 24 bytes, then sections in a
// fixed order, each a tag, a size and its bytes. All numbers are little endian; strings are a
// 32-bit length and bytes. The checksum covers everything after the header.
//
// The reader trusts nothing: sizes are checked against what is left before anything is allocated,
// every index against what it refers to, and the result must be exactly what the writer would
// write, so that two objects are equal if and only if their bytes are.
#include "isa/object.h"

#include "isa/codec.h"
#include "isa/error.h"
#include "isa/hash.h"
#include "isa/object_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace pto::isa {

namespace {

constexpr std::array<uint8_t, 4> kMagic = {'P', 'T', 'O', 'B'};
constexpr size_t kHeaderBytes = 24;
constexpr std::array<const char*, 9> kSectionTags = {
    "MACH", "FUNC", "SYMS", "POOL", "CODE", "LINE", "FILE", "STRS", "CNST"};

class Writer {
public:
  void u8(uint8_t value) { bytes_.push_back(value); }
  void u32(uint32_t value) { number(value, 4); }
  void u64(uint64_t value) { number(value, 8); }
  void count(size_t value) { u32(static_cast<uint32_t>(value)); }
  void text(const std::string& value) {
    count(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  void raw(std::span<const uint8_t> value) {
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  /// So many bytes more, for put() to fill before anything else is appended.
  uint8_t* room(size_t bytes) {
    bytes_.resize(bytes_.size() + bytes);
    return bytes_.data() + bytes_.size() - bytes;
  }
  template <size_t Size> static void put(uint8_t* to, uint64_t value) {
    if constexpr (std::endian::native == std::endian::little) {
      std::memcpy(to, &value, Size);
    } else {
      for (size_t i = 0; i < Size; ++i) {
        to[i] = static_cast<uint8_t>(value >> (8 * i));
      }
    }
  }
  void reserve(size_t bytes) { bytes_.reserve(bytes); }
  size_t size() const { return bytes_.size(); }
  std::span<const uint8_t> bytes() const { return bytes_; }
  /// Overwrites the 8 bytes at an offset.
  void set_u64(size_t offset, uint64_t value) { put<8>(bytes_.data() + offset, value); }
  std::vector<uint8_t> take() { return std::move(bytes_); }

private:
  void number(uint64_t value, unsigned size) {
    std::array<uint8_t, 8> raw{};
    put<8>(raw.data(), value);
    bytes_.insert(bytes_.end(), raw.data(), raw.data() + size);
  }
  std::vector<uint8_t> bytes_;
};

// Reads past the end give zeros and remember where; one check at the end of a section suffices.
class Reader {
public:
  Reader(std::span<const uint8_t> bytes, size_t base) : bytes_(bytes), base_(base) {}
  uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }
  std::string text() {
    const size_t size = count(1);
    std::string value(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return value;
  }
  /// A number of elements of at least `element_bytes` bytes each, never more than can follow.
  size_t count(size_t element_bytes) {
    const size_t value = u32();
    if (value > left() / element_bytes) {
      failed_ = true;
      return 0;
    }
    return value;
  }
  std::span<const uint8_t> raw(size_t size) {
    const auto value = bytes_.subspan(at_, size);
    at_ += size;
    return value;
  }
  size_t left() const { return bytes_.size() - at_; }
  size_t offset() const { return base_ + at_; }
  bool failed() const { return failed_; }

private:
  uint64_t number(unsigned size) {
    if (left() < size) {
      failed_ = true;
      at_ = bytes_.size();
      return 0;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < size; ++i) {
      value |= static_cast<uint64_t>(bytes_[at_ + i]) << (8 * i);
    }
    at_ += size;
    return value;
  }
  std::span<const uint8_t> bytes_;
  size_t base_;
  size_t at_ = 0;
  bool failed_ = false;
};

// ---------------------------------------------------------------- writing

void write_function(Writer& out, const Function& function) {
  out.text(function.name);
  out.u8(function.is_kernel ? 1 : 0);
  out.count(function.params.size());
  for (const Param& param : function.params) {
    out.text(param.name);
    out.u8(static_cast<uint8_t>(param.type));
    out.u8(param.is_pointer ? 1 : 0);
    out.u8(static_cast<uint8_t>(param.element));
  }
  out.u32(function.first_pc);
  out.u32(function.insn_count);
  out.u32(function.reg32_count);
  out.u32(function.reg64_count);
  out.u32(function.l1_bytes);
  out.u32(function.max_lanes);
  out.count(function.labels.size());
  for (const Label& label : function.labels) {
    out.text(label.name);
    out.u32(label.pc);
  }
  out.count(function.reconvergence.size());
  for (const Reconvergence& point : function.reconvergence) {
    out.u32(point.branch_pc);
    out.u32(point.join_pc);
  }
}

void write_symbol(Writer& out, const Symbol& symbol) {
  out.text(symbol.name);
  out.u8(static_cast<uint8_t>(symbol.kind));
  out.u8(static_cast<uint8_t>(symbol.type));
  for (const uint32_t value : {symbol.rows,
                               symbol.cols,
                               symbol.offset,
                               symbol.size_bytes,
                               symbol.align_bytes,
                               symbol.owner}) {
    out.u32(value);
  }
}

void write_texts(Writer& out, const std::vector<std::string>& texts) {
  out.count(texts.size());
  for (const std::string& text : texts) {
    out.text(text);
  }
}

// ---------------------------------------------------------------- reading

bool read_type(Reader& in, Type& type) {
  const uint8_t raw = in.u8();
  type = static_cast<Type>(raw < kTypeCount ? raw : 0);
  return raw < kTypeCount;
}

bool read_flag(Reader& in, bool& flag) {
  const uint8_t raw = in.u8();
  flag = raw == 1;
  return raw <= 1;
}

bool read_function(Reader& in, Function& function) {
  bool ok = true;
  function.name = in.text();
  ok &= read_flag(in, function.is_kernel);
  function.params.resize(in.count(7));
  for (Param& param : function.params) {
    param.name = in.text();
    ok &= read_type(in, param.type);
    ok &= read_flag(in, param.is_pointer);
    ok &= read_type(in, param.element);
  }
  function.first_pc = in.u32();
  function.insn_count = in.u32();
  function.reg32_count = in.u32();
  function.reg64_count = in.u32();
  function.l1_bytes = in.u32();
  function.max_lanes = in.u32();
  function.labels.resize(in.count(8));
  for (Label& label : function.labels) {
    label.name = in.text();
    label.pc = in.u32();
  }
  function.reconvergence.resize(in.count(8));
  for (Reconvergence& point : function.reconvergence) {
    point.branch_pc = in.u32();
    point.join_pc = in.u32();
  }
  return ok && !in.failed();
}

bool read_symbol(Reader& in, Symbol& symbol) {
  bool ok = true;
  symbol.name = in.text();
  const uint8_t kind = in.u8();
  ok &= kind <= static_cast<uint8_t>(SymbolKind::kConst);
  symbol.kind = static_cast<SymbolKind>(kind);
  ok &= read_type(in, symbol.type);
  for (uint32_t* field : {&symbol.rows,
                          &symbol.cols,
                          &symbol.offset,
                          &symbol.size_bytes,
                          &symbol.align_bytes,
                          &symbol.owner}) {
    *field = in.u32();
  }
  return ok && !in.failed();
}

bool read_texts(Reader& in, std::vector<std::string>& texts) {
  texts.resize(in.count(4));
  for (std::string& text : texts) {
    text = in.text();
  }
  return !in.failed();
}

// ---------------------------------------------------------------- sections

bool read_code(Reader& in, const std::vector<uint64_t>& pool, Object& object, std::string& error) {
  const size_t count = in.count(16);
  object.code.reserve(count);
  for (size_t pc = 0; pc < count; ++pc) {
    const size_t offset = in.offset();
    const uint64_t low = in.u64();
    const uint64_t high = in.u64();
    std::string fault;
    auto insn = decode({.low = low, .high = high}, pool, fault);
    if (!insn) {
      error = fmt::format("insn {} at offset {}: {}", pc, offset, fault);
      return false;
    }
    object.code.push_back(*insn);
  }
  return !in.failed();
}

bool read_section(
    size_t section, Reader& in, Object& object, std::vector<uint64_t>& pool, std::string& error) {
  bool ok = true;
  switch (section) {
  case 0:
    object.machine = in.text();
    break;
  case 1:
    object.functions.resize(in.count(41));
    for (Function& function : object.functions) {
      ok = ok && read_function(in, function);
    }
    break;
  case 2:
    object.symbols.resize(in.count(30));
    for (Symbol& symbol : object.symbols) {
      ok = ok && read_symbol(in, symbol);
    }
    break;
  case 3:
    pool.resize(in.count(8));
    for (uint64_t& value : pool) {
      value = in.u64();
    }
    break;
  case 4:
    ok = read_code(in, pool, object, error);
    break;
  case 5:
    object.locs.resize(in.count(12));
    for (SourceLoc& loc : object.locs) {
      loc = {.file = in.u32(), .line = in.u32(), .column = in.u32()};
    }
    break;
  case 6:
    ok = read_texts(in, object.files);
    break;
  case 7:
    ok = read_texts(in, object.strings);
    break;
  default: {
    const auto bytes = in.raw(in.count(1));
    object.const_data.assign(bytes.begin(), bytes.end());
  }
  }
  return ok && !in.failed();
}

// Magic, versions, size and checksum; empty if all is well.
std::string check_header(std::span<const uint8_t> bytes) {
  if (!looks_like_object(bytes)) {
    return "not a PTO object file: it does not begin with 'PTOB'";
  }
  if (bytes.size() < kHeaderBytes) {
    return fmt::format(
        "truncated object file: {} bytes, the header alone has {}", bytes.size(), kHeaderBytes);
  }
  Reader in(bytes.subspan(4), 4);
  const uint32_t version = in.u32();
  const uint32_t isa_version = in.u32();
  const uint32_t payload = in.u32();
  const uint64_t sum = in.u64();
  if (version != kObjectVersion) {
    return fmt::format("object format version {} but this program reads version {}; assemble the "
                       "source again or use a matching program",
                       version,
                       kObjectVersion);
  }
  if (isa_version != kIsaVersion) {
    return fmt::format("made for version {} of the instruction set but this program knows version "
                       "{}; assemble the source again",
                       isa_version,
                       kIsaVersion);
  }
  if (payload != bytes.size() - kHeaderBytes) {
    return fmt::format("truncated or extended object file: {} bytes after the header but the "
                       "header says {}",
                       bytes.size() - kHeaderBytes,
                       payload);
  }
  if (sum != hash_of(bytes.subspan(kHeaderBytes))) {
    return "corrupt object file: its checksum does not match its contents";
  }
  return "";
}

} // namespace

const Function* Object::find_function(std::string_view name) const {
  const auto found = std::find_if(
      functions.begin(), functions.end(), [&](const Function& f) { return f.name == name; });
  return found == functions.end() ? nullptr : &*found;
}

const Function* Object::function_at(uint32_t pc) const {
  // Functions are in code order: the last one that begins at or before pc.
  const auto after = std::upper_bound(
      functions.begin(), functions.end(), pc, [](uint32_t value, const Function& f) {
        return value < f.first_pc;
      });
  if (after == functions.begin()) {
    return nullptr;
  }
  const Function& candidate = *(after - 1);
  return candidate.contains(pc) ? &candidate : nullptr;
}

bool looks_like_object(std::span<const uint8_t> bytes) {
  return bytes.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), bytes.begin());
}

std::optional<std::vector<uint8_t>> write_object(const Object& object, std::string& error) {
  PTO_CHECK(object.locs.size() == object.code.size());
  Pool pool;
  Writer code;
  code.reserve(4 + 16 * object.code.size());
  code.count(object.code.size());
  uint8_t* at = code.room(16 * object.code.size());
  for (const Insn& insn : object.code) {
    const auto word = encode(insn, pool, error);
    if (!word) {
      return std::nullopt;
    }
    Writer::put<8>(at, word->low);
    Writer::put<8>(at + 8, word->high);
    at += 16;
  }
  std::array<Writer, kSectionTags.size()> sections;
  sections[0].text(object.machine);
  sections[1].count(object.functions.size());
  for (const Function& function : object.functions) {
    write_function(sections[1], function);
  }
  sections[2].count(object.symbols.size());
  for (const Symbol& symbol : object.symbols) {
    write_symbol(sections[2], symbol);
  }
  sections[3].count(pool.values().size());
  for (const uint64_t value : pool.values()) {
    sections[3].u64(value);
  }
  sections[4] = std::move(code);
  sections[5].reserve(4 + 12 * object.locs.size());
  sections[5].count(object.locs.size());
  at = sections[5].room(12 * object.locs.size());
  for (const SourceLoc& loc : object.locs) {
    Writer::put<4>(at, loc.file);
    Writer::put<4>(at + 4, loc.line);
    Writer::put<4>(at + 8, loc.column);
    at += 12;
  }
  write_texts(sections[6], object.files);
  write_texts(sections[7], object.strings);
  sections[8].count(object.const_data.size());
  sections[8].raw(object.const_data);

  size_t body_bytes = 0;
  for (const Writer& section : sections) {
    if (section.size() > UINT32_MAX) {
      error = "the program is too large for an object file (4 GiB a section)";
      return std::nullopt;
    }
    body_bytes += 8 + section.size();
  }
  if (body_bytes > UINT32_MAX) {
    error = "the program is too large for an object file (4 GiB in all)";
    return std::nullopt;
  }
  Writer file;
  file.reserve(kHeaderBytes + body_bytes);
  file.raw(kMagic);
  file.u32(kObjectVersion);
  file.u32(kIsaVersion);
  file.count(body_bytes);
  const size_t sum_at = file.size();
  file.u64(0);
  for (size_t i = 0; i < sections.size(); ++i) {
    file.raw({reinterpret_cast<const uint8_t*>(kSectionTags[i]), 4});
    file.count(sections[i].size());
    file.raw(sections[i].bytes());
  }
  file.set_u64(sum_at, hash_of(file.bytes().subspan(kHeaderBytes)));
  return file.take();
}

std::optional<Object> read_object(std::span<const uint8_t> bytes, std::string& error) {
  error = check_header(bytes);
  if (!error.empty()) {
    return std::nullopt;
  }
  Object object;
  std::vector<uint64_t> pool;
  size_t at = kHeaderBytes;
  for (size_t section = 0; section < kSectionTags.size(); ++section) {
    const char* tag = kSectionTags[section];
    const size_t left = bytes.size() - at;
    if (left < 8 || std::memcmp(bytes.data() + at, tag, 4) != 0) {
      error = fmt::format("corrupt object file: section {} expected at offset {}", tag, at);
      return std::nullopt;
    }
    const size_t size = Reader(bytes.subspan(at + 4, 4), at + 4).u32();
    if (size > left - 8) {
      error = fmt::format("corrupt object file: section {} at offset {} has {} bytes but {} follow",
                          tag,
                          at,
                          size,
                          left - 8);
      return std::nullopt;
    }
    Reader in(bytes.subspan(at + 8, size), at + 8);
    std::string fault;
    if (!read_section(section, in, object, pool, fault) || in.left() != 0) {
      error = fault.empty() ? fmt::format("corrupt object file: section {} is malformed before "
                                          "offset {}",
                                          tag,
                                          in.offset())
                            : fmt::format("corrupt object file: {}", fault);
      return std::nullopt;
    }
    at += 8 + size;
  }
  if (at != bytes.size()) {
    error = fmt::format(
        "corrupt object file: {} bytes after the last section at offset {}", bytes.size() - at, at);
    return std::nullopt;
  }
  if (object.locs.size() != object.code.size()) {
    error = fmt::format("corrupt object file: {} line entries for {} insns",
                        object.locs.size(),
                        object.code.size());
    return std::nullopt;
  }
  if (std::string fault = check_object(object); !fault.empty()) {
    error = "corrupt object file: " + fault;
    return std::nullopt;
  }
  // Pools that the writer would not have made (other order, unused entries) are refused, so that
  // object -> text -> object is the identity for everything that is accepted.
  const auto again = write_object(object, error);
  if (!again || !std::equal(again->begin(), again->end(), bytes.begin(), bytes.end())) {
    error = "corrupt object file: its pool is not in canonical order";
    return std::nullopt;
  }
  return object;
}

} // namespace pto::isa
