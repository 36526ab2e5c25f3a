// SPDX-License-Identifier: Apache-2.0
// Registers, memory and caches of a session: reading, and writing that a replay repeats.
#include "debugger/session_impl.h"
#include "isa/suggest.h"
#include "simulator/element.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace pto::dbg {

sim::BlockRun* Session::Impl::block(uint64_t index) const {
  for (uint32_t place = 0; place < engine->place_count(); ++place) {
    sim::BlockRun* run = engine->block_at(place);
    if (run != nullptr && run->index() == index) {
      return run;
    }
  }
  return nullptr;
}

void Session::Impl::apply(const Edit& edit) {
  sim::BlockRun* run = block(edit.block);
  if (edit.is_register) {
    uint64_t bits = 0;
    std::memcpy(&bits, edit.bytes.data(), std::min<size_t>(8, edit.bytes.size()));
    if (run == nullptr) {
      return;
    }
    if (edit.reg.file == RegisterFile::kReg32) {
      run->set_reg32(edit.reg.index, edit.lane, static_cast<uint32_t>(bits));
    } else if (edit.reg.file == RegisterFile::kReg64) {
      run->set_reg64(edit.reg.index, edit.lane, bits);
    } else {
      run->set_pred(edit.reg.index, edit.lane, bits != 0);
    }
  } else if (edit.space == isa::Space::kHbm) {
    PTO_CHECK(machine.hbm.write(edit.address, edit.bytes));
  } else if (run != nullptr) {
    std::memcpy(run->scratchpad().data() + edit.address, edit.bytes.data(), edit.bytes.size());
  }
}

void Session::Impl::edit(Edit change) {
  change.moment = moment();
  const bool is_past = position() < high_water;
  edits.resize(edits_applied); // what was to come comes no more
  if (is_past) {
    high_water = position();
  }
  apply(change);
  edits.push_back(std::move(change));
  edits_applied = edits.size();
  if (is_past && checks) {
    replay_checks(moment());
  }
}

// ---------------------------------------------------------------- registers

namespace {

std::string no_block(const Session& session, uint64_t block) {
  switch (session.phase(block)) {
  case BlockPhase::kWaiting:
    return fmt::format("block {} has not started, so it has no registers or scratchpad yet", block);
  case BlockPhase::kDone:
    return fmt::format("block {} has ended, so it has no registers or scratchpad any more; go back "
                       "with reverse-step or choose another block",
                       block);
  case BlockPhase::kResident:
    break;
  }
  return fmt::format("block {} is not resident", block);
}

} // namespace

std::optional<std::vector<uint64_t>> Session::read_register(RegisterRef reg,
                                                            uint64_t block_index,
                                                            uint32_t first_lane,
                                                            uint32_t count,
                                                            std::string& error) const {
  const sim::BlockRun* run = impl_->block(block_index);
  if (run == nullptr) {
    error = no_block(*this, block_index);
    return std::nullopt;
  }
  if (!has_register(*impl_->program, reg, error)) {
    return std::nullopt;
  }
  const uint32_t lanes = run->image().padded_lanes;
  if (first_lane > lanes || count > lanes - first_lane) {
    error = fmt::format("lanes {}..{} are not there: the block has {}",
                        first_lane,
                        uint64_t{first_lane} + count,
                        run->image().lanes);
    return std::nullopt;
  }
  std::vector<uint64_t> values(count);
  for (uint32_t i = 0; i < count; ++i) {
    values[i] = register_bits(*run, reg, first_lane + i);
  }
  return values;
}

bool Session::write_register(
    RegisterRef reg, uint64_t block_index, uint32_t lane, uint64_t bits, std::string& error) {
  const sim::BlockRun* run = impl_->block(block_index);
  if (run == nullptr) {
    error = no_block(*this, block_index);
    return false;
  }
  if (is_over()) {
    error = "the kernel has stopped for good, so a register can change nothing any more; go back "
            "first";
    return false;
  }
  if (!has_register(*impl_->program, reg, error)) {
    return false;
  }
  if (lane >= run->image().lanes) {
    error = fmt::format("lane {} is not there: the block has {}", lane, run->image().lanes);
    return false;
  }
  if (reg.file == RegisterFile::kTile) {
    error = "a tile register cannot be written: ALLOC_LOCAL and FREE_LOCAL do";
    return false;
  }
  const sim::Program& program = *impl_->program;
  const bool is_used = reg.file == RegisterFile::kReg32   ? reg.index < program.reg32_limit()
                       : reg.file == RegisterFile::kReg64 ? reg.index < program.reg64_limit()
                                                          : true;
  if (!is_used) {
    error = fmt::format("the kernel does not use {}, so there is none", to_string(reg));
    return false;
  }
  Edit edit;
  edit.is_register = true;
  edit.reg = reg;
  edit.lane = lane;
  edit.block = block_index;
  edit.bytes.resize(8);
  std::memcpy(edit.bytes.data(), &bits, 8);
  impl_->edit(std::move(edit));
  return true;
}

// ---------------------------------------------------------------- memory

bool Session::read_memory(isa::Space space,
                          uint64_t block_index,
                          uint64_t address,
                          std::span<uint8_t> to,
                          std::string& error) const {
  if (to.empty()) {
    return true;
  }
  if (space == isa::Space::kHbm) {
    if (impl_->machine.hbm.read(address, to)) {
      return true;
    }
    error = fmt::format("cannot read {} bytes at hbm:{:#x}: {}",
                        to.size(),
                        address,
                        impl_->machine.hbm.describe(address, to.size()));
    return false;
  }
  if (space == isa::Space::kConst) {
    const std::vector<uint8_t>& data = impl_->program->object().const_data;
    if (address <= data.size() && to.size() <= data.size() - address) {
      std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(address), to.size(), to.begin());
      return true;
    }
    error = fmt::format("cannot read {} bytes at const:{}: the program has {} bytes of constants",
                        to.size(),
                        address,
                        data.size());
    return false;
  }
  const sim::BlockRun* run = impl_->block(block_index);
  if (run != nullptr && run->scratchpad().holds(address, to.size())) {
    std::memcpy(to.data(), run->scratchpad().data() + address, to.size());
    return true;
  }
  // Past the scratchpad lies what the data cache holds.
  const L1Bytes bytes = read_l1(block_index, address, to.size());
  const auto missing = std::find(bytes.is_held.begin(), bytes.is_held.end(), false);
  if (missing == bytes.is_held.end()) {
    std::copy(bytes.bytes.begin(), bytes.bytes.end(), to.begin());
    return true;
  }
  const uint64_t at = address + static_cast<uint64_t>(missing - bytes.is_held.begin());
  error = run == nullptr && at == address
              ? no_block(*this, block_index)
              : fmt::format("cannot read {} bytes at l1:{}: byte {} is neither scratchpad nor a "
                            "cached line",
                            to.size(),
                            address,
                            at);
  return false;
}

bool Session::write_memory(isa::Space space,
                           uint64_t block_index,
                           uint64_t address,
                           std::span<const uint8_t> from,
                           std::string& error) {
  if (from.empty()) {
    return true;
  }
  if (space == isa::Space::kConst) {
    error = "const memory cannot be written";
    return false;
  }
  if (space == isa::Space::kHbm) {
    if (impl_->machine.hbm.host(address, from.size()) == nullptr) {
      error = fmt::format("cannot write {} bytes at hbm:{:#x}: {}",
                          from.size(),
                          address,
                          impl_->machine.hbm.describe(address, from.size()));
      return false;
    }
  } else {
    const sim::BlockRun* run = impl_->block(block_index);
    if (run == nullptr) {
      error = no_block(*this, block_index);
      return false;
    }
    if (!run->scratchpad().holds(address, from.size())) {
      error = fmt::format("cannot write {} bytes at l1:{}: the block's scratchpad is\n{}",
                          from.size(),
                          address,
                          run->scratchpad().map());
      return false;
    }
  }
  Edit edit;
  edit.space = space;
  edit.block = block_index;
  edit.address = address;
  edit.bytes.assign(from.begin(), from.end());
  impl_->edit(std::move(edit));
  return true;
}

std::optional<uint32_t> Session::core_of(uint64_t block_index) const {
  if (const sim::BlockRun* run = impl_->block(block_index)) {
    return run->core();
  }
  const auto found = impl_->core_of_block.find(block_index);
  return found != impl_->core_of_block.end() && phase(block_index) == BlockPhase::kDone
             ? std::optional<uint32_t>(found->second)
             : std::nullopt;
}

L1Bytes Session::read_l1(uint64_t block_index, uint64_t offset, uint64_t size_bytes) const {
  const uint64_t end_of_l1 = impl_->machine.profile.l1.size_bytes;
  L1Bytes result;
  result.bytes.resize(size_bytes);
  result.is_held.resize(size_bytes);
  const sim::BlockRun* run = impl_->block(block_index);
  const std::optional<uint32_t> core = core_of(block_index);
  const sim::CoreMemory* memory = impl_->engine->model() != nullptr && core
                                      ? impl_->engine->model()->core_memory(*core)
                                      : nullptr;
  const uint32_t line_bytes = impl_->machine.profile.l1.line_bytes;
  for (uint64_t i = 0; i < size_bytes; ++i) {
    const uint64_t at = offset + i;
    if (at < offset || at >= end_of_l1) {
      break;
    }
    if (run != nullptr && run->scratchpad().holds(at, 1)) {
      result.bytes[i] = run->scratchpad().data()[at];
      result.is_held[i] = true;
    } else if (memory != nullptr && line_bytes != 0 && at >= memory->cache_begin_bytes()) {
      const uint64_t in_cache = at - memory->cache_begin_bytes();
      const std::optional<uint64_t> line =
          memory->data_cache().line_in(static_cast<uint32_t>(in_cache / line_bytes));
      result.is_held[i] =
          line && impl_->machine.hbm.read(*line * line_bytes + in_cache % line_bytes,
                                          {&result.bytes[i], 1});
    }
  }
  return result;
}

std::vector<CacheLine> Session::cache_lines(uint32_t core) const {
  std::vector<CacheLine> lines;
  const sim::CoreMemory* memory =
      impl_->engine->model() != nullptr ? impl_->engine->model()->core_memory(core) : nullptr;
  if (memory == nullptr) {
    return lines;
  }
  const uint32_t line_bytes = impl_->machine.profile.l1.line_bytes;
  const sim::CacheTags& tags = memory->data_cache();
  for (uint32_t slot = 0; slot < tags.slot_count(); ++slot) {
    if (const std::optional<uint64_t> line = tags.line_in(slot)) {
      const auto ready = static_cast<uint64_t>(tags.ready(slot));
      lines.push_back({slot,
                       memory->cache_begin_bytes() + slot * line_bytes,
                       *line * line_bytes,
                       line_bytes,
                       ready > cycle(),
                       ready});
    }
  }
  return lines;
}

// ---------------------------------------------------------------- assignment

bool Session::assign_all(const Evaluated& to, const Evaluated& from, std::string& error) {
  const size_t count = to.is_array ? to.array.size() : 1;
  const size_t given = from.is_array ? from.array.size() : 1;
  if (to.place.kind == Place::Kind::kNone) {
    return assign(to.place, from.value, error);
  }
  if (to.is_truncated) {
    error = fmt::format("an assignment writes up to {} elements; write them in parts",
                        Evaluated::kMaxElements);
    return false;
  }
  if (from.is_array && given != count) {
    error =
        fmt::format("there are {} values for {} places; expected one, or one for each",
                    from.is_truncated ? fmt::format("over {}", given) : fmt::format("{}", given),
                    count);
    return false;
  }
  for (size_t i = 0; i < given; ++i) { // all or nothing
    if (!bits_for(from.is_array ? from.array[i] : from.value, to.place.type, error)) {
      return false;
    }
  }
  const unsigned size = std::max(1u, isa::size_bytes(to.place.type));
  for (size_t i = 0; i < count; ++i) {
    Place one = to.place;
    if (one.kind == Place::Kind::kRegister) {
      one.first_lane += static_cast<uint32_t>(i);
    } else {
      one.address += i * size;
    }
    if (!assign(one, from.is_array ? from.array[i] : from.value, error)) {
      return false;
    }
  }
  return true;
}

bool Session::assign(const Place& place, const Value& value, std::string& error) {
  if (place.kind == Place::Kind::kNone) {
    error = "only a register or memory can be assigned to";
    return false;
  }
  const std::optional<uint64_t> held = bits_for(value, place.type, error);
  if (!held) {
    return false;
  }
  uint64_t bits = *held;
  if (place.kind == Place::Kind::kRegister) {
    const unsigned width = isa::bits(place.type);
    if (place.reg.file != RegisterFile::kReg64 && width < 32 && width > 1 &&
        isa::is_signed(place.type)) {
      const unsigned shift = 64 - width; // registers hold narrow integers extended
      bits = static_cast<uint64_t>(static_cast<int64_t>(bits << shift) >> shift);
    }
    return write_register(place.reg, focus().block, place.first_lane, bits, error);
  }
  const unsigned size = std::max(1u, isa::size_bytes(place.type));
  return write_memory(place.space,
                      focus().block,
                      place.address,
                      {reinterpret_cast<const uint8_t*>(&bits), size},
                      error);
}

} // namespace pto::dbg
