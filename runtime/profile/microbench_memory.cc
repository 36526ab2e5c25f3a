// SPDX-License-Identifier: Apache-2.0
// Patterns whose time follows from an amount: memory, atomics, barriers, copies, launches.
#include "runtime/profile/microbench_set.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::rt::detail {

using isa::InsnDesc;

void SetMaker::make_memory() {
  // A chain of loads, each from a line that nobody has touched: the way to hbm.
  const uint32_t line = std::max(machine_.l1.line_bytes, machine_.l2.line_bytes);
  for (const unsigned repeats : {8U, 16U, 64U}) {
    Body body;
    body.uses(kChain);
    for (unsigned i = 0; i < repeats; ++i) {
      body.line(fmt::format("load.u32 r0, hbm[a + r0*4 + {}]", i * line));
    }
    Microbench& bench =
        add({.role = "memory", .first = "LOAD", .variant = "miss", .repeats = repeats}, body, 1);
    bench.a_bytes = uint64_t{line} * 64;
    bench.is_cold = true;
  }
  // Lanes so many bytes apart: how many lines a load touches.
  for (const unsigned stride : {4U, 8U, 16U, 32U, 64U, 128U}) {
    strided(stride);
  }
  // Words that fall into one bank of l1, for machines that have banks.
  const uint32_t row = std::max(4U, machine_.l1.row_bytes);
  const uint32_t banks = machine_.l1.banks == 0 ? 32 : machine_.l1.banks;
  for (const unsigned degree : {1U, 2U, 4U, 8U}) {
    conflict(degree, row * banks);
  }
  // Bytes that all cores read, again and again.
  for (const unsigned kib : {16U, 64U, 256U}) {
    bandwidth(kib);
  }
}

void SetMaker::strided(unsigned bytes_apart) {
  for (const unsigned repeats : kStreamRepeats) {
    Body body;
    body.uses(kLocalReg);
    body.start("and.b32 r28, r29, 31");
    body.start(fmt::format("mul.u32 r28, r28, {}", bytes_apart));
    for (unsigned i = 0; i < repeats; ++i) {
      body.line("load.u32 r4, hbm[a + r28]");
    }
    Microbench& bench = add({.role = "memory",
                             .first = "LOAD",
                             .variant = "stride",
                             .repeats = repeats,
                             .amount = bytes_apart},
                            body,
                            256);
    bench.a_bytes = std::max<uint64_t>(bench.a_bytes, bytes_apart * 32);
  }
}

void SetMaker::conflict(unsigned degree, uint32_t bytes_apart) {
  // Lanes 0..degree-1 read words that one bank holds, the others repeat them.
  const uint32_t bytes = degree * bytes_apart + 64;
  if (bytes > machine_.max_scratchpad_bytes()) {
    return;
  }
  for (const unsigned repeats : kChainRepeats) {
    Body body;
    body.uses(kLocalReg);
    body.uses(kChain);
    body.declare(fmt::format(".shared banked, b8[{}]", bytes));
    body.start(fmt::format("and.b32 r28, r29, {}", degree - 1));
    body.start(fmt::format("mul.u32 r28, r28, {}", bytes_apart));
    for (unsigned i = 0; i < repeats; ++i) {
      body.line("load.u32 r0, l1[banked + r28]");
      body.line("add.u32 r28, r28, r0");
    }
    add({.role = "memory",
         .first = "LOAD.l1",
         .variant = "conflict",
         .repeats = repeats,
         .amount = degree},
        body,
        32);
  }
}

void SetMaker::bandwidth(unsigned kib) {
  const uint32_t grid = machine_.cores * machine_.blocks_per_core;
  const uint32_t lanes = std::min(256U, machine_.max_lanes_per_block);
  const uint64_t bytes_a_block = uint64_t{kib} * 1024 / grid / (lanes * 4) * (lanes * 4);
  if (bytes_a_block == 0) {
    return;
  }
  const unsigned loads = static_cast<unsigned>(bytes_a_block / (lanes * 4));
  if (loads > 256) {
    return;
  }
  for (const unsigned repeats : {1U, 3U}) {
    Body body;
    body.uses(kLocalReg);
    body.start("mov.u32 r28, %ctaid.x");
    body.start(fmt::format("mul.u32 r28, r28, {}", bytes_a_block / 4));
    body.start("add.u32 r28, r28, r29");
    for (unsigned r = 0; r < repeats; ++r) {
      for (unsigned i = 0; i < loads; ++i) {
        body.line(
            fmt::format("load.u32 r{}, hbm[a + r28*4 + {}]", kFirstStream + i % 8, i * lanes * 4));
      }
    }
    Microbench& bench = add({.role = "memory",
                             .first = "LOAD",
                             .variant = "bandwidth",
                             .repeats = repeats,
                             .amount = bytes_a_block * grid},
                            body,
                            lanes);
    bench.grid = grid;
    bench.a_bytes = bytes_a_block * grid;
  }
}

void SetMaker::make_atomics() {
  for (const InsnForm& form : forms_) {
    if (!form.insn.desc->has(isa::kAtomic) || form.dst_class != RegClass::kR) {
      continue;
    }
    for (const unsigned lanes : {1U, 2U, 4U, 8U, 16U, 32U}) {
      for (const unsigned repeats : kChainRepeats) {
        if (repeats == kChainRepeats[1]) {
          continue;
        }
        Body body;
        for (unsigned i = 0; i < repeats; ++i) {
          body.add(with(form, kChain, -2, kZero));
        }
        add({.role = "atomic",
             .first = form.key,
             .variant = "one address",
             .repeats = repeats,
             .amount = lanes},
            body,
            lanes);
      }
    }
  }
}

void SetMaker::make_barriers() {
  const auto add_barriers = [&](const InsnDesc& row, const char* variant, unsigned warps) {
    for (const unsigned repeats : kChainRepeats) {
      Body body;
      for (unsigned i = 0; i < repeats; ++i) {
        body.line(std::string(row.mnemonic));
      }
      add({.role = "barrier",
           .first = std::string(row.latency),
           .variant = variant,
           .repeats = repeats,
           .amount = warps},
          body,
          warps * isa::kWarpLanes);
    }
  };
  for (const InsnDesc* row : rows_with(isa::kWarpBarrier)) {
    add_barriers(*row, "warp", 1);
  }
  for (const InsnDesc* row : rows_with(isa::kBlockBarrier)) {
    for (const unsigned warps : {1U, 2U, 4U, 8U, 16U, 32U}) {
      if (warps * isa::kWarpLanes <= machine_.max_lanes_per_block) {
        add_barriers(*row, "block", warps);
      }
    }
  }
}

void SetMaker::make_copies() {
  for (const bool is_in : {true, false}) {
    for (const unsigned bytes : {128U, 512U, 2048U, 8192U}) {
      for (const unsigned repeats : kHeavyRepeats) {
        Body body;
        body.start("alloc_local t0, 8192");
        for (unsigned i = 0; i < repeats; ++i) {
          body.line(is_in ? fmt::format("async_load t0, hbm[a], {}, e0", bytes)
                          : fmt::format("async_store hbm[o], t0, {}, e0", bytes));
          body.line("wait e0");
        }
        Microbench& bench = add({.role = "copy",
                                 .first = is_in ? "ASYNC_LOAD" : "ASYNC_STORE",
                                 .variant = is_in ? "in" : "out",
                                 .repeats = repeats,
                                 .amount = bytes},
                                body,
                                32);
        bench.a_bytes = 8192;
      }
    }
  }
}

void SetMaker::make_waits() {
  for (const InsnDesc* row : rows_with(isa::kWaits)) {
    const std::string wait = row->operands.size() == 0 ? std::string(row->mnemonic)
                                                       : fmt::format("{} e0", row->mnemonic);
    for (const unsigned repeats : kChainRepeats) {
      Body body;
      body.start("alloc_local t0, 8192");
      body.line("async_load t0, hbm[a], 128, e0");
      body.line(wait);
      for (unsigned i = 0; i < repeats; ++i) {
        body.line(wait);
      }
      add({.role = "copy",
           .first = std::string(row->latency),
           .variant = "done",
           .repeats = repeats},
          body,
          32);
    }
  }
}

void SetMaker::make_launches() {
  const uint32_t places = machine_.cores * machine_.blocks_per_core;
  for (const uint32_t blocks : {1U, places, places * 4, places * 16}) {
    Microbench bench;
    bench.tag = Pattern{.role = "launch", .variant = "empty", .repeats = 1, .amount = blocks}.tag();
    bench.name = identifier(bench.tag);
    bench.text =
        fmt::format(".pto 1\n.kernel {}(ptr a, ptr o, u32 n)\n    exit\n.end\n", bench.name);
    bench.grid = blocks;
    out_.push_back(std::move(bench));
  }
}

} // namespace pto::rt::detail
