// SPDX-License-Identifier: Apache-2.0
// Breakpoints of every kind. Each request replaces the client's earlier ones of its kind.
#include "debugger/dap/server.h"
#include "debugger/dap/server_impl.h"
#include "simulator/fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <utility>

namespace pto::dbg {
namespace {

/// "5" or ">= 5": stop at the fifth hit and later ones.
std::optional<uint64_t> hit_count(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  std::string_view digits = text;
  if (digits.starts_with(">=")) {
    digits.remove_prefix(2);
  }
  uint64_t count = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (status != std::errc() || end != digits.data() + digits.size() || count == 0) {
    return std::nullopt;
  }
  return count;
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::equivalent(a, b, error);
}

} // namespace

std::optional<uint32_t> DapServer::find_file(const Json& source) const {
  const std::string path =
      find_string(source, "path").value_or(find_string(source, "name").value_or(""));
  const std::vector<std::string>& files = session_->program().object().files;
  for (uint32_t i = 0; i < files.size(); ++i) {
    if (is_same_file(files[i], path)) {
      return i;
    }
  }
  // An object names files as they were called when it was assembled, perhaps elsewhere.
  std::optional<uint32_t> found;
  for (uint32_t i = 0; i < files.size(); ++i) {
    if (std::filesystem::path(files[i]).filename() == std::filesystem::path(path).filename()) {
      if (found) {
        return std::nullopt;
      }
      found = i;
    }
  }
  return found;
}

void DapServer::remove(std::vector<int>& ids) {
  for (const int id : ids) {
    static_cast<void>(session_->stops().erase(id));
    log_points_.erase(id);
    break_reasons_.erase(id);
  }
  ids.clear();
  session_->stops_changed();
}

/// `wish` may hold condition, hitCondition and logMessage. The protocol's Breakpoint comes back.
Json DapServer::add_break(const std::string& location, const Json& wish, std::vector<int>& ids) {
  std::string error;
  const std::string condition = find_string(wish, "condition").value_or("");
  const std::string hits = find_string(wish, "hitCondition").value_or("");
  std::optional<uint64_t> count;
  if (!hits.empty()) {
    count = hit_count(hits);
    if (!count) {
      return {
          {"verified", false},
          {"message",
           fmt::format("hit condition '{}' is not understood; expected a number of hits such as "
                       "5 or >= 5",
                       hits)}};
    }
  }
  const std::optional<int> id = session_->add_break(location, condition, error);
  if (!id) {
    return {{"verified", false}, {"message", error}};
  }
  ids.push_back(*id);
  StopPoint& point = *session_->stops().find(*id);
  if (count) {
    point.ignore = *count - 1;
  }
  const std::string message = find_string(wish, "logMessage").value_or("");
  if (!message.empty()) {
    log_points_[*id] = message;
  }
  session_->stops_changed();
  Json result = {{"id", *id}, {"verified", true}};
  if (!point.pcs.empty()) {
    const isa::SourceLoc loc = session_->program().loc(point.pcs.front());
    result["instructionReference"] = code_address(point.pcs.front());
    if (loc.line != 0) {
      result["line"] = loc.line - (lines_start_at_1_ ? 0 : 1);
      result["source"] = source_of(loc.file);
    }
  }
  return result;
}

Json DapServer::on_set_breakpoints(const Json& arguments) {
  const auto source = arguments.find("source");
  if (source == arguments.end() || !source->is_object()) {
    throw RequestError("'source' is missing; expected an object with a path");
  }
  const std::string path =
      find_string(*source, "path").value_or(find_string(*source, "name").value_or(""));
  const std::optional<uint32_t> file = find_file(*source);
  std::vector<int>& ids = source_breaks_[path];
  remove(ids);
  Json breakpoints = Json::array();
  const isa::Object& object = session_->program().object();
  for (const Json& wish : find_array(arguments, "breakpoints")) {
    const int64_t line = need_integer(wish, "line") + (lines_start_at_1_ ? 0 : 1);
    if (!file) {
      breakpoints.push_back({{"verified", false},
                             {"message",
                              fmt::format("the program was not assembled from {}; its files are {}",
                                          path,
                                          fmt::join(object.files, ", "))}});
      continue;
    }
    const uint64_t with_insn =
        line < 1 ? 0 : line_with_insn(session_->program(), *file, static_cast<uint64_t>(line));
    if (with_insn == 0) {
      breakpoints.push_back(
          {{"verified", false},
           {"message",
            fmt::format("no instruction at or behind line {} of {}", line, object.files[*file])}});
      continue;
    }
    Json added = add_break(fmt::format("{}:{}", object.files[*file], with_insn), wish, ids);
    breakpoints.push_back(std::move(added));
  }
  return {{"breakpoints", breakpoints}};
}

Json DapServer::on_set_function_breakpoints(const Json& arguments) {
  remove(function_breaks_);
  Json breakpoints = Json::array();
  for (const Json& wish : find_array(arguments, "breakpoints")) {
    const size_t before = function_breaks_.size();
    breakpoints.push_back(add_break(need_string(wish, "name"), wish, function_breaks_));
    if (function_breaks_.size() > before) {
      break_reasons_[function_breaks_.back()] = "function breakpoint";
    }
  }
  return {{"breakpoints", breakpoints}};
}

Json DapServer::on_set_instruction_breakpoints(const Json& arguments) {
  remove(insn_breaks_);
  Json breakpoints = Json::array();
  for (const Json& wish : find_array(arguments, "breakpoints")) {
    const std::string reference = need_string(wish, "instructionReference");
    const size_t before = insn_breaks_.size();
    const std::optional<uint64_t> address = parse_code_address(reference);
    const int64_t offset = find_integer(wish, "offset").value_or(0);
    const int64_t pc_bytes = address ? static_cast<int64_t>(*address - kCodeBase) + offset : -1;
    const int64_t limit =
        static_cast<int64_t>(session_->program().object().code.size() * kCodeStride);
    if (!address || pc_bytes < 0 || pc_bytes >= limit || pc_bytes % kCodeStride != 0) {
      breakpoints.push_back(
          {{"verified", false},
           {"message",
            fmt::format("{} + {} is no address of an instruction; they are 0x{:x} to "
                        "0x{:x} in steps of {}",
                        reference,
                        offset,
                        kCodeBase,
                        kCodeBase + static_cast<uint64_t>(limit) - kCodeStride,
                        kCodeStride)}});
      continue;
    }
    breakpoints.push_back(add_break(
        fmt::format("*{}", pc_bytes / static_cast<int64_t>(kCodeStride)), wish, insn_breaks_));
    if (insn_breaks_.size() > before) {
      break_reasons_[insn_breaks_.back()] = "instruction breakpoint";
    }
  }
  return {{"breakpoints", breakpoints}};
}

Json DapServer::on_set_exception_breakpoints(const Json& arguments) {
  remove(catches_);
  Json breakpoints = Json::array();
  std::string error;
  for (const std::string& filter : find_strings(arguments, "filters")) {
    const std::optional<int> id = session_->add_catch(filter, error);
    if (!id) {
      breakpoints.push_back({{"verified", false}, {"message", error}});
      continue;
    }
    catches_.push_back(*id);
    breakpoints.push_back({{"id", *id}, {"verified", true}});
  }
  return {{"breakpoints", breakpoints}};
}

Json DapServer::on_data_breakpoint_info(const Json& arguments) {
  const std::string name = need_string(arguments, "name");
  Focus focus;
  std::string expression = name;
  if (const std::optional<int64_t> reference = find_integer(arguments, "variablesReference");
      reference && *reference > 0) {
    const VariableParent& parent = need_parent(*reference);
    expression = expression_of(parent, name);
    focus = parent.focus;
  } else {
    focus = frame_focus(arguments);
  }
  std::string error;
  const std::optional<Evaluated> value = evaluate(expression, focus, error);
  if (!value || value->place.kind == Place::Kind::kNone) {
    return {{"dataId", nullptr},
            {"description",
             value ? fmt::format("{} is no register and no memory", expression) : error}};
  }
  return {{"dataId", fmt::format("{}/{}/{}/{}", focus.block, focus.warp, focus.lane, expression)},
          {"description", expression},
          {"accessTypes", {"read", "write", "readWrite"}},
          {"canPersist", false}};
}

Json DapServer::on_set_data_breakpoints(const Json& arguments) {
  remove(data_breaks_);
  Json breakpoints = Json::array();
  const Focus before = session().focus();
  for (const Json& wish : find_array(arguments, "breakpoints")) {
    const std::string id_text = need_string(wish, "dataId");
    Focus focus;
    size_t used = 0;
    unsigned long long block = 0;
    int length = 0;
    if (std::sscanf(id_text.c_str(), "%llu/%u/%u/%n", &block, &focus.warp, &focus.lane, &length) ==
        3) {
      used = static_cast<size_t>(length);
      focus.block = block;
    }
    std::string error;
    if (used == 0 || !session_->set_focus(focus, error)) {
      breakpoints.push_back(
          {{"verified", false},
           {"message",
            used == 0 ? fmt::format("'{}' is no data id of this debugger", id_text) : error}});
      continue;
    }
    const std::string access = find_string(wish, "accessType").value_or("write");
    const WatchAccess kind = access == "read"        ? WatchAccess::kRead
                             : access == "readWrite" ? WatchAccess::kAny
                                                     : WatchAccess::kChange;
    const std::optional<int> id = session_->add_watch(
        id_text.substr(used), kind, find_string(wish, "condition").value_or(""), error);
    if (!id) {
      breakpoints.push_back({{"verified", false}, {"message", error}});
      continue;
    }
    data_breaks_.push_back(*id);
    breakpoints.push_back({{"id", *id}, {"verified", true}});
  }
  std::string ignored;
  static_cast<void>(session_->set_focus(before, ignored));
  return {{"breakpoints", breakpoints}};
}

Json DapServer::on_breakpoint_locations(const Json& arguments) {
  const auto source = arguments.find("source");
  if (source == arguments.end() || !source->is_object()) {
    throw RequestError("'source' is missing; expected an object with a path");
  }
  const std::optional<uint32_t> file = find_file(*source);
  const int64_t base = lines_start_at_1_ ? 0 : 1;
  const int64_t first = need_integer(arguments, "line") + base;
  const int64_t last = find_integer(arguments, "endLine").value_or(first - base) + base;
  std::set<uint32_t> lines;
  for (const isa::SourceLoc& loc : session_->program().object().locs) {
    if (file && loc.file == *file && loc.line != 0 && loc.line >= first && loc.line <= last) {
      lines.insert(loc.line);
    }
  }
  Json breakpoints = Json::array();
  for (const uint32_t line : lines) {
    breakpoints.push_back({{"line", line - base}});
  }
  return {{"breakpoints", breakpoints}};
}

Json DapServer::on_exception_info(const Json& /*arguments*/) {
  const sim::Program& program = session().program();
  if (last_.fault) {
    return {{"exceptionId", sim::name(last_.fault->kind)},
            {"description", sim::format_fault(*last_.fault, program)},
            {"breakMode", "always"},
            {"details", {{"message", last_.fault->message}, {"typeName", "fault"}}}};
  }
  if (last_.reason == StopReason::kCatchpoint && !last_.findings.empty()) {
    const sim::Finding& finding = last_.findings.front();
    return {{"exceptionId", sim::name(finding.kind)},
            {"description", sim::format_finding(finding, program)},
            {"breakMode", "always"},
            {"details", {{"message", finding.message}, {"typeName", "finding"}}}};
  }
  if (last_.reason == StopReason::kCatchpoint) {
    return {{"exceptionId", "catchpoint"}, {"breakMode", "always"}};
  }
  throw RequestError("the kernel has not stopped for a fault or a finding");
}

} // namespace pto::dbg
