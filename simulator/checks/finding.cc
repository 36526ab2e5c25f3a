// SPDX-License-Identifier: Apache-2.0
// Collecting, printing and naming of findings.
#include "simulator/checks/finding.h"

#include "simulator/block.h"
#include "simulator/lane_ranges.h"
#include "simulator/program.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pto::sim {

namespace {

std::string format_site(const FindingSite& site, const Program& program) {
  std::string out =
      fmt::format("{} at {}: {}", site.what, program.place(site.pc), program.text(site.pc));
  out += fmt::format("\n      block {}, warp {}", site.block, site.warp);
  if (site.lane_mask != 0) {
    out += ", " + format_lanes(site.lane_mask);
  }
  return out;
}

nlohmann::ordered_json site_json(const FindingSite& site, const Program& program) {
  const isa::SourceLoc loc = program.loc(site.pc);
  nlohmann::ordered_json out;
  out["what"] = site.what;
  out["pc"] = site.pc;
  out["insn"] = program.text(site.pc);
  if (loc.line != 0) {
    out["file"] = program.object().files[loc.file];
    out["line"] = loc.line;
    out["column"] = loc.column;
  }
  out["block"] = site.block;
  out["warp"] = site.warp;
  nlohmann::ordered_json lanes = nlohmann::ordered_json::array();
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((site.lane_mask >> lane & 1) != 0) {
      lanes.push_back(lane);
    }
  }
  out["lanes"] = lanes;
  return out;
}

} // namespace

std::string_view name(CheckKind kind) {
  constexpr std::string_view kNames[] = {"mem", "init", "race", "sync", "nan"};
  return kNames[static_cast<unsigned>(kind)];
}

void Findings::add(Finding finding, unsigned topic) {
  const uint32_t there_pc = finding.there ? finding.there->pc : kNoPc;
  if (count_known(finding.kind, finding.here.pc, there_pc, topic)) {
    return;
  }
  if (list_.size() >= kLimit) {
    ++dropped_;
    return;
  }
  index_[Key(finding.kind, finding.here.pc, there_pc, topic)] = list_.size();
  list_.push_back(std::move(finding));
}

bool Findings::count_known(CheckKind kind, uint32_t here_pc, uint32_t there_pc, unsigned topic) {
  const auto found = index_.find(Key(kind, here_pc, there_pc, topic));
  if (found == index_.end()) {
    return false;
  }
  ++list_[found->second].count;
  return true;
}

std::string format_lanes(uint32_t mask) {
  return ((mask & (mask - 1)) == 0 ? "lane " : "lanes ") + lane_ranges(mask, ",");
}

std::string describe_address(const BlockRun& block, isa::Space space, uint64_t address) {
  if (space == isa::Space::kHbm) {
    return block.image().hbm->describe(address);
  }
  const isa::Object& object = block.image().program->object();
  const uint32_t kernel = block.image().program->kernel_index();
  for (const isa::Symbol& symbol : object.symbols) {
    const bool in_space = (symbol.kind == isa::SymbolKind::kConst) == (space == isa::Space::kConst);
    const bool visible = symbol.owner == kernel || symbol.owner == isa::kFileScope;
    if (in_space && visible && address - symbol.offset < symbol.size_bytes &&
        address >= symbol.offset) {
      return fmt::format("{} {} + {}",
                         symbol.kind == isa::SymbolKind::kTile     ? "tile"
                         : symbol.kind == isa::SymbolKind::kShared ? "shared"
                                                                   : "const",
                         symbol.name,
                         address - symbol.offset);
    }
  }
  if (space == isa::Space::kL1) {
    const ScratchpadSegment* segment = block.scratchpad().find(address);
    if (segment != nullptr && segment->tile >= 0) {
      return fmt::format("tile t{} + {}", segment->tile, address - segment->offset);
    }
  }
  return fmt::format("{}[{}]", isa::name(space), address);
}

std::string format_finding(const Finding& finding, const Program& program) {
  std::string out = fmt::format(
      "{}: {}: {}\n", program.place(finding.here.pc), name(finding.kind), finding.message);
  out += fmt::format("    kernel {}\n", program.kernel().name);
  out += fmt::format("    {}\n", format_site(finding.here, program));
  if (finding.has_address) {
    out += finding.space == isa::Space::kHbm
               ? fmt::format("    address {:#x}", finding.address)
               : fmt::format("    address {}[{}]", isa::name(finding.space), finding.address);
    out += fmt::format(", {} byte{}: {}",
                       finding.size_bytes,
                       finding.size_bytes == 1 ? "" : "s",
                       finding.location);
    if (finding.conflict_bytes != 0 && finding.conflict_bytes != finding.size_bytes) {
      const uint64_t first = finding.conflict_address - finding.address;
      out +=
          finding.conflict_bytes == 1
              ? fmt::format(" (both touch byte {})", first)
              : fmt::format(" (both touch bytes {}-{})", first, first + finding.conflict_bytes - 1);
    }
    out += '\n';
  }
  if (finding.there) {
    out += fmt::format("    earlier {}\n", format_site(*finding.there, program));
  }
  if (!finding.hint.empty()) {
    out += fmt::format("    hint: {}\n", finding.hint);
  }
  if (finding.count > 1) {
    out += fmt::format("    seen {} times\n", finding.count);
  }
  return out;
}

std::string finding_json(const Finding& finding, const Program& program) {
  nlohmann::ordered_json out;
  out["kind"] = name(finding.kind);
  out["message"] = finding.message;
  out["hint"] = finding.hint;
  out["kernel"] = program.kernel().name;
  out["here"] = site_json(finding.here, program);
  if (finding.there) {
    out["there"] = site_json(*finding.there, program);
  }
  if (finding.has_address) {
    out["space"] = isa::name(finding.space);
    out["address"] = finding.address;
    out["size_bytes"] = finding.size_bytes;
    out["location"] = finding.location;
    if (finding.conflict_bytes != 0) {
      out["conflict_address"] = finding.conflict_address;
      out["conflict_bytes"] = finding.conflict_bytes;
    }
  }
  out["count"] = finding.count;
  return out.dump();
}

} // namespace pto::sim
