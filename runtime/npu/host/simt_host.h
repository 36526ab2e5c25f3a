// SPDX-License-Identifier: Apache-2.0
// The SIMT interface of Ascend C as a host compiler sees it: what an emitted file and pto_simt.h
// use of it, with the published names, argument orders and types. simt_host.cc runs it: each lane
// is a fiber, and the lanes of a warp go in lock step from one memory or warp access to the next.
//
// Address spaces are one here, as in pure SIMT mode; __gm__ and __ubuf__ on parameters are the
// device's affair (PTO_GM, PTO_UB in pto_simt.h are empty). This is for tests and for working on
// kernels without a board; it says nothing about the time of a board. Its clock runs as told: see
// takes().
#pragma once

#include <stddef.h>
#include <stdint.h>

// ---------------------------------------------------------------- keywords

#define __global__
#define __vector__
#define __simt_vf__
#define __aicore__
#define __launch_bounds__(lanes)
#define __gm__
#define __ubuf__

// Functions that the C library of the host also has, which computes other bits.
#define truncf simt_truncf
#define floorf simt_floorf
#define ceilf simt_ceilf
#define rintf simt_rintf
#define expf simt_expf
#define logf simt_logf
#define sqrtf simt_sqrtf
#define rsqrtf simt_rsqrtf
#define tanhf simt_tanhf
#define sinf simt_sinf
#define cosf simt_cosf
#define powf simt_powf
#define fmaf simt_fmaf
#define clock simt_clock

// ---------------------------------------------------------------- types

struct dim3 {
  uint32_t x, y, z;
  dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct half {
  uint16_t bits;
};
struct bfloat16_t {
  uint16_t bits;
};
#define PTO_SHORT_VECTOR(name, element)                                                            \
  struct alignas(2 * sizeof(element)) name##2 {                                                    \
    element x, y;                                                                                  \
  };                                                                                               \
  struct alignas(sizeof(element) == 8 ? 16 : 4 * sizeof(element)) name##4 {                        \
    element x, y, z, w;                                                                            \
  }
PTO_SHORT_VECTOR(uchar, unsigned char);
PTO_SHORT_VECTOR(ushort, unsigned short);
PTO_SHORT_VECTOR(uint, unsigned int);
PTO_SHORT_VECTOR(ulong, unsigned long int);
#undef PTO_SHORT_VECTOR

// ---------------------------------------------------------------- built-in values

extern dim3 threadIdx;
extern dim3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;
extern int64_t block_idx;
constexpr int32_t warpSize = 32;

int32_t laneid();
int32_t lanemask_eq();
int32_t lanemask_le();
int32_t lanemask_lt();
int32_t lanemask_ge();
int32_t lanemask_gt();

// ---------------------------------------------------------------- warp

int32_t asc_all(int32_t predicate);
int32_t asc_any(int32_t predicate);
uint32_t asc_ballot(int32_t predicate);
uint32_t asc_activemask();
uint32_t asc_shfl(uint32_t var, int32_t src_lane, int32_t width = warpSize);
uint64_t asc_shfl(uint64_t var, int32_t src_lane, int32_t width = warpSize);
uint32_t asc_reduce_add(uint32_t val);
int32_t asc_reduce_min(int32_t val);
uint32_t asc_reduce_min(uint32_t val);
int32_t asc_reduce_max(int32_t val);
uint32_t asc_reduce_max(uint32_t val);

// ---------------------------------------------------------------- synchronisation

void asc_syncthreads();
void asc_threadfence();
void asc_threadfence_block();
void asc_nop();
uint64_t clock();
void __trap();
int64_t asc_get_core_id();
void asc_init();

// ---------------------------------------------------------------- memory

void asc_dcci_single(void* address);
void asc_dcci_entire(void* address);

#define PTO_CACHED(type)                                                                           \
  inline type asc_ldcg(type* address) {                                                            \
    return *address;                                                                               \
  }                                                                                                \
  inline void asc_stcg(type* address, type value) {                                                \
    *address = value;                                                                              \
  }
PTO_CACHED(signed char)
PTO_CACHED(unsigned char)
PTO_CACHED(uchar2)
PTO_CACHED(uchar4)
PTO_CACHED(short)
PTO_CACHED(unsigned short)
PTO_CACHED(ushort2)
PTO_CACHED(ushort4)
PTO_CACHED(int)
PTO_CACHED(unsigned int)
PTO_CACHED(uint2)
PTO_CACHED(uint4)
PTO_CACHED(long int)
PTO_CACHED(unsigned long int)
PTO_CACHED(ulong2)
PTO_CACHED(ulong4)
PTO_CACHED(float)
#undef PTO_CACHED

int32_t asc_atomic_add(int32_t* address, int32_t val);
uint32_t asc_atomic_add(uint32_t* address, uint32_t val);
float asc_atomic_add(float* address, float val);
int64_t asc_atomic_add(int64_t* address, int64_t val);
uint64_t asc_atomic_add(uint64_t* address, uint64_t val);
int32_t asc_atomic_sub(int32_t* address, int32_t val);
uint32_t asc_atomic_sub(uint32_t* address, uint32_t val);
int64_t asc_atomic_sub(int64_t* address, int64_t val);
uint64_t asc_atomic_sub(uint64_t* address, uint64_t val);
int32_t asc_atomic_exch(int32_t* address, int32_t val);
uint32_t asc_atomic_exch(uint32_t* address, uint32_t val);
int64_t asc_atomic_exch(int64_t* address, int64_t val);
uint64_t asc_atomic_exch(uint64_t* address, uint64_t val);
int32_t asc_atomic_max(int32_t* address, int32_t val);
uint32_t asc_atomic_max(uint32_t* address, uint32_t val);
float asc_atomic_max(float* address, float val);
int64_t asc_atomic_max(int64_t* address, int64_t val);
uint64_t asc_atomic_max(uint64_t* address, uint64_t val);
int32_t asc_atomic_min(int32_t* address, int32_t val);
uint32_t asc_atomic_min(uint32_t* address, uint32_t val);
float asc_atomic_min(float* address, float val);
int64_t asc_atomic_min(int64_t* address, int64_t val);
uint64_t asc_atomic_min(uint64_t* address, uint64_t val);
uint32_t asc_atomic_inc(uint32_t* address, uint32_t val);
uint64_t asc_atomic_inc(uint64_t* address, uint64_t val);
uint32_t asc_atomic_dec(uint32_t* address, uint32_t val);
uint64_t asc_atomic_dec(uint64_t* address, uint64_t val);
int32_t asc_atomic_and(int32_t* address, int32_t val);
uint32_t asc_atomic_and(uint32_t* address, uint32_t val);
int64_t asc_atomic_and(int64_t* address, int64_t val);
uint64_t asc_atomic_and(uint64_t* address, uint64_t val);
int32_t asc_atomic_or(int32_t* address, int32_t val);
uint32_t asc_atomic_or(uint32_t* address, uint32_t val);
int64_t asc_atomic_or(int64_t* address, int64_t val);
uint64_t asc_atomic_or(uint64_t* address, uint64_t val);
int32_t asc_atomic_xor(int32_t* address, int32_t val);
uint32_t asc_atomic_xor(uint32_t* address, uint32_t val);
int64_t asc_atomic_xor(int64_t* address, int64_t val);
uint64_t asc_atomic_xor(uint64_t* address, uint64_t val);
int32_t asc_atomic_cas(int32_t* address, int32_t compare, int32_t val);
uint32_t asc_atomic_cas(uint32_t* address, uint32_t compare, uint32_t val);
int64_t asc_atomic_cas(int64_t* address, int64_t compare, int64_t val);
uint64_t asc_atomic_cas(uint64_t* address, uint64_t compare, uint64_t val);

// ---------------------------------------------------------------- arithmetic

uint32_t __float_as_uint(float x);
float __uint_as_float(uint32_t x);
half __ushort_as_half(unsigned short x);
bfloat16_t __ushort_as_bfloat16(unsigned short x);
int32_t __mulhi(int32_t x, int32_t y);
uint32_t __umulhi(uint32_t x, uint32_t y);
int32_t __clz(int32_t x);
int32_t __clz(int64_t x);
int32_t __ffs(int32_t x);
int32_t __popc(uint32_t x);
int32_t __popc(uint64_t x);
uint32_t __brev(uint32_t x);
uint64_t __brev(uint64_t x);

float truncf(float x);
float floorf(float x);
float ceilf(float x);
float rintf(float x);
float expf(float x);
float logf(float x);
float sqrtf(float x);
float rsqrtf(float x);
float tanhf(float x);
float sinf(float x);
float cosf(float x);
float powf(float x, float y);
float fmaf(float x, float y, float z);

half __hadd(half x, half y);
half __hsub(half x, half y);
half __hmul(half x, half y);
half __hfma(half x, half y, half z);
bfloat16_t __hfma(bfloat16_t x, bfloat16_t y, bfloat16_t z);

// ---------------------------------------------------------------- conversion

float __half2float(half x);
float __bfloat162float(bfloat16_t x);
#define PTO_CONVERSIONS(to, from, name)                                                            \
  to name##_rn(from x);                                                                            \
  to name##_rz(from x);                                                                            \
  to name##_rd(from x);                                                                            \
  to name##_ru(from x)
PTO_CONVERSIONS(half, float, __float2half);
PTO_CONVERSIONS(bfloat16_t, float, __float2bfloat16);
PTO_CONVERSIONS(int32_t, float, __float2int);
PTO_CONVERSIONS(uint32_t, float, __float2uint);
PTO_CONVERSIONS(long long int, float, __float2ll);
PTO_CONVERSIONS(unsigned long long int, float, __float2ull);
PTO_CONVERSIONS(float, int32_t, __int2float);
PTO_CONVERSIONS(float, uint32_t, __uint2float);
PTO_CONVERSIONS(float, long long int, __ll2float);
PTO_CONVERSIONS(float, unsigned long long int, __ull2float);
PTO_CONVERSIONS(half, int32_t, __int2half);
PTO_CONVERSIONS(half, uint32_t, __uint2half);
PTO_CONVERSIONS(half, long long int, __ll2half);
PTO_CONVERSIONS(half, unsigned long long int, __ull2half);
PTO_CONVERSIONS(bfloat16_t, int32_t, __int2bfloat16);
PTO_CONVERSIONS(bfloat16_t, uint32_t, __uint2bfloat16);
PTO_CONVERSIONS(bfloat16_t, long long int, __ll2bfloat16);
PTO_CONVERSIONS(bfloat16_t, unsigned long long int, __ull2bfloat16);
#undef PTO_CONVERSIONS

// ---------------------------------------------------------------- the scalar unit

enum pipe_t { PIPE_S, PIPE_V, PIPE_MTE2, PIPE_MTE3 };
enum event_t { EVENT_ID0, EVENT_ID1 };
enum class asc_load_l2_cache_mode : uint8_t { NORMAL_FIRST_VICTIM = 0 };
enum class asc_store_l2_cache_mode : uint8_t { NORMAL_FIRST_VICTIM = 0 };
void asc_copy_gm2ub_align(uint8_t* dst,
                          uint8_t* src,
                          uint16_t n_burst,
                          uint32_t len_burst,
                          uint8_t left_padding_num,
                          uint8_t right_padding_num,
                          bool enable_constant_pad,
                          asc_load_l2_cache_mode l2_cache_mode,
                          uint64_t src_stride,
                          uint32_t dst_stride);
void asc_copy_ub2gm_align(uint8_t* dst,
                          uint8_t* src,
                          uint16_t n_burst,
                          uint32_t len_burst,
                          asc_store_l2_cache_mode l2_cache_mode,
                          uint64_t dst_stride,
                          uint32_t src_stride);
void asc_sync_notify(pipe_t pipe, pipe_t tpipe, event_t id);
void asc_sync_wait(pipe_t pipe, pipe_t tpipe, event_t id);

// ---------------------------------------------------------------- how the emulation follows lanes

namespace pto_host {

/// Hands over to the other lanes of the warp; returns when all of them that are to make this access
/// together stand here. Lanes stand together that are at one line, in the same trips of the same
/// loops. Then they run on in ascending order.
void step(int line);
/// Names the line of the warp functions that follow.
void at(int line);
void enter(int line);
void leave();

/// The lane's clock goes on by what PTO_HOST_CYCLES says of `what`, the name of a function of the
/// interface, or "load" and "store" for plain accesses: "fmaf=7,load=20". What is not named takes
/// no time, apart from `clock`, which takes 1 cycle. The lanes of a warp that run together share
/// their time, groups of them that diverged run one after the other, warps at the same time; a
/// barrier waits for the last one. A launch takes as long as its blocks one after another. With
/// PTO_HOST_SLOW=7 the clock runs three times as fast in every seventh launch of a kernel, with
/// PTO_HOST_JITTER=0.01 up to 1 % faster or slower, the same each time.
void takes(const char* what);

/// Counts the trips of a loop.
class Loop {
public:
  explicit Loop(int line = __builtin_LINE());
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  bool next();
};

int print(const char* format, ...) __attribute__((format(printf, 1, 2)));
/// Of the block that runs, aligned to 128 bytes.
uint8_t* scratchpad();
void idle();

/// Runs a grid, block after block. Launches of one process take turns. When it is done, `stream`
/// and the cycles that it took go to pto_host_launched, where the process has such a function.
void launch(
    dim3 grid, dim3 block, uint64_t ub_bytes, void* stream, void (*lane)(void*), void* data);
void launch_vector(
    uint64_t blocks, uint64_t ub_bytes, void* stream, void (*kernel)(void*), void* data);
void vector_call(dim3 lanes, void (*lane)(void*), void (*destroy)(void*), void* data);
/// Of the last launch of this thread: 0, or the error codes below; its text by last_message().
int32_t last_status();
const char* last_message();
constexpr int32_t kTrapped = 507015;
constexpr int32_t kHung = 507014;

template <class Call>
void launch_call(dim3 grid, dim3 block, uint64_t ub_bytes, void* stream, Call call) {
  launch(
      grid, block, ub_bytes, stream, [](void* data) { (*static_cast<Call*>(data))(); }, &call);
}
template <class Call>
void launch_vector_call(uint64_t blocks, uint64_t ub_bytes, void* stream, Call call) {
  launch_vector(
      blocks, ub_bytes, stream, [](void* data) { (*static_cast<Call*>(data))(); }, &call);
}
template <class Call> void vector_call(dim3 lanes, Call call) {
  vector_call(
      lanes,
      [](void* data) { (*static_cast<Call*>(data))(); },
      [](void* data) { delete static_cast<Call*>(data); },
      new Call(call));
}

} // namespace pto_host

/// Starts the lanes of a vector function; the scalar unit goes on.
template <auto funcPtr, typename... Args> void asc_vf_call(dim3 threadNums, Args... args) {
  ::pto_host::vector_call(threadNums, [=] { funcPtr(args...); });
}

#define PTO_LINE , int pto_line = __builtin_LINE()
#define PTO_LINE_ALONE int pto_line = __builtin_LINE()
#define PTO_PASS_LINE , pto_line
#define PTO_STEP() ::pto_host::step(pto_line)
#define PTO_AT() ::pto_host::at(pto_line)
#define PTO_TAKES(what) ::pto_host::takes(what)
#define PTO_CALL(call) ::pto_host::called([&] { return call; })
#define PTO_PRINT(...) ::pto_host::print(__VA_ARGS__)
#define PTO_SHARED(name, bytes) uint8_t* name = ::pto_host::scratchpad()
#define PTO_DYNAMIC_UB(name) uint8_t* name = ::pto_host::scratchpad()
#define PTO_LAUNCH(kernel, grid, block, ub_bytes, stream, ...)                                     \
  ::pto_host::launch_call(grid, block, ub_bytes, stream, [=] { kernel(__VA_ARGS__); })
#define PTO_LAUNCH_VECTOR(kernel, blocks, ub_bytes, stream, ...)                                   \
  ::pto_host::launch_vector_call(blocks, ub_bytes, stream, [=] { kernel(__VA_ARGS__); })
#define PTO_LAUNCH_STATUS() ::pto_host::last_status()
#define PTO_IDLE() ::pto_host::idle()

namespace pto_host {
template <class Call> bool called(Call call, int line = __builtin_LINE()) {
  enter(line);
  const bool has_ended = call();
  leave();
  return has_ended;
}
} // namespace pto_host
