// SPDX-License-Identifier: Apache-2.0
// The instruction table, objects, the assembler and machine profiles.
#include "assembler/assemble.h"
#include "assembler/disassemble.h"
#include "isa/machine.h"
#include "isa/manual.h"
#include "pybind/bindings.h"
#include "runtime/npu/ascendc_emitter.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pto::py {

namespace {

namespace pyb = pybind11;

std::span<const uint8_t> as_span(std::string_view bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

pyb::bytes object_bytes(const isa::Object& object) {
  std::string error;
  const std::optional<std::vector<uint8_t>> bytes = isa::write_object(object, error);
  if (!bytes) {
    throw InputError(error);
  }
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

pyb::bytes assemble(const std::string& text, const std::string& filename) {
  isa::Diagnostics diags;
  as::AssembleOptions options;
  options.run_lints = false;
  const std::optional<isa::Object> object = as::assemble_text(filename, text, options, diags);
  if (!object) {
    throw InputError(isa::render(diags));
  }
  return object_bytes(*object);
}

/// A file of either kind as object bytes.
pyb::bytes load_file(const std::string& path) {
  isa::Diagnostics diags;
  as::AssembleOptions options;
  options.run_lints = false;
  const std::optional<isa::Object> object = as::load_program(path, options, diags);
  if (!object) {
    throw InputError(isa::render(diags));
  }
  return object_bytes(*object);
}

std::string emit_ascendc(std::string_view bytes) {
  isa::Diagnostics diags;
  const std::optional<rt::AscendC> file =
      rt::emit_ascendc(read_object_or_throw(bytes), rt::EmitOptions{}, diags);
  if (!file) {
    throw InputError(isa::render(diags));
  }
  return file->text;
}

std::string object_info(std::string_view bytes) {
  const isa::Object object = read_object_or_throw(bytes);
  auto kernels = nlohmann::ordered_json::array();
  for (const isa::Function& function : object.functions) {
    if (!function.is_kernel) {
      continue;
    }
    auto params = nlohmann::ordered_json::array();
    for (const isa::Param& param : function.params) {
      params.push_back({{"name", param.name},
                        {"is_pointer", param.is_pointer},
                        {"type", isa::name(param.is_pointer ? param.element : param.type)}});
    }
    kernels.push_back({{"name", function.name},
                       {"registers", function.register_use()},
                       {"reg32", function.reg32_count},
                       {"reg64", function.reg64_count},
                       {"l1_bytes", function.l1_bytes},
                       {"max_lanes", function.max_lanes},
                       {"insn_count", function.insn_count},
                       {"params", params}});
  }
  return kernels.dump();
}

isa::MachineProfile load_profile(const std::string& name) {
  isa::ProfileIssues issues;
  std::optional<isa::MachineProfile> profile = isa::load_machine(name, issues);
  if (!profile) {
    throw InputError(isa::to_string(issues));
  }
  return std::move(*profile);
}

void bind_machine(pyb::module_& module) {
  pyb::class_<isa::MachineProfile>(module, "MachineProfile")
      .def_static("load", &load_profile)
      .def_static("parse",
                  [](const std::string& text, const std::string& name) {
                    isa::ProfileIssues issues;
                    std::optional<isa::MachineProfile> profile = isa::parse_machine(
                        text,
                        name,
                        [](std::string_view base) -> std::optional<std::string> {
                          const auto shipped = isa::shipped_machine_text(base);
                          return shipped ? std::optional<std::string>(*shipped) : std::nullopt;
                        },
                        issues);
                    if (!profile) {
                      throw InputError(isa::to_string(issues));
                    }
                    return std::move(*profile);
                  })
      .def("set",
           [](isa::MachineProfile& profile, const std::string& assignment) {
             isa::ProfileIssues issues;
             if (!isa::apply_override(profile, assignment, issues)) {
               throw InputError(isa::to_string(issues));
             }
           })
      .def("copy", [](const isa::MachineProfile& profile) { return profile; })
      .def("to_json", &isa::to_json_text)
      .def_readonly("name", &isa::MachineProfile::name)
      .def_readonly("description", &isa::MachineProfile::description)
      .def_readonly("clock_mhz", &isa::MachineProfile::clock_mhz)
      .def_readonly("cores", &isa::MachineProfile::cores);
  module.def("machine_names", &isa::shipped_machine_names);
}

} // namespace

std::span<const uint8_t> readable_bytes(const pyb::buffer_info& info) {
  return {static_cast<const uint8_t*>(info.ptr), static_cast<size_t>(info.size * info.itemsize)};
}

std::span<uint8_t> writable_bytes(const pyb::buffer_info& info) {
  return {static_cast<uint8_t*>(info.ptr), static_cast<size_t>(info.size * info.itemsize)};
}

isa::Object read_object_or_throw(std::string_view bytes) {
  std::string error;
  std::optional<isa::Object> object = isa::read_object(as_span(bytes), error);
  if (!object) {
    throw InputError("not a PTO object: " + error);
  }
  return std::move(*object);
}

void bind_isa(pyb::module_& module) {
  module.def("instruction_table_json", &isa::list_insns_json);
  module.def("assemble", &assemble);
  module.def("load_file", &load_file);
  module.def("emit_ascendc", [](const pyb::bytes& bytes) { return emit_ascendc(bytes); });
  module.def("object_info", [](const pyb::bytes& bytes) { return object_info(bytes); });
  module.def("disassemble", [](const pyb::bytes& bytes) {
    return as::disassemble(read_object_or_throw(std::string_view(bytes)), {.with_loc = false});
  });
  bind_machine(module);

  pyb::class_<ProgramHandle>(module, "Program")
      .def(pyb::init([](const pyb::bytes& bytes, const std::string& kernel) {
        auto object =
            std::make_shared<const isa::Object>(read_object_or_throw(std::string_view(bytes)));
        return ProgramHandle{rt::find_kernel(std::move(object), kernel)};
      }))
      .def_property_readonly("key", &ProgramHandle::key)
      .def_property_readonly(
          "size", [](const ProgramHandle& handle) { return handle.program->insns().size(); })
      .def_property_readonly(
          "name", [](const ProgramHandle& handle) { return handle.program->kernel().name; })
      .def("labels", [](const ProgramHandle& handle) {
        std::vector<std::pair<std::string, uint32_t>> labels;
        for (const isa::Label& label : handle.program->kernel().labels) {
          labels.emplace_back(label.name, label.pc);
        }
        return labels;
      });
}

} // namespace pto::py
