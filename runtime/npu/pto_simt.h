// SPDX-License-Identifier: Apache-2.0
// PTO instructions as device functions over the SIMT interface of Ascend C (dav-3510): what the
// files of `ptoas --emit=ascendc` include. See docs/npu.md.
//
// Three compilers read this file: the vendor's in pure SIMT mode (--enable-simt), the vendor's in
// hybrid mode (PTO_HYBRID defined: a vector kernel whose lanes run as a SIMT vector function), and
// a host compiler with PTO_HOST_EMULATION defined, for which host/simt_host.h declares the same
// interface and host/simt_host.cc runs it. Everything below uses published names only; the list of
// them is tests/npu/interfaces.txt, and a test compares it with the declarations.
//
// Registers are bits: r registers uint32_t, d registers uint64_t, predicates bool. Functions take
// and give register bits; the type of the instruction is a template argument from pto::types.
#pragma once

#include <stdint.h>

#if defined(PTO_HOST_EMULATION)
#include "simt_host.h"
#define PTO_FN inline
#define PTO_GM
#define PTO_UB
#define PTO_SCALAR_FN inline
#else
#include "acl/acl.h"
#include "simt_api/asc_bf16.h"
#include "simt_api/asc_fp16.h"
#include "simt_api/asc_simt.h"
#if defined(PTO_HYBRID)
#include "c_api/asc_simd.h"
#define PTO_FN __simt_callee__ inline
#define PTO_GM __gm__
#define PTO_UB __ubuf__
#else
#define PTO_FN __aicore__ inline
#define PTO_GM
#define PTO_UB
#endif
#define PTO_SCALAR_FN __aicore__ inline
// The emulation follows lanes by the lines of the emitted file; a device needs none of this.
#define PTO_LINE
#define PTO_LINE_ALONE
#define PTO_PASS_LINE
#define PTO_STEP()
#define PTO_AT()
#define PTO_TAKES(what)
#define PTO_CALL(call) (call)
#define PTO_PRINT(...) printf(__VA_ARGS__)
#define PTO_SHARED(name, bytes) alignas(128) __ubuf__ uint8_t name[bytes]
#define PTO_DYNAMIC_UB(name) extern __ubuf__ uint8_t name[]
#define PTO_LAUNCH(kernel, grid, block, ub_bytes, stream, ...)                                     \
  kernel<<<grid, block, ub_bytes, static_cast<aclrtStream>(stream)>>>(__VA_ARGS__)
#define PTO_LAUNCH_VECTOR(kernel, blocks, ub_bytes, stream, ...)                                   \
  kernel<<<blocks, ub_bytes, static_cast<aclrtStream>(stream)>>>(__VA_ARGS__)
#define PTO_LAUNCH_STATUS() static_cast<int32_t>(aclrtGetLastError(ACL_RT_THREAD_LEVEL))
#define PTO_IDLE()
#endif

#include "pto_arith.h"

namespace pto {

// ---------------------------------------------------------------- control that the emulation sees

/// One trip of an endless loop: `for (pto::Loop loop; loop.next();)`. The emulation counts trips,
/// so that lanes that left early wait behind the loop, as on the device.
#if defined(PTO_HOST_EMULATION)
using Loop = ::pto_host::Loop;
#else
struct Loop {
  PTO_FN bool next() { return true; }
};
#endif

// ---------------------------------------------------------------- memory

/// An address in global memory (hbm).
struct Gm {
  uint64_t address;
  template <class V> PTO_FN PTO_GM V* as() const { return reinterpret_cast<PTO_GM V*>(address); }
};
/// An address in the block's scratchpad (l1).
struct Ub {
  PTO_UB uint8_t* address;
  template <class V> PTO_FN PTO_UB V* as() const { return reinterpret_cast<PTO_UB V*>(address); }
};

template <class V> PTO_FN uint64_t address(PTO_GM V* base) {
  return reinterpret_cast<uint64_t>(base);
}
PTO_FN Gm gm(uint64_t base, int64_t offset = 0) {
  return {base + static_cast<uint64_t>(offset)};
}
template <class V> PTO_FN Gm gm(PTO_GM V* base, int64_t offset = 0) {
  return {reinterpret_cast<uint64_t>(base) + static_cast<uint64_t>(offset)};
}
PTO_FN Ub ub(PTO_UB uint8_t* l1, int64_t offset) {
  return {l1 + offset};
}
/// An index register of an address, which counts as signed.
PTO_FN int64_t index(uint32_t r) {
  return static_cast<int32_t>(r);
}

template <class T> PTO_FN Slot<T> from_memory(typename T::memory value) {
  if constexpr (kSame<T, types::f32>) {
    return __float_as_uint(value);
  } else {
    return static_cast<Slot<T>>(value);
  }
}
template <class T> PTO_FN typename T::memory to_memory(Slot<T> slot) {
  if constexpr (kSame<T, types::f32>) {
    return __uint_as_float(slot);
  } else {
    return static_cast<typename T::memory>(slot);
  }
}

// One function for global memory and scratchpad alike; only global memory has paths other than the
// default.
template <class V, class Path, class Place> PTO_FN V read_at(Place from) {
  if constexpr (kSame<Path, types::cg>) {
    return asc_ldcg(from.template as<V>());
  } else if constexpr (kSame<Path, types::cv>) {
    return *from.template as<volatile V>();
  } else {
    return *from.template as<V>();
  }
}
template <class Path, class Place, class V> PTO_FN void write_at(Place to, V value) {
  if constexpr (kSame<Path, types::cg>) {
    asc_stcg(to.template as<V>(), value);
  } else {
    *to.template as<V>() = value;
  }
}

template <class T, class Path = types::ca, class Place> PTO_FN Slot<T> load(Place from PTO_LINE) {
  PTO_STEP();
  PTO_TAKES("load");
  return from_memory<T>(read_at<typename T::memory, Path>(from));
}
template <class T, class Path = types::wt, class Place>
PTO_FN void store(Place to, Slot<T> a PTO_LINE) {
  PTO_STEP();
  PTO_TAKES("store");
  write_at<Path>(to, to_memory<T>(a));
}

/// The vendor's short vector of n elements of a size.
template <unsigned kBytes, unsigned kCount> struct ShortVector;
template <> struct ShortVector<1, 2> { using type = uchar2; };
template <> struct ShortVector<1, 4> { using type = uchar4; };
template <> struct ShortVector<2, 2> { using type = ushort2; };
template <> struct ShortVector<2, 4> { using type = ushort4; };
template <> struct ShortVector<4, 2> { using type = uint2; };
template <> struct ShortVector<4, 4> { using type = uint4; };
template <> struct ShortVector<8, 2> { using type = ulong2; };
template <> struct ShortVector<8, 4> { using type = ulong4; };
template <class T, unsigned kCount>
using VectorOf = typename ShortVector<sizeof(typename T::memory), kCount>::type;

/// An element of a short vector as register bits.
template <class T, class E> PTO_FN Slot<T> element(E bits_of_element) {
  if constexpr (kSame<T, types::f32>) {
    return bits_of_element;
  } else {
    return static_cast<Slot<T>>(static_cast<typename T::memory>(bits_of_element));
  }
}
template <class T, class Path = types::ca, class Place>
PTO_FN void load_x2(Place from, Slot<T>& r0, Slot<T>& r1 PTO_LINE) {
  PTO_STEP();
  PTO_TAKES("load");
  if constexpr (kSame<Path, types::cv>) { // there is no volatile short vector
    r0 = from_memory<T>(from.template as<volatile typename T::memory>()[0]);
    r1 = from_memory<T>(from.template as<volatile typename T::memory>()[1]);
  } else {
    const VectorOf<T, 2> v = read_at<VectorOf<T, 2>, Path>(from);
    r0 = element<T>(v.x);
    r1 = element<T>(v.y);
  }
}
template <class T, class Path = types::ca, class Place>
PTO_FN void load_x4(Place from, Slot<T>& r0, Slot<T>& r1, Slot<T>& r2, Slot<T>& r3 PTO_LINE) {
  PTO_STEP();
  PTO_TAKES("load");
  if constexpr (kSame<Path, types::cv>) {
    r0 = from_memory<T>(from.template as<volatile typename T::memory>()[0]);
    r1 = from_memory<T>(from.template as<volatile typename T::memory>()[1]);
    r2 = from_memory<T>(from.template as<volatile typename T::memory>()[2]);
    r3 = from_memory<T>(from.template as<volatile typename T::memory>()[3]);
  } else {
    const VectorOf<T, 4> v = read_at<VectorOf<T, 4>, Path>(from);
    r0 = element<T>(v.x);
    r1 = element<T>(v.y);
    r2 = element<T>(v.z);
    r3 = element<T>(v.w);
  }
}
template <class T, class E> PTO_FN E as_element(Slot<T> slot, E) {
  return static_cast<E>(slot);
}
template <class T, class Path = types::wt, class Place>
PTO_FN void store_x2(Place to, Slot<T> r0, Slot<T> r1 PTO_LINE) {
  PTO_STEP();
  PTO_TAKES("store");
  VectorOf<T, 2> v;
  v.x = as_element<T>(r0, v.x);
  v.y = as_element<T>(r1, v.y);
  write_at<Path>(to, v);
}
template <class T, class Path = types::wt, class Place>
PTO_FN void store_x4(Place to, Slot<T> r0, Slot<T> r1, Slot<T> r2, Slot<T> r3 PTO_LINE) {
  PTO_STEP();
  PTO_TAKES("store");
  VectorOf<T, 4> v;
  v.x = as_element<T>(r0, v.x);
  v.y = as_element<T>(r1, v.y);
  v.z = as_element<T>(r2, v.z);
  v.w = as_element<T>(r3, v.w);
  write_at<Path>(to, v);
}

/// There is no published prefetch, and a load would fault where PREFETCH ignores a bad address.
PTO_FN void prefetch(Gm) {}
PTO_FN void inval_line(Gm at) {
  asc_dcci_single(at.as<void>());
}
PTO_FN void inval_all() {
  asc_dcci_entire(static_cast<PTO_GM void*>(nullptr));
}
PTO_FN void inval(Gm at) {
  inval_line(at);
}
PTO_FN void inval() {
  inval_all();
}
PTO_FN void fence_block() {
  asc_threadfence_block();
}
PTO_FN void fence_device() {
  asc_threadfence();
}

// ---------------------------------------------------------------- atomics

#define PTO_ATOMIC(operation)                                                                      \
  template <class T, class Place>                                                                  \
  PTO_FN Slot<T> atomic_##operation(Place at, Slot<T> a PTO_LINE) {                                \
    PTO_STEP();                                                                                    \
    return from_memory<T>(                                                                         \
        asc_atomic_##operation(at.template as<typename T::memory>(), to_memory<T>(a)));            \
  }
PTO_ATOMIC(add)
PTO_ATOMIC(sub)
PTO_ATOMIC(min)
PTO_ATOMIC(max)
PTO_ATOMIC(and)
PTO_ATOMIC(or)
PTO_ATOMIC(xor)
PTO_ATOMIC(inc)
PTO_ATOMIC(dec)
PTO_ATOMIC(exch)
#undef PTO_ATOMIC
template <class T, class Place> PTO_FN Slot<T> atomic_cas(Place at, Slot<T> a, Slot<T> b PTO_LINE) {
  PTO_STEP();
  return from_memory<T>(
      asc_atomic_cas(at.template as<typename T::memory>(), to_memory<T>(a), to_memory<T>(b)));
}

// ---------------------------------------------------------------- warp

PTO_FN uint32_t lane() {
  return static_cast<uint32_t>(laneid());
}
PTO_FN uint32_t activemask(PTO_LINE_ALONE) {
  PTO_AT();
  return asc_activemask();
}

/// `a` of lane `source`, or the own value where that lane is not active: the device leaves such a
/// value open.
template <class V> PTO_FN V from_lane(V a, uint32_t source, bool in_range) {
  const uint32_t active = asc_activemask();
  const uint32_t inside = in_range ? source : lane();
  const V other = asc_shfl(a, static_cast<int32_t>(inside), 32);
  return (active >> inside & 1u) != 0 ? other : a;
}
/// The lanes that a shuffle of that width keeps to: from `start` to before `end`.
struct Segment {
  uint32_t width;
  uint32_t start;
  uint32_t end;
};
PTO_FN Segment segment_of_lane(uint32_t width) {
  width = width == 0 || width > 32 ? 32 : width;
  const uint32_t start = lane() / width * width;
  return {width, start, start + width < 32 ? start + width : 32};
}
template <class T> PTO_FN Slot<T> shfl_idx(Slot<T> a, uint32_t b, uint32_t width = 32 PTO_LINE) {
  PTO_AT();
  const Segment segment = segment_of_lane(width);
  const uint32_t source = segment.start + b % segment.width;
  return from_lane(a, source, source < segment.end);
}
template <class T> PTO_FN Slot<T> shfl_up(Slot<T> a, uint32_t b, uint32_t width = 32 PTO_LINE) {
  PTO_AT();
  return from_lane(a, lane() - b, b <= lane() - segment_of_lane(width).start);
}
template <class T> PTO_FN Slot<T> shfl_down(Slot<T> a, uint32_t b, uint32_t width = 32 PTO_LINE) {
  PTO_AT();
  return from_lane(a, lane() + b, b < segment_of_lane(width).end - lane());
}
template <class T> PTO_FN Slot<T> shfl_xor(Slot<T> a, uint32_t b, uint32_t width = 32 PTO_LINE) {
  PTO_AT();
  return from_lane(a, lane() ^ b, (lane() ^ b) < segment_of_lane(width).end);
}

PTO_FN bool vote_all(bool p PTO_LINE) {
  PTO_AT();
  return asc_all(p ? 1 : 0) != 0;
}
PTO_FN bool vote_any(bool p PTO_LINE) {
  PTO_AT();
  return asc_any(p ? 1 : 0) != 0;
}
PTO_FN bool vote_uni(bool p PTO_LINE) {
  PTO_AT();
  const uint32_t yes = asc_ballot(p ? 1 : 0);
  return yes == 0 || yes == asc_activemask();
}
PTO_FN uint32_t vote_ballot(bool p PTO_LINE) {
  PTO_AT();
  return asc_ballot(p ? 1 : 0);
}

struct Sum {
  template <class T> static PTO_FN uint32_t of(uint32_t x, uint32_t y) { return add<T>(x, y); }
};
struct Least {
  template <class T> static PTO_FN uint32_t of(uint32_t x, uint32_t y) { return min<T>(x, y); }
};
struct Greatest {
  template <class T> static PTO_FN uint32_t of(uint32_t x, uint32_t y) { return max<T>(x, y); }
};
struct And {
  template <class T> static PTO_FN uint32_t of(uint32_t x, uint32_t y) { return x & y; }
};
struct Or {
  template <class T> static PTO_FN uint32_t of(uint32_t x, uint32_t y) { return x | y; }
};
struct Xor {
  template <class T> static PTO_FN uint32_t of(uint32_t x, uint32_t y) { return x ^ y; }
};

/// The tree over lane distances 16, 8, 4, 2, 1 with the lower lane first, which is what PTO
/// promises; the order within asc_reduce_add is not published. With lanes missing each lane
/// collects all values and works the tree itself.
template <class T, class Op> PTO_FN uint32_t reduce_tree(uint32_t a) {
  const uint32_t present = asc_activemask();
  if (present == ~0u) {
    for (int32_t distance = 16; distance > 0; distance /= 2) {
      const uint32_t other = asc_shfl(a, static_cast<int32_t>(lane()) + distance, 32);
      a = Op::template of<T>(a, other);
    }
    return asc_shfl(a, 0, 32); // lane 0 has the sum of the tree
  }
  uint32_t tree[32];
  for (int32_t from = 0; from < 32; ++from) {
    tree[from] = asc_shfl(a, from, 32);
  }
  uint32_t filled = present;
  for (uint32_t distance = 16; distance > 0; distance /= 2) {
    for (uint32_t i = 0; i < distance; ++i) {
      const bool low = (filled >> i & 1u) != 0;
      const bool high = (filled >> (i + distance) & 1u) != 0;
      tree[i] = low && high ? Op::template of<T>(tree[i], tree[i + distance])
                : high      ? tree[i + distance]
                            : tree[i];
      filled |= high ? 1u << i : 0u;
    }
  }
  return tree[0];
}
template <class T> PTO_FN uint32_t reduce_add(uint32_t a PTO_LINE) {
  PTO_AT();
  if constexpr (kIsFloat<T>) {
    return reduce_tree<T, Sum>(a);
  } else {
    return asc_reduce_add(a);
  }
}
template <class T> PTO_FN uint32_t reduce_min(uint32_t a PTO_LINE) {
  PTO_AT();
  if constexpr (kIsFloat<T>) {
    return reduce_tree<T, Least>(a);
  } else {
    return static_cast<uint32_t>(asc_reduce_min(static_cast<typename T::value>(a)));
  }
}
template <class T> PTO_FN uint32_t reduce_max(uint32_t a PTO_LINE) {
  PTO_AT();
  if constexpr (kIsFloat<T>) {
    return reduce_tree<T, Greatest>(a);
  } else {
    return static_cast<uint32_t>(asc_reduce_max(static_cast<typename T::value>(a)));
  }
}
template <class T> PTO_FN uint32_t reduce_and(uint32_t a PTO_LINE) {
  PTO_AT();
  return reduce_tree<T, And>(a);
}
template <class T> PTO_FN uint32_t reduce_or(uint32_t a PTO_LINE) {
  PTO_AT();
  return reduce_tree<T, Or>(a);
}
template <class T> PTO_FN uint32_t reduce_xor(uint32_t a PTO_LINE) {
  PTO_AT();
  return reduce_tree<T, Xor>(a);
}

// ---------------------------------------------------------------- synchronisation and the rest

/// BARRIER joins the lanes of one warp. There is no such function on the device: the lanes of a
/// warp run in lock step, and the fence makes what they wrote visible to each other.
PTO_FN void barrier(PTO_LINE_ALONE) {
  PTO_STEP();
  asc_threadfence_block();
}
/// The number of a barrier only names it; the device has one.
PTO_FN void barrier_block(uint32_t = 0 PTO_LINE) {
  PTO_AT();
  asc_syncthreads();
}
/// asc_nop holds a lane 15 cycles.
PTO_FN void nop(uint32_t cycles = 1) {
  for (uint32_t held = 0; held < cycles; held += 15) {
    asc_nop();
  }
}
PTO_FN uint64_t clock_now(PTO_LINE_ALONE) {
  PTO_STEP();
  return clock();
}
/// The device reports that a kernel trapped, not the code: print it first.
PTO_FN void trap(uint32_t code = 0 PTO_LINE) {
  PTO_STEP();
  PTO_PRINT("pto: trap %u\n", code);
  __trap();
}

/// Cycles spent between two clock reads, for --instrument: the lowest active lane of each warp adds
/// the time since the last read to the entry of the region that was just run. An entry is two
/// words, cycles and times. Entry 0 measures an empty pair of reads. The clock is read first and
/// last, so that what the entry costs falls between regions.
struct Probe {
  PTO_GM uint64_t* entries; // of this warp
  uint64_t last;
};
PTO_FN bool is_lowest_active() {
  const uint32_t active = asc_activemask();
  return (active & (~active + 1u)) == 1u << lane();
}
PTO_FN Probe open_probe(PTO_GM uint64_t* profile, uint64_t warp, uint64_t entry_count PTO_LINE) {
  PTO_STEP();
  Probe probe;
  probe.entries = profile + warp * entry_count * 2;
  probe.last = clock();
  return probe;
}
PTO_FN void mark(Probe& probe, uint32_t entry PTO_LINE) {
  PTO_STEP();
  const uint64_t now = clock();
  if (is_lowest_active()) {
    probe.entries[entry * 2] += now - probe.last;
    probe.entries[entry * 2 + 1] += 1;
  }
  probe.last = clock();
}
/// A region begins behind something that is not to count.
PTO_FN void restart(Probe& probe PTO_LINE) {
  PTO_STEP();
  probe.last = clock();
}

/// The clock when the first lane of a warp begins and when its last one ends.
struct Span {
  PTO_GM uint64_t* ends; // two words
};
PTO_FN Span open_span(PTO_GM uint64_t* profile, uint64_t warp PTO_LINE) {
  PTO_STEP();
  const Span span = {profile + warp * 2};
  const uint64_t now = clock();
  if (is_lowest_active()) {
    span.ends[0] = now;
  }
  return span;
}
PTO_FN void close_span(const Span& span PTO_LINE) {
  PTO_STEP();
  const uint64_t now = clock();
  if (is_lowest_active()) {
    span.ends[1] = now;
  }
}

/// The launch of a hybrid kernel, whose blocks are numbered by one number only.
struct Shape {
  uint32_t grid_x, grid_y, grid_z;
  uint32_t block_x, block_y, block_z;
};
PTO_FN uint32_t ctaid_x(const Shape& shape, uint32_t block) {
  return block % shape.grid_x;
}
PTO_FN uint32_t ctaid_y(const Shape& shape, uint32_t block) {
  return block / shape.grid_x % shape.grid_y;
}
PTO_FN uint32_t ctaid_z(const Shape& shape, uint32_t block) {
  return block / shape.grid_x / shape.grid_y;
}

/// Lane within the block, x fastest.
PTO_FN uint32_t linear_lane() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
PTO_FN uint32_t warp() {
  return linear_lane() / 32;
}
PTO_FN uint32_t warps_of_block() {
  return (blockDim.x * blockDim.y * blockDim.z + 31) / 32;
}
/// Number of the warp within the grid, for the entries of Probe.
PTO_FN uint64_t global_warp(const Shape&, uint32_t block) {
  return static_cast<uint64_t>(block) * warps_of_block() + warp();
}
PTO_FN uint64_t global_warp() {
  const uint64_t block =
      blockIdx.x + static_cast<uint64_t>(gridDim.x) *
                       (blockIdx.y + static_cast<uint64_t>(gridDim.y) * blockIdx.z);
  return block * warps_of_block() + warp();
}

/// Host side: a scalar argument from its bits.
inline float host_float(uint64_t bits_of_argument) {
  union {
    uint32_t raw;
    float value;
  } both;
  both.raw = static_cast<uint32_t>(bits_of_argument);
  return both.value;
}

} // namespace pto

#if defined(PTO_HYBRID)
#include "pto_board.h"
#endif
