// SPDX-License-Identifier: Apache-2.0
// Cache control, and loads and stores through data caches that are not coherent.
#include "simulator/block_context.h"
#include "simulator/incoherent_cache.h"
#include "simulator/memory_element.h"

namespace pto::sim {

using isa::Outcome;
using isa::Space;

// Every lane's bytes come from the core's cache; memory was only asked whether they are there.
void BlockContext::load_through_caches(const isa::Operand& mem,
                                       const isa::MemAccess& access,
                                       const isa::Operand& dst) {
  AddressForm form;
  resolve(mem, form);
  fill_addresses(form);
  with_element(access.type, [&](auto element, auto value) {
    using Element = decltype(element);
    using Value = decltype(value);
    for_each_lane(active_, count_, [&](unsigned i) {
      uint8_t bytes[4 * sizeof(Element)];
      image_.data_caches->read(
          state_.core, hbm_, addresses_[i], access.count * sizeof(Element), bytes);
      for (unsigned j = 0; j < access.count; ++j) {
        const auto loaded = load_element<Element, Value>(bytes + j * sizeof(Element));
        if constexpr (sizeof(Value) == 8) {
          reg64(dst.index + j)[i] = loaded;
        } else {
          reg32(dst.index + j)[i] = loaded;
        }
      }
    });
  });
}

void BlockContext::store_through_caches(const isa::Operand& mem,
                                        uint32_t access_bytes,
                                        isa::CacheHint hint) {
  if (hint != isa::CacheHint::kCached) {
    return; // .cg leaves the line as it was
  }
  AddressForm form;
  resolve(mem, form);
  fill_addresses(form);
  for_each_lane(active_, count_, [&](unsigned i) {
    image_.data_caches->written(state_.core, hbm_, addresses_[i], access_bytes);
  });
}

void BlockContext::atomic_through_caches(const isa::Operand& mem) {
  AddressForm form;
  resolve(mem, form);
  fill_addresses(form);
  for_each_lane(active_, count_, [&](unsigned i) {
    image_.data_caches->drop_line(state_.core, addresses_[i]);
  });
}

void BlockContext::control_caches(isa::CacheOp op, const isa::Operand* mem) {
  if (op == isa::CacheOp::kInvalidateAll) {
    image_.data_caches->drop_all(state_.core);
    return;
  }
  AddressForm form;
  if (mem == nullptr || mem->mem().space != Space::kHbm || !resolve(*mem, form)) {
    return;
  }
  fill_addresses(form);
  for_each_lane(active_, count_, [&](unsigned i) {
    if (op == isa::CacheOp::kInvalidateLine) {
      image_.data_caches->drop_line(state_.core, addresses_[i]);
    } else {
      image_.data_caches->prefetch(state_.core, hbm_, addresses_[i]);
    }
  });
}

Outcome BlockContext::cache(isa::CacheOp op, const isa::Operand* mem) {
  if (image_.data_caches != nullptr) {
    control_caches(op, mem);
  }
  // Hints about a cache that holds no data of its own here: no address is wrong.
  if (is_recording_ && mem != nullptr && op != isa::CacheOp::kInvalidateAll) {
    AddressForm form;
    if (!resolve(*mem, form)) {
      return Outcome::kFault;
    }
    record_access(*mem, form, 1, 1, false, false);
  }
  return Outcome::kNext;
}

} // namespace pto::sim
