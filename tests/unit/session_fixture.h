// SPDX-License-Identifier: Apache-2.0
// A kernel under the debugger in a few lines, for tests of the session.
#pragma once

#include "debugger/session.h"
#include "sim_fixture.h"

namespace pto::dbg {

/// Makes sessions of one kernel over one machine.
struct SessionFixture : sim::SimFixture {
  using sim::SimFixture::SimFixture;

  std::unique_ptr<Session> open(sim::Dim3 grid, sim::Dim3 block, SessionOptions options = {}) {
    return std::make_unique<Session>(machine,
                                     program,
                                     sim::LaunchConfig{.grid = grid, .block = block, .args = args},
                                     std::move(options));
  }
};

/// A loop with a call, a barrier and shared memory: every lane adds up i * (lane + 1) for i < n,
/// exchanges the sum with its neighbour and stores it.
inline constexpr const char* kLoopKernel = R"(
.kernel loop_sum(ptr.u32 o, u32 n)
.shared buf, u32[256]
    mov.u32 r0, %tid.x
    add.u32 r1, r0, 1
    mov.u32 r2, 0
    mov.u32 r3, 0
again:
    cmp.ge.u32 p0, r3, n
@p0 bra done
    call accumulate
    add.u32 r3, r3, 1
    bra again
done:
    store.u32 l1[buf + r0*4], r2
    barrier_block
    xor.b32 r4, r0, 1
    load.u32 r5, l1[buf + r4*4]
    mov.u32 r6, %gid.x
    store.u32 hbm[o + r6*4], r5
    exit
.end
.func accumulate
    mul.u32 r7, r3, r1
    add.u32 r2, r2, r7
    ret
.end
)";

/// The same on the host.
inline uint32_t loop_sum(uint32_t lane, uint32_t n) {
  return n * (n - 1) / 2 * ((lane ^ 1) + 1);
}

} // namespace pto::dbg
