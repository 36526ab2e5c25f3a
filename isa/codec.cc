// SPDX-License-Identifier: Apache-2.0
// Word layout, from bit 0:
//
//   opcode 9 | type 5 | type2 5 | modifiers 8 | guard 5 | four operand slots of 24
//
// The modifiers are one number in mixed radix, a digit a group. The guard is pred + 8 * negated, 31
// for none. A slot is a kind in 4 bits and a payload in 20. What does not fit into 20 bits (wide
// immediates, addresses) goes to the pool of 64-bit values; of more than four operands, the fourth
// slot refers to a run in the pool that holds the fourth and the further ones, two an entry.
#include "isa/codec.h"

#include "isa/table.h"

#include <fmt/format.h>

namespace pto::isa {

namespace {

constexpr unsigned kSlots = 4;
constexpr unsigned kPayloadBits = 20;
constexpr uint64_t kPayloadMask = (1u << kPayloadBits) - 1;
constexpr unsigned kSlotBits = 24;
constexpr unsigned kSlotsFrom = 32; // first bit of slot 0
constexpr unsigned kNoGuard = 31;
constexpr uint64_t kMoreFollows = uint64_t{1} << 48; // in a run entry: another one comes

enum class SlotKind : uint8_t {
  kEmpty,
  kReg32,
  kReg64,
  kPred, // payload: index + 8 * negated
  kTile,
  kEvent,
  kImm, // payload: the bits, sign extended from 20
  kImmPool,
  kSpecial,
  kParam,
  kSymbol,
  kMemPool,
  kLabel,
  kString,
  kDiscard,
  kMore, // payload: pool index of the run with this and all further operands
};

uint64_t low_mask(unsigned width) {
  return width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
}

uint64_t sign_extend20(uint64_t payload) {
  return static_cast<uint64_t>(static_cast<int64_t>(payload << 44) >> 44);
}

// An immediate is truncated to its type; a type-less one (never in today's rows) counts as 64 bit.
uint64_t imm_mask(const Insn& insn, unsigned i) {
  const unsigned width = bits(operand_type(insn, i));
  return low_mask(width == 0 ? 64 : width);
}

uint64_t slot(SlotKind kind, uint64_t payload) {
  return static_cast<uint64_t>(kind) | (payload & kPayloadMask) << 4;
}

std::optional<uint64_t> pool_slot(SlotKind kind, uint64_t value, Pool& pool, std::string& error) {
  const uint32_t index = pool.intern(value);
  if (index >= Pool::kLimit) {
    error = fmt::format("the program needs more than {} different constants and addresses; split "
                        "it into several objects",
                        Pool::kLimit);
    return std::nullopt;
  }
  return slot(kind, index);
}

std::optional<uint64_t>
encode_operand(const Insn& insn, unsigned i, Pool& pool, std::string& error) {
  const Operand& operand = insn.operands[i];
  const auto indexed = [&](SlotKind kind, const char* what) -> std::optional<uint64_t> {
    if (operand.index > kPayloadMask) {
      error =
          fmt::format("{} number {} is past the limit of {}", what, operand.index, kPayloadMask);
      return std::nullopt;
    }
    return slot(kind, operand.index);
  };
  switch (operand.kind) {
  case OperandKind::kNone:
    return slot(SlotKind::kEmpty, 0);
  case OperandKind::kReg32:
    return slot(SlotKind::kReg32, operand.index);
  case OperandKind::kReg64:
    return slot(SlotKind::kReg64, operand.index);
  case OperandKind::kPred:
    return slot(SlotKind::kPred, operand.index + (operand.negated ? 8 : 0));
  case OperandKind::kTile:
    return slot(SlotKind::kTile, operand.index);
  case OperandKind::kEvent:
    return slot(SlotKind::kEvent, operand.index);
  case OperandKind::kImm:
    if ((sign_extend20(operand.bits & kPayloadMask) & imm_mask(insn, i)) == operand.bits) {
      return slot(SlotKind::kImm, operand.bits);
    }
    return pool_slot(SlotKind::kImmPool, operand.bits, pool, error);
  case OperandKind::kSpecial:
    return slot(SlotKind::kSpecial, operand.index);
  case OperandKind::kParam:
    return indexed(SlotKind::kParam, "parameter");
  case OperandKind::kSymbol:
    return indexed(SlotKind::kSymbol, "symbol");
  case OperandKind::kMem:
    return pool_slot(SlotKind::kMemPool, operand.bits, pool, error);
  case OperandKind::kLabel:
    if (operand.bits > kPayloadMask) {
      error = fmt::format("a branch target at insn {} is past the limit of {} insns an object",
                          operand.bits,
                          kPayloadMask + 1);
      return std::nullopt;
    }
    return slot(SlotKind::kLabel, operand.bits);
  case OperandKind::kString:
    return indexed(SlotKind::kString, "string");
  case OperandKind::kDiscard:
    return slot(SlotKind::kDiscard, 0);
  }
  error = "an operand of unknown kind";
  return std::nullopt;
}

std::optional<Operand> decode_operand(uint64_t raw,
                                      const Insn& insn,
                                      unsigned i,
                                      const std::vector<uint64_t>& pool,
                                      std::string& error) {
  const auto kind = static_cast<SlotKind>(raw & 15);
  const uint64_t payload = raw >> 4 & kPayloadMask;
  const auto index = static_cast<uint32_t>(payload);
  const auto pooled = [&](OperandKind as) -> std::optional<Operand> {
    if (payload >= pool.size()) {
      error = fmt::format("pool index {} but the pool has {} entries", payload, pool.size());
      return std::nullopt;
    }
    return Operand{.kind = as, .bits = pool[payload]};
  };
  const auto plain = [&](OperandKind as) { return Operand{.kind = as, .index = index}; };
  const auto empty_payload = [&](OperandKind as) -> std::optional<Operand> {
    if (payload != 0) {
      error = "an operand slot with stray bits";
      return std::nullopt;
    }
    return Operand{.kind = as};
  };
  switch (kind) {
  case SlotKind::kEmpty:
    return empty_payload(OperandKind::kNone);
  case SlotKind::kReg32:
    return plain(OperandKind::kReg32);
  case SlotKind::kReg64:
    return plain(OperandKind::kReg64);
  case SlotKind::kPred:
    if (payload > 15) {
      error = "a predicate past p7";
      return std::nullopt;
    }
    return Operand{.kind = OperandKind::kPred, .negated = payload >= 8, .index = index & 7};
  case SlotKind::kTile:
    return plain(OperandKind::kTile);
  case SlotKind::kEvent:
    return plain(OperandKind::kEvent);
  case SlotKind::kImm:
    return Operand::immediate(sign_extend20(payload) & imm_mask(insn, i));
  case SlotKind::kImmPool: {
    auto operand = pooled(OperandKind::kImm);
    // Canonical: a value that fits the slot must be in the slot, else object -> text -> object
    // would not be the identity.
    if (operand &&
        (sign_extend20(operand->bits & kPayloadMask) & imm_mask(insn, i)) == operand->bits) {
      error = "a short immediate in the pool";
      return std::nullopt;
    }
    return operand;
  }
  case SlotKind::kSpecial:
    return plain(OperandKind::kSpecial);
  case SlotKind::kParam:
    return plain(OperandKind::kParam);
  case SlotKind::kSymbol:
    return plain(OperandKind::kSymbol);
  case SlotKind::kMemPool:
    return pooled(OperandKind::kMem);
  case SlotKind::kLabel:
    return Operand{.kind = OperandKind::kLabel, .bits = payload};
  case SlotKind::kString:
    return plain(OperandKind::kString);
  case SlotKind::kDiscard:
    return empty_payload(OperandKind::kDiscard);
  case SlotKind::kMore:
    break;
  }
  error = "a continuation slot out of place";
  return std::nullopt;
}

uint64_t encode_mods(const Insn& insn) {
  uint64_t value = 0;
  for (unsigned g = insn.desc->mods.size(); g-- > 0;) {
    value = value * insn.desc->mods[g]->values.size() + insn.mods[g];
  }
  return value;
}

bool decode_mods(uint64_t value, Insn& insn) {
  for (unsigned g = 0; g < insn.desc->mods.size(); ++g) {
    const unsigned radix = insn.desc->mods[g]->values.size();
    insn.mods[g] = static_cast<uint8_t>(value % radix);
    value /= radix;
  }
  return value == 0;
}

// The raw slots of all operands, continuation run resolved.
std::optional<std::vector<uint64_t>>
collect_slots(const Word& word, const std::vector<uint64_t>& pool, std::string& error) {
  std::vector<uint64_t> slots;
  const auto take = [&](unsigned bit) {
    return (bit < 64 ? word.low >> bit | (bit > 40 ? word.high << (64 - bit) : 0)
                     : word.high >> (bit - 64)) &
           low_mask(kSlotBits);
  };
  for (unsigned s = 0; s < kSlots; ++s) {
    slots.push_back(take(kSlotsFrom + s * kSlotBits));
  }
  if ((slots[kSlots - 1] & 15) == static_cast<uint64_t>(SlotKind::kMore)) {
    uint64_t entry = slots.back() >> 4;
    slots.pop_back();
    for (bool more = true; more; ++entry) {
      if (entry >= pool.size() || slots.size() > kMaxOperands) {
        error = "an operand run that leaves the pool";
        return std::nullopt;
      }
      more = (pool[entry] & kMoreFollows) != 0;
      if ((pool[entry] & ~(low_mask(48) | kMoreFollows)) != 0) {
        error = "an operand run with stray bits";
        return std::nullopt;
      }
      slots.push_back(pool[entry] & low_mask(kSlotBits));
      slots.push_back(pool[entry] >> kSlotBits & low_mask(kSlotBits));
    }
    if (slots.back() == 0) {
      slots.pop_back();
    }
    if (slots.back() == 0 || slots.size() <= kSlots) {
      error = "an operand run that is not needed";
      return std::nullopt;
    }
  } else {
    while (!slots.empty() && slots.back() == 0) {
      slots.pop_back();
    }
  }
  if (slots.size() > kMaxOperands) {
    error = fmt::format("{} operands, at most {}", slots.size(), kMaxOperands);
    return std::nullopt;
  }
  return slots;
}

bool decode_operands(const std::vector<uint64_t>& slots,
                     const std::vector<uint64_t>& pool,
                     Insn& insn,
                     std::string& error) {
  insn.operands = {};
  insn.operand_count = static_cast<uint8_t>(slots.size());
  const OperandList& form = insn.desc->form(insn.form);
  const bool variadic = !form.empty() && form[form.size() - 1].variadic;
  if (slots.size() > (variadic ? kMaxOperands : form.size())) {
    error = fmt::format(
        "{} has {} operands, at most {}", insn.desc->mnemonic, slots.size(), form.size());
    return false;
  }
  for (unsigned i = 0; i < slots.size(); ++i) {
    auto operand = decode_operand(slots[i], insn, i, pool, error);
    if (!operand) {
      return false;
    }
    insn.operands[i] = *operand;
  }
  if (std::string_view fault = validate(insn); !fault.empty()) {
    error = fmt::format("{}: {}", insn.desc->mnemonic, fault);
    return false;
  }
  return true;
}

} // namespace

uint32_t Pool::intern(uint64_t value) {
  const auto [entry, is_new] = index_.try_emplace(value, static_cast<uint32_t>(values_.size()));
  if (is_new) {
    if (values_.size() >= kLimit) {
      index_.erase(entry);
      return kLimit;
    }
    values_.push_back(value);
  }
  return entry->second;
}

uint32_t Pool::append_run(const std::vector<uint64_t>& values) {
  if (values_.size() + values.size() > kLimit) {
    return kLimit;
  }
  const auto first = static_cast<uint32_t>(values_.size());
  values_.insert(values_.end(), values.begin(), values.end());
  return first;
}

std::optional<Word> encode(const Insn& insn, Pool& pool, std::string& error) {
  uint64_t head = insn.desc->opcode;
  head |= static_cast<uint64_t>(insn.type) << 9;
  head |= static_cast<uint64_t>(insn.type2) << 14;
  head |= encode_mods(insn) << 19;
  head |= (insn.guard.present ? insn.guard.pred + (insn.guard.negated ? 8u : 0u) : kNoGuard) << 27;
  std::array<uint64_t, kMaxOperands> slots{};
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const auto encoded = encode_operand(insn, i, pool, error);
    if (!encoded) {
      return std::nullopt;
    }
    slots[i] = *encoded;
  }
  if (insn.operand_count > kSlots) {
    std::vector<uint64_t> run;
    for (unsigned i = kSlots - 1; i < insn.operand_count; i += 2) {
      const uint64_t second = i + 1 < insn.operand_count ? slots[i + 1] : 0;
      run.push_back(slots[i] | second << kSlotBits |
                    (i + 2 < insn.operand_count ? kMoreFollows : 0));
    }
    const uint32_t first = pool.append_run(run);
    if (first >= Pool::kLimit) {
      error =
          fmt::format("the program's operand pool is past its limit of {} entries", Pool::kLimit);
      return std::nullopt;
    }
    slots[kSlots - 1] = slot(SlotKind::kMore, first);
  }
  // Slots 0..3 lie at bits 32, 56, 80 and 104.
  return Word{.low = head | slots[0] << 32 | slots[1] << 56,
              .high = slots[1] >> 8 | slots[2] << 16 | slots[3] << 40};
}

std::optional<Insn>
decode(const Word& word, const std::vector<uint64_t>& pool, std::string& error) {
  const InsnDesc* desc = find_opcode(word.low & 511);
  if (desc == nullptr) {
    error = fmt::format("unknown opcode {:#x}", word.low & 511);
    return std::nullopt;
  }
  Insn insn{.desc = desc};
  const auto type = static_cast<unsigned>(word.low >> 9 & 31);
  const auto type2 = static_cast<unsigned>(word.low >> 14 & 31);
  if (type >= kTypeCount || type2 >= kTypeCount || !decode_mods(word.low >> 19 & 255, insn)) {
    error = fmt::format("{}: an unknown type or modifier", desc->mnemonic);
    return std::nullopt;
  }
  insn.type = static_cast<Type>(type);
  insn.type2 = static_cast<Type>(type2);
  const auto guard = static_cast<unsigned>(word.low >> 27 & 31);
  if (guard != kNoGuard) {
    if (guard > 15) {
      error = fmt::format("{}: a guard that is no predicate", desc->mnemonic);
      return std::nullopt;
    }
    insn.guard = {.present = true, .negated = guard >= 8, .pred = static_cast<uint8_t>(guard & 7)};
  }
  const auto slots = collect_slots(word, pool, error);
  if (!slots) {
    return std::nullopt;
  }
  // The form is not stored: the first one that the operands fit is the one the assembler took.
  for (unsigned form = 0; form < desc->form_count(); ++form) {
    insn.form = static_cast<uint8_t>(form);
    if (decode_operands(*slots, pool, insn, error)) {
      return insn;
    }
  }
  return std::nullopt;
}

} // namespace pto::isa
