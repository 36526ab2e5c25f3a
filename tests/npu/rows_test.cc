// SPDX-License-Identifier: Apache-2.0
// Every row of the table in every choice of types and modifiers: the emitted file, built by the
// host compiler, gives the simulator's bits. Kernels of one insn, some hundred to a file.
#include "host_build.h"
#include "insn_choices.h"
#include "isa/insn_desc.h"
#include "isa/print.h"
#include "isa/table.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <random>
#include <set>

namespace pto::test {
namespace {

using namespace isa;

constexpr uint32_t kLanes = 96;
constexpr size_t kBatch = 200;

// Patterns where types, signs and roundings differ, for all widths at once.
constexpr uint64_t kEdges[] = {
    0,
    1,
    2,
    0xffffffffffffffff,
    0x8000000000000000,
    0x7fffffffffffffff,
    0x80000000,
    0x7fffffff,
    0xffffffff,
    0x0000800000008000,
    0x00007fff,
    0x0000ffff,
    0x80,
    0x7f,
    0x3f800000, // f32 1
    0xbf800000, // -1
    0x3fc00000, // 1.5
    0x40200000, // 2.5
    0xc0200000, // -2.5
    0x7f800000, // inf
    0xff800000, // -inf
    0x7fc00001, // NaN
    0xffa00000, // a signalling one
    0x00000001, // least subnormal
    0x007fffff,
    0x4b000001, // 2^23 + 1
    0x4f000000, // 2^31
    0x5f000000, // 2^63
    0x477fe000, // 65504
    0x477ff000, // 65520
    0x3c003c00, // f16 1
    0x7c007bff,
    0x7e017c00,
    0x0001fc00,
    0x04000401,
    0x0000000100000000,
    0x0020000000000001, // 2^53 + 1
    0x1000001,          // 2^24 + 1
};

std::vector<uint8_t> inputs(uint32_t seed, size_t words64) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> values(words64);
  for (uint64_t& value : values) {
    const uint64_t kind = random() % 8;
    value = kind < 4    ? kEdges[random() % std::size(kEdges)]
            : kind == 4 ? random() % 100
            : kind == 5 ? (random() & 0xffff) << (random() % 17)
                        : random();
    if (kind == 6) { // floats of moderate size
      const auto x = static_cast<float>(static_cast<int64_t>(random() % 20000) - 10000) / 64.0F;
      uint32_t bits = 0;
      std::memcpy(&bits, &x, 4);
      value = bits;
    }
  }
  std::vector<uint8_t> bytes(words64 * 8);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

struct Batch {
  std::string text = ".pto 1\n.const table, u8 {";
  std::vector<KernelCase> cases;
  Batch() {
    for (unsigned i = 0; i < 64; ++i) {
      text += fmt::format("{}{}", i == 0 ? "" : ", ", (i * 37 + 200) % 256);
    }
    text += "}\n";
  }
};

class Batches {
public:
  /// A kernel with parameters a (64 bytes a lane in) and o (64 bytes a lane out).
  void add(const std::string& what, const std::string& body, const std::string& symbols = "") {
    if (batches_.empty() || batches_.back().cases.size() == kBatch) {
      batches_.emplace_back();
    }
    Batch& batch = batches_.back();
    const auto number = static_cast<uint32_t>(count_++);
    const std::string name = fmt::format("k{}_{}", number, what);
    std::string cpp = name;
    for (char& c : cpp) {
      c = c == '.' ? '_' : c;
    }
    batch.text +=
        fmt::format(".kernel {}(ptr a, ptr o)\n{}    mov.u32 r60, %tid.x\n    shl.b32 r61, "
                    "r60, 6\n{}    exit\n.end\n",
                    cpp,
                    symbols,
                    body);
    batch.cases.push_back(
        {.kernel = cpp,
         .block = kLanes,
         .buffers = {inputs(number, kLanes * 8), std::vector<uint8_t>(kLanes * 64)}});
  }

  void check() {
    HostBuild build;
    std::vector<size_t> programs;
    programs.reserve(batches_.size());
    for (const Batch& batch : batches_) {
      programs.push_back(build.add(batch.text, {.comments = false}));
    }
    build.build();
    for (size_t i = 0; i < batches_.size(); ++i) {
      for (const KernelCase& one : batches_[i].cases) {
        const std::string difference = build.difference(programs[i], one);
        CHECK_MESSAGE(difference.empty(), difference);
      }
    }
  }
  [[nodiscard]] size_t size() const { return count_; }

private:
  std::vector<Batch> batches_;
  size_t count_ = 0;
};

bool is_plain(const InsnDesc& row) {
  for (unsigned form = 0; form < row.form_count(); ++form) {
    for (const OperandSpec& spec : row.form(form)) {
      if ((spec.accepts & (kAcceptReg | kAcceptPred)) == 0 || spec.variadic || spec.vector) {
        return false;
      }
    }
  }
  return !row.operands.empty() && row.scope != Scope::kBlock;
}

std::string text_of(const Insn& insn) {
  const Object object = object_with({insn});
  return print_insn(insn, object, object.functions[1]);
}

TEST_CASE("every insn on registers gives the simulator's bits") {
  Batches batches;
  for (const InsnDesc* row : all_insns()) {
    if (!is_plain(*row)) {
      continue;
    }
    for (const Insn& shape : shapes_of(*row)) {
      Insn insn = with_registers(shape, 6);
      std::string body;
      for (unsigned i = 0; i < 5; ++i) {
        body +=
            fmt::format("    load.b64 d{0}, hbm[a + r61 + {1}]\n    load.b32 r{0}, hbm[a + r61 + "
                        "{1}]\n",
                        i,
                        i * 8);
      }
      for (unsigned i = 0; i < 5; ++i) {
        body += fmt::format("    and.b32 r62, r{0}, 1\n    cmp.ne.u32 p{0}, r62, 0\n", i);
      }
      body +=
          "    mov.b32 r6, 0x12345678\n    mov.b64 d6, 0x123456789abcdef0\n    mov.pred p6, p1\n";
      insn.guard = {.present = true, .pred = 0}; // some lanes keep what was there
      body += "    " + text_of(insn) + "\n";
      body += "    store.b64 hbm[o + r61], d6\n    store.b32 hbm[o + r61 + 8], r6\n"
              "    sel.b32 r62, 1, 0, p6\n    store.b32 hbm[o + r61 + 12], r62\n";
      insn.guard = {};
      insn.operands[0].index = 7; // and all lanes
      body +=
          "    mov.b32 r7, 0\n    mov.b64 d7, 0\n    mov.pred p7, 0\n    " + text_of(insn) + "\n";
      body += "    store.b64 hbm[o + r61 + 16], d7\n    store.b32 hbm[o + r61 + 24], r7\n"
              "    sel.b32 r62, 1, 0, p7\n    store.b32 hbm[o + r61 + 28], r62\n";
      batches.add(name_of(shape), body);
    }
  }
  MESSAGE(batches.size() << " kernels");
  CHECK(batches.size() > 500);
  batches.check();
}

// 32 bytes of each lane from hbm to l1 and back.
const std::string kToL1 =
    "    shl.b32 r59, r60, 5\n"
    "    load.b64 d40, hbm[a + r61]\n    store.b64 l1[s + r59], d40\n"
    "    load.b64 d40, hbm[a + r61 + 8]\n    store.b64 l1[s + r59 + 8], d40\n"
    "    load.b64 d40, hbm[a + r61 + 16]\n    store.b64 l1[s + r59 + 16], d40\n"
    "    load.b64 d40, hbm[a + r61 + 24]\n    store.b64 l1[s + r59 + 24], d40\n";
const std::string kFromL1 =
    "    load.b64 d40, l1[s + r59]\n    store.b64 hbm[o + r61], d40\n"
    "    load.b64 d40, l1[s + r59 + 8]\n    store.b64 hbm[o + r61 + 8], d40\n"
    "    load.b64 d40, l1[s + r59 + 16]\n    store.b64 hbm[o + r61 + 16], d40\n"
    "    load.b64 d40, l1[s + r59 + 24]\n    store.b64 hbm[o + r61 + 24], d40\n";
const std::string kShared = ".shared s, u8[4096]\n";

std::string first_register(const Insn& insn) {
  return is_wide(insn.type) ? "d8" : "r8";
}

TEST_CASE("loads, stores and atomics in every type, path and space") {
  Batches batches;
  for (const Insn& shape : shapes_of(*find_insn("load"))) {
    const std::string name = name_of(shape);
    const bool is_hinted = shape.mods[0] != 0;
    for (const char* from : {"hbm[a + r61]", "l1[s + r59]", "const[table + r58]"}) {
      if (is_hinted && from[0] != 'h') {
        continue;
      }
      std::string body = kToL1 + "    and.b32 r58, r60, 1\n    shl.b32 r58, r58, 5\n";
      body += fmt::format("    {} {}, {}\n", name, first_register(shape), from);
      for (unsigned i = 0; i < vector_count(shape); ++i) {
        body += is_wide(shape.type)
                    ? fmt::format("    store.b64 hbm[o + r61 + {}], d{}\n", i * 8, 8 + i)
                    : fmt::format("    store.b32 hbm[o + r61 + {}], r{}\n", i * 8, 8 + i);
      }
      batches.add(name, body, kShared);
    }
  }
  for (const Insn& shape : shapes_of(*find_insn("store"))) {
    const std::string name = name_of(shape);
    std::string loads;
    for (unsigned i = 0; i < 4; ++i) {
      loads +=
          fmt::format("    load.b64 d{0}, hbm[a + r61 + {1}]\n    load.b32 r{0}, hbm[a + r61 + "
                      "{1}]\n",
                      8 + i,
                      i * 8 + 32);
    }
    batches.add(name,
                loads + fmt::format("    {} hbm[o + r61], {}\n", name, first_register(shape)));
    if (shape.mods[0] == 0) {
      batches.add(name,
                  kToL1 + loads +
                      fmt::format("    {} l1[s + r59], {}\n", name, first_register(shape)) +
                      kFromL1,
                  kShared);
    }
  }
  for (const Insn& shape : shapes_of(*find_insn("atom"))) {
    const std::string name = name_of(shape);
    const std::string file = is_wide(shape.type) ? "d" : "r";
    const bool is_cas = name.find(".cas") != std::string::npos;
    const std::string loads =
        "    and.b32 r57, r60, 7\n    shl.b32 r57, r57, 3\n"
        "    load.b64 d9, hbm[a + r61 + 8]\n    load.b32 r9, hbm[a + r61 + 8]\n"
        "    load.b64 d10, hbm[a + r61 + 16]\n    load.b32 r10, hbm[a + r61 + "
        "16]\n";
    const std::string sources = is_cas ? fmt::format("{0}9, {0}10", file) : file + "9";
    const std::string out = is_wide(shape.type) ? "    store.b64 hbm[o + r61 + 40], d8\n"
                                                : "    store.b32 hbm[o + r61 + 40], r8\n";
    for (const char* form : {"    {} {}8, hbm[o + r57], {}\n", "    {} _, hbm[o + r57], {}\n"}) {
      const std::string target = form[7] == '_' ? "" : file;
      const std::string line =
          form[7] == '_' ? fmt::format("    {} _, hbm[o + r57], {}\n", name, sources)
                         : fmt::format("    {} {}8, hbm[o + r57], {}\n", name, file, sources);
      batches.add(name,
                  loads + "    mov.b32 r8, 5\n    mov.b64 d8, 5\n" + line + "    barrier_block\n" +
                      (target.empty() ? "" : out));
    }
    if (!is_wide(shape.type)) {
      batches.add(name,
                  kToL1 + loads + "    barrier_block\n" +
                      fmt::format("    {} r8, l1[s + r57], {}\n", name, sources) +
                      "    barrier_block\n" + kFromL1 + out,
                  kShared);
    }
  }
  MESSAGE(batches.size() << " kernels");
  batches.check();
}

TEST_CASE("special registers, cache control, barriers") {
  Batches batches;
  for (unsigned s = 0; s < kSpecialCount; ++s) {
    const auto special = static_cast<Special>(s);
    if (special == Special::kCore || special == Special::kClock) {
      continue; // blocks go to other cores; another clock
    }
    batches.add("special",
                fmt::format("    cmp.gt.u32 p0, r60, 40\n@p0 mov.u32 r1, %{0}\n    "
                            "mov.u32 r2, %{0}\n    store.b32 hbm[o + r61], r1\n    "
                            "store.b32 hbm[o + r61 + 4], r2\n",
                            kSpecials[s].name));
  }
  batches.add("cache",
              "    prefetch hbm[a + r61]\n    inval hbm[a]\n    inval.line hbm[a]\n"
              "    inval.all\n    inval\n    fence.block\n    fence.device\n    nop\n    nop "
              "40\n    barrier\n    load.b32 r1, hbm[a + r61]\n    store.b32 hbm[o + r61], "
              "r1\n");
  batches.add("cross",
              kToL1 +
                  "    barrier_block 3\n    mov.u32 r3, 95\n    sub.u32 r3, r3, r60\n    "
                  "shl.b32 r59, r3, 5\n" +
                  kFromL1,
              kShared);
  batches.add("clock",
              "    mov.b64 d0, %clock\n    mov.b64 d1, %clock\n    cmp.lt.u64 p0, d0, d1\n"
              "    sel.b32 r1, 7, 9, p0\n    store.b32 hbm[o + r61], r1\n");
  batches.check();
}

TEST_CASE("copies, tiles and the matrix unit") {
  Batches batches;
  const std::string shared = ".shared s, u8[8192]\n";
  // Rows and strides, aligned to the copy engine's units and not.
  struct Shape {
    uint32_t rows, bytes;
    int32_t hbm_stride, l1_stride;
    uint32_t l1_at, hbm_at;
  };
  constexpr Shape kShapes[] = {{1, 64, 0, 0, 0, 0},
                               {1, 100, 0, 0, 0, 0},
                               {1, 31, 0, 0, 7, 3},
                               {4, 64, 96, 128, 0, 0},
                               {5, 33, 40, 64, 32, 1},
                               {3, 20, 64, 20, 0, 0},
                               {4, 32, -64, 32, 0, 512},
                               {4, 32, 64, -32, 128, 0},
                               {0, 32, 32, 32, 0, 0},
                               {7, 1, 9, 3, 1, 1},
                               {1, 4096, 0, 0, 0, 0},
                               {16, 96, 100, 96, 64, 4}};
  for (const Shape& s : kShapes) {
    const std::string two_d =
        fmt::format("{}, {}, {}, {}", s.rows, s.bytes, s.hbm_stride, s.l1_stride);
    // What lies beside the rows must stay.
    batches.add("load2d",
                fmt::format("    fill.b8 l1[s], 0x5a, 8192\n    async_load l1[s + {}], hbm[a "
                            "+ {}], {}, e1\n    wait e1\n    async_store hbm[o], l1[s], 6144\n"
                            "    wait_all\n",
                            s.l1_at,
                            s.hbm_at,
                            two_d),
                shared);
    batches.add("store2d",
                fmt::format("    async_load l1[s], hbm[a], 6144, e0\n    wait e0\n    "
                            "async_store hbm[o + {}], l1[s + {}], {}, e2\n    wait e2\n",
                            s.hbm_at,
                            s.l1_at,
                            two_d),
                shared);
  }
  for (const Insn& shape : shapes_of(*find_insn("fill"))) {
    batches.add("fill",
                fmt::format("    load.b32 r1, hbm[a]\n    fill.b32 s, 0\n    {0} l1[s + 32], "
                            "r1, 64\n    alloc_local t3, 256\n    {0} t3, r1\n    async_store "
                            "hbm[o], l1[s], 128, e0\n    async_store hbm[o + 1024], t3, 256, "
                            "e0\n    wait e0\n",
                            name_of(shape)),
                shared);
  }
  // Allocation: holes are used again, tiles are zeroed, addresses differ.
  batches.add("tiles",
              "    alloc_local t0, 100\n    alloc_local t1, 200\n    alloc_local t2, 64\n"
              "    fill.b8 t0, 1\n    fill.b8 t1, 2\n    fill.b8 t2, 3\n    free_local t1\n"
              "    alloc_local t4, 64\n    alloc_local t5, 128\n    barrier_block\n"
              "    and.b32 r1, r60, 15\n    store.u32 l1[t4 + r1*4], r1\n"
              "    barrier_block\n    async_store hbm[o], t0, 100\n    async_store hbm[o + "
              "256], t4, 64\n    async_store hbm[o + 512], t5, 128\n    async_store hbm[o + "
              "1024], t2, 64\n    wait_all\n    free_local t0\n");
  for (const Insn& shape : shapes_of(*find_insn("mma"))) {
    const unsigned in = size_bytes(shape.type2);
    // f32 inputs: the bits of small numbers, else whatever the bytes say.
    batches.add("mma",
                fmt::format("    async_load l1[s], hbm[a], 2048, e0\n    async_load l1[s + 2048], "
                            "hbm[a + 2048], 2048, e0\n    wait e0\n    fill.b32 l1[s + 4096], 0, "
                            "2048\n    {0} l1[s + 4096], l1[s], l1[s + 2048], 5, 7, 9\n    {0} "
                            "l1[s + 6144], l1[s], l1[s + 2048], 3, 4, 6, 8, 10, 5\n    "
                            "async_store hbm[o], l1[s + 4096], 1024, e1\n    async_store hbm[o + "
                            "2048], l1[s + 6144], 256, e1\n    wait e1\n",
                            name_of(shape),
                            in),
                shared);
  }
  batches.check();
}

TEST_CASE("prints and traps") {
  HostBuild build;
  const size_t program =
      build.add(".kernel talks(ptr o)\n    mov.u32 r0, %tid.x\n    mov.f32 r1, 1.5\n"
                "    mov.b64 d0, 0x123456789\n    print \"lane %d %u %x %f %p 100%%\", "
                "r0, r0, r0, r1, d0\n    exit\n.end\n"
                ".kernel stops(ptr o)\n    mov.u32 r0, %tid.x\n    cmp.eq.u32 p0, r0, "
                "3\n@p0 trap 7\n    exit\n.end\n"
                ".kernel wide(u64 n, u32 m)\n    print \"%d %x %u\", n, n, m\n    exit\n.end\n");
  build.build();
  KernelCase one{.kernel = "talks", .block = 2, .buffers = {std::vector<uint8_t>(64)}};
  CHECK(build.file(program).text.find("printf") == std::string::npos); // by its macro
  CHECK(build.file(program).text.find(
            "PTO_PRINT(\"%lld %llx %u\\n\", static_cast<long long>(n), static_cast<unsigned long "
            "long>(n), static_cast<unsigned>(m));") != std::string::npos);
  CHECK(build.emulate(program, one).error.empty());
  one.kernel = "stops";
  one.block = 32;
  CHECK(!build.emulate(program, one).error.empty());
  CHECK(!build.simulate(program, one).error.empty());
}

TEST_CASE("a wrong lowering is seen") {
  HostBuild build;
  const size_t program =
      build.add(".kernel k(ptr o)\n    mov.u32 r0, %tid.x\n    add.u32 r1, r0, 1\n"
                "    store.u32 hbm[o + r0*4], r1\n    exit\n.end\n");
  build.replace(program, "pto::add<pto::u32>", "pto::sub<pto::u32>");
  build.build();
  const KernelCase one{.kernel = "k", .block = 32, .buffers = {std::vector<uint8_t>(128)}};
  CHECK(build.difference(program, one) ==
        "k: buffer 0 byte 0: simulator 00000001, emitted file ffffffff");
}

TEST_CASE("every row of the table has a lowering") {
  for (const InsnDesc* row : all_insns()) {
    CAPTURE(row->mnemonic);
    CHECK(!row->npu.empty());
  }
}

} // namespace
} // namespace pto::test
