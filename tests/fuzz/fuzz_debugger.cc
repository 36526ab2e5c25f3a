// SPDX-License-Identifier: Apache-2.0
// Any lines are valid input to the debugger: each is carried out, or there is a message.
#include "debugger/debugger.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr const char* kKernel = R"(
.kernel k(ptr.u32 o, u32 n)
.shared buf, u32[32]
    mov.u32   r0, %tid.x
    mov.u32   r1, 0
again:
    cmp.ge.u32 p0, r1, n
@p0 bra       done
    add.u32   r1, r1, 1
    bra       again
done:
    store.u32 l1[buf + r0*4], r1
    barrier_block
    load.u32  r2, l1[buf + r0*4]
    store.u32 hbm[o + r0*4], r2
    exit
.end
)";

/// The kernel in a file that goes when the process ends.
const std::string& kernel_file() {
  static const struct File {
    File() : path("/tmp/fuzz_debugger_" + std::to_string(::getpid()) + ".pto") {
      std::ofstream(path) << kKernel;
    }
    ~File() { std::remove(path.c_str()); }
    std::string path;
  } file;
  return file.path;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pto;
  dbg::TargetOptions target;
  target.file = kernel_file();
  target.block = {32, 1, 1};
  target.args = {"o=zeros:u32[32]", "n=3"};
  dbg::Debugger debugger(target);
  debugger.settings().max_insns = 5000;
  if (!debugger.open().is_good) {
    std::abort();
  }
  const std::string text(reinterpret_cast<const char*>(data), size);
  size_t begin = 0;
  for (int lines = 0; begin < text.size() && lines < 60; ++lines) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    // No files and no large launches by the fuzzer's invention.
    static_cast<void>(debugger.complete(line));
    if (line.find_first_of("@/") != std::string::npos && line.find("set") != std::string::npos) {
      continue;
    }
    bool is_kept_off = false;
    for (const char* word :
         {"file", "so", "set gr", "set b", "set a", "set p", "set k", "set max"}) {
      is_kept_off = is_kept_off || line.find(word) != std::string::npos;
    }
    if (is_kept_off) {
      continue;
    }
    const dbg::CommandResult result = debugger.execute(line);
    if (result.is_good != result.error.empty()) {
      std::abort();
    }
    if (result.is_quit) {
      break;
    }
  }
  return 0;
}
