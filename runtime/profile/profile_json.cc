// SPDX-License-Identifier: Apache-2.0
// The JSON form of a profile. One list of fields a struct, walked by three visitors: the writer,
// the reader and the schema, so that they cannot disagree. Reading is total: every value is checked
// for kind and range, every complaint names its key path, and what is wrong leaves the default in
// place.
#include "isa/file_io.h"
#include "isa/issue_text.h"
#include "isa/suggest.h"
#include "runtime/profile/profile.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace pto::rt {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxFileBytes = 256u << 20;
constexpr int kMaxDepth = 8;
constexpr size_t kMaxIssues = 20;
constexpr size_t kMaxTextBytes = 4u << 20; // a kernel's text may be long
constexpr double kMaxNumber = 1e18;
constexpr std::string_view kFormat = "pto-profile";

enum class Need { kRequired, kOptional };
constexpr Need kRequired = Need::kRequired;
constexpr Need kOptional = Need::kOptional;

// ---------------------------------------------------------------- the format
// v.item(name, member, need, meaning) for each member; members are numbers, truth values, texts,
// sizes, structs, lists of those and what may be absent.

template <class V> void fields(V& v, ProfileDevice& d) {
  v.item("name", d.name, kRequired, "device that was measured");
  v.item("is_emulated", d.is_emulated, kRequired, "true: the simulator stood in for a device");
  v.item("clock_mhz", d.clock_mhz, kOptional, "clock that one cycle refers to, MHz; 0: unknown");
  v.item("noise", d.noise, kOptional, "of an emulated device: relative deviation of a run");
  v.item("seed", d.seed, kOptional, "of the noise");
}

template <class V> void fields(V& v, RunSample& r) {
  v.item("cycles", r.cycles, kRequired, "of the whole run");
  v.item("rejected", r.rejected, kOptional, "why the run does not count; absent: it counts");
}

template <class V> void fields(V& v, InsnMeasurement& m) {
  v.item("key", m.key, kRequired, "latency key of the insn, such as LOAD.hbm.f32");
  v.item("count", m.count, kRequired, "warp insns issued in a run");
  v.item("cycles", m.cycles, kRequired, "of one of them");
  v.item("spread", m.spread, kOptional, "standard deviation over runs");
  v.item("definition", m.definition, kOptional, "from where to where; absent: issue to result");
}

template <class V> void fields(V& v, PairMeasurement& m) {
  v.item("first", m.first, kRequired, "latency key of the first insn");
  v.item("second", m.second, kRequired, "latency key of the second insn");
  v.item("is_joined", m.is_joined, kOptional, "true: the device issued both as one");
  v.item("count", m.count, kRequired, "of such pairs in a run");
  v.item("cycles", m.cycles, kRequired, "issue of the first to the second's result");
  v.item("spread", m.spread, kOptional, "standard deviation over runs");
}

template <class V> void fields(V& v, LineMeasurement& m) {
  v.item("place", m.place, kRequired, "source file and line");
  v.item("count", m.count, kRequired, "executions");
  v.item("cycles", m.cycles, kRequired, "of all of them");
}

template <class V> void fields(V& v, CounterMeasurement& m) {
  v.item("name", m.name, kRequired, "as the profiler calls it");
  v.item("combine", m.combine, kRequired, "how rows were combined: sum, mean or max");
  v.item("value", m.value, kRequired, "in the unit that the name says");
}

template <class V> void fields(V& v, MicroTag& t) {
  v.item("role", t.role, kRequired, "what the microbenchmark is for");
  v.item("first", t.first, kOptional, "insn key under test");
  v.item("second", t.second, kOptional, "second insn key of the pattern");
  v.item("variant", t.variant, kOptional, "form of the pattern");
  v.item("repeats", t.repeats, kOptional, "how often the pattern stands in the kernel");
  v.item("amount", t.amount, kOptional, "what the role varies: bytes, warps, lanes");
}

template <class V> void fields(V& v, SimulatedKernel& s) {
  v.item("machine", s.machine, kRequired, "machine profile that was simulated");
  v.item("cycles", s.cycles, kRequired, "of the whole run");
  v.item("insns", s.insns, kOptional, "what the simulator says of each insn key");
}

template <class V> void fields(V& v, ReplayInput& r) {
  v.item("text", r.text, kRequired, "PTO text");
  v.item("kernel", r.kernel, kOptional, "kernel in the text");
  v.item("args", r.args, kOptional, "arguments as `ptosim --arg` takes them");
  v.item("dynamic_l1_bytes", r.dynamic_l1_bytes, kOptional, "scratchpad after the kernel's own");
}

template <class V> void fields(V& v, KernelProfile& k) {
  v.item("name", k.name, kRequired, "unique in the file");
  v.item("group", k.group, kOptional, "kernels that do the same work share one");
  v.item("source", k.source, kOptional, "file, or where the figures were imported from");
  v.item("grid", k.grid, kOptional, "blocks: x, y, z");
  v.item("block", k.block, kOptional, "lanes of a block: x, y, z");
  v.item("micro", k.micro, kOptional, "for a microbenchmark: what it is for");
  v.item("cycles", k.cycles, kRequired, "of a run: mean of those that count; 0: not recorded");
  v.item("spread", k.spread, kOptional, "standard deviation of the runs that count");
  v.item("error", k.error, kOptional, "standard error of `cycles`");
  v.item("runs", k.runs, kOptional, "raw samples in order");
  v.item("insns", k.insns, kOptional, "cycles by insn key");
  v.item("pairs", k.pairs, kOptional, "cycles of neighbouring insns");
  v.item("unit_busy_cycles", k.unit_busy_cycles, kOptional, "busy cycles of units S V X M D C");
  v.item("lines", k.lines, kOptional, "cycles by source line");
  v.item("counters", k.counters, kOptional, "what else the profiler counted");
  v.item("simulated", k.simulated, kOptional, "what machine profiles predict");
  v.item("replay", k.replay, kOptional, "what it takes to run the kernel again");
  v.item("warnings", k.warnings, kOptional, "what to keep in mind about these figures");
}

template <class V> void fields(V& v, Profile& p) {
  v.item("device", p.device, kRequired, "where it was measured");
  v.item("date", p.date, kOptional, "YYYY-MM-DD");
  v.item("tool", p.tool, kOptional, "what wrote the file");
  v.item("notes", p.notes, kOptional, "anything else worth knowing");
  v.item("kernels", p.kernels, kRequired, "what was measured");
}

template <class T>
inline constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
template <class T> inline constexpr bool kMayBeAbsent = false;
template <class T> inline constexpr bool kMayBeAbsent<std::optional<T>> = true;

// ---------------------------------------------------------------- writer

template <class T> Json written(const T& value);

class Writer {
public:
  template <class T> void item(const char* name, T& value, Need need, const char*) {
    if (need == kRequired || !is_default(value)) {
      json_[name] = written(value);
    }
  }
  Json take() { return std::move(json_); }

private:
  template <class T> static bool is_default(const std::vector<T>& list) { return list.empty(); }
  template <class T, size_t kSize> static bool is_default(const std::array<T, kSize>& list) {
    return list == std::array<T, kSize>{};
  }
  static bool is_default(const std::string& text) { return text.empty(); }
  static bool is_default(const sim::Dim3&) { return false; }
  static bool is_default(const MicroTag& tag) { return !tag.is_set(); }
  template <class T> static bool is_default(const std::optional<T>& value) { return !value; }
  template <class T>
  requires std::is_arithmetic_v<T>
  static bool is_default(const T& value) { return value == T{}; }
  template <class T>
  requires std::is_class_v<T>
  static bool is_default(const T&) { return false; }

  Json json_ = Json::object();
};

template <class T> Json written(const T& value) {
  if constexpr (std::is_same_v<T, double>) {
    // Six places are beyond any measurement, and keep files the same on every machine.
    const double rounded = std::round(value * 1e6) / 1e6;
    if (rounded == std::floor(rounded) && std::abs(rounded) < 1e15) {
      return static_cast<int64_t>(rounded);
    }
    return rounded;
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, sim::Dim3>) {
    return Json::array({value.x, value.y, value.z});
  } else if constexpr (kMayBeAbsent<T>) {
    return written(*value);
  } else if constexpr (requires { value.begin(); }) {
    Json list = Json::array();
    for (const auto& element : value) {
      list.push_back(written(element));
    }
    return list;
  } else {
    Writer writer;
    fields(writer, const_cast<T&>(value));
    return writer.take();
  }
}

// ---------------------------------------------------------------- reader

std::string described(const Json& value) {
  if (value.is_string()) {
    return fmt::format("the text \"{}\"", value.get_ref<const std::string&>().substr(0, 40));
  }
  if (value.is_number()) {
    return fmt::format("the number {}", value.dump());
  }
  return value.is_object()  ? "an object"
         : value.is_array() ? "a list"
         : value.is_null()  ? "null"
                            : "a truth value";
}

class Complaints {
public:
  Complaints(std::string_view file, isa::ProfileIssues& issues) : file_(file), issues_(issues) {}
  void add(const std::string& path, std::string message, std::string suggestion = {}) {
    failed_ = true;
    if (issues_.size() < kMaxIssues) {
      issues_.push_back({std::string(file_),
                         path.substr(0, 200),
                         std::move(message),
                         std::move(suggestion),
                         0,
                         0});
    }
  }
  [[nodiscard]] bool is_full() const { return issues_.size() >= kMaxIssues; }
  [[nodiscard]] bool failed() const { return failed_; }

private:
  std::string_view file_;
  isa::ProfileIssues& issues_;
  bool failed_ = false;
};

class ObjectReader {
public:
  ObjectReader(const Json& json, std::string path, Complaints& complaints)
      : json_(json), path_(std::move(path)), complaints_(complaints) {}

  template <class T> void item(const char* name, T& value, Need need, const char* meaning) {
    known_.emplace_back(name);
    const auto found = json_.find(name);
    if (found != json_.end()) {
      read(*found, join(name), value);
    } else if (need == kRequired) {
      complaints_.add(join(name), fmt::format("missing: {}", meaning));
    }
  }
  /// To be called last: complains of keys that no field has.
  void check_unknown(std::initializer_list<std::string_view> also_known = {}) {
    known_.insert(known_.end(), also_known.begin(), also_known.end());
    for (const auto& entry : json_.items()) {
      if (std::find(known_.begin(), known_.end(), entry.key()) == known_.end()) {
        complaints_.add(join(entry.key()), "unknown key" + isa::did_you_mean(entry.key(), known_));
      }
    }
  }

private:
  [[nodiscard]] std::string join(const std::string& name) const {
    return path_.empty() ? name : path_ + "." + name;
  }

  template <class T> void read(const Json& json, const std::string& path, T& value) {
    if (complaints_.is_full()) {
      return;
    }
    if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) {
        complaints_.add(path, "expected true or false, got " + described(json));
        return;
      }
      value = json.get<bool>();
    } else if constexpr (kIsNumber<T>) {
      read_number(json, path, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) {
        complaints_.add(path, "expected a text, got " + described(json));
        return;
      }
      value = json.get<std::string>();
      if (value.size() > kMaxTextBytes) {
        complaints_.add(
            path,
            fmt::format("a text of {} bytes; expected at most {}", value.size(), kMaxTextBytes));
      }
    } else if constexpr (std::is_same_v<T, sim::Dim3>) {
      std::array<uint32_t, 3> parts{};
      read(json, path, parts);
      value = {parts[0], parts[1], parts[2]};
      if (value.x == 0 || value.y == 0 || value.z == 0) {
        complaints_.add(path, "expected three numbers from 1 on: x, y and z");
      }
    } else if constexpr (kMayBeAbsent<T>) {
      read(json, path, value.emplace());
    } else if constexpr (requires { value.emplace_back(); }) {
      if (!json.is_array()) {
        complaints_.add(path, "expected a list, got " + described(json));
        return;
      }
      for (size_t i = 0; i < json.size() && !complaints_.is_full(); ++i) {
        value.emplace_back();
        read(json[i], fmt::format("{}[{}]", path, i), value.back());
      }
    } else if constexpr (requires { value.fill({}); }) {
      if (!json.is_array() || json.size() != value.size()) {
        complaints_.add(
            path,
            fmt::format("expected a list of {} numbers, got {}",
                        value.size(),
                        json.is_array() ? fmt::format("one of {}", json.size()) : described(json)));
        return;
      }
      for (size_t i = 0; i < value.size(); ++i) {
        read(json[i], fmt::format("{}[{}]", path, i), value[i]);
      }
    } else {
      if (!json.is_object()) {
        complaints_.add(path, "expected an object, got " + described(json));
        return;
      }
      ObjectReader reader(json, path, complaints_);
      fields(reader, value);
      reader.check_unknown();
    }
  }

  template <class T> void read_number(const Json& json, const std::string& path, T& value) {
    if (!json.is_number()) {
      complaints_.add(path, "expected a number, got " + described(json));
      return;
    }
    const double number = json.get<double>();
    if constexpr (std::is_floating_point_v<T>) {
      if (!(number >= 0 && number <= kMaxNumber)) {
        complaints_.add(path,
                        fmt::format("{} is out of range; expected 0 to {}", number, kMaxNumber));
        return;
      }
      value = number;
    } else {
      const bool is_whole = json.is_number_unsigned();
      const uint64_t whole = is_whole ? json.get<uint64_t>() : 0;
      if (!is_whole || whole > std::numeric_limits<T>::max()) {
        complaints_.add(path,
                        fmt::format("expected a whole number from 0 to {}, got {}",
                                    std::numeric_limits<T>::max(),
                                    json.dump()));
        return;
      }
      value = static_cast<T>(whole);
    }
  }

  const Json& json_;
  std::string path_;
  Complaints& complaints_;
  std::vector<std::string_view> known_;
};

std::optional<Json> parse(std::string_view text,
                          std::string_view file,
                          Complaints& complaints,
                          isa::ProfileIssues& issues) {
  if (text.size() > kMaxFileBytes) {
    complaints.add(
        {},
        fmt::format("{} bytes are no profile; expected at most {}", text.size(), kMaxFileBytes));
    return std::nullopt;
  }
  bool is_too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    is_too_deep = is_too_deep || depth > kMaxDepth;
    return depth <= kMaxDepth;
  };
  Json root;
  try {
    root = Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::parse_error& error) {
    const size_t byte = std::min<size_t>(error.byte == 0 ? 0 : error.byte - 1, text.size());
    issues.push_back(isa::issue_at_byte(
        file,
        text,
        byte,
        fmt::format("no valid JSON at byte {}: expected a profile, as `ptoprof run -o` writes it",
                    byte)));
    return std::nullopt;
  } catch (const Json::exception& error) {
    complaints.add({}, fmt::format("no valid JSON: {}", error.what()));
    return std::nullopt;
  }
  if (is_too_deep) {
    complaints.add({}, fmt::format("nested deeper than {} levels, which no profile is", kMaxDepth));
    return std::nullopt;
  }
  if (!root.is_object()) {
    complaints.add({}, "expected a profile (an object), got " + described(root));
    return std::nullopt;
  }
  return root;
}

void check_header(const Json& root, Complaints& complaints) {
  const auto format = root.find("format");
  if (format == root.end() || *format != kFormat) {
    complaints.add("format",
                   fmt::format("expected \"{}\", got {}; machine profiles, traces and vendor files "
                               "are other formats (`ptoprof import` reads the vendor's)",
                               kFormat,
                               format == root.end() ? "nothing" : described(*format)));
    return;
  }
  const auto version = root.find("version");
  if (version == root.end() || *version != Profile::kVersion) {
    complaints.add("version",
                   fmt::format("expected {}, got {}; this program reads version {} only",
                               Profile::kVersion,
                               version == root.end() ? "nothing" : described(*version),
                               Profile::kVersion));
  }
}

void check_consistency(const Profile& profile, Complaints& complaints) {
  if (profile.device.name.empty()) {
    complaints.add("device.name", "is empty; expected the device that was measured");
  }
  std::vector<std::string_view> names;
  for (size_t i = 0; i < profile.kernels.size(); ++i) {
    const KernelProfile& kernel = profile.kernels[i];
    const std::string path = fmt::format("kernels[{}]", i);
    names.push_back(kernel.name);
    if (kernel.name.empty()) {
      complaints.add(path + ".name", "is empty; expected the kernel's name");
    }
    for (size_t unit = 0; unit < isa::kUnitCount; ++unit) {
      // Sums over units may exceed the total, one unit's pipes cannot be busy for longer than it.
      if (kernel.cycles > 0 && kernel.unit_busy_cycles[unit] > kernel.cycles * 1.01 + 1) {
        complaints.add(fmt::format("{}.unit_busy_cycles[{}]", path, unit),
                       fmt::format("unit {} is busy for {} cycles of a run of {}; a run lasts at "
                                   "least as long as its busiest unit",
                                   isa::kUnits[unit].letter,
                                   kernel.unit_busy_cycles[unit],
                                   kernel.cycles));
      }
    }
  }
  std::sort(names.begin(), names.end());
  for (size_t i = 1; i < names.size(); ++i) {
    if (names[i] == names[i - 1] && (i == 1 || names[i] != names[i - 2])) {
      complaints.add("kernels", fmt::format("two kernels are named '{}'; rename one", names[i]));
    }
  }
}

// ---------------------------------------------------------------- schema

template <class T> Json schema_of();

class SchemaMaker {
public:
  template <class T> void item(const char* name, T&, Need need, const char* meaning) {
    Json schema = schema_of<T>();
    schema["description"] = meaning;
    properties_[name] = std::move(schema);
    if (need == kRequired) {
      required_.push_back(name);
    }
  }
  Json take() {
    Json schema = {{"type", "object"}, {"additionalProperties", false}};
    schema["required"] = std::move(required_);
    schema["properties"] = std::move(properties_);
    return schema;
  }
  Json properties_ = Json::object();
  Json required_ = Json::array();
};

template <class T> Json schema_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (kIsNumber<T>) {
    return {{"type", std::is_floating_point_v<T> ? "number" : "integer"}, {"minimum", 0}};
  } else if constexpr (std::is_same_v<T, std::string>) {
    return {{"type", "string"}};
  } else if constexpr (std::is_same_v<T, sim::Dim3>) {
    return {{"type", "array"},
            {"items", {{"type", "integer"}, {"minimum", 1}}},
            {"minItems", 3},
            {"maxItems", 3}};
  } else if constexpr (kMayBeAbsent<T>) {
    return schema_of<typename T::value_type>();
  } else if constexpr (requires(T & list) { list.emplace_back(); }) {
    return {{"type", "array"}, {"items", schema_of<typename T::value_type>()}};
  } else if constexpr (requires(T & list) { list.fill({}); }) {
    Json schema = {{"type", "array"}, {"items", schema_of<typename T::value_type>()}};
    schema["minItems"] = std::tuple_size_v<T>;
    schema["maxItems"] = std::tuple_size_v<T>;
    return schema;
  } else {
    T value;
    SchemaMaker maker;
    fields(maker, value);
    return maker.take();
  }
}

} // namespace

std::string to_json_text(const Profile& profile) {
  Json json = {{"format", kFormat}, {"version", Profile::kVersion}};
  json.update(written(profile));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<Profile>
read_profile(std::string_view json_text, std::string_view file, isa::ProfileIssues& issues) {
  Complaints complaints(file, issues);
  const std::optional<Json> root = parse(json_text, file, complaints, issues);
  if (!root) {
    return std::nullopt;
  }
  check_header(*root, complaints);
  if (complaints.failed()) {
    return std::nullopt;
  }
  Profile profile;
  ObjectReader reader(*root, {}, complaints);
  fields(reader, profile);
  reader.check_unknown({"format", "version", "$schema"});
  if (!complaints.failed()) {
    check_consistency(profile, complaints);
  }
  if (complaints.failed()) {
    return std::nullopt;
  }
  return profile;
}

std::optional<Profile> load_profile(const std::string& path, isa::ProfileIssues& issues) {
  std::string error;
  const std::optional<std::vector<std::byte>> bytes = isa::read_file(path, error, kMaxFileBytes);
  if (!bytes) {
    issues.push_back({path, {}, error, {}, 0, 0});
    return std::nullopt;
  }
  return read_profile({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, path, issues);
}

std::string profile_schema_text() {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "PTO profile"},
                 {"description",
                  "What was measured on a device. Generated from the field lists of the library."}};
  schema.update(schema_of<Profile>());
  Json& properties = schema["properties"];
  properties["$schema"] = {{"type", "string"}};
  properties["format"] = {{"const", kFormat}};
  properties["version"] = {{"const", Profile::kVersion}};
  schema["required"].push_back("format");
  schema["required"].push_back("version");
  return schema.dump(1) + "\n";
}

} // namespace pto::rt
