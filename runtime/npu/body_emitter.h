// SPDX-License-Identifier: Apache-2.0
// The body of a function as C++ statements: its insns (lowering.h) in its structure (structure.h),
// or in a loop around a switch where it has none. Private to the emitter.
#pragma once

#include "isa/cfg.h"
#include "isa/diag.h"
#include "isa/object.h"
#include "runtime/npu/ascendc_emitter.h"
#include "runtime/npu/lowering.h"
#include "runtime/npu/structure.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pto::rt {

/// A line of text, indented.
void append_line(std::string& out, unsigned depth, std::string_view text);

/// What a body takes from the function around it.
struct BodyStyle {
  TextContext names;
  std::string end_of_lane; // the statement of a lane that ends
  std::string end_of_call; // likewise, of RET
  std::string probe;       // instrumented: the pto::Probe in scope
};

/// Writes the bodies of one file to `out`. Errors and warnings go to `diags`.
class BodyEmitter {
public:
  BodyEmitter(const isa::Object& object,
              const EmitOptions& options,
              isa::Diagnostics& diags,
              std::string& out)
      : object_(object), options_(options), diags_(diags), out_(out) {}

  /// Of style.names.function.
  void write(const BodyStyle& style);
  /// Instrumented: the regions of all functions; entry 1 + i is of region i.
  void set_regions(const std::vector<ProbeRegion>& regions);
  [[nodiscard]] bool has_error() const { return has_error_; }

private:
  [[nodiscard]] std::string place(uint32_t pc) const;
  void warn(const std::string& message) { diags_.warning("ascendc", {}, message); }
  void line(unsigned depth, std::string_view text) { append_line(out_, depth, text); }
  void statement(unsigned depth, const std::string& text, uint32_t pc);
  [[nodiscard]] std::string label_of(uint32_t block, bool is_continue) const;
  void statements(const std::vector<Statement>& list, unsigned depth);
  void one(const Statement& s, unsigned depth);
  [[nodiscard]] std::string jump_text(const Statement& s) const;
  void insns(uint32_t block, unsigned depth);
  void insn(uint32_t pc, unsigned depth);
  void open_region(uint32_t pc, unsigned depth);
  void close_region(uint32_t pc, unsigned depth);
  void pc_switch(const std::string& why);

  const isa::Object& object_;
  const EmitOptions& options_;
  isa::Diagnostics& diags_;
  std::string& out_;
  bool has_error_ = false;
  bool warned_of_mma_ = false;
  struct Region {
    ProbeRegion pcs;
    size_t entry = 0;
  };
  std::map<uint32_t, Region> regions_; // by first pc
  // Of the body that is written:
  BodyStyle style_;
  const isa::Function* current_ = nullptr;
  const isa::Cfg* cfg_ = nullptr;
  const Region* open_ = nullptr; // the insns that are written belong to it
  bool is_clock_fresh_ = false;  // the statement before read it
};

} // namespace pto::rt
