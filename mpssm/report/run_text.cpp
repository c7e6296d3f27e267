// SPDX-License-Identifier: MIT
// A run as a page of text.
#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "mpssm/report/run_page.h"
#include "mpssm/report/run_summary.h"
#include "mpssm/report/text.h"

namespace mpssm::report {
namespace {

/// At most `width` bars; each is the mean of its values.
std::string sparkline(const std::vector<double>& values, std::size_t width) {
  static constexpr const char* kBars[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                          "\u2585", "\u2586", "\u2587", "\u2588"};
  std::vector<double> means;
  const std::size_t count = std::min(values.size(), width);
  for (std::size_t b = 0; b < count; ++b) {
    double sum = 0.0;
    const std::size_t begin = b * values.size() / count;
    const std::size_t end = (b + 1) * values.size() / count;
    for (std::size_t i = begin; i < end; ++i) sum += values[i];
    means.push_back(sum / static_cast<double>(end - begin));
  }
  double low = INFINITY, high = -INFINITY;
  for (const double mean : means) {
    if (!std::isfinite(mean)) continue;
    low = std::min(low, mean);
    high = std::max(high, mean);
  }
  std::string line;
  for (const double mean : means) {
    const double share = high > low ? (mean - low) / (high - low) : 0.5;
    line += std::isfinite(mean) ? kBars[std::clamp(static_cast<int>(share * 8), 0, 7)] : " ";
  }
  return line;
}

}  // namespace

std::string to_text(const RunPage& page) {
  const RunRecord& record = page.record;
  std::string out = fmt::format(
      "{}: {} on {}, seed {}, split {}\n{}\n{} parameters, best step {} of {} (by val {}), {:.3g} "
      "s, "
      "{:.0f} MiB at the peak, mpssm {}\n\n",
      record.run, record.task, record.dataset, record.seed, record.split, record.protocol,
      record.num_parameters, record.best_step, record.steps, record.metric, record.seconds,
      record.peak_mib, record.version);
  Rows rows = {{"setting", "here", "default"}};
  for (const PageSetting& setting : page.settings) {
    if (setting.value != setting.usual && setting.key != "data.name") {
      rows.push_back({setting.key, setting.value, setting.usual});
    }
  }
  out += rows.size() > 1 ? table(rows) + "\n" : "all settings have their defaults\n\n";
  const std::vector<double>* history = page.history.find("val_" + record.metric);
  if (history != nullptr && !history->empty()) {
    const auto [low, high] = std::minmax_element(history->begin(), history->end());
    out += fmt::format("val {} from {:.4g} to {:.4g}, between {:.4g} and {:.4g}\n{}\n\n",
                       record.metric, history->front(), history->back(), *low, *high,
                       sparkline(*history, 60));
  }
  return out + summary_of(record);
}

}  // namespace mpssm::report
