// SPDX-License-Identifier: Apache-2.0
// Importing what the vendor's profiler writes: each format, and what is wrong with damaged files.
#include "isa/insn_desc.h"
#include "runtime/profile/vendor_import.h"

#include <doctest/doctest.h>

namespace pto::rt {
namespace {

const VendorFile kBasicInfo{"OpBasicInfo.csv",
                            "Op Name,Op Type,Task Duration(us),Block Dim,Mix Block Dim,Device "
                            "Id,Pid,Current Freq,Rated Freq\n"
                            "copy_kernel_demo,vector,6.262,64,NA,0,4242,1650,1650\n"};
const VendorFile kPipes{
    "PipeUtilization.csv",
    "block_id,sub_block_id,aiv_time(us),aiv_total_cycles,aiv_vec_time(us),aiv_vec_ratio,"
    "aiv_scalar_time(us),aiv_scalar_ratio,aiv_mte2_time(us),aiv_mte2_ratio\n"
    "0,vector0,4.971,8202,4.516,0.909,0.443,0.089,NA,NA\n"
    "1,vector0,4.900,8085,4.400,0.900,0.440,0.088,0.000,0.000\n"};

const InsnMeasurement* insn_of(const KernelProfile& kernel, std::string_view key) {
  for (const InsnMeasurement& insn : kernel.insns) {
    if (insn.key == key) {
      return &insn;
    }
  }
  return nullptr;
}

double counter_of(const KernelProfile& kernel, std::string_view name) {
  for (const CounterMeasurement& counter : kernel.counters) {
    if (counter.name == name) {
      return counter.value;
    }
  }
  return -1;
}

VendorImport import_good(const std::vector<VendorFile>& files) {
  isa::ProfileIssues issues;
  auto imported = import_vendor_files(files, "OPPROF_1", issues);
  REQUIRE_MESSAGE(imported, isa::to_string(issues));
  return std::move(*imported);
}

std::string import_bad(const std::vector<VendorFile>& files) {
  isa::ProfileIssues issues;
  CHECK(!import_vendor_files(files, "OPPROF_1", issues));
  return isa::to_string(issues);
}

TEST_CASE("board files: clock, total, busy pipes, counters") {
  const VendorImport imported =
      import_good({kPipes,
                   kBasicInfo,
                   {"dump/op_basic_info.txt", "Run Soc Version=Ascend950PR_9589\nHas Simt=1\n"},
                   {"L2Cache.csv",
                    "block_id,sub_block_id,aiv_read_close_hit,aiv_read_hit_rate(%)\n"
                    "0,vector0,100,50.0\n1,vector0,20,100.0\n"},
                   {"visualize_data.bin", ""},
                   {"notes.txt", ""}});
  const Profile& profile = imported.profile;
  CHECK(profile.device.name == "Ascend950PR_9589");
  CHECK(profile.device.clock_mhz == 1650);
  CHECK(!profile.device.is_emulated);
  REQUIRE(profile.kernels.size() == 1);
  const KernelProfile& kernel = profile.kernels[0];
  CHECK(kernel.name == "copy_kernel_demo");
  CHECK(kernel.grid.x == 64);
  CHECK(kernel.cycles == 8202);
  CHECK(kernel.unit_busy_cycles[static_cast<size_t>(isa::Unit::kV)] ==
        doctest::Approx(8202 * 4.516 / 4.971));
  CHECK(counter_of(kernel, "L2Cache.aiv_read_close_hit") == 120);
  CHECK(counter_of(kernel, "L2Cache.aiv_read_hit_rate(%)") == 75);
  CHECK(counter_of(kernel, "OpBasicInfo.Task Duration(us)") == doctest::Approx(6.262));
  CHECK(kernel.warnings.empty());
  CHECK(imported.skipped ==
        std::vector<std::string>{"visualize_data.bin: binary, its layout is not published",
                                 "notes.txt: no format that ptoprof knows"});
}

TEST_CASE("a core's cycles must agree with its time and its pipes") {
  VendorFile wrong = kPipes;
  wrong.bytes.replace(wrong.bytes.find("8202"), 4, "9999");
  wrong.bytes.replace(wrong.bytes.find("4.516"), 5, "5.516");
  const VendorImport imported = import_good({kBasicInfo, wrong});
  REQUIRE(imported.profile.kernels[0].warnings.size() == 2);
  CHECK(imported.profile.kernels[0].warnings[0].find(
            "4.971 us at 1650 MHz are 8202 cycles, but 9999") != std::string::npos);
  CHECK(imported.profile.kernels[0].warnings[1].find("cannot end before its busiest pipe") !=
        std::string::npos);
}

TEST_CASE("simulator files: instructions and lines, summed over cores") {
  const VendorImport imported = import_good(
      {{"simulator/core0.veccore0/core0.veccore0_instr_exe.csv",
        "instr,addr,pipe,call_count,cycles,running_time(us),detail\n"
        "SIMT_LDG_B32,285188096,RVECLD,10,400,0.242424,XD:X0=0x1,IMM:0x1\n"
        "MOV_XD_IMM,285188100,SCALAR,1,4,0.002424,XD:X0=0x1;IMM:0x1\n"},
       {"simulator/core0.veccore1/core0.veccore1_instr_exe.csv",
        "instr,addr,pipe,call_count,cycles,running_time(us),detail\r\n"
        "SIMT_LDG_B32,285188096,RVECLD,10,600,0.363636,\r\n"},
       {"simulator/core0.veccore0/core0.veccore0_code_exe.csv",
        "code,call_count,cycles,running_time(us)\n/home/user/add.asc:25,96,1408,0.853333\n"}});
  const KernelProfile& kernel = imported.profile.kernels[0];
  REQUIRE(insn_of(kernel, "LOAD.hbm.b32"));
  CHECK(insn_of(kernel, "LOAD.hbm.b32")->count == 20);
  CHECK(insn_of(kernel, "LOAD.hbm.b32")->cycles == 50);
  REQUIRE(insn_of(kernel, "MOV_XD_IMM"));
  CHECK(insn_of(kernel, "MOV_XD_IMM")->cycles == 4);
  REQUIRE(kernel.lines.size() == 1);
  CHECK(kernel.lines[0].place == "/home/user/add.asc:25");
  CHECK(kernel.lines[0].cycles == 1408);
}

TEST_CASE("traces need a clock to become cycles; the span is cycles over clock") {
  const VendorFile trace{
      "trace.json",
      R"({"schemaVersion":1,"displayTimeUnit":"ns","profilingType":"op","traceEvents":[
        {"name":"thread_name","ph":"M","pid":1,"tid":2,"args":{"name":"VECTOR"}},
        {"name":"SIMT_STG_B32","ph":"X","ts":1.0,"dur":0.01,"pid":1,"tid":2},
        {"name":"SIMT_STG_B32","ph":"X","ts":2.0,"dur":0.03,"pid":1,"tid":2}]})"};
  const KernelProfile kernel = import_good({kBasicInfo, trace}).profile.kernels[0];
  REQUIRE(insn_of(kernel, "STORE.hbm.b32"));
  CHECK(insn_of(kernel, "STORE.hbm.b32")->cycles == doctest::Approx(0.02 * 1650));
  CHECK(kernel.cycles == doctest::Approx(1.03 * 1650));
  const KernelProfile unknown = import_good({trace}).profile.kernels[0];
  CHECK(unknown.insns.empty());
  REQUIRE(unknown.warnings.size() == 1);
  CHECK(unknown.warnings[0].find("no file tells the clock") != std::string::npos);
}

TEST_CASE("an insn in the trace of its core and in that of all cores counts once") {
  const std::string text = R"({"schemaVersion":1,"displayTimeUnit":"ns","profilingType":"op",
    "traceEvents":[{"name":"SIMT_STG_B32","ph":"X","ts":1.0,"dur":0.02,"pid":1,"tid":2}]})";
  const VendorFile of_core{"simulator/core0.veccore0/trace.json", text};
  const VendorFile of_all{"simulator/trace.json", text};
  for (const auto& files : {std::vector<VendorFile>{kBasicInfo, of_core, of_all},
                            std::vector<VendorFile>{kBasicInfo, of_all}}) {
    const KernelProfile kernel = import_good(files).profile.kernels[0];
    REQUIRE(insn_of(kernel, "STORE.hbm.b32"));
    CHECK(insn_of(kernel, "STORE.hbm.b32")->count == 1);
    CHECK(insn_of(kernel, "STORE.hbm.b32")->cycles == doctest::Approx(0.02 * 1650));
  }
}

TEST_CASE("logs of the simulator: from pop to completion, by id") {
  const std::string line =
      "(PC: 0x11bbe03c) SCALAR   : (Binary: 0x083dd2b8) (ID: 000123) ADD_IMM  dtype:S64, XD:X30\n";
  const KernelProfile kernel =
      import_good({{"dump/core0.veccore0.instr_log.dump", "[info] [00000749] " + line},
                   {"dump/core0.veccore0.instr_popped_log.dump", "[info] [00000740] " + line}})
          .profile.kernels[0];
  REQUIRE(insn_of(kernel, "ADD_IMM"));
  CHECK(insn_of(kernel, "ADD_IMM")->cycles == 9);
}

TEST_CASE("program counter samples and insn cache reads become counters") {
  std::string record(16, '\0');
  record[3 + 2] = 7;
  record[3 + 8] = 9;
  const KernelProfile kernel =
      import_good(
          {{"pc_sampling_0.bin", record + record},
           {"dump/core0.icache_log.dump",
            "[info] 12: icache read address is 0x10, size is 0x80, type:1, last:0, status is "
            "MISS\n"}})
          .profile.kernels[0];
  CHECK(counter_of(kernel, "stall.Scoreboard_Not_Ready") == 14);
  CHECK(counter_of(kernel, "stall.Active") == 18);
  CHECK(counter_of(kernel, "icache.misses") == 1);
}

TEST_CASE("damaged files are refused with file, line and what was expected") {
  CHECK(import_bad({}).find("none of a format that ptoprof imports") != std::string::npos);
  CHECK(import_bad({{"OpBasicInfo.csv", ""}}).find("the file is empty") != std::string::npos);
  CHECK(import_bad({{"OpBasicInfo.csv", "Op Name,Task Duration,Block Dim\na,1,2\n"}})
            .find("no column 'Task Duration(us)'") != std::string::npos);
  CHECK(import_bad({{"PipeUtilization.csv", "block_id,sub_block_id,aiv_time(us)\n0,vector0\n"}})
            .find("PipeUtilization.csv:2:1: error: 2 fields where the header names 3") !=
        std::string::npos);
  CHECK(import_bad({{"x_instr_exe.csv", "instr,call_count,cycles\nADD,one,2\n"}})
            .find("column 'call_count': 'one' is no number") != std::string::npos);
  CHECK(import_bad({{"trace.json", "{\"traceEvents\": ["}}).find("is it cut short?") !=
        std::string::npos);
  CHECK(import_bad({{"trace.json", "{\"traceEvents\": [{\"ph\": \"X\"}]}"}})
            .find("expected numbers ts and dur") != std::string::npos);
  CHECK(import_bad({{"core0.instr_log.dump", "hello\n"}}).find("core0.instr_log.dump:1:1") !=
        std::string::npos);
  CHECK(import_bad({{"pc_sampling.bin", "12345"}}).find("5 bytes are no whole number of 16-byte") !=
        std::string::npos);
}

TEST_CASE("an imported profile can be written and read again") {
  const VendorImport imported = import_good({kBasicInfo, kPipes});
  isa::ProfileIssues issues;
  const std::string text = to_json_text(imported.profile);
  const auto again = read_profile(text, "p.json", issues);
  REQUIRE_MESSAGE(again, isa::to_string(issues));
  CHECK(to_json_text(*again) == text);
}

} // namespace
} // namespace pto::rt
