// SPDX-License-Identifier: Apache-2.0
// The families of the instruction table, one file each; isa/table.cc joins them.
#pragma once

#include "isa/insn_desc.h"

#include <span>

namespace pto::isa {

std::span<const InsnDesc> arith_rows();
std::span<const InsnDesc> float_rows();
std::span<const InsnDesc> logic_rows();
std::span<const InsnDesc> convert_rows();
std::span<const InsnDesc> select_rows();
std::span<const InsnDesc> memory_rows();
std::span<const InsnDesc> atomic_rows();
std::span<const InsnDesc> copy_rows();
std::span<const InsnDesc> matrix_rows();
std::span<const InsnDesc> warp_rows();
std::span<const InsnDesc> control_rows();

} // namespace pto::isa
