// SPDX-License-Identifier: Apache-2.0
// Patterns of neighbours that firmware may join, and the second round for those that it does.
#include "isa/table.h"
#include "runtime/profile/microbench_set.h"

#include <fmt/format.h>

namespace pto::rt::detail {

using isa::Insn;
using isa::InsnDesc;

void SetMaker::make_pairs() {
  for (const PairForms& pair : likely_pairs(forms_)) {
    for (const unsigned repeats : kPairRepeats) {
      Body body;
      for (unsigned i = 0; i < repeats; ++i) {
        add_connected(body, pair, -1, i);
      }
      add(pattern_of(pair, "all", repeats), body, 32);
    }
  }
  make_matrix_pairs();
}

Pattern SetMaker::pattern_of(const PairForms& pair, std::string variant, unsigned repeats) {
  return {.role = "pair",
          .first = pair.first->key,
          .second = pair.second->key,
          .variant = std::move(variant),
          .repeats = repeats};
}

void SetMaker::add_connected(Body& body, const PairForms& pair, int operand, unsigned round) {
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

unsigned SetMaker::middle_register(RegClass reg_class, unsigned round) {
  constexpr unsigned kRegs[kMiddleCount] = {kMiddle, 20, 21, 22};
  constexpr unsigned kPreds[kMiddleCount] = {kMiddle, 5, 6, 7};
  return (reg_class == RegClass::kP ? kPreds : kRegs)[round % kMiddleCount];
}

Insn SetMaker::store_of(const PairForms& pair, unsigned value) {
  Insn store = with(*pair.second, 0, -2, kLocalReg);
  store.operands[static_cast<size_t>(pair.second->sources.front())].index = value;
  return store;
}

void SetMaker::close(Body& body, const InsnForm& second) {
  body.uses(kChain);
  body.line(fmt::format(fmt::runtime(closing_link(second.dst_class).text), kFirstStream));
  body.nop();
}

void SetMaker::make_matrix_pairs() {
  for (const InsnDesc* row : isa::all_insns()) {
    if (row->unit != isa::Unit::kC) {
      continue;
    }
    for (const InsnForm& form : forms_) {
      if (!form.is_load || form.insn.type != isa::Type::kF32 || form.insn.desc->has(isa::kAtomic)) {
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
        add({.role = "pair",
             .first = form.key,
             .second = std::string(row->latency) + suffix,
             .variant = "none",
             .repeats = repeats,
             .amount = 8},
            body,
            32);
      }
    }
  }
}

void SetMaker::make_follow_ups() {
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

void SetMaker::follow_up_operands(const PairForms& pair, unsigned repeats) {
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
    add(pattern_of(pair, fmt::format("to {}", name), repeats), body, 32);
  }
}

void SetMaker::follow_up_none(const PairForms& pair, unsigned repeats) {
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
  add(pattern_of(pair, "none", repeats), body, 32);
}

void SetMaker::follow_up_kept(const PairForms& pair, unsigned repeats) {
  if (!pair.first->is_self_chained()) {
    return;
  }
  const InsnForm& first = *pair.first;
  Body body;
  for (unsigned i = 0; i < repeats; ++i) {
    body.add(with(first, kChain, first.entry_of(first.dst_class), kChain));
    body.add(pair.second->is_store ? store_of(pair, kChain)
                                   : with_all(*pair.second, kFirstStream, first.dst_class, kChain));
    body.nop();
  }
  add(pattern_of(pair, "kept", repeats), body, 32);
}

} // namespace pto::rt::detail
