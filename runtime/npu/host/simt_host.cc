// SPDX-License-Identifier: Apache-2.0
// Lanes as fibers: who runs until where, barriers, launches, the scalar unit, the clock.
//
// A fiber runs until its next access: a memory access, a warp function, a barrier. There it notes
// where it stands: a list of (line, count) pairs, one for each loop that it is in (the line of the
// loop, the trip), each call, and last the access itself (its line, the how-many-th on that line).
// When all lanes of a warp have come to rest, those with the least list go on together: the text of
// a structured program puts what follows a join behind both its branches and what follows a loop
// behind its body, so the least list is the one that others may still join. That is reconvergence
// at the immediate post-dominator wherever control flow is properly nested. With gotos and several
// back edges lanes may meet earlier here than the simulator lets them.
//
// Warps take turns, an access each, in ascending order. Not modelled: the time of a device, the
// data cache, and memory errors, which are the host's.
//
// There is a clock all the same, for tests of what reads clocks: functions take as many cycles as
// the test says (takes() in the header), so that a measurement has to find these again.
#include "simt_host.h"

#include "simt_group.h"

#undef clock

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <utility>
#include <vector>

dim3 threadIdx(0, 0, 0);
dim3 blockIdx(0, 0, 0);
dim3 blockDim;
dim3 gridDim;
int64_t block_idx = 0;

// Of whoever keeps the time of launches.
extern "C" __attribute__((weak)) void pto_host_launched(void* stream, uint64_t cycles);

namespace pto_host {

namespace {

constexpr size_t kStackBytes = 128 * 1024;
constexpr size_t kUbBytes = 256 * 1024;
constexpr uint64_t kMaxRounds = 2'000'000; // of a block: all that happens is spinning, a hang

struct Place {
  uint32_t line;
  uint32_t count;
  auto operator<=>(const Place&) const = default;
};

enum class Waiting : uint8_t { kAccess, kBarrier, kEnded };

struct Fiber {
  ucontext_t start{};
  jmp_buf at{};
  bool has_started = false;
};

struct LaneState {
  Fiber fiber;
  dim3 tid{0, 0, 0};
  uint32_t number = 0;
  Waiting waiting = Waiting::kAccess;
  std::vector<Place> place = {{0, 0}}; // the last is the access
  uint64_t value = 0;                  // for a warp function
  uint64_t cycles = 0;
};

struct WarpState {
  uint32_t active = 0;                  // lanes of the group that runs
  std::array<uint64_t, kWarp> values{}; // theirs, when the group was chosen
  uint64_t cycles = 0;
};

struct Stopped {
  int32_t status = 0;
  std::string message;
};

/// One launch at a time: everything a fiber may touch.
struct Machine {
  std::vector<LaneState> lanes;
  std::vector<WarpState> warps;
  LaneState* lane = nullptr;
  jmp_buf scheduler{};
  void (*body)(void*) = nullptr;
  void* data = nullptr;
  Fiber scalar; // of a hybrid kernel
  bool has_scalar = false;
  bool is_scalar = false; // it runs now
  bool scalar_ended = false;
  void (*destroy)(void*) = nullptr;
  Stopped stopped;
  std::vector<uint8_t> ub;
  uint64_t cycles = 0; // of the launch's blocks so far
  uint64_t clock = 0;  // when the launch began
  double pace = 1;     // of the clock
  uint64_t launches = 0;
  std::map<std::string, uint64_t> cost; // of functions, as PTO_HOST_CYCLES says
  uint8_t* stacks = nullptr;
  size_t stack_count = 0;
};

std::mutex launch_mutex;
Machine machine;
thread_local Stopped last;

uint8_t* stack(size_t index) {
  if (index >= machine.stack_count) {
    // Once for the largest block and the scalar unit; pages are touched as they are used.
    machine.stack_count = 2048 + 1;
    void* at = mmap(nullptr,
                    machine.stack_count * kStackBytes,
                    PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1,
                    0);
    if (at == MAP_FAILED) {
      std::fprintf(stderr, "simt_host: no memory for the stacks of lanes\n");
      std::abort();
    }
    machine.stacks = static_cast<uint8_t*>(at);
  }
  return machine.stacks + index * kStackBytes;
}

void back_to_scheduler() {
  _longjmp(machine.scheduler, 1);
}

void lane_main() {
  machine.body(machine.data);
  machine.lane->waiting = Waiting::kEnded;
  back_to_scheduler();
}

void (*scalar_body)(void*) = nullptr;
void* scalar_data = nullptr;
void scalar_main() {
  scalar_body(scalar_data);
  machine.scalar_ended = true;
  back_to_scheduler();
}

void prepare(Fiber& fiber, size_t stack_index, void (*entry)()) {
  fiber.has_started = false;
  getcontext(&fiber.start);
  fiber.start.uc_stack.ss_sp = stack(stack_index);
  fiber.start.uc_stack.ss_size = kStackBytes;
  fiber.start.uc_link = nullptr;
  makecontext(&fiber.start, entry, 0);
}

[[gnu::noinline]] void resume(Fiber& fiber) {
  if (_setjmp(machine.scheduler) == 0) {
    if (!fiber.has_started) {
      fiber.has_started = true;
      setcontext(&fiber.start);
    }
    _longjmp(fiber.at, 1);
  }
}

[[gnu::noinline]] void rest(Fiber& fiber) {
  if (_setjmp(fiber.at) == 0) {
    back_to_scheduler();
  }
}

void stop(int32_t status, std::string message) {
  if (machine.stopped.status == 0) {
    machine.stopped = {status, std::move(message)};
  }
}

void run_lane(LaneState& lane) {
  machine.lane = &lane;
  threadIdx = lane.tid;
  resume(lane.fiber);
}

/// One access of one warp, if a lane of it can go on.
void advance(uint32_t w) {
  const size_t begin = size_t{w} * kWarp;
  const size_t end = std::min(begin + kWarp, machine.lanes.size());
  const LaneState* least = nullptr;
  for (size_t i = begin; i < end; ++i) {
    const LaneState& lane = machine.lanes[i];
    if (lane.waiting == Waiting::kAccess && (least == nullptr || lane.place < least->place)) {
      least = &lane;
    }
  }
  if (least == nullptr) {
    return;
  }
  WarpState& warp = machine.warps[w];
  const std::vector<Place> place = least->place;
  warp.active = 0;
  for (size_t i = begin; i < end; ++i) {
    if (machine.lanes[i].waiting == Waiting::kAccess && machine.lanes[i].place == place) {
      warp.active |= 1u << (i - begin);
    }
    warp.values[i - begin] = machine.lanes[i].value;
  }
  const uint64_t began = warp.cycles;
  for (size_t i = begin; i < end && machine.stopped.status == 0; ++i) {
    if ((warp.active >> (i - begin) & 1) != 0) {
      machine.lanes[i].cycles = began;
      run_lane(machine.lanes[i]);
      warp.cycles = std::max(warp.cycles, machine.lanes[i].cycles);
    }
  }
}

uint64_t latest_warp() {
  uint64_t latest = machine.cycles;
  for (const WarpState& warp : machine.warps) {
    latest = std::max(latest, warp.cycles);
  }
  return latest;
}

void run_block() {
  uint64_t rounds = 0;
  while (machine.stopped.status == 0) {
    bool all_ended = true;
    bool all_at_barrier = true;
    for (uint32_t w = 0; w < machine.warps.size(); ++w) {
      advance(w);
    }
    for (const LaneState& lane : machine.lanes) {
      all_ended = all_ended && lane.waiting == Waiting::kEnded;
      all_at_barrier = all_at_barrier && lane.waiting != Waiting::kAccess;
    }
    if (all_at_barrier && !all_ended) {
      for (LaneState& lane : machine.lanes) {
        lane.waiting = lane.waiting == Waiting::kBarrier ? Waiting::kAccess : lane.waiting;
      }
      const uint64_t latest = latest_warp();
      for (WarpState& warp : machine.warps) {
        warp.cycles = latest;
      }
    }
    if (machine.has_scalar && !machine.scalar_ended) {
      machine.is_scalar = true;
      resume(machine.scalar);
      machine.is_scalar = false;
    }
    if (all_ended && (!machine.has_scalar || machine.scalar_ended)) {
      machine.cycles = latest_warp();
      return;
    }
    if (++rounds > kMaxRounds) {
      stop(kHung, "the block makes no progress");
    }
  }
}

void make_lanes(dim3 block) {
  blockDim = block;
  const size_t count = size_t{block.x} * block.y * block.z;
  machine.lanes.resize(count);
  machine.warps.assign((count + kWarp - 1) / kWarp, WarpState{});
  for (WarpState& warp : machine.warps) {
    warp.cycles = machine.cycles;
  }
  for (uint32_t i = 0; i < count; ++i) {
    LaneState& lane = machine.lanes[i];
    lane.number = i;
    lane.tid = dim3(i % block.x, i / block.x % block.y, i / block.x / block.y);
    lane.waiting = Waiting::kAccess;
    lane.place.assign(1, {0, 0});
    lane.value = 0;
    prepare(lane.fiber, i + 1, lane_main);
  }
}

double setting(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atof(text) : 0;
}

uint64_t clock_at(uint64_t cycles) {
  return machine.clock + static_cast<uint64_t>(static_cast<double>(cycles) * machine.pace);
}

void set_pace() {
  ++machine.launches;
  const double swing = static_cast<double>(machine.launches * 7 % 11) / 5 - 1; // -1 to 1
  machine.pace = 1 + setting("PTO_HOST_JITTER") * swing;
  const auto slow = static_cast<uint64_t>(setting("PTO_HOST_SLOW"));
  machine.pace *= slow != 0 && machine.launches % slow == 0 ? 3 : 1;
}

void read_costs() {
  machine.cost = {{"clock", 1}};
  const char* text = std::getenv("PTO_HOST_CYCLES");
  for (const char* at = text; at != nullptr && *at != '\0';) {
    const char* equals = std::strchr(at, '=');
    if (equals == nullptr) {
      std::fprintf(stderr, "simt_host: PTO_HOST_CYCLES: expected NAME=CYCLES, ... at '%s'\n", at);
      std::abort();
    }
    char* end = nullptr;
    machine.cost[std::string(at, equals)] = std::strtoull(equals + 1, &end, 10);
    at = *end == ',' ? end + 1 : end;
  }
}

void begin_launch(uint64_t ub_bytes) {
  machine.stopped = {};
  machine.ub.assign(std::max<size_t>(kUbBytes, ub_bytes) + 128, 0);
  read_costs();
  set_pace();
  machine.cycles = 0;
}

void end_launch(void* stream) {
  std::fflush(stdout);
  last = machine.stopped;
  const uint64_t now = clock_at(machine.cycles);
  if (pto_host_launched != nullptr) {
    pto_host_launched(stream, now - machine.clock);
  }
  machine.clock = now;
}

} // namespace

void at(int line) {
  Place& access = machine.lane->place.back();
  if (access.line != static_cast<uint32_t>(line)) {
    access = {static_cast<uint32_t>(line), 0};
  }
}
void step(int line) {
  if (machine.is_scalar) {
    return;
  }
  at(line);
  ++machine.lane->place.back().count;
  rest(machine.lane->fiber);
}
void enter(int line) {
  machine.lane->place.back() = {static_cast<uint32_t>(line), 0};
  machine.lane->place.push_back({0, 0});
}
void leave() {
  machine.lane->place.pop_back();
}

void takes(const char* what) {
  if (machine.is_scalar || machine.cost.size() == 1) {
    return; // nothing was told
  }
  const auto found = machine.cost.find(what);
  machine.lane->cycles += found == machine.cost.end() ? 0 : found->second;
}

uint32_t own_lane() {
  return machine.lane->number % kWarp;
}
Group collect(const char* what, uint64_t value) {
  takes(what);
  machine.lane->value = value;
  ++machine.lane->place.back().count;
  rest(machine.lane->fiber);
  const WarpState& warp = machine.warps[machine.lane->number / kWarp];
  return {warp.active, warp.values};
}
void wait_for_block(const char* what) {
  collect(what, 0);
  machine.lane->waiting = Waiting::kBarrier;
  rest(machine.lane->fiber);
}
void trap() {
  stop(kTrapped, "a lane trapped");
  rest(machine.lane->fiber);
}
uint64_t read_clock() {
  machine.lane->cycles += machine.cost["clock"];
  return clock_at(machine.lane->cycles);
}

Loop::Loop(int line) {
  enter(line);
}
Loop::~Loop() {
  leave();
}
bool Loop::next() {
  std::vector<Place>& place = machine.lane->place;
  ++place[place.size() - 2].count;
  place.back() = {0, 0};
  return true;
}

int print(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int written = std::vprintf(format, arguments);
  va_end(arguments);
  return written;
}
uint8_t* scratchpad() {
  const auto at = reinterpret_cast<uintptr_t>(machine.ub.data());
  return machine.ub.data() + (128 - at % 128) % 128;
}
void idle() {
  rest(machine.scalar);
}

void launch(
    dim3 grid, dim3 block, uint64_t ub_bytes, void* stream, void (*lane)(void*), void* data) {
  const std::scoped_lock lock(launch_mutex);
  begin_launch(ub_bytes);
  machine.body = lane;
  machine.data = data;
  machine.has_scalar = false;
  gridDim = grid;
  for (uint32_t z = 0; z < grid.z && machine.stopped.status == 0; ++z) {
    for (uint32_t y = 0; y < grid.y && machine.stopped.status == 0; ++y) {
      for (uint32_t x = 0; x < grid.x && machine.stopped.status == 0; ++x) {
        blockIdx = dim3(x, y, z);
        make_lanes(block);
        run_block();
      }
    }
  }
  end_launch(stream);
}

void launch_vector(
    uint64_t blocks, uint64_t ub_bytes, void* stream, void (*kernel)(void*), void* data) {
  const std::scoped_lock lock(launch_mutex);
  begin_launch(ub_bytes);
  scalar_body = kernel;
  scalar_data = data;
  machine.has_scalar = true;
  gridDim = dim3(static_cast<uint32_t>(blocks));
  for (uint64_t b = 0; b < blocks && machine.stopped.status == 0; ++b) {
    block_idx = static_cast<int64_t>(b);
    blockIdx = dim3(static_cast<uint32_t>(b), 0, 0);
    machine.lanes.clear();
    machine.warps.clear();
    machine.scalar_ended = false;
    prepare(machine.scalar, 0, scalar_main);
    run_block();
    if (machine.destroy != nullptr) {
      machine.destroy(machine.data);
      machine.destroy = nullptr;
    }
  }
  end_launch(stream);
}

void vector_call(dim3 lanes, void (*lane)(void*), void (*destroy)(void*), void* data) {
  machine.body = lane;
  machine.data = data;
  machine.destroy = destroy;
  make_lanes(lanes);
}

int32_t last_status() {
  return last.status;
}
const char* last_message() {
  return last.message.c_str();
}

} // namespace pto_host
