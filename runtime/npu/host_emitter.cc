// SPDX-License-Identifier: Apache-2.0
// The host side of an emitted kernel as a program to read and change: it loads files, launches, and
// writes what the kernel left.
#include "isa/suggest.h"
#include "runtime/npu/ascendc_emitter.h"
#include "runtime/npu/lowering.h"

#include <fmt/format.h>

namespace pto::rt {

namespace {

constexpr std::string_view kHead = R"(#include "acl/acl.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" const char* aclGetRecentErrMsg();
extern "C" int32_t @LAUNCH@(const uint32_t grid[3], const uint32_t block[3], uint64_t scratch_bytes,
                            const uint64_t* arguments, void* constants, void* profile, void* stream);

static void check(int code, const char* what) {
  if (code != 0) {
    const char* message = aclGetRecentErrMsg();
    std::fprintf(stderr, "%s returned %d: %s\n", what, code, message != nullptr ? message : "");
    std::exit(1);
  }
}

static std::vector<char> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(1);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

// Device memory that holds the bytes; never of size 0.
static void* upload(const std::vector<char>& bytes) {
  void* memory = nullptr;
  check(aclrtMalloc(&memory, bytes.size() + 1, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  if (!bytes.empty()) {
    check(aclrtMemcpy(memory, bytes.size() + 1, bytes.data(), bytes.size(), ACL_MEMCPY_HOST_TO_DEVICE),
          "aclrtMemcpy");
  }
  return memory;
}

)";

} // namespace

std::optional<std::string>
emit_host(const isa::Object& object, const EmitOptions& options, isa::Diagnostics& diags) {
  const isa::Function* kernel = nullptr;
  std::vector<std::string_view> names;
  for (const isa::Function& function : object.functions) {
    if (function.is_kernel) {
      names.push_back(function.name);
      kernel = options.kernel.empty() || options.kernel == function.name ? &function : kernel;
    }
  }
  if (kernel == nullptr || (options.kernel.empty() && names.size() > 1)) {
    diags.error({},
                options.kernel.empty()
                    ? fmt::format("a host program is for one kernel; give --kernel with one of: {}",
                                  fmt::join(names, ", "))
                    : fmt::format("there is no kernel '{}'{}",
                                  options.kernel,
                                  isa::did_you_mean(options.kernel, names)));
    return std::nullopt;
  }
  EmitOptions one = options;
  one.kernel = kernel->name;
  isa::Diagnostics quiet({.no_warnings = true});
  const std::optional<AscendC> file = emit_ascendc(object, one, quiet);
  if (!file) {
    diags.error({}, "the kernel has no Ascend C form; --emit=ascendc says why");
    return std::nullopt;
  }
  const EmittedKernel& emitted = file->kernels.front();
  std::string usage = "GX,GY,GZ BX,BY,BZ";
  for (const isa::Param& param : kernel->params) {
    usage += fmt::format(" {}{}", param.name, param.is_pointer ? "=FILE" : "=NUMBER");
  }
  std::string out = fmt::format(
      "// Host program of kernel {0}, made from PTO by ptoas --emit=ascendc-host.\n"
      "//   bisheng -c {1}.asc -o kernel.o --npu-arch=dav-3510{2} -I <folder of pto_simt.h>\n"
      "//   bisheng -c host.cpp -o host.o -I$ASCEND_HOME_PATH/include\n"
      "//   bisheng kernel.o host.o -o {1}\n"
      "//   ./{1} {3}\n"
      "// Each FILE is copied in before the launch and written back after it.\n",
      kernel->name,
      cpp_name(kernel->name),
      file->is_hybrid ? "" : " --enable-simt",
      usage);
  std::string head(kHead);
  head.replace(head.find("@LAUNCH@"), 8, emitted.launch_symbol);
  out += head;
  const size_t count = kernel->params.size();
  out += fmt::format(R"(int main(int argc, char** argv) {{
  uint32_t grid[3] = {{1, 1, 1}};
  uint32_t block[3] = {{1, 1, 1}};
  if (argc != {0} || std::sscanf(argv[1], "%u,%u,%u", &grid[0], &grid[1], &grid[2]) < 1 ||
      std::sscanf(argv[2], "%u,%u,%u", &block[0], &block[1], &block[2]) < 1) {{
    std::fprintf(stderr, "usage: %s {1}\n", argv[0]);
    return 2;
  }}
  check(aclInit(nullptr), "aclInit");
  check(aclrtSetDevice(0), "aclrtSetDevice");
  aclrtStream stream = nullptr;
  check(aclrtCreateStream(&stream), "aclrtCreateStream");

  uint64_t arguments[{2}] = {{}};
  const auto text_of = [&](int i) {{
    const char* equals = std::strchr(argv[i], '=');
    return std::string(equals != nullptr ? equals + 1 : argv[i]);
  }};
)",
                     count + 3,
                     usage,
                     count == 0 ? 1 : count);
  for (size_t i = 0; i < count; ++i) {
    const isa::Param& param = kernel->params[i];
    if (param.is_pointer) {
      out += fmt::format("  const std::vector<char> bytes_{0} = read_file(text_of({1})); // {2}\n"
                         "  void* const memory_{0} = upload(bytes_{0});\n"
                         "  arguments[{0}] = reinterpret_cast<uint64_t>(memory_{0});\n",
                         i,
                         i + 3,
                         param.name);
    } else if (param.type == isa::Type::kF32) {
      out += fmt::format(
          "  const float value_{0} = std::strtof(text_of({1}).c_str(), nullptr); // {2}\n"
          "  std::memcpy(&arguments[{0}], &value_{0}, sizeof(float));\n",
          i,
          i + 3,
          param.name);
    } else {
      out +=
          fmt::format("  arguments[{}] = std::strtoull(text_of({}).c_str(), nullptr, 0); // {}\n",
                      i,
                      i + 3,
                      param.name);
    }
  }
  out += "  std::vector<char> constants = {";
  for (const uint8_t byte : object.const_data) {
    out += fmt::format("{},", static_cast<int>(static_cast<int8_t>(byte)));
  }
  out += "};\n  void* const constants_memory = upload(constants);\n";
  out += fmt::format(
      "  const uint64_t scratch_bytes = {}; // {}\n"
      "  check({}(grid, block, scratch_bytes, arguments, constants_memory, nullptr, stream), \"the "
      "launch\");\n"
      "  check(aclrtSynchronizeStream(stream), \"aclrtSynchronizeStream\");\n\n",
      emitted.allocates ? std::max<uint32_t>(emitted.scratch_bytes, 128 * 1024)
                        : emitted.scratch_bytes,
      emitted.allocates ? "with room for ALLOC_LOCAL"
                        : "what the kernel declares beyond its own arrays",
      emitted.launch_symbol);
  for (size_t i = 0; i < count; ++i) {
    if (kernel->params[i].is_pointer) {
      out += fmt::format("  std::vector<char> after_{0}(bytes_{0}.size());\n"
                         "  if (!after_{0}.empty()) {{\n"
                         "    check(aclrtMemcpy(after_{0}.data(), after_{0}.size(), memory_{0}, "
                         "after_{0}.size(),\n                      ACL_MEMCPY_DEVICE_TO_HOST),\n"
                         "          \"aclrtMemcpy\");\n"
                         "  }}\n"
                         "  std::ofstream(text_of({1}), std::ios::binary).write(after_{0}.data(), "
                         "static_cast<std::streamsize>(after_{0}.size()));\n"
                         "  check(aclrtFree(memory_{0}), \"aclrtFree\");\n",
                         i,
                         i + 3);
    }
  }
  out += R"(  check(aclrtFree(constants_memory), "aclrtFree");
  check(aclrtDestroyStream(stream), "aclrtDestroyStream");
  check(aclrtResetDevice(0), "aclrtResetDevice");
  check(aclFinalize(), "aclFinalize");
  return 0;
}
)";
  return out;
}

} // namespace pto::rt
