// SPDX-License-Identifier: Apache-2.0
// The file functions of isa/file_io.h under the simulator's namespace.
#pragma once

#include "isa/file_io.h"

namespace pto::sim {

using isa::kDefaultFileLimitBytes;
using isa::read_file;
using isa::write_file_atomically;

} // namespace pto::sim
