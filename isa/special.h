// SPDX-License-Identifier: Apache-2.0
// Special registers (`%lane`, `%gid.x`, ...): a flat list, read by MOV only.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pto::isa {

/// Position in kSpecials.
enum class Special : uint8_t {
  kLane,
  kWarp,
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kGidX,
  kGidY,
  kGidZ,
  kGsizeX,
  kGsizeY,
  kGsizeZ,
  kBlocksize,
  kCore,
  kClock,
  kActivemask,
  kLanemaskEq,
  kLanemaskLt,
  kLanemaskLe,
  kLanemaskGt,
  kLanemaskGe,
};
inline constexpr unsigned kSpecialCount = 29;

struct SpecialInfo {
  std::string_view name; // without the %
  uint8_t bits;
  std::string_view summary;
};

inline constexpr std::array<SpecialInfo, kSpecialCount> kSpecials = {{
    {"lane", 32, "lane within the warp, 0..31"},
    {"warp", 32, "warp within the block"},
    {"tid.x", 32, "lane coordinate within the block"},
    {"tid.y", 32, "lane coordinate within the block"},
    {"tid.z", 32, "lane coordinate within the block"},
    {"ntid.x", 32, "block extent"},
    {"ntid.y", 32, "block extent"},
    {"ntid.z", 32, "block extent"},
    {"ctaid.x", 32, "block coordinate within the grid"},
    {"ctaid.y", 32, "block coordinate within the grid"},
    {"ctaid.z", 32, "block coordinate within the grid"},
    {"nctaid.x", 32, "grid extent in blocks"},
    {"nctaid.y", 32, "grid extent in blocks"},
    {"nctaid.z", 32, "grid extent in blocks"},
    {"gid.x", 32, "ctaid.x * ntid.x + tid.x"},
    {"gid.y", 32, "ctaid.y * ntid.y + tid.y"},
    {"gid.z", 32, "ctaid.z * ntid.z + tid.z"},
    {"gsize.x", 32, "nctaid.x * ntid.x"},
    {"gsize.y", 32, "nctaid.y * ntid.y"},
    {"gsize.z", 32, "nctaid.z * ntid.z"},
    {"blocksize", 32, "lanes in the block"},
    {"core", 32, "core that runs the block"},
    {"clock", 64, "cycle counter of the core"},
    {"activemask", 32, "lanes of the warp that execute this insn"},
    {"lanemask_eq", 32, "bit of this lane"},
    {"lanemask_lt", 32, "bits of the lanes below"},
    {"lanemask_le", 32, "bits of the lanes up to this one"},
    {"lanemask_gt", 32, "bits of the lanes above"},
    {"lanemask_ge", 32, "bits of the lanes from this one on"},
}};

constexpr const SpecialInfo& info(Special special) {
  return kSpecials[static_cast<unsigned>(special)];
}

/// By name without the `%`; nullopt if there is none.
constexpr std::optional<Special> find_special(std::string_view name) {
  for (unsigned i = 0; i < kSpecialCount; ++i) {
    if (kSpecials[i].name == name) {
      return static_cast<Special>(i);
    }
  }
  return std::nullopt;
}

} // namespace pto::isa
