// SPDX-License-Identifier: Apache-2.0
// The debugger's session: ways of running that must agree, stop points, going back.
#include "session_fixture.h"
#include "simulator/timed.h"

#include <doctest/doctest.h>

#include <cstring>

using namespace pto;
using namespace pto::dbg;

namespace {

constexpr uint32_t kTrips = 5;

struct Loop : SessionFixture {
  explicit Loop(std::string_view machine_name = "reference", uint32_t trips = kTrips)
      : SessionFixture(kLoopKernel, machine_name), n(trips) {
    base = words(std::vector<uint32_t>(512), "o");
    scalar(n);
  }
  std::unique_ptr<Session> session(SessionOptions options = {}) {
    return open({4, 1, 1}, {128, 1, 1}, std::move(options));
  }
  void check_result() const {
    const std::vector<uint32_t> o = read(base);
    for (uint32_t i = 0; i < o.size(); ++i) {
      REQUIRE(o[i] == loop_sum(i % 128, n));
    }
  }
  uint64_t free_cycles() {
    Loop other(machine.profile.name, n);
    auto launch = other.launch({4, 1, 1}, {128, 1, 1});
    sim::SharedMemory shared(other.machine.profile);
    return run_timed(*launch, shared).counters.cycles;
  }
  uint64_t base = 0;
  uint32_t n;
};

int add_break(Session& session, std::string_view place, std::string_view condition = {}) {
  std::string error;
  const auto id = session.add_break(place, condition, error);
  REQUIRE_MESSAGE(id.has_value(), error);
  return *id;
}

std::string value_of(const Session& session, std::string_view text) {
  std::string error;
  const auto value = session.evaluate(text, error);
  return value ? to_string(value->value) : "error: " + error;
}

} // namespace

TEST_CASE("a session runs to the end like a free run") {
  for (const std::string_view machine : {"reference", "ascend950", "reference-fused"}) {
    CAPTURE(machine);
    Loop loop(machine);
    auto session = loop.session();
    const StopEvent stop = session->resume(Until::stop());
    CHECK(stop.reason == StopReason::kFinished);
    loop.check_result();
    CHECK(session->timed_result()->counters.cycles == loop.free_cycles());
  }
}

TEST_CASE("single steps end in the cycles of a free run") {
  for (const std::string_view machine : {"reference", "ascend950", "reference-fused"}) {
    for (const bool by_warp : {false, true}) {
      CAPTURE(machine);
      CAPTURE(by_warp);
      Loop loop(machine);
      auto session = loop.session();
      uint64_t steps = 0;
      while (!session->is_over()) {
        (void)session->resume(by_warp ? Until::step_warp() : Until::step());
        REQUIRE(++steps < 10000);
      }
      loop.check_result();
      CHECK(session->timed_result()->counters.cycles == loop.free_cycles());
      CHECK(steps > 40);
    }
  }
}

TEST_CASE("breakpoints stop each block once a visit, in front of the insn") {
  Loop loop;
  auto session = loop.session();
  const int id = add_break(*session, "again");
  std::map<uint64_t, uint32_t> visits;
  for (;;) {
    const StopEvent stop = session->resume(Until::stop());
    if (stop.reason == StopReason::kFinished) {
      break;
    }
    REQUIRE(stop.reason == StopReason::kBreakpoint);
    CHECK(stop.ids == std::vector<int>{id});
    CHECK(value_of(*session, "$r3") == std::to_string(visits[stop.focus.block]));
    ++visits[stop.focus.block];
  }
  CHECK(visits.size() == 4);
  for (const auto& [block, count] : visits) {
    CHECK(count == kTrips + 1);
  }
  loop.check_result();
  CHECK(session->timed_result()->counters.cycles == loop.free_cycles());
  CHECK(session->stops().find(id)->hits == 4 * (kTrips + 1));
}

TEST_CASE("conditions, ignore counts and temporary breakpoints") {
  Loop loop;
  auto session = loop.session();
  const int id = add_break(*session, "again", "$r3 == 2 && $block == 1 && $lane == 7");
  StopEvent stop = session->resume(Until::stop());
  CHECK(stop.reason == StopReason::kBreakpoint);
  CHECK(stop.focus == Focus{1, 0, 7});
  CHECK(stop.has_moved_focus);
  CHECK(value_of(*session, "$r2") == "8"); // (0 + 1) * (7 + 1)
  session->stops().erase(id);
  const int once = add_break(*session, "done");
  session->stops().find(once)->is_temporary = true;
  session->stops().find(once)->ignore = 1;
  stop = session->resume(Until::stop());
  CHECK(stop.reason == StopReason::kBreakpoint);
  CHECK(session->stops().find(once) == nullptr);
  CHECK(session->resume(Until::stop()).reason == StopReason::kFinished);
}

TEST_CASE("watchpoints tell old and new value and the lane") {
  Loop loop;
  auto session = loop.session();
  std::string error;
  CHECK_FALSE(session->add_watch("1 + 2", WatchAccess::kChange, {}, error));
  CHECK(error.find("no place") != std::string::npos);
  const auto id = session->add_watch("o[130]", WatchAccess::kChange, {}, error);
  REQUIRE_MESSAGE(id.has_value(), error);
  StopEvent stop = session->resume(Until::stop());
  REQUIRE(stop.reason == StopReason::kWatchpoint);
  REQUIRE(stop.watches.size() == 1);
  const WatchHit& hit = stop.watches[0];
  CHECK(hit.block == 1);
  CHECK(hit.warp == 0);
  CHECK(hit.lane_mask == 1u << 2);
  uint32_t value = 0;
  std::memcpy(&value, hit.new_bytes.data(), 4);
  CHECK(value == loop_sum(2, kTrips));
  CHECK(hit.old_bytes == std::vector<uint8_t>(4));

  const auto writer = session->last_writer(isa::Space::kHbm, 0, loop.base + 130 * 4, 4);
  REQUIRE(writer.has_value());
  CHECK(writer->pc == hit.pc);
  CHECK(writer->lane_mask == hit.lane_mask);
  CHECK(session->position() == stop.position);

  stop = session->reverse(Until::stop());
  CHECK(stop.reason == StopReason::kWatchpoint);
  CHECK(value_of(*session, "o[130]") == "0");
  stop = session->resume(Until::stop());
  CHECK(stop.reason == StopReason::kWatchpoint);
  CHECK(session->resume(Until::stop()).reason == StopReason::kFinished);
  CHECK(session->timed_result()->counters.cycles == loop.free_cycles());
}

TEST_CASE("register watchpoints follow one lane") {
  Loop loop;
  auto session = loop.session();
  std::string error;
  (void)session->resume(Until::start());
  REQUIRE(session->set_focus({0, 0, 3}, error));
  REQUIRE(session->add_watch("$r2", WatchAccess::kChange, {}, error));
  std::vector<std::string> values;
  while (session->resume(Until::stop()).reason == StopReason::kWatchpoint) {
    values.push_back(value_of(*session, "$r2"));
  }
  // i = 0 adds 0, which changes nothing.
  CHECK(values == std::vector<std::string>{"4", "12", "24", "40"});
}

TEST_CASE("a step back undoes a step") {
  for (const std::string_view machine : {"reference", "ascend950", "reference-fused"}) {
    CAPTURE(machine);
    Loop loop(machine);
    auto session = loop.session();
    std::vector<std::pair<uint64_t, std::vector<uint32_t>>> marks; // position, registers of block 0
    const auto registers = [&] {
      std::vector<uint32_t> values;
      std::string error;
      for (uint32_t r = 0; r < 8; ++r) {
        const auto lanes = session->read_register({RegisterFile::kReg32, r}, 0, 0, 128, error);
        REQUIRE_MESSAGE(lanes.has_value(), error);
        values.insert(values.end(), lanes->begin(), lanes->end());
      }
      return values;
    };
    for (int i = 0; i < 30; ++i) {
      (void)session->resume(Until::step_warp());
      marks.emplace_back(session->position(), registers());
    }
    for (int i = 28; i >= 0; --i) {
      const StopEvent stop = session->reverse(Until::step_warp());
      CHECK(stop.reason == StopReason::kStep);
      CHECK(stop.position == marks[static_cast<size_t>(i)].first);
      CHECK(registers() == marks[static_cast<size_t>(i)].second);
    }
    (void)session->resume(Until::stop());
    CHECK(session->is_finished());
    loop.check_result();
    CHECK(session->timed_result()->counters.cycles == loop.free_cycles());
  }
}

TEST_CASE("block steps: n forward and n back is the identity in lockstep code") {
  Loop loop;
  auto session = loop.session();
  (void)session->resume(Until::step(3));
  const uint64_t before = session->position();
  (void)session->resume(Until::step(7));
  (void)session->reverse(Until::step(7));
  CHECK(session->position() == before);
  CHECK(value_of(*session, "$pc") == "3");
}

TEST_CASE("reverse-continue finds the breakpoint before, then the beginning") {
  Loop loop;
  auto session = loop.session();
  const int id = add_break(*session, "again", "$block == 2");
  std::vector<uint64_t> positions;
  while (session->resume(Until::stop()).reason == StopReason::kBreakpoint) {
    positions.push_back(session->position());
  }
  REQUIRE(positions.size() == kTrips + 1);
  for (size_t i = positions.size(); i-- > 0;) {
    const StopEvent stop = session->reverse(Until::stop());
    CHECK(stop.reason == StopReason::kBreakpoint);
    CHECK(stop.ids == std::vector<int>{id});
    CHECK(stop.position == positions[i]);
    CHECK(value_of(*session, "$r3") == std::to_string(i));
  }
  CHECK(session->reverse(Until::stop()).reason == StopReason::kHistoryStart);
  CHECK(session->position() == 0);
  session->stops().clear();
  CHECK(session->resume(Until::stop()).reason == StopReason::kFinished);
  loop.check_result();
}

TEST_CASE("cycles and positions can be gone to") {
  Loop loop("ascend950");
  auto session = loop.session();
  (void)session->resume(Until::stop());
  const uint64_t end = session->position();
  for (const uint64_t target : {end / 2, end / 3, end - 1, uint64_t{0}, end}) {
    CHECK(session->go_to_position(target).position == target);
  }
  const uint64_t last_cycle = session->cycle();
  for (const uint64_t cycle : {last_cycle / 2, last_cycle / 4, last_cycle - 1}) {
    const StopEvent stop = session->go_to_cycle(cycle);
    CHECK(stop.cycle >= cycle);
    CHECK(session->position() < end);
  }
  (void)session->resume(Until::stop());
  CHECK(session->position() == end);
  loop.check_result();
}

TEST_CASE("an edit in the past changes what comes, and is repeated") {
  Loop loop;
  auto session = loop.session();
  std::string error;
  (void)session->resume(Until::stop());
  (void)session->go_to_cycle(20);
  REQUIRE(session->set_focus({0, 0, 0}, error));
  const uint64_t at = session->position();
  REQUIRE_MESSAGE(session->write_register({RegisterFile::kReg32, 2}, 0, 5, 1000000, error), error);
  (void)session->resume(Until::stop());
  const uint32_t changed = loop.read(loop.base)[4]; // lane 4 stores what lane 5 computed
  CHECK(changed > 1000000);
  (void)session->go_to_position(at / 2);
  CHECK(loop.read(loop.base)[4] == 0);
  (void)session->resume(Until::stop());
  CHECK(loop.read(loop.base)[4] == changed);
  CHECK_FALSE(session->write_register({RegisterFile::kReg32, 2}, 0, 5, 1, error));
}

TEST_CASE("bounded history thins out, and says where it begins") {
  Loop loop("reference", 4000);
  SessionOptions options;
  options.history_bytes = 1 << 20;
  auto session = loop.session(options);
  (void)session->resume(Until::stop());
  const HistoryInfo info = session->history();
  CHECK(info.used_bytes <= info.limit_bytes);
  CHECK(info.snapshots >= 2);
  const uint64_t end = session->position();
  CHECK(session->go_to_position(end - 1000).position == end - 1000);
  if (info.first_position == 0) {
    CHECK(session->go_to_position(10).position == 10);
  }
  (void)session->resume(Until::stop());
  CHECK(session->position() == end);
  loop.check_result();
}

TEST_CASE("lockstep sessions compute the same without time") {
  Loop loop;
  SessionOptions options;
  options.mode = RunMode::kLockstep;
  auto session = loop.session(options);
  (void)session->resume(Until::step(4));
  CHECK(value_of(*session, "$r1") == "1");
  const uint64_t position = session->position();
  (void)session->resume(Until::step(4));
  (void)session->reverse(Until::step(4));
  CHECK(session->position() == position);
  CHECK(session->resume(Until::stop()).reason == StopReason::kFinished);
  CHECK_FALSE(session->timed_result().has_value());
  loop.check_result();
}

TEST_CASE("finish, next and until") {
  Loop loop;
  auto session = loop.session();
  add_break(*session, "accumulate", "$block == 0");
  (void)session->resume(Until::stop());
  CHECK(value_of(*session, "$pc") ==
        std::to_string(session->program().object().find_function("accumulate")->first_pc));
  StopEvent stop = session->resume(Until::finish());
  CHECK(stop.reason == StopReason::kLocation);
  CHECK(value_of(*session, "$pc") == "7");
  session->stops().clear();
  std::string error;
  (void)session->resume(Until::location({6}));
  CHECK(value_of(*session, "$pc") == "6");
  (void)session->resume(Until::next());
  CHECK(value_of(*session, "$pc") == "7");
}

TEST_CASE("the data cache of the reference machine shows in l1") {
  SessionFixture fixture(R"(
.kernel k(ptr a)
    mov.u32 r0, %gid.x
    load.f32 r1, hbm[a + r0*4]
    exit
.end
)");
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < 64; ++i) {
    words.push_back(std::bit_cast<uint32_t>(static_cast<float>(i) * 0.5f));
  }
  const uint64_t base = fixture.words(words, "a");
  auto session = fixture.open({1, 1, 1}, {64, 1, 1});
  (void)session->resume(Until::step(2));
  const Trace& trace = session->trace();
  REQUIRE(trace.insns.size() == 4);
  const InsnTrace& load = trace.insns[2];
  CHECK(load.reads_memory);
  CHECK(load.l1_offsets[3] == 12);
  CHECK(load.addresses[3] == base + 12);
  const L1Bytes l1 = session->read_l1(0, 0, 64 * 4);
  CHECK(std::memcmp(l1.bytes.data(), words.data(), 64 * 4) == 0);
  CHECK(value_of(*session, "(f32) l1:12") == "1.5");
  const auto lines = session->cache_lines(0);
  REQUIRE(lines.size() == 2);
  CHECK(lines[1].hbm_address == base + 128);
  CHECK(lines[1].l1_offset == 128);
  CHECK(value_of(*session, "a[5]") == "2.5");
  CHECK(value_of(*session, "hbm:a+8") == "1");
  CHECK(value_of(*session, "$r1@7") == "3.5");
}

TEST_CASE("catchpoints: nan, launch, barrier") {
  SessionFixture fixture(R"(
.kernel k(ptr a)
    mov.u32 r0, %gid.x
    load.f32 r1, hbm[a + r0*4]
    barrier_block
    sqrt.f32 r2, r1
    store.f32 hbm[a + r0*4], r2
    exit
.end
)");
  std::vector<uint32_t> words(64, std::bit_cast<uint32_t>(4.0f));
  words[37] = std::bit_cast<uint32_t>(-1.0f);
  (void)fixture.words(words, "a");
  auto session = fixture.open({1, 1, 1}, {64, 1, 1});
  std::string error;
  CHECK_FALSE(session->add_catch("nen", error));
  CHECK(error.find("did you mean 'nan'") != std::string::npos);
  const int launch = *session->add_catch("launch", error);
  const int barrier = *session->add_catch("barrier", error);
  const int nan = *session->add_catch("nan", error);
  StopEvent stop = session->resume(Until::stop());
  CHECK(stop.reason == StopReason::kCatchpoint);
  CHECK(stop.ids == std::vector<int>{launch});
  CHECK(stop.position == 0);
  stop = session->resume(Until::stop());
  CHECK(stop.ids == std::vector<int>{barrier});
  stop = session->resume(Until::stop());
  CHECK(stop.ids == std::vector<int>{nan});
  REQUIRE(stop.findings.size() == 1);
  CHECK(stop.focus == Focus{0, 1, 5});
  CHECK(stop.findings[0].kind == sim::CheckKind::kNan);
  (void)session->reverse(Until::step_warp(1));
  stop = session->resume(Until::stop());
  CHECK(stop.ids == std::vector<int>{nan});
  CHECK(session->findings().size() == 1);
  CHECK(session->resume(Until::stop()).reason == StopReason::kFinished);
}

TEST_CASE("a fault stops with the state intact, and can be left backwards") {
  SessionFixture fixture(R"(
.kernel k(ptr a)
    mov.u32 r0, %gid.x
    mul.u32 r1, r0, 4
    store.u32 hbm[a + r0*4], r1
    exit
.end
)");
  (void)fixture.words(std::vector<uint32_t>(40), "a");
  auto session = fixture.open({1, 1, 1}, {64, 1, 1});
  StopEvent stop = session->resume(Until::stop());
  CHECK(stop.reason == StopReason::kFault);
  REQUIRE(stop.fault.has_value());
  CHECK(stop.focus == Focus{0, 1, 8});
  CHECK(value_of(*session, "$r1") == "160");
  CHECK(session->resume(Until::stop()).reason == StopReason::kFault);
  stop = session->reverse(Until::step_warp());
  CHECK(stop.reason == StopReason::kStep);
  CHECK(value_of(*session, "$pc") == "2");
  CHECK(session->resume(Until::stop()).reason == StopReason::kFault);
}
