// SPDX-License-Identifier: Apache-2.0
// Patterns of one insn: chains for its latency, streams for its interval.
#include "isa/table.h"
#include "runtime/profile/microbench_set.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::rt::detail {

using isa::Insn;
using isa::InsnDesc;

void SetMaker::make_latencies() {
  for (const InsnForm& form : forms_) {
    const auto bridge = bridge_.find(&form);
    if (form.is_store || (!form.is_self_chained() && bridge == bridge_.end())) {
      continue;
    }
    const InsnForm* back = form.is_self_chained() ? nullptr : bridge->second;
    for (const char* variant : {"spaced", "tight"}) {
      const bool is_spaced = variant[0] == 's';
      for (const unsigned repeats : kChainRepeats) {
        Body body;
        for (unsigned i = 0; i < repeats; ++i) {
          const RegClass entry = back == nullptr ? form.dst_class : form.entry_class();
          body.add(with(form, kChain, form.entry_of(entry), kChain));
          if (is_spaced) {
            body.nop();
          }
          if (back != nullptr) {
            body.add(with(*back, kChain, back->entry_of(form.dst_class), kChain));
            if (is_spaced) {
              body.nop();
            }
          }
        }
        // One lane for atomics: lanes on one address would queue up.
        add({.role = "latency",
             .first = form.key,
             .second = back == nullptr ? "" : back->key,
             .variant = variant,
             .repeats = repeats},
            body,
            form.insn.desc->has(isa::kAtomic) ? 1 : 32);
      }
    }
  }
}

void SetMaker::make_store_latencies() {
  for (const InsnDesc* fence : rows_with(isa::kFence)) {
    for (const InsnForm& form : forms_) {
      if (!form.is_store) {
        continue;
      }
      for (const unsigned repeats : kChainRepeats) {
        Body body;
        body.uses(kLaneReg);
        for (unsigned i = 0; i < repeats; ++i) {
          body.add(with(form, 0, -2, kLocalReg));
          body.line(bare_text(*fence));
        }
        add({.role = "latency",
             .first = form.key,
             .second = bare_key(*fence),
             .variant = "fence",
             .repeats = repeats},
            body,
            32);
      }
    }
    for (const unsigned repeats : kChainRepeats) {
      Body body;
      for (unsigned i = 0; i < repeats; ++i) {
        body.line(bare_text(*fence));
      }
      add({.role = "latency", .first = bare_key(*fence), .variant = "issue", .repeats = repeats},
          body,
          32);
    }
  }
}

void SetMaker::make_branches() {
  for (const InsnDesc* row : rows_with(isa::kBranch)) {
    for (const unsigned repeats : kChainRepeats) {
      Body body;
      for (unsigned i = 0; i < repeats; ++i) {
        body.line(fmt::format("{} to{}", row->mnemonic, i));
        body.label(fmt::format("to{}", i));
      }
      Insn insn;
      insn.desc = row;
      add({.role = "latency", .first = latency_key(insn), .variant = "branch", .repeats = repeats},
          body,
          32);
    }
  }
}

void SetMaker::make_calls() {
  for (const InsnDesc* call : rows_with(isa::kCall)) {
    const InsnDesc* ret = rows_with(isa::kReturn).front();
    for (const unsigned repeats : kChainRepeats) {
      if (repeats > machine_.call_depth) {
        break;
      }
      Body nested;
      // They stand in the order of the calls: going backwards each would wait for its own code,
      // and that would pass for a slow call.
      for (unsigned i = repeats; i-- > 0;) { // the last one called ends the lane
        const std::string text =
            i == 0 ? "    exit\n"
                   : fmt::format("    {} f{}\n    {}\n", call->mnemonic, i - 1, ret->mnemonic);
        nested.function(fmt::format("f{}", i), text);
      }
      nested.line(fmt::format("{} f{}", call->mnemonic, repeats - 1));
      add({.role = "latency",
           .first = std::string(call->latency),
           .variant = "nested",
           .repeats = repeats},
          nested,
          32);
    }
    for (const unsigned repeats : kChainRepeats) {
      Body returning;
      returning.function("f", fmt::format("    {}\n", ret->mnemonic));
      for (unsigned i = 0; i < repeats; ++i) {
        returning.line(fmt::format("{} f", call->mnemonic));
      }
      add({.role = "latency",
           .first = std::string(ret->latency),
           .second = std::string(call->latency),
           .variant = "return",
           .repeats = repeats},
          returning,
          32);
    }
  }
}

void SetMaker::make_spacers() {
  for (const unsigned repeats : kChainRepeats) {
    Body body;
    for (unsigned i = 0; i < repeats; ++i) {
      body.nop();
    }
    add({.role = "latency", .first = "NOP", .variant = "spacer", .repeats = repeats}, body, 32);
  }
}

void SetMaker::make_matrix() {
  for (const InsnDesc* row : isa::all_insns()) {
    if (row->unit != isa::Unit::kC) {
      continue;
    }
    for (const std::string& suffix : matrix_types(*row)) {
      for (const unsigned edge : {8U, 16U, 32U}) {
        if (edge != 16 && suffix != matrix_types(*row).front()) {
          continue;
        }
        add_products(*row, suffix, edge, "spaced");
        if (edge == 16) {
          add_products(*row, suffix, edge, "tight");
        }
      }
    }
  }
}

void SetMaker::add_products(const InsnDesc& row,
                            const std::string& suffix,
                            unsigned edge,
                            const std::string& variant) {
  for (const unsigned repeats : edge > 16 ? kHeavyRepeats : kPairRepeats) {
    Body body;
    matrix_tiles(body, edge);
    for (unsigned i = 0; i < repeats; ++i) {
      body.line(fmt::format("{0}{1} t2, t0, t1, {2}, {2}, {2}", row.mnemonic, suffix, edge));
      if (variant == "spaced") {
        body.nop();
      }
    }
    add({.role = "latency",
         .first = std::string(row.latency) + suffix,
         .variant = variant,
         .repeats = repeats,
         .amount = edge},
        body,
        32);
  }
}

void SetMaker::matrix_tiles(Body& body, unsigned edge) {
  for (const char* tile : {"t0", "t1", "t2"}) {
    body.start(fmt::format("alloc_local {}, {}", tile, edge * edge * 4));
  }
}

std::vector<std::string> SetMaker::matrix_types(const InsnDesc& row) {
  std::vector<std::string> suffixes;
  for (unsigned t = 0; t < isa::kTypeCount; ++t) {
    for (unsigned u = 0; u < isa::kTypeCount; ++u) {
      const auto type = static_cast<isa::Type>(isa::kTypeCount - 1 - t);
      const auto type2 = static_cast<isa::Type>(isa::kTypeCount - 1 - u);
      if (row.types.contains(type) && row.types2.contains(type2) &&
          isa::is_float(type) == isa::is_float(type2)) {
        suffixes.push_back(fmt::format(".{}.{}", isa::name(type), isa::name(type2)));
      }
    }
  }
  return suffixes;
}

uint32_t SetMaker::stream_lanes() const {
  return std::min(kStreamLanes, machine_.max_lanes_per_block);
}

void SetMaker::make_intervals() {
  for (const InsnForm& form : forms_) {
    if (form.insn.desc->has(isa::kAtomic)) {
      continue; // role atomic
    }
    const unsigned results = stream_results(form.dst_class);
    for (const unsigned repeats : kStreamRepeats) {
      Body body;
      for (unsigned i = 0; i < repeats; ++i) {
        const unsigned first = form.dst_class == RegClass::kP ? kMiddle : kFirstStream;
        const int entry = form.mem == -1 ? -1 : memory_entry(form);
        body.add(with(form, first + i % results, entry, kLocalReg));
      }
      Microbench& bench =
          add({.role = "interval", .first = form.key, .repeats = repeats, .amount = results},
              body,
              stream_lanes());
      bench.a_bytes = std::max<uint64_t>(bench.a_bytes, uint64_t{stream_lanes()} * 8);
    }
  }
}

int SetMaker::memory_entry(const InsnForm& form) {
  const bool is_const =
      form.insn.operand(static_cast<unsigned>(form.mem)).mem().space == isa::Space::kConst;
  return is_const ? -1 : -2;
}

unsigned SetMaker::stream_results(RegClass reg_class) {
  return reg_class == RegClass::kR ? 16 : reg_class == RegClass::kD ? 8 : 6;
}

} // namespace pto::rt::detail
