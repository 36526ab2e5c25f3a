// SPDX-License-Identifier: Apache-2.0
#include "runtime/npu/ascendc_emitter.h"

#include "isa/insn_desc.h"
#include "isa/suggest.h"
#include "runtime/npu/body_emitter.h"
#include "runtime/npu/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace pto::rt {

namespace {

using isa::Function;
using isa::Insn;
using isa::Object;
using isa::OperandKind;

constexpr uint32_t kBoardBytes = 2048; // pto::kBoardBytes of pto_board.h

// The launch of a hybrid kernel; its blocks are numbered by one number.
constexpr std::string_view kShapeParams =
    "uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y, "
    "uint32_t block_z";
constexpr std::string_view kShapeNames = "grid_x, grid_y, grid_z, block_x, block_y, block_z";

// ---------------------------------------------------------------- registers

/// The registers that some insns name.
struct RegisterUse {
  std::set<uint32_t> r, d, p;

  void add(const Insn& insn) {
    if (insn.guard.present) {
      p.insert(insn.guard.pred);
    }
    for (unsigned i = 0; i < insn.operand_count; ++i) {
      const isa::Operand& operand = insn.operands[i];
      const unsigned count = isa::spec_of(insn, i).vector ? isa::vector_count(insn) : 1;
      for (unsigned k = 0; k < count; ++k) {
        if (operand.kind == OperandKind::kReg32) {
          r.insert(operand.index + k);
        } else if (operand.kind == OperandKind::kReg64) {
          d.insert(operand.index + k);
        }
      }
      if (operand.kind == OperandKind::kPred) {
        p.insert(operand.index);
      } else if (operand.kind == OperandKind::kMem) {
        const isa::MemRef mem = operand.mem();
        if (mem.base == isa::BaseKind::kReg) {
          (mem.space == isa::Space::kHbm ? d : r).insert(mem.base_index);
        }
        if (mem.index_reg != isa::kNoIndexReg) {
          r.insert(mem.index_reg);
        }
      }
    }
  }

  /// Declarations, ten a line, each line behind `indent`.
  [[nodiscard]] std::string declarations(std::string_view indent) const {
    std::string out;
    const auto file = [&](std::string_view type,
                          char letter,
                          const std::set<uint32_t>& indices,
                          std::string_view zero) {
      unsigned in_line = 0;
      for (const uint32_t index : indices) {
        if (in_line == 0) {
          out += fmt::format("{}{} ", indent, type);
        }
        out += fmt::format("{}{}{} = {}", in_line == 0 ? "" : ", ", letter, index, zero);
        if (++in_line == 10) {
          out += ";\n";
          in_line = 0;
        }
      }
      out += in_line == 0 ? "" : ";\n";
    };
    file("uint32_t", 'r', r, "0");
    file("uint64_t", 'd', d, "0");
    file("bool", 'p', p, "false");
    return out;
  }
};

// ---------------------------------------------------------------- which functions

/// Functions that a kernel reaches by calls, itself first, by index into Object::functions.
std::vector<size_t> reached_from(const Object& object, size_t kernel) {
  std::vector<size_t> reached = {kernel};
  for (size_t i = 0; i < reached.size(); ++i) {
    const Function& function = object.functions[reached[i]];
    for (uint32_t k = 0; k < function.insn_count; ++k) {
      const Insn& insn = object.code[function.first_pc + k];
      if (!insn.desc->has(isa::kCall)) {
        continue;
      }
      const Function* callee = object.function_at(isa::target_pc(insn));
      const auto index = static_cast<size_t>(callee - object.functions.data());
      if (std::find(reached.begin(), reached.end(), index) == reached.end()) {
        reached.push_back(index);
      }
    }
  }
  return reached;
}

// ---------------------------------------------------------------- the file

class Emitter {
public:
  Emitter(const Object& object, const EmitOptions& options, isa::Diagnostics& diags)
      : object_(object), options_(options), diags_(diags),
        bodies_(object, options, diags, out_.text) {}

  std::optional<AscendC> run() {
    if (!choose()) {
      return std::nullopt;
    }
    find_regions();
    preamble();
    if (!functions_.empty()) {
      register_struct();
    }
    for (const size_t index : functions_) {
      function(object_.functions[index]);
    }
    for (const size_t index : kernels_) {
      kernel(index);
    }
    out_.regions = regions_;
    for (const size_t index : kernels_) {
      launcher(object_.functions[index]);
    }
    if (bodies_.has_error()) {
      return std::nullopt;
    }
    return std::move(out_);
  }

private:
  // ---- what there is

  bool choose() {
    std::set<size_t> called;
    std::vector<std::string_view> names;
    for (size_t i = 0; i < object_.functions.size(); ++i) {
      const Function& function = object_.functions[i];
      if (!function.is_kernel) {
        continue;
      }
      names.push_back(function.name);
      if (!options_.kernel.empty() && options_.kernel != function.name) {
        continue;
      }
      kernels_.push_back(i);
      const std::vector<size_t> reached = reached_from(object_, i);
      called.insert(reached.begin() + 1, reached.end());
      for (const size_t index : reached) {
        out_.is_hybrid = out_.is_hybrid || uses_board(object_.functions[index]);
      }
    }
    if (kernels_.empty()) {
      diags_.error({},
                   options_.kernel.empty()
                       ? std::string("there is no kernel to emit")
                       : fmt::format("there is no kernel '{}'{}",
                                     options_.kernel,
                                     isa::did_you_mean(options_.kernel, names)));
      return false;
    }
    functions_.assign(called.begin(), called.end());
    return true;
  }

  // The scalar unit copies, and it alone knows the core.
  bool uses_board(const Function& function) const {
    for (uint32_t k = 0; k < function.insn_count; ++k) {
      const Insn& insn = object_.code[function.first_pc + k];
      if (insn.desc->scope == isa::Scope::kBlock || insn.desc->has(isa::kWaits) ||
          needs_scalar_unit(insn)) {
        return true;
      }
    }
    return false;
  }

  bool is_probed() const { return options_.instrument != Instrument::kNone; }
  bool has_marks() const { return is_probed() && options_.instrument != Instrument::kKernel; }

  void find_regions() {
    std::set<size_t> all(functions_.begin(), functions_.end());
    all.insert(kernels_.begin(), kernels_.end());
    for (const size_t index : all) {
      for (const ProbeRegion& region :
           probe_regions(object_, object_.functions[index], options_.instrument)) {
        regions_.push_back(region);
      }
    }
    bodies_.set_regions(regions_);
  }

  bool calls(size_t index) const { return reached_from(object_, index).size() > 1; }

  // ---- text

  void line(unsigned depth, std::string_view text) { append_line(out_.text, depth, text); }

  void preamble() {
    std::string names;
    for (const size_t index : kernels_) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", object_.functions[index].name);
    }
    out_.text +=
        "// Ascend C for the SIMT mode of dav-3510, made from PTO by ptoas --emit=ascendc.\n";
    out_.text += fmt::format("// Kernels: {}\n", names);
    for (const std::string& file : object_.files) {
      out_.text += fmt::format("// Source: {}\n", file);
    }
    out_.text += fmt::format("//\n// bisheng -shared this.asc -o libkernel.so -fPIC "
                             "--npu-arch=dav-3510{} -I <folder of pto_simt.h>\n",
                             out_.is_hybrid ? "" : " --enable-simt");
    out_.text += "// A comment behind a statement: its source line and PTO instruction.\n";
    if (out_.is_hybrid) {
      out_.text += "#define PTO_HYBRID 1\n";
    }
    out_.text += "#include \"pto_simt.h\"\n\n";
  }

  void register_struct() {
    RegisterUse use;
    std::set<size_t> all(functions_.begin(), functions_.end());
    for (const size_t index : kernels_) {
      if (calls(index)) {
        all.insert(index);
      }
    }
    for (const size_t index : all) {
      const Function& function = object_.functions[index];
      for (uint32_t k = 0; k < function.insn_count; ++k) {
        use.add(object_.code[function.first_pc + k]);
      }
    }
    line(0, "// The registers of a lane, which functions share with their callers.");
    line(0, "struct Lane {");
    out_.text += use.declarations("  ");
    line(1, "PTO_UB uint8_t* l1 = nullptr;");
    line(1, "PTO_GM const uint8_t* constants = nullptr;");
    if (out_.is_hybrid) {
      line(1, "PTO_UB pto::Board* board = nullptr;");
      line(1, "pto::Shape shape{};");
      line(1, "uint32_t block_index = 0;");
    }
    if (has_marks()) {
      line(1, "pto::Probe probe{};");
    }
    line(0, "};\n");
    line(0, "// True where the lane has ended (EXIT), false where it has returned (RET).");
    for (const size_t index : functions_) {
      line(0,
           fmt::format("PTO_FN bool fn_{}(Lane& lane);", cpp_name(object_.functions[index].name)));
    }
    line(0, "");
  }

  // ---- functions and kernels

  void function(const Function& function) {
    line(0, fmt::format("PTO_FN bool fn_{}(Lane& lane) {{", cpp_name(function.name)));
    lane_aliases();
    bodies_.write({.names = text_context(function, "lane."),
                   .end_of_lane = "return true;",
                   .end_of_call = "return false;",
                   .probe = "lane.probe"});
    // Nothing comes back here: every path of a function ends.
    line(0, "}\n");
  }

  TextContext text_context(const Function& function, std::string_view register_prefix) const {
    return {.object = &object_,
            .function = &function,
            .is_hybrid = out_.is_hybrid,
            .register_prefix = std::string(register_prefix)};
  }

  void lane_aliases() {
    line(1, "[[maybe_unused]] PTO_UB uint8_t* l1 = lane.l1;");
    line(1, "[[maybe_unused]] PTO_GM const uint8_t* constants = lane.constants;");
    if (out_.is_hybrid) {
      line(1, "[[maybe_unused]] PTO_UB pto::Board* board = lane.board;");
      line(1, "[[maybe_unused]] const pto::Shape& shape = lane.shape;");
      line(1, "[[maybe_unused]] const uint32_t block_index = lane.block_index;");
    }
  }

  std::string params_text(const Function& function) const {
    std::string out;
    for (const isa::Param& param : function.params) {
      out = join(out, fmt::format("{} {}", param_type(param), cpp_name(param.name)));
    }
    if (!object_.const_data.empty()) {
      out = join(out, "PTO_GM const uint8_t* constants");
    }
    if (is_probed()) {
      out = join(out, "PTO_GM uint64_t* profile");
    }
    return out;
  }
  std::string params_names(const Function& function) const {
    std::string out;
    for (const isa::Param& param : function.params) {
      out = join(out, cpp_name(param.name));
    }
    if (!object_.const_data.empty()) {
      out = join(out, "constants");
    }
    if (is_probed()) {
      out = join(out, "profile");
    }
    return out;
  }
  static std::string join(const std::string& left, std::string_view right) {
    return left.empty() ? std::string(right) : fmt::format("{}, {}", left, right);
  }

  // Registers a lane fall in steps with the bound (docs/isa.md, Register budget).
  uint32_t launch_bound(const Function& function) const {
    if (options_.max_lanes != 0) {
      return options_.max_lanes;
    }
    if (function.max_lanes != 0) {
      return function.max_lanes;
    }
    const uint32_t registers = function.register_use();
    return registers <= 16 ? 2048 : registers <= 32 ? 1024 : registers <= 64 ? 512 : 256;
  }

  void kernel(size_t index) {
    const Function& function = object_.functions[index];
    const std::string name = cpp_name(function.name);
    const uint32_t bound = launch_bound(function);
    EmittedKernel emitted{.name = function.name,
                          .launch_symbol = "pto_launch_" + name,
                          .max_lanes = bound,
                          .first_pc = function.first_pc};
    for (const size_t reached : reached_from(object_, index)) {
      const Function& used = object_.functions[reached];
      for (uint32_t k = 0; k < used.insn_count; ++k) {
        emitted.allocates =
            emitted.allocates || object_.code[used.first_pc + k].desc->has(isa::kAllocates);
      }
    }
    if (out_.is_hybrid) {
      emitted.scratch_bytes = kBoardBytes + function.l1_bytes;
    }
    if (is_probed()) {
      emitted.probe_entries = 1 + static_cast<uint32_t>(regions_.size());
    }
    std::string params = params_text(function);
    if (out_.is_hybrid) {
      params = join(params,
                    "PTO_UB uint8_t* l1, PTO_UB pto::Board* board, pto::Shape shape, "
                    "uint32_t block_index");
      line(0, fmt::format("PTO_FN void {}_body({}) {{", name, params));
      line(1, "static_cast<void>(l1), static_cast<void>(board), static_cast<void>(shape);");
      line(1, "static_cast<void>(block_index);");
    } else {
      line(0, fmt::format("__global__ __launch_bounds__({}) void {}({}) {{", bound, name, params));
      if (function.l1_bytes != 0) {
        line(1, fmt::format("PTO_SHARED(l1, {}); // __ubuf__", function.l1_bytes));
      }
    }
    list_symbols(index);
    const bool has_calls = calls(index);
    const std::string probe = has_calls ? "lane.probe" : "probe";
    if (has_calls) {
      line(1, "Lane lane;");
      if (out_.is_hybrid || function.l1_bytes != 0) {
        line(1, "lane.l1 = l1;");
      }
      if (!object_.const_data.empty()) {
        line(1, "lane.constants = constants;");
      }
      if (out_.is_hybrid) {
        line(1, "lane.board = board;");
        line(1, "lane.shape = shape;");
        line(1, "lane.block_index = block_index;");
      }
    } else {
      RegisterUse use;
      for (uint32_t k = 0; k < function.insn_count; ++k) {
        use.add(object_.code[function.first_pc + k]);
      }
      out_.text += use.declarations("  ");
    }
    std::string end = "return;";
    const char* warp =
        out_.is_hybrid ? "pto::global_warp(shape, block_index)" : "pto::global_warp()";
    if (has_marks()) {
      line(1,
           fmt::format("{}{} = pto::open_probe(profile, {}, {});",
                       has_calls ? "" : "pto::Probe ",
                       probe,
                       warp,
                       emitted.probe_entries));
      line(1, fmt::format("pto::mark({}, 0);", probe));
    } else if (is_probed()) {
      line(1, fmt::format("pto::Span span = pto::open_span(profile, {});", warp));
      end = "pto::close_span(span); return;";
    }
    bodies_.write({.names = text_context(function, has_calls ? "lane." : ""),
                   .end_of_lane = end,
                   .end_of_call = end,
                   .probe = probe});
    line(0, "}\n");
    if (out_.is_hybrid) {
      hybrid_entry(function, name, bound);
    }
    out_.kernels.push_back(std::move(emitted));
  }

  // Kernels and vector functions take built-in types only, so the shape travels as six numbers.
  void hybrid_entry(const Function& function, const std::string& name, uint32_t bound) {
    const std::string lanes =
        join(params_text(function),
             fmt::format("PTO_UB uint8_t* l1, PTO_UB pto::Board* board, {}, uint32_t block_index",
                         kShapeParams));
    line(0,
         fmt::format(
             "__simt_vf__ __launch_bounds__({}) inline void {}_lanes({}) {{", bound, name, lanes));
    line(1, fmt::format("const pto::Shape shape{{{}}};", kShapeNames));
    line(1,
         fmt::format(
             "{}_body({});", name, join(params_names(function), "l1, board, shape, block_index")));
    line(1, "pto::leave(board);");
    line(0, "}\n");
    line(0,
         fmt::format(
             "__global__ __vector__ void {}({}) {{",
             name,
             join(params_text(function), fmt::format("{}, uint32_t scratch_bytes", kShapeParams))));
    line(1, "PTO_DYNAMIC_UB(scratch); // extern __ubuf__ uint8_t scratch[]");
    line(1,
         fmt::format("PTO_UB pto::Board* board =\n      pto::open_board(scratch, {}, "
                     "scratch_bytes - pto::kBoardBytes);",
                     function.l1_bytes));
    line(1, "PTO_UB uint8_t* l1 = scratch + pto::kBoardBytes;");
    line(1,
         fmt::format(
             "asc_vf_call<{}_lanes>(dim3(block_x, block_y, block_z), {});",
             name,
             join(params_names(function),
                  fmt::format("l1, board, {}, static_cast<uint32_t>(block_idx)", kShapeNames))));
    line(1, "pto::serve(board, l1, block_x * block_y * block_z);");
    line(0, "}\n");
  }

  void list_symbols(size_t owner) {
    if (!options_.comments) {
      return;
    }
    for (const isa::Symbol& symbol : object_.symbols) {
      if (symbol.kind != isa::SymbolKind::kConst &&
          (symbol.owner == owner || symbol.owner == isa::kFileScope)) {
        line(1,
             fmt::format("// l1 + {}: {}, {} bytes of {}",
                         symbol.offset,
                         symbol.name,
                         symbol.size_bytes,
                         isa::name(symbol.type)));
      }
    }
  }

  // ---- launch

  void launcher(const Function& function) {
    const std::string name = cpp_name(function.name);
    line(0,
         fmt::format("extern \"C\" int32_t pto_launch_{}(const uint32_t grid[3], const uint32_t "
                     "block[3],\n                                   uint64_t scratch_bytes, "
                     "const uint64_t* arguments,\n                                   void* "
                     "constants, void* profile, void* stream) {{",
                     name));
    line(1,
         "static_cast<void>(constants), static_cast<void>(profile), static_cast<void>(arguments);");
    std::string values;
    for (size_t i = 0; i < function.params.size(); ++i) {
      const isa::Param& param = function.params[i];
      std::string type = param_type(param);
      if (type.starts_with("PTO_GM ")) {
        type.erase(0, 7);
      }
      const std::string value =
          param.is_pointer ? fmt::format("reinterpret_cast<{}>(arguments[{}])", type, i)
          : param.type == isa::Type::kF32 ? fmt::format("pto::host_float(arguments[{}])", i)
                                          : fmt::format("static_cast<{}>(arguments[{}])", type, i);
      values = join(values, value);
    }
    if (!object_.const_data.empty()) {
      values = join(values, "static_cast<const uint8_t*>(constants)");
    }
    if (is_probed()) {
      values = join(values, "static_cast<uint64_t*>(profile)");
    }
    const char* comma = values.empty() && !out_.is_hybrid ? "" : ", ";
    if (out_.is_hybrid) {
      values = join(values,
                    "grid[0], grid[1], grid[2], block[0], block[1], block[2], "
                    "static_cast<uint32_t>(scratch_bytes)");
      line(1,
           fmt::format("PTO_LAUNCH_VECTOR({}, grid[0] * grid[1] * grid[2], scratch_bytes, stream"
                       "{}{});",
                       name,
                       comma,
                       values));
    } else {
      line(1,
           fmt::format("PTO_LAUNCH({}, dim3(grid[0], grid[1], grid[2]), dim3(block[0], block[1], "
                       "block[2]), scratch_bytes, stream{}{});",
                       name,
                       comma,
                       values));
    }
    line(1, "return PTO_LAUNCH_STATUS();");
    line(0, "}\n");
  }

  const Object& object_;
  const EmitOptions& options_;
  isa::Diagnostics& diags_;
  AscendC out_;
  std::vector<size_t> kernels_;
  std::vector<size_t> functions_;
  std::vector<ProbeRegion> regions_; // of functions_ and kernels_, by index of the function
  BodyEmitter bodies_;               // writes to out_.text
};

} // namespace

std::optional<AscendC>
emit_ascendc(const isa::Object& object, const EmitOptions& options, isa::Diagnostics& diags) {
  return Emitter(object, options, diags).run();
}

} // namespace pto::rt
