// SPDX-License-Identifier: Apache-2.0
// Machine profiles: shipped values, latency lookup, inheritance, overrides, and every error.
#include "isa/machine.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace pto::isa;

namespace {

MachineProfile shipped(const char* name) {
  ProfileIssues issues;
  auto profile = load_machine(name, issues);
  INFO(to_string(issues));
  REQUIRE(profile.has_value());
  REQUIRE(issues.empty());
  return *profile;
}

std::optional<std::string> shipped_text(std::string_view name) {
  const auto text = shipped_machine_text(name);
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

// Reads `text` as file "mine.json" and returns all issues as one text.
std::string issues_of(const std::string& text, const ProfileResolver& resolve = shipped_text) {
  ProfileIssues issues;
  const auto profile = parse_machine(text, "mine.json", resolve, issues);
  CHECK_FALSE(profile.has_value());
  CHECK_FALSE(issues.empty());
  return to_string(issues);
}

// A profile that refines `reference` with one more member.
std::string derived(const std::string& member) {
  return R"({"name": "mine", "description": "d", "source": "s", "based_on": "reference", )" +
         member + "}";
}

std::string override_issues(const char* assignment) {
  MachineProfile profile = shipped("reference");
  ProfileIssues issues;
  CHECK_FALSE(apply_override(profile, assignment, issues));
  CHECK(to_json_text(profile) == to_json_text(shipped("reference")));
  return to_string(issues);
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("the reference profile has the textbook figures") {
  const MachineProfile p = shipped("reference");
  CHECK(p.latency.find("LOAD")->latency_cycles == 4);
  CHECK(p.latency.find("FMA.f32")->latency_cycles == 8);
  CHECK(p.latency.find("STORE")->latency_cycles == 3);
  CHECK(p.latency.find("MMA.f32.f16")->latency_cycles == 8);
  CHECK(p.latency.find("PRINT")->latency_cycles == 0);
  CHECK(p.issue_warps_per_cycle * 32 == 256);
  CHECK(p.hbm.latency_cycles == 0);
  CHECK(p.l1.hit_latency_cycles == 0);
  CHECK(p.l1.ways == 0);
  CHECK(p.l1.replacement == "fill_order");
  CHECK(p.l1.size_bytes == 262144);
  CHECK(p.cache_begin_bytes(0) == 0);
  CHECK(p.cache_begin_bytes(4100) == 4224); // rounded up to a line of 128 bytes
  CHECK(p.cache_bytes(0) == 262144);
  CHECK(p.max_lanes_per_block == 1024);
  CHECK(p.max_grid_blocks == 2147483647u);
  CHECK(p.fusion.empty());
  CHECK(p.launch.task_cycles == 0);
  CHECK(p.microseconds(2500) == doctest::Approx(2.5));
}

TEST_CASE("reference-fused refines reference") {
  const MachineProfile p = shipped("reference-fused");
  CHECK(p.based_on == "reference");
  CHECK(p.name == "reference-fused");
  CHECK(p.latency.find("LOAD")->latency_cycles == 3);
  CHECK(p.latency.find("LOAD")->interval_cycles == 1); // inherited member of a changed entry
  CHECK(p.latency.find("FMA")->latency_cycles == 5);
  CHECK(p.latency.find("STORE")->latency_cycles == 2);
  CHECK(p.latency.find("MMA")->latency_cycles == 8);
  CHECK(p.max_lanes_per_block == 1024);
  REQUIRE(p.fusion.size() == 1);
  CHECK(p.fusion[0].first == "LOAD");
  CHECK(p.fusion[0].second == "MMA");
  CHECK(p.fusion[0].latency_cycles == 5);
}

TEST_CASE("ascend950 has the published figures") {
  const MachineProfile p = shipped("ascend950");
  CHECK(p.clock_mhz == 1650);
  CHECK(p.cores == 64);
  CHECK(p.blocks_per_core == 1);
  CHECK(p.max_lanes_per_block == 2048);
  CHECK(p.max_grid_blocks == 65535);
  CHECK(p.warp_schedulers == 4);
  CHECK(p.registers_per_lane(1) == 127u);
  CHECK(p.registers_per_lane(256) == 127u);
  CHECK(p.registers_per_lane(257) == 64u);
  CHECK(p.registers_per_lane(1024) == 32u);
  CHECK(p.registers_per_lane(2048) == 16u);
  CHECK_FALSE(p.registers_per_lane(2049).has_value());
  CHECK(p.l2.size_bytes == 134217728);
  CHECK(p.max_scratchpad_bytes() == 221184); // 256 - 8 - 32 KiB
  CHECK(p.cache_bytes(0) == 131072);         // at most 128 KiB
  CHECK(p.cache_bytes(196608) == 57344);     // as published for a 192 KiB kernel
  CHECK(p.cache_bytes(221184) == 32768);
  CHECK(p.cache_bytes(221185) == 0);
  CHECK(p.l1.banks * p.l1.bank_bytes == p.l1.size_bytes);
}

TEST_CASE("every figure of every shipped profile has a source") {
  for (const std::string& name : shipped_machine_names()) {
    for (const ProfileFigure& figure : list_figures(shipped(name.c_str()))) {
      if (figure.key_path == "name" || figure.key_path == "description" ||
          figure.key_path == "source") {
        continue;
      }
      INFO(name, " ", figure.key_path);
      CHECK_FALSE(figure.source.empty());
      CHECK_FALSE(figure.meaning.empty());
    }
  }
}

TEST_CASE("shipped names") {
  CHECK(shipped_machine_names() ==
        std::vector<std::string>{"ascend950", "reference", "reference-fused"});
  CHECK_FALSE(shipped_machine_text("none").has_value());
}

TEST_CASE("the most specific latency key wins") {
  LatencyTable table;
  const auto put = [&](const char* key, uint32_t latency) {
    LatencyEntry entry;
    entry.key = key;
    entry.latency_cycles = latency;
    table.put(entry);
  };
  put("FMA", 8);
  put("FMA.f16", 5);
  put("LOAD", 4);
  put("LOAD.l1", 3);
  put("LOAD.x4", 9);
  put("LOAD.cg.x4", 20);
  put("MMA.f32", 30);
  put("MMA.f32.f16", 31);
  CHECK(table.find("FMA.f16")->latency_cycles == 5);
  CHECK(table.find("FMA.f32")->latency_cycles == 8);
  CHECK(table.find("FMA")->latency_cycles == 8);
  CHECK(table.find("FMAX") == nullptr);
  CHECK(table.find("LOAD.ca.f32")->latency_cycles == 4);
  CHECK(table.find("LOAD.l1.x4")->latency_cycles == 3); // equal count: the earlier suffix
  CHECK(table.find("LOAD.cg.x4.f32")->latency_cycles == 20);
  CHECK(table.find("LOAD.x4.cg")->latency_cycles == 9); // suffixes must keep their order
  CHECK(table.find("MMA.s32.s8") == nullptr);           // never silently another one
  CHECK(table.find("MMA.f32.bf16")->latency_cycles == 30);
  CHECK(table.find("") == nullptr);
  const std::string_view suffixes[] = {"f32", "f16"};
  CHECK(table.find("MMA", suffixes)->latency_cycles == 31);
  put("FMA", 6); // replaces
  CHECK(table.find("FMA")->latency_cycles == 6);
  CHECK(table.entries().size() == 8);
  CHECK(table.index_of(table.find_exact("FMA")) == 0);
}

TEST_CASE("the tile formula rounds each extent up") {
  LatencyEntry entry;
  CHECK(entry.tile_steps(64, 64, 64) == 0); // none without a tile
  entry.tile_m = 16;
  entry.tile_n = 16;
  entry.tile_k = 8;
  CHECK(entry.tile_steps(16, 16, 8) == 1);
  CHECK(entry.tile_steps(17, 16, 8) == 2);
  CHECK(entry.tile_steps(64, 48, 32) == 4 * 3 * 4);
}

TEST_CASE("to_json_text gives the same figures back") {
  for (const std::string& name : shipped_machine_names()) {
    const MachineProfile p = shipped(name.c_str());
    ProfileIssues issues;
    const auto again = parse_machine(to_json_text(p), "again.json", {}, issues);
    INFO(to_string(issues));
    REQUIRE(again.has_value());
    CHECK(to_json_text(*again) == to_json_text(p));
    CHECK(again->fusion.size() == p.fusion.size());
    CHECK(list_figures(*again).size() == list_figures(p).size());
  }
}

TEST_CASE("the schema beside the profiles is the one that the table generates") {
  const std::string path = PTO_SOURCE_DIR "/isa/machines/machine.schema.json";
  if (std::getenv("PTO_UPDATE") != nullptr) {
    std::ofstream(path) << machine_schema_text();
  }
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  INFO("stale: run this test with PTO_UPDATE=1");
  CHECK(text.str() == machine_schema_text());
  const auto schema = nlohmann::json::parse(machine_schema_text());
  CHECK(schema["properties"]["hbm"]["properties"]["latency"]["maximum"] == 10000000);
  CHECK(schema["properties"]["warp_policy"]["enum"].size() == 2);
}

TEST_CASE("the schema knows every key of the shipped profiles") {
  const auto schema = nlohmann::json::parse(machine_schema_text());
  for (const std::string& name : shipped_machine_names()) {
    const auto profile = nlohmann::json::parse(*shipped_machine_text(name));
    for (const auto& item : profile.items()) {
      INFO(name, " ", item.key());
      CHECK(schema["properties"].contains(item.key()));
    }
  }
}

TEST_CASE("a profile from a file, its parent beside it") {
  const auto folder = std::filesystem::temp_directory_path() / "pto_machine_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "parent.json") << derived(R"("cores": 3)");
  std::ofstream(folder / "child.json")
      << R"({"name": "child", "description": "d", "source": "s", "based_on": "parent.json",
            "hbm": {"latency": 7}})";
  ProfileIssues issues;
  const auto profile = load_machine((folder / "child.json").string(), issues);
  INFO(to_string(issues));
  REQUIRE(profile.has_value());
  CHECK(profile->cores == 3);
  CHECK(profile->hbm.latency_cycles == 7);
  CHECK(profile->name == "child");
  CHECK(profile->based_on == "parent.json");
  const std::string own = (folder / "self.json").string();
  std::ofstream(own) << R"({"name": "self", "based_on": "self.json"})";
  CHECK_FALSE(load_machine(own, issues).has_value());
  CHECK(to_string(issues) ==
        own + ": error: based_on: the profile inherits from itself: self.json -> self.json\n");
  std::filesystem::remove_all(folder);
}

TEST_CASE("a missing profile") {
  ProfileIssues issues;
  CHECK_FALSE(load_machine("asend950", issues).has_value());
  CHECK(to_string(issues) == "error: no machine profile `asend950`: expected one of ascend950, "
                             "reference, reference-fused, or a .json file (did you mean "
                             "`ascend950`?)\n");
  issues.clear();
  CHECK_FALSE(load_machine("no/such.json", issues).has_value());
  CHECK(to_string(issues) ==
        "no/such.json: error: cannot read this machine profile: no such file\n");
  issues.clear();
  CHECK_FALSE(load_machine("/", issues).has_value());
}

TEST_CASE("bad JSON") {
  CHECK(contains(issues_of(""), "mine.json:1:1: error: no valid JSON at byte 0"));
  CHECK(contains(issues_of("{\n  \"name\": ,\n}"), "mine.json:2:11: error: no valid JSON"));
  CHECK(contains(issues_of("[1, 2]"), "expected a machine profile (an object), got a list"));
  CHECK(contains(issues_of("3"), "got the number 3"));
  CHECK(contains(issues_of(R"({"cores": 1, "cores": 2})"), "cores: the key stands twice"));
  CHECK(contains(issues_of(R"({"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}}}}})"),
                 "nested deeper"));
  CHECK(contains(issues_of(std::string(5u << 20, ' ')), "are no machine profile"));
  CHECK(contains(issues_of(derived(R"("cores": 1e999)")), "no valid JSON"));
  CHECK_FALSE(issues_of(std::string("\x7f"
                                    "ELF\x02\x00\xff",
                                    7))
                  .empty());
}

TEST_CASE("unknown keys name the nearest known one") {
  CHECK(contains(issues_of(derived(R"("coress": 3)")),
                 "coress: unknown key (did you mean `cores`?)"));
  CHECK(contains(issues_of(derived(R"("hbm": {"latncy": 3})")),
                 "hbm.latncy: unknown key (did you mean `hbm.latency`?)"));
  CHECK(contains(issues_of(derived(R"("latency": {"FMAA": {"latency": 1, "source": "s"}})")),
                 "latency.FMAA: unknown key: profile `reference` knows no `FMAA` (did you mean "
                 "`latency.FMA`?)"));
  CHECK(contains(issues_of(derived(R"("latency": {"fma": {"latency": 1}})")),
                 "latency.fma: expected a key such as LOAD or FMA.f16"));
  CHECK(contains(issues_of(derived(R"("latency": {"FMA": {"latencie": 1}})")),
                 "latency.FMA.latencie: unknown key (did you mean `latency.FMA.latency`?)"));
  CHECK(contains(issues_of(derived(R"("sources": {"hbmm": "x"})")),
                 "sources.hbmm: unknown key path (did you mean `hbm`?)"));
  CHECK(contains(issues_of(derived(R"("hbm.latency": 3)")), "hbm.latency: unknown key"));
}

TEST_CASE("missing keys") {
  const std::string text = issues_of(R"({"name": "x", "description": "d"})");
  CHECK(contains(text, "source: missing: where the figures as a whole come from"));
  CHECK(contains(text, "clock_mhz: missing: clock that one cycle refers to (MHz)"));
  CHECK(contains(issues_of(R"({"based_on": "reference", "name": "x", "source": "s"})"),
                 "description: missing"));
  CHECK(contains(issues_of(derived(R"("latency": {"FMA.f16": {"latency": 1}})")),
                 "latency.FMA.f16.interval: missing"));
  CHECK(contains(issues_of(derived(R"("fusion": [{"name": "a"}])")), "fusion[0].pattern: missing"));
}

TEST_CASE("absurd values") {
  CHECK(contains(issues_of(derived(R"("hbm": {"latency": -5})")),
                 "hbm.latency: expected a whole number of cycles from 0 to 10000000, got -5"));
  CHECK(contains(issues_of(derived(R"("cores": 0)")), "from 1 to 4096, got 0"));
  CHECK(contains(issues_of(derived(R"("cores": 2.5)")), "expected a whole number of cores"));
  CHECK(contains(issues_of(derived(R"("cores": "four")")),
                 "cores: expected a number of cores, got the text \"four\""));
  CHECK(contains(issues_of(derived(R"("cores": true)")), "got a truth value"));
  CHECK(contains(issues_of(derived(R"("hbm": 3)")), "hbm: expected an object, got the number 3"));
  CHECK(contains(issues_of(derived(R"("clock_mhz": 1e300)")), "from 1 to 100000"));
  CHECK(contains(issues_of(derived(R"("$schema": 3)")), "$schema: expected a text"));
  CHECK(contains(issues_of(derived(R"("warp_policy": "random")")),
                 "warp_policy: expected one of oldest|round_robin, got the text \"random\""));
  CHECK(contains(issues_of(derived(R"("warp_policy": "oldest|round_robin")")), "expected one of"));
  CHECK(contains(issues_of(derived(R"("latency": {"FMA": {"latency": -1}})")),
                 "latency.FMA.latency: expected a whole number of cycles"));
  CHECK(contains(issues_of(derived(R"("latency": {"FMA": {"interval": 0}})")), "from 1 to"));
  CHECK(
      contains(issues_of(derived(R"("latency": {"FMA": 3})")), "latency.FMA: expected an object"));
  CHECK(contains(issues_of(derived(R"("latency": 3)")), "latency: expected an object"));
  CHECK(contains(issues_of(derived(R"("latency": {"FMA": {"source": ""}})")),
                 "every latency says where it comes from"));
  CHECK(contains(issues_of(derived(R"("latency": {"MMA": {"tile_m": 16}})")),
                 "expected all of tile_m, tile_n, tile_k or none"));
  CHECK(contains(issues_of(derived(R"("register_budget": {"x": 3})")),
                 "expected a number of lanes as key"));
  CHECK(contains(issues_of(derived(R"("register_budget": {"1024": 0})")), "from 1 to 255"));
  CHECK(contains(issues_of(derived(R"("register_budget": {"256": 10, "1024": 20})")),
                 "more than a smaller block has"));
  CHECK(contains(issues_of(derived(R"("register_budget": {"256": 10})")),
                 "expected a last step at max_lanes_per_block (1024 lanes)"));
  CHECK(contains(issues_of(derived(R"("fusion": {})")), "fusion: expected a list of rules"));
  CHECK(contains(issues_of(derived(R"("fusion": [{"pattern": ["LOAD"]}])")),
                 "expected two latency keys"));
  CHECK(contains(issues_of(derived(R"("fusion": [{"connect": "dst"}])")),
                 "expected any, none or operand names"));
  CHECK(contains(issues_of(derived(R"("sources": {"hbm": 1})")), "sources.hbm: expected a text"));
}

TEST_CASE("figures that contradict each other") {
  CHECK(contains(issues_of(derived(R"("l1": {"line_bytes": 100})")),
                 "expected a power of two, got 100"));
  CHECK(contains(issues_of(derived(R"("l1": {"sector_bytes": 256})")), "larger than the line"));
  CHECK(contains(issues_of(derived(R"("l1": {"cache_min_bytes": 4096, "cache_max_bytes": 1024})")),
                 "the least data cache (4096 bytes) is larger than the most (1024 bytes)"));
  CHECK(contains(issues_of(derived(R"("l1": {"bytes": 4096, "reserved_bytes": 8192})")),
                 "4096 bytes hold less than the reserve of 8192"));
  CHECK(contains(issues_of(derived(R"("l1": {"banks": 16, "bank_bytes": 100})")),
                 "16 banks of 100 bytes make 1600 bytes, but l1.bytes is 262144"));
  CHECK(contains(issues_of(derived(R"("issue_warps_per_cycle": 9)")),
                 "expected a multiple of warp_schedulers (8), got 9"));
  CHECK(
      contains(issues_of(derived(R"("max_lanes_per_block": 1000)")), "expected a multiple of 32"));
}

TEST_CASE("inheritance errors") {
  const ProfileResolver loop = [](std::string_view name) -> std::optional<std::string> {
    return name == "a" ? R"({"name": "a", "based_on": "b"})" : R"({"name": "b", "based_on": "a"})";
  };
  CHECK(contains(issues_of(R"({"based_on": "a"})", loop),
                 "based_on: the profile inherits from itself: mine.json -> a -> b -> a"));
  CHECK(contains(issues_of(R"({"based_on": "mine.json"})"),
                 "the profile inherits from itself: mine.json -> mine.json"));
  CHECK(contains(issues_of(R"({"based_on": "referense"})"),
                 "no profile `referense` is known, neither shipped nor as a file (did you mean "
                 "`reference`?)"));
  CHECK(contains(issues_of(R"({"based_on": 3})"), "expected the name of a profile"));
  const ProfileResolver broken = [](std::string_view) -> std::optional<std::string> { return "{"; };
  CHECK(contains(issues_of(R"({"based_on": "x"})", broken), "profile `x` has errors of its own"));
}

TEST_CASE("all errors of a file show in one run, up to twenty") {
  CHECK(issues_of(derived(R"("cores": 0, "clock_mhz": 0)")).find("clock_mhz") != std::string::npos);
  std::string many = R"("sources": {)";
  for (int i = 0; i < 40; ++i) {
    many += (i == 0 ? "\"" : ", \"") + std::string("bad") + std::to_string(i) + "\": \"x\"";
  }
  const std::string text = issues_of(derived(many + "}"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 20);
}

TEST_CASE("overrides") {
  MachineProfile p = shipped("reference");
  ProfileIssues issues;
  CHECK(apply_override(p, "latency.FMA.latency=5", issues));
  CHECK(p.latency.find("FMA")->latency_cycles == 5);
  CHECK(p.latency.find("FMA")->source == "set by hand (latency.FMA.latency=5)");
  CHECK(apply_override(p, "latency.FMA.f16.latency=3", issues)); // a new, more specific key
  CHECK(p.latency.find("FMA.f16")->latency_cycles == 3);
  CHECK(p.latency.find("FMA.f32")->latency_cycles == 5);
  CHECK(apply_override(p, "hbm.bytes_per_cycle_total=12.5", issues));
  CHECK(p.hbm.bytes_per_cycle_total == 12.5);
  CHECK(p.source_of("hbm.bytes_per_cycle_total") == "set by hand (hbm.bytes_per_cycle_total=12.5)");
  CHECK(apply_override(p, "cores", "2", issues));
  CHECK(p.cores == 2);
  CHECK(apply_override(p, "warp_policy=round_robin", issues));
  CHECK(p.warp_policy == "round_robin");
  CHECK(apply_override(p, "register_budget.256=100", issues));
  CHECK(p.registers_per_lane(256) == 100u);
  CHECK(apply_override(p, "latency.MMA.step=2.5", issues));
  CHECK(p.latency.find("MMA")->step_cycles == 2.5);
  CHECK(issues.empty());
}

TEST_CASE("override errors leave the profile unchanged") {
  CHECK(override_issues("latency.FMAA.latency=5") ==
        "error: latency.FMAA.latency: no latency key `FMAA` in profile `reference` (did you mean "
        "`latency.FMA.latency`?)\n");
  CHECK(contains(override_issues("latency.FMA=5"), "(did you mean `latency.FMA.latency`?)"));
  CHECK(contains(override_issues("latency.FMA.latncy=5"), "(did you mean `latency.FMA.latency`?)"));
  CHECK(contains(override_issues("hbm.latncy=5"), "(did you mean `hbm.latency`?)"));
  CHECK(contains(override_issues("FMA.latency=5"), "no such figure in profile `reference`"));
  CHECK(contains(override_issues("cores=many"), "expected a number of cores, got `many`"));
  CHECK(contains(override_issues("cores="), "expected a number of cores, got ``"));
  CHECK(contains(override_issues("cores=nan"), "expected a number of cores"));
  CHECK(contains(override_issues("cores=-1"), "from 1 to 4096, got -1"));
  CHECK(contains(override_issues("warp_policy=random"), "expected one of oldest|round_robin"));
  CHECK(contains(override_issues("l1.line_bytes=100"), "expected a power of two"));
  CHECK(contains(override_issues("register_budget.300=4"), "no step for so many lanes"));
  CHECK(contains(override_issues("cores"), "expected key=value"));
  CHECK(contains(override_issues("=3"), "expected key=value"));
  CHECK(contains(override_issues("latency.=3"), "no such figure"));
  CHECK(contains(override_issues("latency..latency=3"), "no latency key"));
}
