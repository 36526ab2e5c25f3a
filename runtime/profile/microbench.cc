// SPDX-License-Identifier: Apache-2.0
// The patterns of all roles. What each measures in the terms of the timing model is said where it
// is made; calibrate.cc undoes it.
#include "runtime/profile/microbench.h"

#include "isa/table.h"
#include "runtime/profile/microbench_insn.h"
#include "runtime/profile/pair_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace pto::rt {

using namespace detail;
using isa::Insn;
using isa::InsnDesc;

namespace {

// Slopes need a short and a long kernel; a third length in between is held out, it shows whether
// the pattern really costs the same each time.
constexpr std::array<unsigned, 3> kChainRepeats = {8, 16, 48};
constexpr std::array<unsigned, 2> kPairRepeats = {6, 24};
constexpr std::array<unsigned, 2> kStreamRepeats = {16, 48};
constexpr std::array<unsigned, 2> kHeavyRepeats = {4, 12};
constexpr unsigned kStreamLanes = 1024;

/// The body of one kernel: insns by role, and what registers they need set up before.
class Body {
public:
  void add(const Insn& insn) {
    for (unsigned i = 0; i < insn.operand_count; ++i) {
      const isa::Operand& operand = insn.operand(i);
      if (operand.kind == isa::OperandKind::kReg32) {
        reg32_.insert(operand.index);
      } else if (operand.kind == isa::OperandKind::kReg64) {
        reg64_.insert(operand.index);
      } else if (operand.kind == isa::OperandKind::kPred) {
        preds_.insert(operand.index);
      } else if (operand.kind == isa::OperandKind::kMem) {
        const isa::MemRef ref = operand.mem();
        reg32_.insert(ref.index_reg);
        uses_shared_ = uses_shared_ || ref.space == isa::Space::kL1;
        uses_const_ = uses_const_ || ref.space == isa::Space::kConst;
      }
    }
    line(text_of(insn));
  }
  void line(std::string text) { lines_.push_back("    " + std::move(text)); }
  void label(const std::string& name) { lines_.push_back(name + ":"); }
  void nop() { line("nop"); }
  void uses(unsigned reg32) { reg32_.insert(reg32); }
  void declare(std::string text) { declarations_ += text + "\n"; }
  void start(std::string text) { setup_ += "    " + std::move(text) + "\n"; }

  /// The whole program.
  [[nodiscard]] std::string text(const std::string& name) const {
    std::string out = fmt::format(".pto 1\n.kernel {}(ptr a, ptr o, u32 n)\n", name);
    if (uses_shared_) {
      out += ".shared s, b32[4096]\n";
    }
    if (uses_const_) {
      out += ".const c, b32 {0, 0, 0, 0}\n";
    }
    out += declarations_;
    out += prologue();
    out += setup_;
    for (const std::string& line : lines_) {
      out += line;
      out += '\n';
    }
    out += epilogue();
    return out + "    exit\n.end\n";
  }

private:
  [[nodiscard]] bool has(unsigned reg) const { return reg32_.count(reg) != 0; }

  [[nodiscard]] std::string prologue() const {
    std::string out = "    mov.b32 r3, 0\n    mov.u32 r30, %gid.x\n";
    const std::pair<unsigned, const char*> starts[] = {{kChain, "mov.b32 r0, 0"},
                                                       {kConstant, "mov.b32 r1, 0x3f803f80"},
                                                       {kMiddle, "mov.b32 r2, 0"},
                                                       {kLocalReg, "mov.u32 r29, %tid.x"}};
    for (const auto& [reg, text] : starts) {
      if (has(reg)) {
        out += fmt::format("    {}\n", text);
      }
    }
    for (const unsigned reg : {kChain, kConstant, kMiddle, kZero}) {
      if (reg64_.count(reg) != 0) {
        out += fmt::format("    mov.b64 d{}, {}\n", reg, reg == kConstant ? 3 : 0);
      }
    }
    for (const unsigned reg : {kChain, kConstant, kMiddle}) {
      if (preds_.count(reg) != 0) {
        out += fmt::format("    cmp.eq.u32 p{}, r3, r3\n", reg);
      }
    }
    return out;
  }

  /// Results are used, so that nothing may leave the pattern out.
  [[nodiscard]] std::string epilogue() const {
    std::string out;
    for (const unsigned reg : reg32_) {
      if (reg >= kFirstStream && reg < kLocalReg) {
        out += fmt::format("    xor.b32 r3, r3, r{}\n", reg);
      }
    }
    if (preds_.count(kChain) != 0) {
      out += "    sel.b32 r3, r3, r30, p0\n";
    }
    out += fmt::format("    store.b32 hbm[o + r30*4], {}\n", has(kChain) ? "r0" : "r3");
    if (reg64_.count(kChain) != 0) {
      out += "    store.b64 hbm[o + r30*8], d0\n";
    }
    return out;
  }

  std::set<unsigned> reg32_;
  std::set<unsigned> reg64_;
  std::set<unsigned> preds_;
  bool uses_shared_ = false;
  bool uses_const_ = false;
  std::string declarations_;
  std::string setup_;
  std::vector<std::string> lines_;
};

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

/// The shape without operands of a row whose operands are all optional (FENCE).
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

class SetMaker {
public:
  SetMaker(const isa::MachineProfile& machine, const MicrobenchOptions& options)
      : machine_(machine), options_(options), forms_(insn_forms().begin(), insn_forms().end()) {
    thin_out();
    find_bridges();
  }

  std::vector<Microbench> make() {
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
    }
    if (wants("launch")) {
      make_launches();
    }
    return std::move(out_);
  }

private:
  [[nodiscard]] bool wants(std::string_view role) const {
    return options_.roles.empty() ||
           std::find(options_.roles.begin(), options_.roles.end(), role) != options_.roles.end();
  }

  /// Leaves so many forms of each entry of the latency table; forms that others need as bridges or
  /// in pairs come first in the table's order, so they stay.
  void thin_out() {
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

  /// f32 before other 32-bit types before the rest.
  static int rank(const InsnForm& form) {
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

  Microbench& add(MicroTag tag, const Body& body, uint32_t lanes) {
    Microbench bench;
    bench.name = identifier(tag);
    bench.tag = std::move(tag);
    bench.text = body.text(bench.name);
    bench.lanes = lanes;
    out_.push_back(std::move(bench));
    return out_.back();
  }

  // ------------------------------------------------------------ chains

  /// For each form that does not feed itself, a form that leads back, whose own latency some other
  /// chain tells. Rounds: forms that feed themselves are known; what a known form closes is known.
  void find_bridges() {
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

  /// A load's address must stay what it is: the bridge has to make zero of zero. Counting and
  /// conversions do, arithmetic with the constant does not.
  [[nodiscard]] static bool leads_back(const InsnForm& form, const InsnForm& bridge) {
    return !form.is_load || bridge.sources.size() == 1;
  }

  void make_latencies() {
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
          add({"latency",
               form.key,
               back == nullptr ? "" : back->key,
               variant,
               static_cast<double>(repeats),
               0},
              body,
              form.insn.desc->has(isa::kAtomic) ? 1 : 32);
        }
      }
    }
  }

  /// A store's result shows where a fence waits for it.
  void make_store_latencies() {
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
          add({"latency", form.key, bare_key(*fence), "fence", static_cast<double>(repeats), 0},
              body,
              32);
        }
      }
      for (const unsigned repeats : kChainRepeats) {
        Body body;
        for (unsigned i = 0; i < repeats; ++i) {
          body.line(bare_text(*fence));
        }
        add({"latency", bare_key(*fence), "", "issue", static_cast<double>(repeats), 0}, body, 32);
      }
    }
  }

  /// Jumps to the next insn: each holds the warp until its target is known.
  void make_branches() {
    for (const InsnDesc* row : rows_with(isa::kBranch)) {
      for (const unsigned repeats : kChainRepeats) {
        Body body;
        for (unsigned i = 0; i < repeats; ++i) {
          body.line(fmt::format("{} to{}", row->mnemonic, i));
          body.label(fmt::format("to{}", i));
        }
        Insn insn;
        insn.desc = row;
        add({"latency", latency_key(insn), "", "branch", static_cast<double>(repeats), 0},
            body,
            32);
      }
    }
  }

  /// A product that accumulates: the tile is both source and result. By size, for the formula.
  void make_matrix() {
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

  void add_products(const InsnDesc& row,
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
      add({"latency",
           std::string(row.latency) + suffix,
           "",
           variant,
           static_cast<double>(repeats),
           static_cast<double>(edge)},
          body,
          32);
    }
  }

  static void matrix_tiles(Body& body, unsigned edge) {
    for (const char* tile : {"t0", "t1", "t2"}) {
      body.start(fmt::format("alloc_local {}, {}", tile, edge * edge * 4));
    }
  }

  /// ".f32.f32", ...: the widest first.
  static std::vector<std::string> matrix_types(const InsnDesc& row) {
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

  // ------------------------------------------------------------ streams

  [[nodiscard]] uint32_t stream_lanes() const {
    return std::min(kStreamLanes, machine_.max_lanes_per_block);
  }

  /// Every warp of a full block issues insns whose results nobody reads: the unit is the limit.
  void make_intervals() {
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
        MicroTag tag{"interval", form.key, "", "", static_cast<double>(repeats), 0};
        tag.amount = results;
        Microbench& bench = add(tag, body, stream_lanes());
        bench.a_bytes = std::max<uint64_t>(bench.a_bytes, uint64_t{stream_lanes()} * 8);
      }
    }
  }

  /// Streams read and write one element a lane; constants have one address.
  static int memory_entry(const InsnForm& form) {
    const bool is_const =
        form.insn.operand(static_cast<unsigned>(form.mem)).mem().space == isa::Space::kConst;
    return is_const ? -1 : -2;
  }

  static unsigned stream_results(RegClass reg_class) {
    return reg_class == RegClass::kR ? 16 : reg_class == RegClass::kD ? 8 : 6;
  }

  // ------------------------------------------------------------ pairs

  void make_pairs() {
    for (const PairForms& pair : likely_pairs(forms_)) {
      for (const unsigned repeats : kPairRepeats) {
        Body body;
        for (unsigned i = 0; i < repeats; ++i) {
          add_connected(body, pair, -1, i);
        }
        add(pair_tag(pair, "all", repeats), body, 32);
      }
    }
    make_matrix_pairs();
  }

  static MicroTag pair_tag(const PairForms& pair, std::string variant, unsigned repeats) {
    return {"pair",
            pair.first->key,
            pair.second->key,
            std::move(variant),
            static_cast<double>(repeats),
            0};
  }

  /// first, second, nop and what closes the loop. `operand`: which source of the second takes the
  /// first's result; -1: all that can.
  void add_connected(Body& body, const PairForms& pair, int operand, unsigned round) {
    const RegClass link = pair.first->dst_class;
    const unsigned middle = middle_register(link, round);
    if (pair.second->is_store) { // the fence is the loop: it waits for the store
      body.add(with(*pair.first, middle, -1, 0));
      body.add(store_of(pair, middle));
      body.line(bare_text(*rows_with(isa::kFence).front()));
      return;
    }
    const Insn second = operand == -1 ? with_all(*pair.second, kFirstStream, link, middle)
                                      : with(*pair.second, kFirstStream, operand, middle);
    body.add(with(*pair.first, middle, pair.first->entry_of(RegClass::kR), kChain));
    body.add(second);
    body.nop();
    close(body, *pair.second);
  }

  /// In turn, so that a first result that stays visible for longer than the pair takes does not
  /// hold the next round up.
  static unsigned middle_register(RegClass reg_class, unsigned round) {
    constexpr unsigned kRegs[kMiddleCount] = {kMiddle, 20, 21, 22};
    constexpr unsigned kPreds[kMiddleCount] = {kMiddle, 5, 6, 7};
    return (reg_class == RegClass::kP ? kPreds : kRegs)[round % kMiddleCount];
  }

  static Insn store_of(const PairForms& pair, unsigned value) {
    Insn store = with(*pair.second, 0, -2, kLocalReg);
    store.operands[static_cast<size_t>(pair.second->sources.front())].index = value;
    return store;
  }

  /// Makes r0 = 0 depend on the second insn's result.
  static void close(Body& body, const InsnForm& second) {
    body.uses(kChain);
    body.line(fmt::format(fmt::runtime(closing_link(second.dst_class).text), kFirstStream));
    body.nop();
  }

  /// A load and a product share no register; firmware joins them all the same.
  void make_matrix_pairs() {
    for (const InsnDesc* row : isa::all_insns()) {
      if (row->unit != isa::Unit::kC) {
        continue;
      }
      for (const InsnForm& form : forms_) {
        if (!form.is_load || form.insn.type != isa::Type::kF32 ||
            form.insn.desc->has(isa::kAtomic)) {
          continue;
        }
        const std::string suffix = matrix_types(*row).front();
        for (const unsigned repeats : kPairRepeats) {
          Body body;
          matrix_tiles(body, 8);
          for (unsigned i = 0; i < repeats; ++i) {
            body.add(with(form, middle_register(form.dst_class, i), -1, 0));
            body.line(fmt::format("{}{} t2, t0, t1, 8, 8, 8", row->mnemonic, suffix));
            body.nop();
          }
          add({"pair",
               form.key,
               std::string(row->latency) + suffix,
               "none",
               static_cast<double>(repeats),
               8},
              body,
              32);
        }
      }
    }
  }

  /// Second round: what must connect the pair, and is the first result still visible?
  void make_follow_ups() {
    for (const JoinedPair& joined : joined_pairs(*options_.follow_up)) {
      const InsnForm* first = find_form(joined.first);
      const InsnForm* second = find_form(joined.second);
      if (first == nullptr || second == nullptr || joined.is_unconnected) {
        continue;
      }
      const PairForms pair{first, second};
      for (const unsigned repeats : kPairRepeats) {
        follow_up_operands(pair, repeats);
        follow_up_none(pair, repeats);
        follow_up_kept(pair, repeats);
      }
    }
  }

  void follow_up_operands(const PairForms& pair, unsigned repeats) {
    if (pair.second->is_store || pair.second->is_load) {
      return; // one operand only
    }
    for (size_t s = 0; s < pair.second->sources.size(); ++s) {
      if (pair.second->source_classes[s] != pair.first->dst_class) {
        continue;
      }
      const int operand = pair.second->sources[s];
      Body body;
      for (unsigned i = 0; i < repeats; ++i) {
        add_connected(body, pair, operand, i);
      }
      const auto name = isa::spec_of(pair.second->insn, static_cast<unsigned>(operand)).name;
      add(pair_tag(pair, fmt::format("to {}", name), repeats), body, 32);
    }
  }

  /// Neighbours without a common register; the second's own chain makes the loop.
  void follow_up_none(const PairForms& pair, unsigned repeats) {
    const InsnForm& second = *pair.second;
    const bool is_chained = !second.is_load && second.entry_of(second.dst_class) >= 0;
    if (!is_chained) {
      return;
    }
    Body body;
    for (unsigned i = 0; i < repeats; ++i) {
      body.add(with(*pair.first, middle_register(pair.first->dst_class, i), -1, 0));
      body.add(with(second, kFirstStream, second.entry_of(second.dst_class), kFirstStream));
      body.nop();
    }
    add(pair_tag(pair, "none", repeats), body, 32);
  }

  /// The loop runs through the first's result; the second reads it and is otherwise unused.
  void follow_up_kept(const PairForms& pair, unsigned repeats) {
    if (!pair.first->is_self_chained()) {
      return;
    }
    const InsnForm& first = *pair.first;
    Body body;
    for (unsigned i = 0; i < repeats; ++i) {
      body.add(with(first, kChain, first.entry_of(first.dst_class), kChain));
      body.add(pair.second->is_store
                   ? store_of(pair, kChain)
                   : with_all(*pair.second, kFirstStream, first.dst_class, kChain));
      body.nop();
    }
    add(pair_tag(pair, "kept", repeats), body, 32);
  }

  // ------------------------------------------------------------ memory

  void make_memory() {
    const std::string load = "load.u32";
    // A chain of loads, each from a line that nobody has touched: the way to hbm.
    const uint32_t line = std::max(machine_.l1.line_bytes, machine_.l2.line_bytes);
    for (const unsigned repeats : {8U, 16U, 64U}) {
      Body body;
      body.uses(kChain);
      for (unsigned i = 0; i < repeats; ++i) {
        body.line(fmt::format("{} r0, hbm[a + r0*4 + {}]", load, i * line));
      }
      Microbench& bench =
          add({"memory", "LOAD", "", "miss", static_cast<double>(repeats), 0}, body, 1);
      bench.a_bytes = uint64_t{line} * 64;
      bench.is_cold = true;
    }
    // Lanes `amount` bytes apart: how many lines a load touches.
    for (const unsigned stride : {4U, 8U, 16U, 32U, 64U, 128U}) {
      memory_stream("stride", fmt::format("{} r4, hbm[a + r28]", load), stride, stride * 32);
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

  void
  memory_stream(const char* variant, const std::string& insn, unsigned amount, uint64_t bytes) {
    for (const unsigned repeats : kStreamRepeats) {
      Body body;
      body.uses(kLocalReg);
      body.start(fmt::format("and.b32 r28, r29, 31"));
      body.start(fmt::format("mul.u32 r28, r28, {}", amount));
      for (unsigned i = 0; i < repeats; ++i) {
        body.line(insn);
      }
      Microbench& bench = add({"memory",
                               "LOAD",
                               "",
                               variant,
                               static_cast<double>(repeats),
                               static_cast<double>(amount)},
                              body,
                              256);
      bench.a_bytes = std::max<uint64_t>(bench.a_bytes, bytes);
    }
  }

  void conflict(unsigned degree, uint32_t bytes_apart) {
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
      add({"memory",
           "LOAD.l1",
           "",
           "conflict",
           static_cast<double>(repeats),
           static_cast<double>(degree)},
          body,
          32);
    }
  }

  void bandwidth(unsigned kib) {
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
          body.line(fmt::format(
              "load.u32 r{}, hbm[a + r28*4 + {}]", kFirstStream + i % 8, i * lanes * 4));
        }
      }
      Microbench& bench = add({"memory",
                               "LOAD",
                               "",
                               "bandwidth",
                               static_cast<double>(repeats),
                               static_cast<double>(bytes_a_block * grid)},
                              body,
                              lanes);
      bench.grid = grid;
      bench.a_bytes = bytes_a_block * grid;
    }
  }

  // ------------------------------------------------------------ the rest

  /// `amount` lanes of one warp on one address.
  void make_atomics() {
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
          add({"atomic",
               form.key,
               "",
               "one address",
               static_cast<double>(repeats),
               static_cast<double>(lanes)},
              body,
              lanes);
        }
      }
    }
  }

  void make_barriers() {
    const auto add_barriers = [&](const InsnDesc& row, const char* variant, unsigned warps) {
      for (const unsigned repeats : kChainRepeats) {
        Body body;
        for (unsigned i = 0; i < repeats; ++i) {
          body.line(std::string(row.mnemonic));
        }
        add({"barrier",
             std::string(row.latency),
             "",
             variant,
             static_cast<double>(repeats),
             static_cast<double>(warps)},
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

  /// Start a copy, wait for it, again.
  void make_copies() {
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
          Microbench& bench = add({"copy",
                                   is_in ? "ASYNC_LOAD" : "ASYNC_STORE",
                                   "",
                                   is_in ? "in" : "out",
                                   static_cast<double>(repeats),
                                   static_cast<double>(bytes)},
                                  body,
                                  32);
          bench.a_bytes = 8192;
        }
      }
    }
  }

  /// Blocks that do nothing: what a launch and each further block cost.
  void make_launches() {
    const uint32_t places = machine_.cores * machine_.blocks_per_core;
    for (const uint32_t blocks : {1U, places, places * 4, places * 16}) {
      Microbench bench;
      bench.tag = {"launch", "", "", "empty", 1, static_cast<double>(blocks)};
      bench.name = identifier(bench.tag);
      bench.text =
          fmt::format(".pto 1\n.kernel {}(ptr a, ptr o, u32 n)\n    exit\n.end\n", bench.name);
      bench.grid = blocks;
      out_.push_back(std::move(bench));
    }
  }

  const isa::MachineProfile& machine_;
  const MicrobenchOptions& options_;
  std::vector<InsnForm> forms_;
  std::map<const InsnForm*, const InsnForm*> bridge_;
  std::vector<Microbench> out_;
};

} // namespace

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
  return SetMaker(machine, options).make();
}

} // namespace pto::rt
