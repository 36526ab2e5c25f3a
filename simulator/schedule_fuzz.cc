// SPDX-License-Identifier: Apache-2.0
// The orders, their comparison and what is said about it.
#include "simulator/schedule_fuzz.h"

#include "isa/insn_desc.h"
#include "simulator/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace pto::sim {
namespace {

constexpr std::string_view kTimed = "timed";
constexpr std::string_view kFunctional = "functional";

std::string order_of(const SimOptions& options) {
  if (options.is_functional) {
    return std::string(kFunctional);
  }
  return options.schedule.empty() ? std::string(kTimed) : options.schedule;
}

SimOptions with_order(const SimOptions& options, const std::string& order) {
  SimOptions changed = options;
  changed.is_functional = order == kFunctional;
  changed.schedule = order == kFunctional || order == kTimed ? std::string() : order;
  changed.checks = {};
  changed.is_quiet = true;
  return changed;
}

/// The reference and those that every search tries.
std::vector<std::string> fixed_orders(const SimOptions& options) {
  std::vector<std::string> list = {order_of(options)};
  const auto add = [&](std::string order) {
    if (order != list.front()) {
      list.push_back(std::move(order));
    }
  };
  for (const std::string_view fixed : {kTimed, kFunctional}) {
    add(std::string(fixed));
  }
  add("lockstep");
  add("greedy");
  return list;
}

bool is_compared(const SimOptions& options, const std::string& name) {
  const auto is_named = [&](const NamedFile& file) { return file.name == name; };
  return (options.outs.empty() && options.expects.empty()) ||
         std::any_of(options.outs.begin(), options.outs.end(), is_named) ||
         std::any_of(options.expects.begin(), options.expects.end(), is_named);
}

/// Where the arrays differ, to the bit; nothing if they do not.
std::optional<ScheduleDifference>
compare(const std::string& name, const HostArray& first, const HostArray& other) {
  if (first.data == other.data) {
    return std::nullopt;
  }
  const ElementType type = first.element.value_or(ElementType{ElementClass::kBits, 1});
  const size_t size = type.size_bytes;
  ScheduleDifference difference;
  difference.array = name;
  difference.count = first.data.size() / size;
  for (uint64_t i = 0; i < difference.count; ++i) {
    const std::byte* a = first.data.data() + i * size;
    const std::byte* b = other.data.data() + i * size;
    if (std::equal(a, a + size, b)) {
      continue;
    }
    if (difference.differing++ == 0) {
      difference.index = i;
      difference.element = name + index_to_string(i, first.shape);
      difference.first_value = format_element(type, a);
      difference.other_value = format_element(type, b);
    }
  }
  return difference;
}

/// Atomics on floats round in the order of arrival.
bool has_float_atomics(const Program& program) {
  const std::vector<ProgramInsn>& insns = program.insns();
  return std::any_of(insns.begin(), insns.end(), [](const ProgramInsn& decoded) {
    return decoded.insn.desc->has(isa::kAtomic) && isa::is_float(decoded.insn.type);
  });
}

bool has_read_atomics(const Program& program) {
  const std::vector<ProgramInsn>& insns = program.insns();
  return std::any_of(insns.begin(), insns.end(), [](const ProgramInsn& decoded) {
    return decoded.insn.desc->has(isa::kAtomic) &&
           decoded.insn.operands[0].kind != isa::OperandKind::kDiscard;
  });
}

} // namespace

ScheduleFuzz fuzz_schedules(const SimOptions& options,
                            const std::shared_ptr<const Program>& program,
                            const std::vector<Argument>& arguments,
                            const KernelRun& reference,
                            const std::atomic<bool>& interrupt) {
  ScheduleFuzz fuzz;
  if (program->reads_clock()) {
    fuzz.skipped = "the kernel reads %clock, so its results may depend on the order";
    return fuzz;
  }
  const std::vector<std::string> fixed = fixed_orders(options);
  for (const Argument& argument : arguments) {
    if (argument.param.is_pointer && is_compared(options, argument.param.name)) {
      fuzz.arrays.push_back(argument.param.name);
    }
  }
  fuzz.tried.push_back(fixed.front());
  const auto is_order = [&](uint64_t i) {
    return i < fixed.size() || i - fixed.size() < options.schedule_fuzz;
  };
  for (uint64_t i = 1; is_order(i) && !fuzz.difference; ++i) {
    const std::string order =
        i < fixed.size() ? fixed[i] : fmt::format("random:{}", i - fixed.size() + 1);
    if (order == fixed.front()) {
      continue; // --schedule random:SEED is the reference
    }
    const KernelRun run =
        run_kernel(with_order(options, order), program, arguments, reference.profile, interrupt);
    if (run.result.status == RunStatus::kInterrupted) {
      fuzz.is_interrupted = true;
      return fuzz;
    }
    fuzz.tried.push_back(order);
    std::optional<ScheduleDifference> difference;
    if (run.result.status != reference.result.status) {
      difference.emplace();
      difference->other_fault = run.result.fault ? run.result.fault->message : std::string();
    } else if (run.is_completed()) {
      for (size_t a = 0; a < arguments.size() && !difference; ++a) {
        const isa::Param& param = arguments[a].param;
        if (param.is_pointer && is_compared(options, param.name)) {
          difference = compare(param.name, reference.arrays[a], run.arrays[a]);
        }
      }
    }
    if (difference) {
      difference->first = fixed.front();
      difference->other = order;
      difference->first_status = reference.result.status;
      difference->other_status = run.result.status;
      fuzz.difference = std::move(difference);
    }
  }
  return fuzz;
}

std::string describe(const ScheduleFuzz& fuzz, const Program& program) {
  if (!fuzz.skipped.empty()) {
    return fmt::format("schedules: not compared: {}\n", fuzz.skipped);
  }
  if (!fuzz.difference) {
    const std::string end = fuzz.is_interrupted ? ", then interrupted" : "";
    if (fuzz.tried.size() == 1) {
      return fmt::format("schedules: {} only{}\n", fuzz.tried.front(), end);
    }
    return fmt::format("schedules: {} gave the same {}: {}, ... {}{}\n",
                       fuzz.tried.size(),
                       fuzz.arrays.empty() ? "end"
                                           : fmt::format("{}", fmt::join(fuzz.arrays, ", ")),
                       fuzz.tried.front(),
                       fuzz.tried.back(),
                       end);
  }
  const ScheduleDifference& difference = *fuzz.difference;
  std::string text;
  if (!difference.is_value()) {
    text =
        fmt::format("schedules disagree: the run ends with '{}' under {} and with '{}' under {}\n",
                    name(difference.first_status),
                    difference.first,
                    name(difference.other_status),
                    difference.other);
    if (!difference.other_fault.empty()) {
      text += fmt::format("    under {}: {}\n", difference.other, difference.other_fault);
    }
  } else {
    text =
        fmt::format("schedules disagree: {} is {} under {} and {} under {}; {} of {} elements of "
                    "{} differ\n",
                    difference.element,
                    difference.first_value,
                    difference.first,
                    difference.other_value,
                    difference.other,
                    difference.differing,
                    difference.count,
                    difference.array);
  }
  text += fmt::format("    run it again: {} and --schedule {}\n",
                      difference.first == kFunctional ? "--functional"
                                                      : "--schedule " + difference.first,
                      difference.other);
  if (has_float_atomics(program)) {
    text += "    hint: float atomics round in the order of arrival, which no schedule promises\n";
  } else if (has_read_atomics(program)) {
    text +=
        "    hint: --checks=race names accesses that nothing orders; what an atomic returns may "
        "depend on the order without a race\n";
  } else {
    text += "    hint: --checks=race names the two accesses that nothing orders\n";
  }
  return text;
}

} // namespace pto::sim
