// SPDX-License-Identifier: Apache-2.0
// The set, role by role. The patterns are in microbench_chains.cc, microbench_pairs.cc and
// microbench_memory.cc. What each measures in the terms of the timing model is said at its
// declaration; calibrate.cc undoes it.
#include "runtime/profile/microbench.h"

#include "runtime/profile/microbench_set.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::rt {

namespace detail {

using isa::Insn;
using isa::InsnDesc;

std::string identifier(const MicroTag& tag) {
  std::string name = tag.role;
  for (const std::string* part : {&tag.first, &tag.second, &tag.variant}) {
    if (!part->empty()) {
      name += "_" + *part;
    }
  }
  if (tag.amount != 0) {
    name += fmt::format("_of{}", tag.amount);
  }
  name += fmt::format("_x{}", tag.repeats);
  for (char& c : name) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    c = is_plain ? c : '_';
  }
  return name;
}

std::string bare_text(const InsnDesc& row) {
  Insn insn;
  insn.desc = &row;
  return text_of(insn);
}
std::string bare_key(const InsnDesc& row) {
  Insn insn;
  insn.desc = &row;
  return latency_key(insn);
}

SetMaker::SetMaker(const isa::MachineProfile& machine, const MicrobenchOptions& options)
    : machine_(machine), options_(options), forms_(insn_forms().begin(), insn_forms().end()) {
  thin_out();
  find_bridges();
}

std::vector<Microbench> SetMaker::make() {
  if (options_.follow_up != nullptr) {
    if (wants("pair")) {
      make_follow_ups();
    }
    return std::move(out_);
  }
  if (wants("latency")) {
    make_latencies();
    make_store_latencies();
    make_branches();
    make_calls();
    make_spacers();
    make_matrix();
  }
  if (wants("interval")) {
    make_intervals();
  }
  if (wants("pair")) {
    make_pairs();
  }
  if (wants("memory")) {
    make_memory();
  }
  if (wants("atomic")) {
    make_atomics();
  }
  if (wants("barrier")) {
    make_barriers();
  }
  if (wants("copy")) {
    make_copies();
    make_waits();
  }
  if (wants("launch")) {
    make_launches();
  }
  return std::move(out_);
}

bool SetMaker::wants(std::string_view role) const {
  return options_.roles.empty() ||
         std::find(options_.roles.begin(), options_.roles.end(), role) != options_.roles.end();
}

void SetMaker::thin_out() {
  if (options_.types_per_entry == 0) {
    return;
  }
  std::map<const isa::LatencyEntry*, uint32_t> kept;
  std::vector<InsnForm> rest;
  std::stable_sort(forms_.begin(), forms_.end(), [](const InsnForm& a, const InsnForm& b) {
    return rank(a) < rank(b);
  });
  for (InsnForm& form : forms_) {
    const isa::LatencyEntry* entry = machine_.latency.find(form.key);
    if (entry == nullptr || kept[entry]++ < options_.types_per_entry ||
        (form.is_load && rank(form) == 0) || form.is_store) {
      rest.push_back(std::move(form));
    }
  }
  forms_ = std::move(rest);
}

int SetMaker::rank(const InsnForm& form) {
  const isa::Type type = form.insn.type;
  if (form.insn.type2 != isa::Type::kNone && isa::bits(form.insn.type2) != 32) {
    return 4;
  }
  return type == isa::Type::kF32    ? 0
         : isa::bits(type) == 32    ? 1
         : type == isa::Type::kB64  ? 2
         : type == isa::Type::kPred ? 3
                                    : 4;
}

Microbench& SetMaker::add(const Pattern& pattern, const Body& body, uint32_t lanes) {
  Microbench bench;
  bench.tag = pattern.tag();
  bench.name = identifier(bench.tag);
  bench.text = body.text(bench.name);
  bench.lanes = lanes;
  out_.push_back(std::move(bench));
  return out_.back();
}

void SetMaker::find_bridges() {
  std::set<const InsnForm*> known;
  for (const InsnForm& form : forms_) {
    if (form.is_self_chained()) {
      known.insert(&form);
    }
  }
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    for (const InsnForm& form : forms_) {
      if (known.count(&form) != 0 || form.is_store) {
        continue;
      }
      for (const InsnForm& bridge : forms_) {
        if (known.count(&bridge) != 0 && !bridge.is_load &&
            bridge.dst_class == form.entry_class() && bridge.entry_of(form.dst_class) >= 0 &&
            &bridge != &form && leads_back(form, bridge)) {
          bridge_[&form] = &bridge;
          known.insert(&form);
          has_grown = true;
          break;
        }
      }
    }
  }
}

bool SetMaker::leads_back(const InsnForm& form, const InsnForm& bridge) {
  return !form.is_load || bridge.sources.size() == 1;
}

namespace {

/// "FMA" has FMA.f32, "LOAD.l1" has LOAD.l1.f32.
bool is_below(std::string_view key, std::string_view wanted) {
  return key == wanted || (key.starts_with(wanted) && key[wanted.size()] == '.');
}

} // namespace

void keep_keys(std::vector<Microbench>& set, const std::vector<std::string>& keys) {
  std::set<std::string> wanted;
  for (const Microbench& bench : set) {
    for (const std::string& key : keys) {
      if (is_below(bench.tag.first, key) || is_below(bench.tag.second, key)) {
        wanted.insert(bench.tag.first);
      }
    }
  }
  // What closes a chain has a chain of its own, which tells what to subtract.
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    for (const Microbench& bench : set) {
      if (wanted.count(bench.tag.first) != 0 && !bench.tag.second.empty()) {
        has_grown = wanted.insert(bench.tag.second).second || has_grown;
      }
    }
  }
  std::erase_if(set, [&](const Microbench& bench) {
    return wanted.count(bench.tag.first) == 0 && (wanted.empty() || bench.tag.variant != "spacer");
  });
}

} // namespace detail

const std::vector<MicrobenchRole>& microbench_roles() {
  static const std::vector<MicrobenchRole> roles = {
      {"latency", "dependent chains: issue of an insn to the issue of one that needs its result"},
      {"interval", "independent streams: how soon a unit takes the next warp"},
      {"pair", "neighbours that firmware may join into one"},
      {"memory", "misses, strides, bank conflicts, bandwidth by working set"},
      {"atomic", "atomics by lanes on one address"},
      {"barrier", "barriers by warps"},
      {"copy", "asynchronous copies by size"},
      {"launch", "empty kernels by blocks"}};
  return roles;
}

std::vector<Microbench> make_microbenches(const isa::MachineProfile& machine,
                                          const MicrobenchOptions& options) {
  std::vector<Microbench> set = detail::SetMaker(machine, options).make();
  if (!options.keys.empty()) {
    detail::keep_keys(set, options.keys);
  }
  return set;
}

} // namespace pto::rt
