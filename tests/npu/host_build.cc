// SPDX-License-Identifier: Apache-2.0
#include "host_build.h"

#include "assembler/assemble.h"
#include "isa/machine.h"
#include "simulator/functional.h"
#include "simulator/launch.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <thread>

namespace pto::test {

namespace {

std::string compiler() {
  const char* named = std::getenv("CXX_UNDER_TEST");
  return named != nullptr ? named : PTO_HOST_CXX;
}

std::string run(const std::string& command, int& status) {
  std::string out;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> bytes{};
  for (size_t got = 0; (got = fread(bytes.data(), 1, bytes.size(), pipe)) != 0;) {
    out.append(bytes.data(), got);
  }
  status = pclose(pipe);
  return out;
}

} // namespace

struct HostBuild::Program {
  isa::Object object;
  rt::AscendC file;
  void* library = nullptr;
};

HostBuild::HostBuild() {
  std::string name = (std::filesystem::temp_directory_path() / "pto-npu-XXXXXX").string();
  REQUIRE(mkdtemp(name.data()) != nullptr);
  directory_ = name;
}

HostBuild::~HostBuild() {
  for (const auto& program : programs_) {
    if (program->library != nullptr) {
      dlclose(program->library);
    }
  }
  if (std::getenv("PTO_KEEP_NPU_FILES") == nullptr) {
    std::filesystem::remove_all(directory_);
  } else {
    fmt::print("kept in {}\n", directory_);
  }
}

size_t HostBuild::add(const std::string& text, const rt::EmitOptions& options) {
  isa::Diagnostics diags({.no_warnings = true});
  auto object = as::assemble_text("test.pto", text, {.run_lints = false}, diags);
  REQUIRE_MESSAGE(object.has_value(), isa::render(diags) << text);
  auto program = std::make_unique<Program>();
  program->object = std::move(*object);
  auto file = rt::emit_ascendc(program->object, options, diags);
  REQUIRE_MESSAGE(file.has_value(), isa::render(diags) << text);
  program->file = std::move(*file);
  programs_.push_back(std::move(program));
  return programs_.size() - 1;
}

const isa::Object& HostBuild::object(size_t program) const {
  return programs_[program]->object;
}
const rt::AscendC& HostBuild::file(size_t program) const {
  return programs_[program]->file;
}

void HostBuild::replace(size_t program, const std::string& right, const std::string& wrong) {
  std::string& text = programs_[program]->file.text;
  const size_t at = text.find(right);
  REQUIRE(at != std::string::npos);
  text.replace(at, right.size(), wrong);
}

void HostBuild::build() {
  std::vector<size_t> todo;
  for (size_t i = 0; i < programs_.size(); ++i) {
    if (programs_[i]->library == nullptr) {
      todo.push_back(i);
      std::ofstream(fmt::format("{}/k{}.asc", directory_, i)) << programs_[i]->file.text;
    }
  }
  std::vector<std::string> messages(todo.size());
  const auto work = [&](size_t from) {
    for (size_t t = from; t < todo.size(); t += 2) {
      int status = 0;
      const std::string out =
          run(fmt::format("{0} -x c++ -std=c++20 -O0 -w -DPTO_HOST_EMULATION -I{1}/runtime/npu "
                          "-I{1}/runtime/npu/host -fPIC -shared -ffp-contract=off {2}/k{3}.asc -o "
                          "{2}/k{3}.so -x none {4} {5} -lfmt",
                          compiler(),
                          PTO_SOURCE_DIR,
                          directory_,
                          todo[t],
                          PTO_NPU_HOST_LIBRARY,
                          PTO_ISA_LIBRARY),
              status);
      messages[t] = status != 0 ? out + "\ncompiler failed" : "";
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (size_t t = 0; t < todo.size(); ++t) {
    REQUIRE_MESSAGE(messages[t].empty(), messages[t]);
    const std::string path = fmt::format("{}/k{}.so", directory_, todo[t]);
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library != nullptr, dlerror());
    programs_[todo[t]]->library = library;
  }
}

KernelOutcome HostBuild::emulate(size_t index, const KernelCase& launch) const {
  const Program& program = *programs_[index];
  KernelOutcome outcome;
  const rt::EmittedKernel* kernel = nullptr;
  for (const rt::EmittedKernel& one : program.file.kernels) {
    kernel = one.name == launch.kernel ? &one : kernel;
  }
  REQUIRE_MESSAGE(kernel != nullptr, launch.kernel);
  const auto function =
      reinterpret_cast<rt::LaunchFn>(dlsym(program.library, kernel->launch_symbol.c_str()));
  const bool is_found = function != nullptr;
  REQUIRE_MESSAGE(is_found, kernel->launch_symbol);
  // Aligned as a device's memory is.
  std::vector<std::vector<uint8_t>> storage;
  std::vector<uint8_t*> aligned;
  std::vector<uint64_t> arguments;
  for (const std::vector<uint8_t>& bytes : launch.buffers) {
    storage.emplace_back(bytes.size() + 512);
    const auto at = reinterpret_cast<uintptr_t>(storage.back().data());
    aligned.push_back(storage.back().data() + (256 - at % 256));
    std::memcpy(aligned.back(), bytes.data(), bytes.size());
    arguments.push_back(reinterpret_cast<uint64_t>(aligned.back()));
  }
  arguments.insert(arguments.end(), launch.scalars.begin(), launch.scalars.end());
  std::vector<uint8_t> constants = program.object.const_data;
  constants.resize(constants.size() + 64);
  std::vector<uint64_t> profile(
      size_t{kernel->probe_entries} * 2 * launch.grid * ((launch.block + 31) / 32) + 1);
  const uint32_t grid[3] = {launch.grid, 1, 1};
  const uint32_t block[3] = {launch.block, 1, 1};
  const uint64_t scratch = kernel->allocates ? 128 * 1024 : kernel->scratch_bytes;
  const int32_t status =
      function(grid, block, scratch, arguments.data(), constants.data(), profile.data(), nullptr);
  if (status != 0) {
    outcome.error = fmt::format("status {}", status);
  }
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    outcome.buffers.emplace_back(aligned[i], aligned[i] + launch.buffers[i].size());
  }
  return outcome;
}

KernelOutcome HostBuild::simulate(size_t index, const KernelCase& launch) const {
  KernelOutcome outcome;
  isa::ProfileIssues issues;
  auto profile = isa::load_machine("reference", issues);
  REQUIRE(profile.has_value());
  sim::Machine machine(*profile);
  std::string error;
  auto program = sim::Program::find(
      std::make_shared<const isa::Object>(programs_[index]->object), launch.kernel, error);
  REQUIRE_MESSAGE(program != nullptr, error);
  std::vector<sim::LaunchArg> args;
  std::vector<uint64_t> bases;
  for (const std::vector<uint8_t>& bytes : launch.buffers) {
    bases.push_back(machine.hbm.alloc(bytes.size(), "buffer"));
    REQUIRE(machine.hbm.write(bases.back(), bytes));
    args.push_back({.bits = bases.back()});
  }
  for (const uint64_t bits : launch.scalars) {
    args.push_back({.bits = bits});
  }
  sim::Launch run(
      machine,
      program,
      sim::LaunchConfig{.grid = {launch.grid, 1, 1}, .block = {launch.block, 1, 1}, .args = args});
  const sim::RunResult result = sim::run_functional(run, {});
  if (result.status != sim::RunStatus::kCompleted) {
    outcome.error = result.fault ? result.fault->message : "stopped";
  }
  for (const sim::PrintLine& line : result.prints) {
    outcome.printed.push_back(line.text);
  }
  for (size_t i = 0; i < bases.size(); ++i) {
    std::vector<uint8_t> bytes(launch.buffers[i].size());
    REQUIRE(machine.hbm.read(bases[i], bytes));
    outcome.buffers.push_back(std::move(bytes));
  }
  return outcome;
}

std::string HostBuild::difference(size_t program, const KernelCase& launch) const {
  const KernelOutcome expected = simulate(program, launch);
  const KernelOutcome got = emulate(program, launch);
  if (expected.error.empty() != got.error.empty()) {
    return fmt::format(
        "{}: simulator '{}', emitted file '{}'", launch.kernel, expected.error, got.error);
  }
  if (!expected.error.empty()) {
    return "";
  }
  for (size_t b = 0; b < expected.buffers.size(); ++b) {
    for (size_t i = 0; i < expected.buffers[b].size(); i += 4) {
      uint32_t want = 0;
      uint32_t have = 0;
      std::memcpy(&want, expected.buffers[b].data() + i, 4);
      std::memcpy(&have, got.buffers[b].data() + i, 4);
      if (want != have) {
        return fmt::format("{}: buffer {} byte {}: simulator {:08x}, emitted file {:08x}",
                           launch.kernel,
                           b,
                           i,
                           want,
                           have);
      }
    }
  }
  return "";
}

} // namespace pto::test
