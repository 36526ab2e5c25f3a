// SPDX-License-Identifier: Apache-2.0
// Any bytes are a valid input to the reader of saved runs; an accepted run can be told about in
// every form and reads back the same.
#include "simulator/report/reports.h"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pto::sim;
  std::string error;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<TimingReport> run = read_run(text, error);
  if (!run) {
    if (error.empty() || error.size() > 1000) {
      std::abort();
    }
    return 0;
  }
  const std::string saved = run_json(*run);
  const std::optional<TimingReport> again = read_run(saved, error);
  if (!again || run_json(*again) != saved) {
    std::abort();
  }
  const std::string all = timeline_text(*run) + stalls_text(*run) + bubbles_text(*run) +
                          counters_text(*run) + timeline_csv(*run) + timeline_json(*run) +
                          trace_json(*run) + html_report(*run) + diff_text(*run, *again) +
                          diff_json(*run, *again);
  return all.empty() ? 1 : 0;
}
