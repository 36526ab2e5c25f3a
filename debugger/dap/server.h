// SPDX-License-Identifier: Apache-2.0
// The Debug Adapter Protocol over a pair of file descriptors: one client, one kernel, until the
// client disconnects. A printer of Session's stop events, as the prompt is one.
//
// What is what. A thread of the protocol is a warp of the focused block; a stack frame is the place
// in the kernel or in a function that it called; variables are those of the focused lane, each
// register with its values in all lanes of the warp below it. An address of code in the protocol is
// kCodeBase + 16 * pc. A memory reference is `hbm:ADDRESS` or `l1:OFFSET@BLOCK`.
//
// Time. Requests that come while the kernel runs interrupt it for a moment, are answered, and it
// goes on; `pause` stops it. Steps are short and are not interrupted.
//
// After the end. The session ends with the kernel, unless the launch says `stopAtEnd`: then the
// client can look at memory and go back. After a fault it always can.
#pragma once

#include <cstdint>
#include <string>

namespace pto::dbg {

/// Address of pc 0; leaves room below for a client that disassembles around it.
inline constexpr uint64_t kCodeBase = 0x10000;
inline constexpr uint64_t kCodeStride = 16; // bytes of an insn in an object

/// Serves until `disconnect` or the end of the input. Exit status: 0, or 2 where the input was no
/// protocol (with a sentence on stderr).
[[nodiscard]] int serve_dap(int input_fd, int output_fd);

} // namespace pto::dbg
