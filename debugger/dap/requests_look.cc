// SPDX-License-Identifier: Apache-2.0
// Threads (warps), frames, scopes, variables and expressions.
#include "debugger/command.h"
#include "debugger/dap/server.h"
#include "debugger/dap/server_impl.h"
#include "isa/print.h"
#include "simulator/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <utility>

namespace pto::dbg {
namespace {

constexpr size_t kMaxElementsShown = 4096;

std::string lanes_of_warp(const sim::LaunchImage& image, uint32_t warp) {
  const uint32_t first = warp * isa::kWarpLanes;
  const uint32_t last = std::min(first + isa::kWarpLanes, image.lanes) - 1;
  return first == last ? fmt::format("lane {}", first) : fmt::format("lanes {}-{}", first, last);
}

/// Expression for all lanes of the focused warp.
std::string over_warp(const std::string& reg, const sim::LaunchImage& image, uint32_t warp) {
  const uint32_t first = warp * isa::kWarpLanes;
  return fmt::format("{}@{}-{}", reg, first, std::min(first + isa::kWarpLanes, image.lanes) - 1);
}

} // namespace

// ------------------------------------------------ threads and frames

uint64_t DapServer::threads_per_block() const {
  return session_->launch().image().warps;
}

int64_t DapServer::thread_id(const Focus& focus) const {
  return static_cast<int64_t>(focus.block * threads_per_block() + focus.warp + 1);
}

Focus DapServer::thread_focus(const Json& arguments) const {
  const int64_t id = need_integer(arguments, "threadId");
  const uint64_t count = session_->launch().block_count() * threads_per_block();
  if (id < 1 || static_cast<uint64_t>(id) > count) {
    throw RequestError(fmt::format("there is no thread {}; warps are threads 1 to {}", id, count));
  }
  Focus focus = session_->focus();
  const uint64_t index = static_cast<uint64_t>(id - 1);
  const Focus wanted{
      index / threads_per_block(), static_cast<uint32_t>(index % threads_per_block()), 0};
  if (wanted.block != focus.block || wanted.warp != focus.warp) {
    focus = wanted;
  }
  return focus;
}

Focus DapServer::frame_focus(const Json& arguments) const {
  const int64_t frame = find_integer(arguments, "frameId").value_or(0);
  return frame > 0 && frame <= static_cast<int64_t>(frames_.size())
             ? frames_[static_cast<size_t>(frame - 1)]
             : session().focus();
}

Json DapServer::on_threads(const Json& /*arguments*/) {
  const sim::LaunchImage& image = session().launch().image();
  const uint64_t block = session_->focus().block;
  Json threads = Json::array();
  for (uint32_t warp = 0; warp < image.warps; ++warp) {
    std::string text =
        fmt::format("block {} warp {} ({})", block, warp, lanes_of_warp(image, warp));
    if (!is_running_ && session_->pc(block, warp) == kNoPc) {
      text += session_->phase(block) == BlockPhase::kWaiting ? ", not begun" : ", ended";
    }
    threads.push_back({{"id", thread_id({block, warp, 0})}, {"name", text}});
  }
  return {{"threads", threads}};
}

Json DapServer::source_of(uint32_t file) const {
  const std::string& name = session_->program().object().files.at(file);
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(name, error);
  return {{"name", std::filesystem::path(name).filename().string()},
          {"path", error ? name : path.lexically_normal().string()}};
}

Json DapServer::on_stack_trace(const Json& arguments) {
  const Focus focus = thread_focus(arguments);
  const sim::BlockRun* block = session_->block(focus.block);
  std::vector<uint32_t> pcs;
  if (block != nullptr && session_->pc(focus.block, focus.warp) != kNoPc) {
    const sim::WarpState& warp = block->warp(focus.warp);
    pcs.push_back(warp.pc);
    // Below the outermost part of a called function lies the caller, at the insn behind its CALL.
    bool is_base = warp.is_call_base;
    for (size_t i = warp.stack.size(); i-- > 0;) {
      if (is_base) {
        pcs.push_back(warp.stack[i].pc - 1);
      }
      is_base = warp.stack[i].is_call_base;
    }
  }
  const sim::Program& program = session_->program();
  Json frames = Json::array();
  const int64_t start = std::max<int64_t>(find_integer(arguments, "startFrame").value_or(0), 0);
  const int64_t levels = find_integer(arguments, "levels").value_or(0);
  for (int64_t i = start;
       i < static_cast<int64_t>(pcs.size()) && (levels <= 0 || i < start + levels);
       ++i) {
    const uint32_t pc = pcs[static_cast<size_t>(i)];
    frames_.push_back(focus);
    const isa::SourceLoc loc = program.loc(pc);
    const isa::Function* function = program.object().function_at(pc);
    Json frame = {{"id", frames_.size()},
                  {"name", function != nullptr ? function->name : fmt::format("pc {}", pc)},
                  {"line", 0},
                  {"column", 0},
                  {"instructionPointerReference", code_address(pc)}};
    if (loc.line != 0) {
      frame["line"] = loc.line - (lines_start_at_1_ ? 0 : 1);
      frame["column"] = std::max<uint32_t>(loc.column, 1) - (columns_start_at_1_ ? 0 : 1);
      frame["source"] = source_of(loc.file);
    }
    frames.push_back(std::move(frame));
  }
  return {{"stackFrames", frames}, {"totalFrames", pcs.size()}};
}

void DapServer::forget_references() {
  parents_.clear();
  frames_.clear();
}

int64_t DapServer::add_parent(VariableParent parent) {
  parents_.push_back(std::move(parent));
  return static_cast<int64_t>(parents_.size());
}

const VariableParent& DapServer::need_parent(int64_t reference) const {
  if (reference < 1 || reference > static_cast<int64_t>(parents_.size())) {
    throw RequestError(fmt::format("variablesReference {} is not valid any more", reference));
  }
  return parents_[static_cast<size_t>(reference - 1)];
}

Json DapServer::on_scopes(const Json& arguments) {
  const int64_t id = need_integer(arguments, "frameId");
  if (id < 1 || id > static_cast<int64_t>(frames_.size())) {
    throw RequestError(fmt::format("frame {} is not valid any more", id));
  }
  const Focus focus = frames_[static_cast<size_t>(id - 1)];
  Json scopes = Json::array();
  const auto add = [&](const std::string& label, VariableParent::Kind kind, const char* hint) {
    Json scope = {{"name", label},
                  {"variablesReference", add_parent({kind, focus, {}})},
                  {"expensive", false}};
    if (hint != nullptr) {
      scope["presentationHint"] = hint;
    }
    scopes.push_back(std::move(scope));
  };
  using Kind = VariableParent::Kind;
  add("Parameters", Kind::kParameters, "arguments");
  add(fmt::format("Registers of lane {}", focus.block_lane()), Kind::kRegisters, "registers");
  add("Predicates", Kind::kPredicates, nullptr);
  add("Tiles", Kind::kTiles, nullptr);
  add("Scratchpad", Kind::kSymbols, nullptr);
  add("Position", Kind::kPosition, nullptr);
  return {{"scopes", scopes}};
}

// ------------------------------------------------ variables

std::optional<Evaluated>
DapServer::evaluate(const std::string& expression, const Focus& focus, std::string& error) {
  const Focus before = session_->focus();
  if (!(focus == before) && !session_->set_focus(focus, error)) {
    return std::nullopt;
  }
  std::optional<Evaluated> value = session_->evaluate(expression, error);
  std::string ignored;
  static_cast<void>(session_->set_focus(before, ignored));
  return value;
}

std::string DapServer::memory_reference(const Evaluated& value, const Focus& focus) const {
  if (value.is_pointer && value.space == isa::Space::kHbm) {
    return fmt::format("hbm:0x{:x}", value.value.bits);
  }
  if (value.place.kind != Place::Kind::kMemory || value.place.space == isa::Space::kConst) {
    return {};
  }
  return value.place.space == isa::Space::kHbm
             ? fmt::format("hbm:0x{:x}", value.place.address)
             : fmt::format("l1:0x{:x}@{}", value.place.address, focus.block);
}

Json DapServer::variable(const std::string& name,
                         const std::string& expression,
                         const Focus& focus) {
  std::string error;
  const std::optional<Evaluated> value = evaluate(expression, focus, error);
  if (!value) {
    return {{"name", name}, {"value", fmt::format("<{}>", error)}, {"variablesReference", 0}};
  }
  return variable(name, expression, focus, *value);
}

Json DapServer::variable(const std::string& name,
                         const std::string& expression,
                         const Focus& focus,
                         const Evaluated& value) {
  Json result = {{"name", name}, {"evaluateName", expression}, {"variablesReference", 0}};
  if (value.is_array) {
    std::string text = "{";
    for (size_t i = 0; i < value.array.size() && i < 8; ++i) {
      text += (i == 0 ? "" : ", ") + to_string(value.array[i]);
    }
    result["value"] = text + (value.array.size() > 8 ? ", ...}" : "}");
    result["variablesReference"] = add_parent({VariableParent::Kind::kValue, focus, expression});
    result["indexedVariables"] = std::min(value.array.size(), kMaxElementsShown);
  } else {
    result["value"] =
        value.is_pointer ? fmt::format("0x{:x}", value.value.bits) : to_string(value.value);
    if (value.place.kind == Place::Kind::kRegister && value.place.reg.file != RegisterFile::kTile) {
      result["variablesReference"] =
          add_parent({VariableParent::Kind::kValue,
                      focus,
                      over_warp(expression, session_->launch().image(), focus.warp)});
      result["indexedVariables"] = std::min(
          isa::kWarpLanes, session_->launch().image().lanes - focus.warp * isa::kWarpLanes);
    }
  }
  result["type"] = std::string(isa::name(value.value.type));
  const std::string reference = memory_reference(value, focus);
  if (!reference.empty()) {
    result["memoryReference"] = reference;
  }
  return result;
}

std::string DapServer::expression_of(const VariableParent& parent, const std::string& name) const {
  using Kind = VariableParent::Kind;
  switch (parent.kind) {
  case Kind::kRegisters:
  case Kind::kPredicates:
  case Kind::kTiles:
    return "$" + name;
  case Kind::kParameters:
  case Kind::kSymbols:
  case Kind::kPosition:
    return name;
  case Kind::kValue:
    break;
  }
  // "[5]": element 5 of an array; "lane 5" of a register in the lanes of a warp.
  const size_t at = parent.expression.rfind('@');
  if (name.starts_with("lane ")) {
    return fmt::format("{}@{}", parent.expression.substr(0, at), name.substr(5));
  }
  return (at == std::string::npos ? parent.expression : parent.expression.substr(0, at)) + name;
}

Json DapServer::elements_of(const VariableParent& parent) {
  std::string error;
  const std::optional<Evaluated> value = evaluate(parent.expression, parent.focus, error);
  Json result = Json::array();
  if (!value) {
    result.push_back({{"name", "error"}, {"value", error}, {"variablesReference", 0}});
    return result;
  }
  for (size_t i = 0; i < value->array.size() && i < kMaxElementsShown; ++i) {
    const std::string name =
        value->is_lanes ? fmt::format("lane {}", value->first_lane + i) : fmt::format("[{}]", i);
    result.push_back({{"name", name},
                      {"value", to_string(value->array[i])},
                      {"type", std::string(isa::name(value->array[i].type))},
                      {"evaluateName", expression_of(parent, name)},
                      {"variablesReference", 0}});
  }
  return result;
}

Json DapServer::children_of(const VariableParent& parent) {
  using Kind = VariableParent::Kind;
  const sim::Program& program = session_->program();
  Json result = Json::array();
  const auto add = [&](const std::string& name) {
    result.push_back(variable(name, expression_of(parent, name), parent.focus));
  };
  const auto add_all = [&](char file, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      add(fmt::format("{}{}", file, i));
    }
  };
  switch (parent.kind) {
  case Kind::kRegisters:
    add_all('r', program.reg32_limit());
    add_all('d', program.reg64_limit());
    break;
  case Kind::kPredicates: {
    uint32_t used = 0;
    for (const sim::ProgramInsn& insn : program.insns()) {
      used |= insn.reads.preds | insn.writes.preds;
    }
    add_all('p', static_cast<uint32_t>(std::bit_width(used)));
    break;
  }
  case Kind::kTiles:
    if (const sim::BlockRun* block = session_->block(parent.focus.block)) {
      for (uint32_t i = 0; i < isa::kTileCount; ++i) {
        const sim::TileState& tile = block->tiles()[i];
        if (tile.is_live) {
          result.push_back(
              {{"name", fmt::format("t{}", i)},
               {"value", fmt::format("l1[{}], {} bytes", tile.offset, tile.size_bytes)},
               {"type", "tile"},
               {"memoryReference", fmt::format("l1:0x{:x}@{}", tile.offset, parent.focus.block)},
               {"variablesReference", 0}});
        }
      }
    }
    break;
  case Kind::kParameters:
    for (const isa::Param& param : program.kernel().params) {
      add(param.name);
    }
    break;
  case Kind::kSymbols:
    for (const isa::Symbol& symbol : program.object().symbols) {
      if (symbol.owner == isa::kFileScope || symbol.owner == program.kernel_index()) {
        add(symbol.name);
      }
    }
    break;
  case Kind::kPosition:
    for (const char* name : {"$block", "$warp", "$lane", "$core", "$pc", "$cycle"}) {
      add(name);
    }
    break;
  case Kind::kValue:
    return elements_of(parent);
  }
  return result;
}

Json DapServer::on_variables(const Json& arguments) {
  const VariableParent parent = need_parent(need_integer(arguments, "variablesReference"));
  Json all = children_of(parent);
  const size_t start =
      static_cast<size_t>(std::max<int64_t>(find_integer(arguments, "start").value_or(0), 0));
  const int64_t count = find_integer(arguments, "count").value_or(0);
  if (start == 0 && count <= 0) {
    return {{"variables", all}};
  }
  Json some = Json::array();
  for (size_t i = start; i < all.size() && (count <= 0 || i < start + static_cast<size_t>(count));
       ++i) {
    some.push_back(std::move(all[i]));
  }
  return {{"variables", some}};
}

Json DapServer::on_set_variable(const Json& arguments) {
  const VariableParent parent = need_parent(need_integer(arguments, "variablesReference"));
  const std::string expression = expression_of(parent, need_string(arguments, "name"));
  const std::string text = need_string(arguments, "value");
  std::string error;
  const std::optional<Evaluated> place = evaluate(expression, parent.focus, error);
  const std::optional<Evaluated> value = place ? evaluate(text, parent.focus, error) : std::nullopt;
  if (!place || !value) {
    throw RequestError(error);
  }
  if (place->place.kind == Place::Kind::kNone) {
    throw RequestError(
        fmt::format("{} is no register and no memory, so it cannot be set", expression));
  }
  if (!session_->assign_all(*place, *value, error)) {
    throw RequestError(error);
  }
  const std::optional<Evaluated> now = evaluate(expression, parent.focus, error);
  return {{"value", now ? to_string(now->value) : text}};
}

// ------------------------------------------------ expressions

/// A line of the debug console that is one of ptodbg's commands.
Json DapServer::run_command(const std::string& line) {
  const Moment moment = session_->moment();
  const Focus focus = session_->focus();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    running_ = session_; // pause interrupts a command that runs the kernel
    is_interruptible_ = false;
  }
  const CommandResult done = debugger_->execute(line);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    running_ = nullptr;
  }
  const bool is_other_session = debugger_->session() != session_;
  session_ = debugger_->session();
  if (session_ == nullptr) {
    // `kill` and the like: the protocol has no program without a launch.
    after_ = [this] { end_debuggee(0); };
  } else if (is_other_session || session_->moment() != moment) {
    forget_references();
    after_ = [this] { report_stop(session_->last_stop()); };
  } else if (!(session_->focus() == focus) && knows_invalidated_) {
    after_ = [this] { send_event("invalidated", {{"areas", {"threads", "variables"}}}); };
  }
  if (!done.is_good) {
    throw RequestError(done.error);
  }
  return {{"result", done.text}, {"variablesReference", 0}};
}

Json DapServer::on_evaluate(const Json& arguments) {
  const std::string expression = need_string(arguments, "expression");
  std::string reason;
  if (find_string(arguments, "context").value_or("") == "repl" &&
      find_command(expression, reason).command != nullptr) {
    return run_command(expression);
  }
  const Focus focus = frame_focus(arguments);
  std::string error;
  const std::optional<Evaluated> value = evaluate(expression, focus, error);
  if (!value) {
    throw RequestError(error);
  }
  Json result = variable("result", expression, focus, *value);
  result["result"] = result.at("value");
  result.erase("value");
  result.erase("name");
  result.erase("evaluateName");
  return result;
}

Json DapServer::on_completions(const Json& arguments) {
  const std::string text = need_string(arguments, "text");
  const int64_t column = need_integer(arguments, "column") - (columns_start_at_1_ ? 1 : 0);
  const size_t end = std::min(static_cast<size_t>(std::max<int64_t>(column, 0)), text.size());
  size_t begin = end;
  while (begin > 0 && (std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0 ||
                       text[begin - 1] == '_' || text[begin - 1] == '$')) {
    --begin;
  }
  const std::string word = text.substr(begin, end - begin);
  const sim::Program& program = session().program();
  std::vector<std::string> names = {"$block", "$core", "$cycle", "$lane", "$pc", "$warp"};
  for (uint32_t i = 0; i < program.reg32_limit(); ++i) {
    names.push_back(fmt::format("$r{}", i));
  }
  for (uint32_t i = 0; i < program.reg64_limit(); ++i) {
    names.push_back(fmt::format("$d{}", i));
  }
  for (const isa::Param& param : program.kernel().params) {
    names.push_back(param.name);
  }
  for (const isa::Symbol& symbol : program.object().symbols) {
    names.push_back(symbol.name);
  }
  Json targets = Json::array();
  for (const std::string& name : names) {
    if (name.starts_with(word)) {
      targets.push_back({{"label", name},
                         {"start", begin + (columns_start_at_1_ ? 1 : 0)},
                         {"length", word.size()}});
    }
  }
  return {{"targets", targets}};
}

Json DapServer::on_loaded_sources(const Json& /*arguments*/) {
  Json sources = Json::array();
  for (uint32_t i = 0; i < session().program().object().files.size(); ++i) {
    sources.push_back(source_of(i));
  }
  return {{"sources", sources}};
}

} // namespace pto::dbg
