// SPDX-License-Identifier: Apache-2.0
// Exceptions of the libraries as classes of pypto.errors, with their numbers as attributes.
#include "pybind/bindings.h"

#include <new>
#include <stdexcept>
#include <utility>

namespace pto::py {

namespace {

namespace pyb = pybind11;

void raise(const char* class_name, const char* message, const pyb::dict& attributes = {}) {
  try {
    const pyb::object type = pyb::module_::import("pypto.errors").attr(class_name);
    const pyb::object error = type(pyb::str(message));
    for (const auto& [name, value] : attributes) {
      error.attr(name) = value;
    }
    PyErr_SetObject(type.ptr(), error.ptr());
  } catch (const pyb::error_already_set&) {
    // The interpreter is going down and its modules with it: the message is what is left.
    PyErr_SetString(PyExc_RuntimeError, message);
  }
}

void raise_kernel_error(const rt::KernelError& error) {
  pyb::dict attributes;
  attributes["kernel"] = error.program().kernel().name;
  attributes["status"] = std::string(name(error.status()));
  attributes["program_key"] = reinterpret_cast<uintptr_t>(&error.program());
  if (error.fault()) {
    for (const auto& [name, value] : fault_dict(*error.fault(), error.program())) {
      attributes[name] = value;
    }
  }
  raise("KernelError", error.what(), attributes);
}

const char* kind_name(sim::LaunchErrorKind kind) {
  static constexpr const char* kNames[] = {"block_size",
                                           "grid_size",
                                           "register_budget",
                                           "argument_count",
                                           "argument_type",
                                           "scratchpad"};
  return kNames[static_cast<unsigned>(kind)];
}

void translate(std::exception_ptr pointer) {
  using pyb::arg;
  try {
    if (pointer) {
      std::rethrow_exception(std::move(pointer));
    }
  } catch (const rt::KernelError& error) {
    raise_kernel_error(error);
  } catch (const rt::DeviceUnavailableError& error) {
    raise("DeviceUnavailableError", error.what(), pyb::dict(arg("tried") = error.tried()));
  } catch (const rt::FreedBufferError& error) {
    raise("FreedTensorError",
          error.what(),
          pyb::dict(arg("nbytes") = error.size_bytes(), arg("freed_by") = error.freed_by()));
  } catch (const rt::CopySizeError& error) {
    raise("CopySizeError",
          error.what(),
          pyb::dict(arg("tensor_nbytes") = error.buffer_bytes(),
                    arg("offset") = error.offset(),
                    arg("copy_nbytes") = error.copy_bytes()));
  } catch (const rt::UnknownKernelError& error) {
    raise("UnknownKernelError", error.what(), pyb::dict(arg("kernel") = error.kernel()));
  } catch (const rt::WrongDeviceError& error) {
    raise("WrongDeviceError", error.what());
  } catch (const rt::InterruptedError& error) {
    raise("LaunchInterrupted", error.what());
  } catch (const rt::DeviceError& error) {
    raise("DeviceError", error.what());
  } catch (const sim::LaunchError& error) {
    raise("LaunchError", error.what(), pyb::dict(arg("kind") = kind_name(error.kind())));
  } catch (const sim::HbmError& error) {
    raise("AllocationError", error.what());
  } catch (const DebugError& error) {
    raise("DebugError", error.what());
  } catch (const InputError& error) {
    raise("InputError", error.what());
  } catch (const Error& error) {
    raise("PtoError", error.what());
  } catch (const InternalError& error) {
    raise("InternalError", error.what());
  } catch (const std::bad_alloc&) {
    raise("AllocationError", "the host has not so much memory");
  } catch (const std::length_error&) { // a size beyond what any memory could hold
    raise("AllocationError", "the host has not so much memory");
  }
}

} // namespace

void bind_errors(pyb::module_& /*module*/) {
  pyb::register_local_exception_translator(&translate);
}

} // namespace pto::py
