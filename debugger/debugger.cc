// SPDX-License-Identifier: Apache-2.0
// Lines in, results out: dispatch, sessions, command lists, scripts.
#include "debugger/debugger.h"

#include "debugger/command.h"
#include "isa/error.h"
#include "isa/file_io.h"

#include <algorithm>

namespace pto::dbg {

Debugger::Debugger(TargetOptions target) : target_(std::move(target)) {}
Debugger::~Debugger() = default;

// ---------------------------------------------------------------- results

bool Debugger::fail_text(const std::string& message) {
  result_.is_good = false;
  result_.error += message;
  if (!result_.error.ends_with('\n')) {
    result_.error += '\n';
  }
  return false;
}

bool Debugger::fail_with(const isa::Diagnostics& diags) {
  std::string text = isa::render(diags);
  constexpr std::string_view kPrefix = "error: ";
  // One without a place; of several, each keeps what sets it apart.
  if (text.starts_with(kPrefix) && text.find("\nerror: ") == std::string::npos) {
    text.erase(0, kPrefix.size());
  }
  return fail_text(text);
}

Session* Debugger::need_session() {
  if (!session_) {
    fail("no kernel is running; 'run' or 'start' launches one");
  }
  return session_.get();
}

const sim::BlockRun* Debugger::need_block() {
  Session* session = need_session();
  if (session == nullptr) {
    return nullptr;
  }
  const sim::BlockRun* run = session->focused_block();
  if (run == nullptr) {
    const bool is_waiting = session->phase(session->focus().block) == BlockPhase::kWaiting;
    fail("block {} has {}; 'info blocks' shows which are resident{}",
         session->focus().block,
         is_waiting ? "not started yet" : "ended",
         is_waiting ? "" : ", 'reverse-step' goes back");
  }
  return run;
}

std::optional<uint32_t> Debugger::here() const {
  return session_ ? session_->here() : std::nullopt;
}

const sim::Program* Debugger::need_program() {
  if (!program_) {
    fail("no program is loaded; 'file NAME.pto' loads one");
  }
  return program_.get();
}

StopTable& Debugger::stops() {
  return session_ ? session_->stops() : stops_;
}

bool Debugger::has_kernel_failed() const {
  return session_ && (session_->fault().has_value() || !session_->findings().empty());
}

void Debugger::interrupt() {
  is_interrupted_ = true;
  if (Session* session = running_.load()) {
    session->interrupt();
  }
}

bool Debugger::evaluate(std::string_view text, Evaluated& value) {
  Session* session = need_session();
  if (session == nullptr) {
    return false;
  }
  std::string error;
  const auto expression = Expression::parse(trim(text), session->program(), error);
  if (!expression) {
    return fail_text(error);
  }
  EvalContext context = session->context();
  context.history = values_;
  std::optional<Evaluated> result = expression->evaluate(context, error);
  if (!result) {
    return fail_text(error);
  }
  value = std::move(*result);
  return true;
}

const std::vector<std::string>* Debugger::source_lines(const std::string& file) {
  const auto known = sources_.find(file);
  if (known != sources_.end()) {
    return known->second.empty() ? nullptr : &known->second;
  }
  std::vector<std::string>& lines = sources_[file];
  std::string error;
  const std::optional<std::vector<std::byte>> bytes = isa::read_file(file, error);
  if (!bytes) {
    return nullptr;
  }
  std::string line;
  for (const std::byte byte : *bytes) {
    const char c = static_cast<char>(byte);
    if (c == '\n') {
      lines.push_back(std::exchange(line, {}));
    } else if (c != '\r') {
      line += c == '\t' || static_cast<unsigned char>(c) >= 32 ? c : '?';
    }
  }
  if (!line.empty()) {
    lines.push_back(line);
  }
  return lines.empty() ? nullptr : &lines;
}

// ---------------------------------------------------------------- sessions

CommandResult Debugger::open() {
  result_ = {};
  if (!target_.file.empty()) {
    (void)load();
  }
  return std::move(result_);
}

CommandResult Debugger::check_target() {
  result_ = {};
  isa::Diagnostics diags;
  int exit_status = 1;
  bool is_good = true;
  if (program_ && !target_.args.empty()) {
    prepared_ = make_target(target_, *program_, diags, exit_status);
    prepared_for_ = target_;
    is_good = prepared_.has_value();
  } else if (!target_.profile.empty() || !target_.overrides.empty()) {
    const std::string named = program_ ? program_->object().machine : "";
    is_good = load_machine_of(target_, named, diags, exit_status).has_value();
  }
  if (!is_good) {
    result_.exit_status = exit_status;
    static_cast<void>(fail_with(diags));
  }
  return std::move(result_);
}

bool Debugger::load() {
  isa::Diagnostics diags;
  std::shared_ptr<const sim::Program> program = load_kernel(target_, diags);
  if (!program) {
    return fail_with(diags);
  }
  kill();
  prepared_.reset();
  program_ = std::move(program);
  sources_.clear();
  values_.clear();
  list_line = 0;
  // Stop points mean the same places in the new program, where it has them.
  std::vector<int> lost;
  for (StopPoint& point : stops_.all()) {
    std::string error;
    if (point.kind == StopKind::kBreak) {
      const auto pcs = find_location(*program_, point.text, std::nullopt, error);
      if (!pcs) {
        lost.push_back(point.id);
        print("{} is deleted: {}\n", point.id, error);
        continue;
      }
      point.pcs = *pcs;
    } else if (point.kind == StopKind::kWatch) {
      lost.push_back(point.id);
      print("Watchpoint {} is deleted: the program was loaded anew.\n", point.id);
      continue;
    }
    const std::string condition = point.condition_text;
    if (!set_condition(point, condition, *program_, error)) {
      lost.push_back(point.id);
      print("{} is deleted: {}\n", point.id, error);
    }
  }
  for (const int id : lost) {
    stops_.erase(id);
  }
  return true;
}

bool Debugger::launch() {
  if (need_program() == nullptr) {
    return false;
  }
  isa::Diagnostics diags;
  std::optional<Target> target;
  try {
    target = std::exchange(prepared_, std::nullopt);
    if (!target || !(prepared_for_ == target_)) {
      target.reset(); // its memory, before more is taken
      int exit_status = 0;
      target = make_target(target_, *program_, diags, exit_status);
    }
    if (!target) {
      return fail_with(diags);
    }
    kill();
    SessionOptions options;
    options.mode = settings_.is_lockstep ? RunMode::kLockstep : RunMode::kTimed;
    options.checks = target_.checks;
    options.history_bytes = settings_.history_mb << 20;
    options.max_insns = settings_.max_insns;
    options.max_cycles = settings_.max_cycles;
    machine_ = std::make_unique<Target>(std::move(*target));
    session_ = std::make_unique<Session>(
        *machine_->machine, program_, machine_->config, std::move(options), nullptr, stops_);
    running_ = session_.get();
  } catch (const Error& error) {
    session_.reset();
    machine_.reset();
    running_ = nullptr;
    return fail_text(error.what());
  }
  checkpoints_.clear();
  list_line = 0;
  return true;
}

void Debugger::kill() {
  running_ = nullptr;
  if (session_) {
    stops_ = session_->release_stops();
  }
  session_.reset();
  machine_.reset();
}

// ---------------------------------------------------------------- lines

CommandResult Debugger::execute(std::string_view line) {
  result_ = {};
  if (const size_t nul = line.find('\0'); nul != std::string_view::npos) {
    (void)fail("the command has a NUL character, at column {}; commands are text", nul + 1);
    return std::move(result_);
  }
  line = trim(line);
  if (!commands_for_.empty()) {
    (void)collect(line);
    return std::move(result_);
  }
  if (line.empty() || line[0] == '#') {
    return std::move(result_);
  }
  repeat_.clear();
  is_interrupted_ = false;
  running_ = session_.get();
  (void)dispatch(line);
  running_ = nullptr; // Ctrl-C at a prompt stops nothing later on
  return std::move(result_);
}

bool Debugger::dispatch(std::string_view line) {
  constexpr int kMaxDepth = 32;
  if (depth_ >= kMaxDepth) {
    return fail("scripts and command lists are nested {} deep; that is too deep", kMaxDepth);
  }
  const std::string translated = translate(line);
  std::string error;
  const FoundCommand found = find_command(translated, error);
  if (found.command == nullptr) {
    return fail_text(error);
  }
  if (found.command->usage == found.command->name && !found.arguments.empty()) {
    return fail("'{}' takes no arguments, but '{}' follows; 'help {}' explains it",
                found.command->name,
                found.arguments,
                found.command->name);
  }
  ++depth_;
  bool is_good = false;
  try {
    is_good = found.command->run(*this, found.arguments);
  } catch (const Error& problem) {
    is_good = fail_text(problem.what());
  }
  --depth_;
  if (found.command->repeats && repeat_.empty() && depth_ == 0) {
    repeat_ = line;
  }
  return is_good;
}

bool Debugger::collect(std::string_view line) {
  if (line != "end") {
    collected_.emplace_back(line);
    return true;
  }
  for (const int id : commands_for_) {
    if (StopPoint* point = stops().find(id)) {
      point->commands = collected_;
    }
  }
  commands_for_.clear();
  collected_.clear();
  return true;
}

bool Debugger::run_script(const std::string& path) {
  std::string error;
  const std::optional<std::vector<std::byte>> bytes = isa::read_file(path, error);
  if (!bytes) {
    return fail_text(error);
  }
  std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (text.find('\0') != std::string::npos) {
    return fail("{}: there are NUL characters in it, so it is no file of commands", path);
  }
  uint64_t number = 0;
  std::string_view rest = text;
  while (!rest.empty() && !result_.is_quit) {
    const size_t end = rest.find('\n');
    const std::string_view line = trim(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    ++number;
    if (!commands_for_.empty()) {
      (void)collect(line);
      continue;
    }
    if (line.empty() || line[0] == '#') {
      continue;
    }
    if (!dispatch(line)) {
      return fail("{}:{}: the script ends here", path, number);
    }
    if (is_interrupted_) {
      return fail("{}:{}: interrupted; the script ends here", path, number);
    }
  }
  if (!commands_for_.empty()) {
    commands_for_.clear();
    collected_.clear();
    return fail("{}: 'end' is missing after 'commands'", path);
  }
  return true;
}

bool Debugger::report(const StopEvent& stop) {
  list_line = 0;
  print("{}", describe_trace(*session_, settings_.lanes_shown));
  print("{}", describe_stop(*session_, stop));
  result_.data["stop"] = stop_json(*session_, stop);
  for (const Display& display : displays_) {
    Evaluated value;
    const std::string kept = result_.error;
    const bool was_good = result_.is_good;
    if (evaluate(display.text, value)) {
      print("{}: {} = {}\n",
            display.id,
            display.text,
            format_evaluated(value, display.format, settings_.elements));
    } else {
      print("{}: {} = <{}>\n", display.id, display.text, trim(result_.error));
      result_.error = kept;
      result_.is_good = was_good;
    }
  }
  for (const std::string& command : stop.commands) {
    if (!dispatch(command) || result_.is_quit || !session_) {
      break;
    }
  }
  return result_.is_good;
}

} // namespace pto::dbg
