// SPDX-License-Identifier: Apache-2.0
// First-fit allocation of scratchpad.
#include "simulator/scratchpad.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace pto::sim {

namespace {

uint64_t align_up(uint64_t value) {
  return (value + Scratchpad::kTileAlignBytes - 1) / Scratchpad::kTileAlignBytes *
         Scratchpad::kTileAlignBytes;
}

} // namespace

void Scratchpad::reset(uint32_t static_bytes, uint32_t capacity_bytes) {
  capacity_bytes_ = capacity_bytes;
  segments_.clear();
  if (static_bytes != 0) {
    segments_.push_back({.offset = 0, .size_bytes = static_bytes});
  }
  bytes_.assign(static_bytes, 0);
  high_water_bytes_ = static_bytes;
  update_packed();
}

uint32_t Scratchpad::used_bytes() const {
  uint32_t sum = 0;
  for (const ScratchpadSegment& segment : segments_) {
    sum += segment.size_bytes;
  }
  return sum;
}

std::optional<uint32_t> Scratchpad::alloc(uint64_t size_bytes, unsigned tile, uint32_t pc) {
  uint64_t offset = 0;
  size_t place = 0;
  for (; place < segments_.size(); ++place) {
    if (offset + size_bytes <= segments_[place].offset) {
      break;
    }
    offset = std::max(offset, align_up(segments_[place].end()));
  }
  if (size_bytes > capacity_bytes_ || offset + size_bytes > capacity_bytes_) {
    return std::nullopt;
  }
  const ScratchpadSegment segment{.offset = static_cast<uint32_t>(offset),
                                  .size_bytes = static_cast<uint32_t>(size_bytes),
                                  .tile = static_cast<int>(tile),
                                  .pc = pc};
  segments_.insert(segments_.begin() + static_cast<std::ptrdiff_t>(place), segment);
  if (segment.end() > bytes_.size()) {
    bytes_.resize(segment.end());
  }
  std::fill(bytes_.begin() + segment.offset, bytes_.begin() + segment.end(), uint8_t{0});
  high_water_bytes_ = std::max(high_water_bytes_, segment.end());
  update_packed();
  return segment.offset;
}

void Scratchpad::free(uint32_t offset) {
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i].tile >= 0 && segments_[i].offset == offset) {
      segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
  update_packed();
}

void Scratchpad::update_packed() {
  packed_bytes_ = 0;
  for (const ScratchpadSegment& segment : segments_) {
    if (segment.offset != packed_bytes_) {
      break;
    }
    packed_bytes_ = segment.end();
  }
}

bool Scratchpad::holds_exactly(uint64_t offset, uint64_t bytes) const {
  const uint64_t end = offset + bytes;
  if (end < offset) {
    return false;
  }
  for (const ScratchpadSegment& segment : segments_) {
    if (offset >= segment.offset && offset < segment.end()) {
      if (end <= segment.end()) {
        return true;
      }
      offset = segment.end();
    }
  }
  return false;
}

const ScratchpadSegment* Scratchpad::find(uint64_t offset) const {
  for (const ScratchpadSegment& segment : segments_) {
    if (offset >= segment.offset && offset < segment.end()) {
      return &segment;
    }
  }
  return nullptr;
}

std::string Scratchpad::map() const {
  std::string text;
  const auto line = [&](uint64_t begin, uint64_t end, const std::string& holder) {
    text += fmt::format("{:>7}..{:<7} {:>7} bytes  {}\n", begin, end - 1, end - begin, holder);
  };
  uint64_t at = 0;
  for (const ScratchpadSegment& segment : segments_) {
    if (segment.offset > at) {
      line(at, segment.offset, "free");
    }
    if (segment.size_bytes != 0) {
      line(segment.offset,
           segment.end(),
           segment.tile < 0 ? std::string("statics (.shared, .tile)")
                            : fmt::format("t{}", segment.tile));
    }
    at = std::max<uint64_t>(at, segment.end());
  }
  if (at < capacity_bytes_) {
    line(at, capacity_bytes_, "free");
  }
  return text;
}

uint64_t Scratchpad::largest_gap_bytes() const {
  uint64_t largest = 0;
  uint64_t at = 0;
  for (const ScratchpadSegment& segment : segments_) {
    if (segment.offset > at) {
      largest = std::max(largest, segment.offset - at);
    }
    at = std::max(at, align_up(segment.end()));
  }
  return at < capacity_bytes_ ? std::max(largest, capacity_bytes_ - at) : largest;
}

} // namespace pto::sim
