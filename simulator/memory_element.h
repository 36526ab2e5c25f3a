// SPDX-License-Identifier: Apache-2.0
// Elements in memory against values in registers, by the type of an access. Private to the
// simulator.
#pragma once

#include "isa/types.h"

#include <cstdint>
#include <cstring>

namespace pto::sim {

/// Calls act(element, register value) with the C++ types of a memory element and its register.
template <class Act> void with_element(isa::Type type, Act&& act) {
  const unsigned bits = isa::bits(type);
  if (bits == 32) {
    act(uint32_t{}, uint32_t{});
  } else if (bits == 64) {
    act(uint64_t{}, uint64_t{});
  } else if (bits == 16 && isa::is_signed(type)) {
    act(int16_t{}, uint32_t{});
  } else if (bits == 16) {
    act(uint16_t{}, uint32_t{});
  } else if (isa::is_signed(type)) {
    act(int8_t{}, uint32_t{});
  } else {
    act(uint8_t{}, uint32_t{});
  }
}

template <class Element, class Value> inline Value load_element(const uint8_t* host) {
  Element element;
  std::memcpy(&element, host, sizeof element);
  return static_cast<Value>(element);
}

template <class Element, class Value> inline void store_element(uint8_t* host, Value value) {
  const auto element = static_cast<Element>(value);
  std::memcpy(host, &element, sizeof element);
}

} // namespace pto::sim
