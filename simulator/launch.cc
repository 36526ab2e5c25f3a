// SPDX-License-Identifier: Apache-2.0
// Checking a launch and building what its blocks share.
#include "simulator/launch.h"

#include "isa/host_level.h"
#include "simulator/block.h"
#include "simulator/incoherent_cache.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::sim {

namespace {

__extension__ using WideProduct = unsigned __int128;

uint64_t extend(uint64_t bits, isa::Type type) {
  const unsigned width = isa::bits(type);
  if (width >= 64) {
    return bits;
  }
  const uint64_t mask = (uint64_t{1} << width) - 1;
  const bool negative = isa::is_signed(type) && ((bits >> (width - 1)) & 1) != 0;
  return negative ? bits | ~mask : bits & mask;
}

std::string param_text(const isa::Param& param) {
  return fmt::format("{} {}", param.is_pointer ? "ptr" : isa::name(param.type), param.name);
}

bool agrees(const LaunchArg& arg, const isa::Param& param) {
  if (arg.type == isa::Type::kNone) {
    return true;
  }
  if (arg.is_pointer || param.is_pointer) {
    return arg.is_pointer == param.is_pointer;
  }
  // b types hold anything of their width.
  return arg.type == param.type || ((isa::is_bits(param.type) || isa::is_bits(arg.type)) &&
                                    isa::bits(arg.type) == isa::bits(param.type));
}

} // namespace

std::string_view name(RunStatus status) {
  static constexpr std::string_view kNames[] = {
      "completed", "fault", "deadlock", "limit", "interrupted"};
  return kNames[static_cast<unsigned>(status)];
}

std::string to_string(const Dim3& dim) {
  if (dim.z != 1) {
    return fmt::format("{}x{}x{}", dim.x, dim.y, dim.z);
  }
  return dim.y != 1 ? fmt::format("{}x{}", dim.x, dim.y) : fmt::format("{}", dim.x);
}

Launch::Launch(Machine& machine, std::shared_ptr<const Program> program, LaunchConfig config)
    : machine_(machine), config_(std::move(config)) {
  static_cast<void>(isa::host_level()); // throws here rather than on a thread that runs blocks
  image_.program = std::move(program);
  image_.hbm = &machine.hbm;
  image_.profile = &machine.profile;
  image_.grid = config_.grid;
  image_.block = config_.block;
  image_.extent = {image_.grid.x * image_.block.x,
                   image_.grid.y * image_.block.y,
                   image_.grid.z * image_.block.z};
  check_shape();
  check_registers();
  check_scratchpad();
  bind_args();
  image_.call_depth = machine.profile.call_depth;
  build_lanes();
  build_broadcasts();
}

Launch::Launch(const Launch& launch, uint32_t factor)
    : machine_(launch.machine_), config_(launch.config_) {
  config_.grid.x /= factor;
  config_.block.x *= factor;
  image_.program = launch.image_.program;
  image_.hbm = launch.image_.hbm;
  image_.profile = launch.image_.profile;
  image_.grid = config_.grid;
  image_.block = config_.block;
  image_.extent = launch.image_.extent;
  bind_args();
  image_.call_depth = launch.image_.call_depth;
  build_lanes();
  build_broadcasts();
}

std::unique_ptr<Launch> Launch::widened(const Launch& launch, uint32_t factor) {
  return std::unique_ptr<Launch>(new Launch(launch, factor));
}

Launch::~Launch() = default;

void Launch::check_shape() const {
  const isa::MachineProfile& profile = machine_.profile;
  const isa::Function& kernel = program().kernel();
  // The product of three 32-bit extents may not fit 64 bits.
  const auto product = [](const Dim3& dim) {
    const auto wide = static_cast<WideProduct>(dim.x) * dim.y * dim.z;
    return wide > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(wide);
  };
  const uint64_t lanes = product(config_.block);
  const std::string shape = to_string(config_.block);
  if (lanes == 0) {
    throw LaunchError(LaunchErrorKind::kBlockSize,
                      fmt::format("block {} has no lanes; each extent must be at least 1", shape));
  }
  if (lanes > profile.max_lanes_per_block) {
    throw LaunchError(
        LaunchErrorKind::kBlockSize,
        fmt::format("block {} has {} lanes; machine {} allows {} in a block: use a smaller block",
                    shape,
                    lanes,
                    profile.name,
                    profile.max_lanes_per_block));
  }
  if (kernel.max_lanes != 0 && lanes > kernel.max_lanes) {
    throw LaunchError(LaunchErrorKind::kBlockSize,
                      fmt::format("block {} has {} lanes; kernel {} says .maxlanes {}: use a "
                                  "smaller block or raise .maxlanes",
                                  shape,
                                  lanes,
                                  kernel.name,
                                  kernel.max_lanes));
  }
  const uint64_t blocks = product(config_.grid);
  if (blocks == 0) {
    throw LaunchError(LaunchErrorKind::kGridSize,
                      fmt::format("grid {} has no blocks; each extent must be at least 1",
                                  to_string(config_.grid)));
  }
  if (blocks > profile.max_grid_blocks) {
    throw LaunchError(
        LaunchErrorKind::kGridSize,
        fmt::format("grid {} has {} blocks; machine {} allows {}: let each block do more",
                    to_string(config_.grid),
                    blocks,
                    profile.name,
                    profile.max_grid_blocks));
  }
}

void Launch::check_registers() const {
  const isa::Function& kernel = program().kernel();
  const auto lanes = static_cast<uint32_t>(config_.block.total());
  const std::optional<uint32_t> budget = machine_.profile.registers_per_lane(lanes);
  if (!budget) {
    throw LaunchError(LaunchErrorKind::kBlockSize,
                      fmt::format("machine {} has no register budget for a block of {} lanes",
                                  machine_.profile.name,
                                  lanes));
  }
  if (kernel.register_use() > *budget) {
    throw LaunchError(
        LaunchErrorKind::kRegisterBudget,
        fmt::format("kernel {} uses {} registers a lane ({} r, {} d of two each); a block of {} "
                    "lanes on machine {} has {}: use fewer registers or a smaller block",
                    kernel.name,
                    kernel.register_use(),
                    kernel.reg32_count,
                    kernel.reg64_count,
                    lanes,
                    machine_.profile.name,
                    *budget));
  }
}

void Launch::check_scratchpad() const {
  const isa::Function& kernel = program().kernel();
  const uint64_t wanted = uint64_t{kernel.l1_bytes} + config_.dynamic_l1_bytes;
  const uint32_t most = machine_.profile.max_scratchpad_bytes();
  if (wanted <= most) {
    return;
  }
  std::string map;
  for (const isa::Symbol& symbol : program().object().symbols) {
    if (symbol.kind != isa::SymbolKind::kConst &&
        (symbol.owner == isa::kFileScope || symbol.owner == program().kernel_index())) {
      map += fmt::format("\n  {:>7}..{:<7} {:>7} bytes  {}",
                         symbol.offset,
                         uint64_t{symbol.offset} + symbol.size_bytes - 1,
                         symbol.size_bytes,
                         symbol.name);
    }
  }
  if (config_.dynamic_l1_bytes != 0) {
    map += fmt::format("\n  {:>7}..{:<7} {:>7} bytes  dynamic (of this launch)",
                       kernel.l1_bytes,
                       wanted - 1,
                       config_.dynamic_l1_bytes);
  }
  throw LaunchError(
      LaunchErrorKind::kScratchpad,
      fmt::format("kernel {} needs {} bytes of scratchpad; machine {} has {} (l1 of {} bytes less "
                  "what is reserved and the smallest data cache):{}",
                  kernel.name,
                  wanted,
                  machine_.profile.name,
                  most,
                  machine_.profile.l1.size_bytes,
                  map));
}

void Launch::bind_args() {
  const isa::Function& kernel = program().kernel();
  if (config_.args.size() != kernel.params.size()) {
    std::vector<std::string> wanted;
    for (const isa::Param& param : kernel.params) {
      wanted.push_back(param_text(param));
    }
    throw LaunchError(LaunchErrorKind::kArgumentCount,
                      fmt::format("kernel {} takes {} arguments ({}); {} given",
                                  kernel.name,
                                  kernel.params.size(),
                                  fmt::join(wanted, ", "),
                                  config_.args.size()));
  }
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const isa::Param& param = kernel.params[i];
    const LaunchArg& arg = config_.args[i];
    if (!agrees(arg, param)) {
      throw LaunchError(LaunchErrorKind::kArgumentType,
                        fmt::format("argument {} of kernel {} is {}; expected {}",
                                    i + 1,
                                    kernel.name,
                                    arg.is_pointer ? "a buffer" : isa::name(arg.type),
                                    param_text(param)));
    }
    image_.params.push_back(param.is_pointer ? arg.bits : extend(arg.bits, param.type));
    image_.param_allocation.push_back(param.is_pointer ? machine_.hbm.find(arg.bits) : nullptr);
  }
}

void Launch::build_lanes() {
  image_.lanes = static_cast<uint32_t>(config_.block.total());
  image_.warps = (image_.lanes + isa::kWarpLanes - 1) / isa::kWarpLanes;
  image_.padded_lanes = image_.warps * isa::kWarpLanes;
  image_.static_l1_bytes = program().kernel().l1_bytes + config_.dynamic_l1_bytes;
  image_.max_l1_bytes = machine_.profile.max_scratchpad_bytes();
  image_.warp_masks.assign(image_.warps, ~0u);
  if (image_.lanes % isa::kWarpLanes != 0) {
    image_.warp_masks.back() = (1u << (image_.lanes % isa::kWarpLanes)) - 1;
  }
  for (std::vector<uint32_t>& axis : image_.tid) {
    axis.resize(image_.padded_lanes);
  }
  Dim3 place{.x = 0, .y = 0, .z = 0};
  for (uint32_t lane = 0; lane < image_.padded_lanes; ++lane) {
    image_.tid[0][lane] = place.x;
    image_.tid[1][lane] = place.y;
    image_.tid[2][lane] = place.z;
    if (++place.x == image_.block.x) {
      place.x = 0;
      if (++place.y == image_.block.y) {
        place.y = 0;
        ++place.z;
      }
    }
  }
  block_count_ = config_.grid.total();
}

void Launch::build_broadcasts() {
  const std::vector<BroadcastSlot>& slots = program().broadcast_slots();
  for (const BroadcastSlot& slot : slots) {
    const uint64_t value = slot.kind == isa::OperandKind::kImm ? slot.value
                           : slot.kind == isa::OperandKind::kParam
                               ? image_.params[slot.value]
                               : program().object().symbols[slot.value].offset;
    if (slot.wide) {
      image_.broadcast_offset.push_back(static_cast<uint32_t>(image_.broadcast64.size()));
      image_.broadcast64.insert(image_.broadcast64.end(), image_.padded_lanes, value);
    } else {
      image_.broadcast_offset.push_back(static_cast<uint32_t>(image_.broadcast32.size()));
      image_.broadcast32.insert(
          image_.broadcast32.end(), image_.padded_lanes, static_cast<uint32_t>(value));
    }
  }
}

void Launch::use_incoherent_caches() {
  const isa::MachineProfile& profile = machine_.profile;
  data_caches_ = std::make_unique<IncoherentCache>(std::max(1u, profile.cores),
                                                   std::max(1u, profile.l1.line_bytes));
  image_.data_caches = data_caches_.get();
}

uint32_t Launch::resident_limit() const {
  return std::max(1u, machine_.profile.cores * machine_.profile.blocks_per_core);
}

std::unique_ptr<BlockRun> Launch::make_block() {
  if (idle_.empty()) {
    return std::make_unique<BlockRun>(*this);
  }
  std::unique_ptr<BlockRun> block = std::move(idle_.back());
  idle_.pop_back();
  return block;
}

std::unique_ptr<BlockRun> Launch::next_block(uint32_t core) {
  if (!has_next_block()) {
    return nullptr;
  }
  std::unique_ptr<BlockRun> block = make_block();
  block->start(state_.next_block++, core);
  observers_.notify(kWantsBlock, [&](Observer& observer) { observer.block_begin(*block); });
  return block;
}

void Launch::retire_block(std::unique_ptr<BlockRun> block) {
  state_.counts.add(block->counts());
  if (block->is_done()) {
    observers_.notify(kWantsBlock, [&](Observer& observer) { observer.block_end(*block); });
    block->finish();
    ++state_.blocks_done;
  }
  idle_.push_back(std::move(block));
}

void Launch::credit_blocks(uint64_t blocks, const InsnCounts& counts) {
  state_.next_block = blocks;
  state_.blocks_done = blocks;
  state_.counts.add(counts);
}

void Launch::add_print(PrintLine line) {
  if (prints_.size() < kMaxPrintLines) {
    prints_.push_back(std::move(line));
  } else {
    prints_truncated_ = true;
  }
}

LaunchState Launch::save() const {
  LaunchState state = state_;
  state.print_count = prints_.size();
  if (data_caches_ != nullptr) {
    state.data_caches = std::make_shared<const IncoherentCache>(*data_caches_);
  }
  return state;
}

void Launch::restore(const LaunchState& state) {
  state_ = state;
  state_.data_caches.reset();
  if (data_caches_ != nullptr && state.data_caches != nullptr) {
    *data_caches_ = *state.data_caches;
  }
  prints_.resize(std::min(prints_.size(), state.print_count));
}

} // namespace pto::sim
