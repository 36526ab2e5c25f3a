// SPDX-License-Identifier: Apache-2.0
// Devices, buffers, streams, launches and events.
#include "pybind/bindings.h"

#include <fmt/format.h>

namespace pto::py {

namespace {

namespace pyb = pybind11;

/// Each handle of the runtime with the device it belongs to, which waits need.
struct PyBuffer {
  rt::Device device;
  rt::Buffer buffer;
};
struct PyStream {
  rt::Device device;
  rt::Stream stream;
};
struct PyEvent {
  rt::Device device;
  rt::Event event;
};
struct PyTicket {
  rt::Device device;
  rt::Ticket ticket;
  std::shared_ptr<const sim::Program> program;
};
struct PyResult {
  rt::LaunchResult result;
  std::shared_ptr<const sim::Program> program;
};
using BufferHandle = OfProcess<PyBuffer>;
using StreamHandle = OfProcess<PyStream>;
using EventHandle = OfProcess<PyEvent>;
using TicketHandle = OfProcess<PyTicket>;

/// Called by whoever waits: lets Ctrl-C through.
void check_signals() {
  const pyb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) {
    throw pyb::error_already_set();
  }
}

DeviceHandle open_device(const std::string& name,
                         const std::string& profile,
                         const isa::MachineProfile* machine,
                         double noise,
                         uint64_t noise_seed,
                         unsigned host_threads) {
  rt::DeviceOptions options;
  options.profile = profile;
  if (machine != nullptr) {
    options.machine = *machine;
  }
  options.noise = noise;
  options.noise_seed = noise_seed;
  options.host_threads = host_threads;
  options.on_wait = &check_signals;
  return DeviceHandle(rt::Device::open(name, options));
}

rt::LaunchOptions to_options(const pyb::dict& given) {
  rt::LaunchOptions options;
  options.checks = read_checks_or_throw(given["checks"].cast<std::string>());
  const auto schedule = given["schedule"].cast<std::string>();
  if (!schedule.empty()) {
    std::string error;
    options.schedule = sim::parse_schedule(schedule, error);
    if (!options.schedule) {
      throw InputError(error);
    }
  }
  if (!given["timed"].is_none()) {
    options.is_timed = given["timed"].cast<bool>();
  }
  options.record_timeline = given["timeline"].cast<bool>();
  options.dynamic_l1_bytes = given["dynamic_l1"].cast<uint32_t>();
  if (!given["max_instructions"].is_none()) {
    options.max_insns = given["max_instructions"].cast<uint64_t>();
  }
  if (!given["max_cycles"].is_none()) {
    options.max_cycles = given["max_cycles"].cast<uint64_t>();
  }
  options.launched_by = given["launched_by"].cast<std::string>();
  return options;
}

TicketHandle launch(const DeviceHandle& handle,
                    const ProgramHandle& program,
                    const Dim& grid,
                    const Dim& block,
                    const pyb::list& args,
                    const StreamHandle* stream,
                    const pyb::dict& options) {
  rt::Device& device = *handle;
  rt::LaunchSpec spec{.program = program.program,
                      .grid = to_dim3(grid),
                      .block = to_dim3(block),
                      .args = {},
                      .options = to_options(options)};
  for (const pyb::handle& item : args) {
    spec.args.push_back(to_argument(item)); // `args` keeps the buffers alive
  }
  rt::Ticket ticket = waiting(device, [&] {
    return stream == nullptr ? device.launch(spec) : device.launch(spec, (*stream)->stream);
  });
  return TicketHandle(PyTicket{device, std::move(ticket), program.program});
}

void bind_device(pyb::module_& module) {
  pyb::class_<DeviceHandle>(module, "Device")
      .def(pyb::init(&open_device))
      .def_property_readonly("name", [](const DeviceHandle& self) { return self->info().name; })
      .def_property_readonly("kind", [](const DeviceHandle& self) { return self->info().kind; })
      .def_property_readonly("description",
                             [](const DeviceHandle& self) { return self->info().description; })
      .def_property_readonly("is_emulated",
                             [](const DeviceHandle& self) { return self->info().is_emulated; })
      .def_property_readonly("profile", [](const DeviceHandle& self) { return self->profile(); })
      .def(
          "alloc",
          [](const DeviceHandle& self, uint64_t size_bytes, std::string name, std::string made_by) {
            rt::Device& device = *self;
            return BufferHandle(
                PyBuffer{device, device.alloc(size_bytes, std::move(name), std::move(made_by))});
          })
      .def("launch", &launch)
      .def("make_stream",
           [](const DeviceHandle& self) {
             rt::Device& device = *self;
             return StreamHandle(PyStream{device, device.make_stream()});
           })
      .def("sync",
           [](const DeviceHandle& self) {
             rt::Device& device = *self;
             waiting(device, [&] { device.sync(); });
           })
      .def("interrupt", through(&rt::Device::interrupt))
      .def("wait_idle",
           [](const DeviceHandle& self, double seconds) {
             rt::Device& device = *self;
             return waiting(device, [&] { return device.wait_idle(seconds); });
           })
      .def("take_prints", through(&rt::Device::take_prints))
      .def("usage", [](const DeviceHandle& self) {
        const rt::Device::Usage usage = self->usage();
        return std::make_pair(usage.bytes, usage.buffers);
      });
  module.def("waiting_threads", [] { return Unlocked::count().load(); });
  module.def("probe_devices", [] {
    pyb::list result;
    for (const rt::DeviceProbe& probe : rt::probe_devices()) {
      result.append(pyb::make_tuple(probe.name, probe.is_usable, probe.summary, probe.tried));
    }
    return result;
  });
}

void bind_buffer(pyb::module_& module) {
  pyb::class_<BufferHandle>(module, "Buffer")
      .def_property_readonly("address",
                             [](const BufferHandle& self) { return self->buffer.address(); })
      .def_property_readonly("nbytes",
                             [](const BufferHandle& self) { return self->buffer.size_bytes(); })
      .def_property_readonly("name", [](const BufferHandle& self) { return self->buffer.name(); })
      .def_property_readonly("is_freed",
                             [](const BufferHandle& self) { return self->buffer.is_freed(); })
      .def("free",
           [](const BufferHandle& self, std::string where) { self->buffer.free(std::move(where)); })
      .def("write",
           [](const BufferHandle& self, const pyb::buffer& from, uint64_t offset) {
             const pyb::buffer_info info = from.request();
             PyBuffer& to = *self;
             waiting(to.device, [&] { to.buffer.write(readable_bytes(info), offset); });
           })
      .def("read",
           [](const BufferHandle& self, const pyb::buffer& to, uint64_t offset) {
             const pyb::buffer_info info = to.request(true);
             PyBuffer& from = *self;
             waiting(from.device, [&] { from.buffer.read(writable_bytes(info), offset); });
           })
      .def("wait", [](const BufferHandle& self) {
        PyBuffer& on = *self;
        waiting(on.device, [&] { on.buffer.wait(); });
      });
}

void bind_stream(pyb::module_& module) {
  pyb::class_<StreamHandle>(module, "Stream")
      .def("sync",
           [](const StreamHandle& self) {
             PyStream& on = *self;
             waiting(on.device, [&] { on.stream.sync(); });
           })
      .def("is_idle", [](const StreamHandle& self) { return self->stream.is_idle(); })
      .def("record",
           [](const StreamHandle& self) {
             return EventHandle(PyEvent{self->device, self->stream.record()});
           })
      .def("wait", [](const StreamHandle& self, const EventHandle& event) {
        self->stream.wait(event->event);
      });
  pyb::class_<EventHandle>(module, "Event")
      .def("is_done", [](const EventHandle& self) { return self->event.is_done(); })
      .def("wait", [](const EventHandle& self) {
        PyEvent& on = *self;
        waiting(on.device, [&] { on.event.wait(); });
      });
}

void bind_launch(pyb::module_& module) {
  pyb::class_<TicketHandle>(module, "Ticket")
      .def("is_done", [](const TicketHandle& self) { return self->ticket.is_done(); })
      .def("wait",
           [](const TicketHandle& self) {
             PyTicket& on = *self;
             waiting(on.device, [&] { on.ticket.wait(); });
           })
      .def("result", [](const TicketHandle& self) {
        PyTicket& of = *self;
        return PyResult{waiting(of.device, [&] { return of.ticket.result(); }), of.program};
      });
  pyb::class_<PyResult>(module, "LaunchResult")
      .def_property_readonly(
          "status", [](const PyResult& self) { return std::string(name(self.result.run.status)); })
      .def_property_readonly("cycles", [](const PyResult& self) { return self.result.cycles; })
      .def_property_readonly("microseconds",
                             [](const PyResult& self) { return self.result.microseconds; })
      .def_property_readonly("warp_instructions",
                             [](const PyResult& self) { return self.result.run.counts.warp_insns; })
      .def("findings",
           [](const PyResult& self) { return findings_list(self.result.findings, *self.program); })
      .def("timeline",
           [](const PyResult& self) {
             return self.result.timed ? timeline_list(self.result.timed->timeline, *self.program)
                                      : pyb::list();
           })
      .def_property_readonly("timeline_dropped",
                             [](const PyResult& self) -> uint64_t {
                               return self.result.timed ? self.result.timed->timeline.dropped() : 0;
                             })
      .def("counters", [](const PyResult& self) {
        return self.result.timed ? counters_dict(*self.result.timed, *self.program) : pyb::dict();
      });
}

} // namespace

rt::LaunchArgument to_argument(const pyb::handle& item) {
  const auto pair = pyb::reinterpret_borrow<pyb::tuple>(item);
  if (pyb::isinstance<BufferHandle>(pair[0])) {
    return rt::LaunchArgument::pointer(pair[0].cast<const BufferHandle&>()->buffer,
                                       pair[1].cast<uint64_t>());
  }
  const auto type_name = pair[1].cast<std::string>();
  const std::optional<isa::Type> type = isa::find_type(type_name);
  if (!type) {
    throw InputError(fmt::format("there is no type '{}'", type_name));
  }
  return rt::LaunchArgument::scalar(pair[0].cast<uint64_t>(), *type);
}

void bind_runtime(pyb::module_& module) {
  bind_device(module);
  bind_buffer(module);
  bind_stream(module);
  bind_launch(module);
}

} // namespace pto::py
