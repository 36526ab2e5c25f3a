// SPDX-License-Identifier: Apache-2.0
// readMemory, writeMemory, disassemble.
#include "debugger/dap/server.h"
#include "debugger/dap/server_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace pto::dbg {
namespace {

constexpr int64_t kMaxReadBytes = int64_t{16} << 20;
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string to_base64(const std::vector<uint8_t>& bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(bytes.size() - at, 3);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < count ? bytes[at + i] : 0u);
    }
    for (size_t i = 0; i < 4; ++i) {
      text += i <= count ? kDigits[group >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::vector<uint8_t>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  std::vector<uint8_t> bytes;
  for (size_t at = 0; at < text.size(); at += 4) {
    uint32_t group = 0;
    size_t padding = 0;
    for (size_t i = 0; i < 4; ++i) {
      const char c = text[at + i];
      const bool may_pad = at + 4 == text.size() && i >= 2;
      if (c == '=' && may_pad) {
        ++padding;
        group <<= 6;
        continue;
      }
      const size_t digit = kDigits.find(c);
      if (digit == std::string_view::npos || padding != 0) {
        return std::nullopt;
      }
      group = group << 6 | static_cast<uint32_t>(digit);
    }
    for (size_t i = 0; i + padding < 3; ++i) {
      bytes.push_back(static_cast<uint8_t>(group >> (16 - 8 * i)));
    }
  }
  return bytes;
}

std::optional<uint64_t> parse_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  uint64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (status != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

struct MemoryPlace {
  isa::Space space = isa::Space::kHbm;
  uint64_t address = 0;
  uint64_t block = 0;
};

/// "hbm:0x1000", "l1:0x40@3", "0x1000" (hbm).
MemoryPlace parse_reference(const std::string& reference, const Focus& focus) {
  std::string_view text = reference;
  MemoryPlace place;
  place.block = focus.block;
  if (text.starts_with("hbm:")) {
    text.remove_prefix(4);
  } else if (text.starts_with("l1:")) {
    text.remove_prefix(3);
    place.space = isa::Space::kL1;
    const size_t at = text.find('@');
    if (at != std::string_view::npos) {
      const std::optional<uint64_t> block = parse_number(text.substr(at + 1));
      if (!block) {
        throw RequestError(fmt::format("'{}' is no memory reference", reference));
      }
      place.block = *block;
      text = text.substr(0, at);
    }
  }
  const std::optional<uint64_t> address = parse_number(text);
  if (!address) {
    throw RequestError(fmt::format(
        "'{}' is no memory reference; expected hbm:ADDRESS or l1:OFFSET@BLOCK", reference));
  }
  place.address = *address;
  return place;
}

std::string show_address(const MemoryPlace& place) {
  return fmt::format("0x{:x}", place.address);
}

} // namespace

std::string code_address(uint32_t pc) {
  return fmt::format("0x{:x}", kCodeBase + kCodeStride * pc);
}

std::optional<uint64_t> parse_code_address(std::string_view text) {
  return parse_number(text);
}

Json DapServer::on_read_memory(const Json& arguments) {
  MemoryPlace place = parse_reference(need_string(arguments, "memoryReference"), session().focus());
  place.address += static_cast<uint64_t>(find_integer(arguments, "offset").value_or(0));
  const int64_t count = need_integer(arguments, "count");
  if (count < 0 || count > kMaxReadBytes) {
    throw RequestError(fmt::format("'count' is {}; expected 0 to {} bytes", count, kMaxReadBytes));
  }
  const auto wanted = static_cast<uint64_t>(count);
  std::vector<uint8_t> bytes(wanted);
  std::string error;
  uint64_t readable = wanted;
  if (!session_->read_memory(place.space, place.block, place.address, bytes, error)) {
    // The longest readable prefix, found by halving.
    uint64_t low = 0;
    uint64_t high = wanted;
    while (low + 1 < high) {
      const uint64_t middle = low + (high - low) / 2;
      const std::span<uint8_t> part(bytes.data(), middle);
      (session_->read_memory(place.space, place.block, place.address, part, error) ? low : high) =
          middle;
    }
    readable = low;
    const std::span<uint8_t> part(bytes.data(), readable);
    if (readable != 0 &&
        !session_->read_memory(place.space, place.block, place.address, part, error)) {
      throw RequestError(error);
    }
  }
  bytes.resize(readable);
  Json body = {{"address", show_address(place)}, {"data", to_base64(bytes)}};
  if (readable != wanted) {
    body["unreadableBytes"] = wanted - readable;
  }
  return body;
}

Json DapServer::on_write_memory(const Json& arguments) {
  MemoryPlace place = parse_reference(need_string(arguments, "memoryReference"), session().focus());
  place.address += static_cast<uint64_t>(find_integer(arguments, "offset").value_or(0));
  const std::optional<std::vector<uint8_t>> bytes = from_base64(need_string(arguments, "data"));
  if (!bytes) {
    throw RequestError("'data' is not base64");
  }
  std::string error;
  if (!session_->write_memory(place.space, place.block, place.address, *bytes, error)) {
    throw RequestError(error);
  }
  return {{"bytesWritten", bytes->size()}};
}

Json DapServer::on_disassemble(const Json& arguments) {
  const std::string reference = need_string(arguments, "memoryReference");
  const std::optional<uint64_t> address = parse_code_address(reference);
  const int64_t count = need_integer(arguments, "instructionCount");
  if (!address || count < 0 || count > 100000) {
    throw RequestError(
        fmt::format("cannot disassemble {} instructions at '{}'; expected up to 100000 "
                    "at an address such as 0x{:x}",
                    count,
                    reference,
                    kCodeBase));
  }
  const sim::Program& program = session().program();
  const auto stride = static_cast<int64_t>(kCodeStride);
  const int64_t at = static_cast<int64_t>(*address) - static_cast<int64_t>(kCodeBase) +
                     find_integer(arguments, "offset").value_or(0);
  const int64_t first = (at >= 0 ? at / stride : -((-at + stride - 1) / stride)) +
                        find_integer(arguments, "instructionOffset").value_or(0);
  const auto limit = static_cast<int64_t>(program.object().code.size());
  Json instructions = Json::array();
  for (int64_t pc = first; pc < first + count; ++pc) {
    const int64_t where = std::max<int64_t>(static_cast<int64_t>(kCodeBase) + pc * stride, 0);
    Json entry = {{"address", fmt::format("0x{:x}", where)}};
    if (pc < 0 || pc >= limit) {
      entry["instruction"] = "(no instruction)";
      entry["presentationHint"] = "invalid";
      instructions.push_back(std::move(entry));
      continue;
    }
    const auto index = static_cast<uint32_t>(pc);
    entry["instruction"] = program.text(index);
    if (const isa::Function* function = program.object().function_at(index)) {
      for (const isa::Label& label : function->labels) {
        if (label.pc == index) {
          entry["symbol"] = label.name;
        }
      }
      if (function->first_pc == index) {
        entry["symbol"] = function->name;
      }
    }
    const isa::SourceLoc loc = program.loc(index);
    if (loc.line != 0) {
      entry["location"] = source_of(loc.file);
      entry["line"] = loc.line - (lines_start_at_1_ ? 0 : 1);
    }
    instructions.push_back(std::move(entry));
  }
  return {{"instructions", instructions}};
}

} // namespace pto::dbg
