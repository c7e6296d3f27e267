// SPDX-License-Identifier: MIT
// Cases of a bench against libtorch: same numbers first, then times in turns, memory in fresh
// processes and shares of the machine's roofs, as lines and as JSON.
#pragma once

#include <algorithm>
#include <cstdio>
#include <fmt/core.h>
#include <fnmatch.h>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "mpssm/base/measure.h"
#include "mpssm/kernels/simd.h"

#include "bench/roofs.h"

namespace mpssm::bench {

using base::Contender;
using base::machine_load;
using base::measure;
using base::own_mib;
using base::peak_of;
using Tensors = std::vector<torch::Tensor>;

struct Settings {
  std::string json_file;
  std::string only;
  std::string one;  // with `only`: measure the memory of this contender and nothing else
  bool quick = false;
  std::int64_t threads = 1;
  int rounds = 5;
};

/// What a contender does, and how its results read in the engine's layout.
struct Job {
  std::function<Tensors()> run;
  std::function<Tensors(const Tensors&)> in_our_layout = {};
};

/// A contender that is not yet set up.
struct Entry {
  std::string name;
  std::function<Job()> prepare;
  Work work = {};  ///< where a share of the machine's roofs means something
};

/// What the contenders of a case have in common.
enum class Contest {
  kSameNumbers,   ///< they compute the same; ratios are those of times
  kRounded,       ///< the same to the few digits of bfloat16
  kSeveralSizes,  ///< one job at several sizes; ratios are those of times per gathered byte
};

inline std::string machine() {
  std::ifstream info("/proc/cpuinfo");
  std::string model = "unknown processor";
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) {
      model = line.substr(line.find(": ") + 2);
      break;
    }
  }
  return fmt::format("{}, {} cores", model, std::thread::hardware_concurrency());
}

/// Runs cases, prints their rows and keeps them for a JSON file.
class Report {
 public:
  explicit Report(const Settings& settings)
      : settings_(settings),
        roof_options_{.rounds = settings.quick ? 2 : 5},
        roofs_(roof_options_) {
    torch::zeros({8}).add_(1.0);
    idle_mib_ = own_mib();
    if (measures_one()) return;
    std::printf("%s, %s, libtorch %s, threads: %lld, load: %.2f\n", machine().c_str(),
                mpssm::kernels::active_simd_target().c_str(), TORCH_VERSION,
                static_cast<long long>(settings_.threads), machine_load());
    std::printf("%-26s %-24s %12s %12s %8s %10s %7s\n", "case", "contender", "min ms", "median ms",
                "ratio", "peak MiB", "% roof");
  }

  bool wants(const std::string& name) {
    names_.insert(name);
    return settings_.only.empty() || is_like(name, settings_.only);
  }
  bool knows(const std::string& pattern) const {
    return std::any_of(names_.begin(), names_.end(),
                       [&](const std::string& name) { return is_like(name, pattern); });
  }

  /// Measures the roofs of one thread of this machine, each a case of its own.
  void run_roofs() {
    for (const Roof& roof : all_roofs()) {
      const std::string name = "roof-" + roof.name;
      if (!wants(name) || measures_one()) continue;
      const double load_before = machine_load();
      const RoofTiming timing = roof.measure(roof_options_);
      std::printf("%-26s %-24s %12.4f %12.4f %8.2f %10.1f         %.1f %s\n", name.c_str(),
                  "machine", timing.milliseconds, timing.milliseconds_median, 1.0,
                  timing.working_mib, timing.rate(), roof.unit.c_str());
      std::fflush(stdout);
      nlohmann::ordered_json row = {{"case", name},
                                    {"contender", "machine"},
                                    {"milliseconds", timing.milliseconds},
                                    {"milliseconds_median", timing.milliseconds_median},
                                    {"ratio", 1.0},
                                    {"peak_mib", timing.working_mib},
                                    {"arguments_mib", timing.working_mib},
                                    {"size", roof.size},
                                    {"rounds", roof_options_.rounds},
                                    {"threads", 1},
                                    {"rate", timing.rate()},
                                    {"unit", roof.unit}};
      add_conditions(row, load_before);
      rows_.push_back(row);
    }
  }

  /// Measures and prints; the first contender is the engine as it is used, to which ratios are
  /// taken.
  void run(const std::string& name, const std::string& size, const std::vector<Entry>& entries,
           int rounds, Contest contest = Contest::kSameNumbers) {
    if (measures_one()) {
      for (const Entry& entry : entries) {
        if (entry.name == settings_.one) print_memory(entry.prepare());
      }
      return;
    }
    const double load_before = machine_load();
    std::vector<Job> jobs;
    std::vector<Contender> contenders;
    std::vector<double> arguments;
    std::vector<Work> works;
    for (const Entry& entry : entries) {
      const auto [arguments_mib, peak_mib] = memory_elsewhere(name, entry.name);
      arguments.push_back(arguments_mib);
      jobs.push_back(entry.prepare());
      contenders.push_back(
          {.plan = entry.name, .run = [run = jobs.back().run] { run(); }, .peak_mib = peak_mib});
      // The roofs are those of one thread.
      if (settings_.threads == 1) works.push_back(entry.work);
    }
    if (jobs.size() > 1 && contest != Contest::kSeveralSizes) {
      // Of the largest number.
      expect_same_numbers(name, entries, jobs, contest == Contest::kRounded ? 0.05 : 1e-3);
    }
    roofs_.measure(works);
    measure(contenders, rounds);
    roofs_.measure(works);
    const auto cost = [&](std::size_t i) {
      return contenders[i].milliseconds /
             (contest == Contest::kSeveralSizes ? entries[i].work.gathered_bytes : 1.0);
    };
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const Contender& contender = contenders[i];
      const Work& work = entries[i].work;
      nlohmann::ordered_json row = {{"case", name},
                                    {"contender", contender.plan},
                                    {"milliseconds", contender.milliseconds},
                                    {"milliseconds_median", contender.milliseconds_median},
                                    {"ratio", cost(i) / cost(0)},
                                    {"peak_mib", contender.peak_mib},
                                    {"arguments_mib", arguments[i]},
                                    {"size", size},
                                    {"rounds", rounds},
                                    {"threads", settings_.threads}};
      if (work.flops > 0.0) row["flops"] = work.flops;
      if (work.gathered_bytes > 0.0) row["gathered_bytes"] = work.gathered_bytes;
      std::string percent;
      if (i < works.size() && work.has_roof()) {
        const double roof = roofs_.milliseconds(work);
        row["roof_milliseconds"] = roof;
        row["share_of_roof"] = roof / contender.milliseconds;
        percent = fmt::format("{:.0f}", 100.0 * roof / contender.milliseconds);
      }
      add_conditions(row, load_before);
      std::printf("%-26s %-24s %12.4f %12.4f %8.2f %10.1f %7s\n", name.c_str(),
                  contender.plan.c_str(), contender.milliseconds, contender.milliseconds_median,
                  cost(i) / cost(0), contender.peak_mib, percent.c_str());
      std::fflush(stdout);
      rows_.push_back(row);
    }
  }

  bool write() const {
    if (settings_.json_file.empty()) return true;
    std::ofstream file(settings_.json_file);
    file << rows_.dump(1) << "\n";
    file.close();
    if (!file) std::fprintf(stderr, "engine_bench: cannot write %s\n", settings_.json_file.c_str());
    return static_cast<bool>(file);
  }

 private:
  static bool is_like(const std::string& name, const std::string& pattern) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  }
  bool measures_one() const { return !settings_.one.empty(); }

  static void add_conditions(nlohmann::ordered_json& row, double load_before) {
    row["load"] = {load_before, machine_load()};
    row["machine"] = machine();
    row["simd"] = mpssm::kernels::active_simd_target();
    row["libtorch"] = TORCH_VERSION;
  }

  /// In a process of its own: arguments above the idle process, and the peak of a first call.
  void print_memory(const Job& job) const {
    const double arguments = std::max(0.0, own_mib() - idle_mib_);
    const double peak = arguments + peak_of([&] { job.run(); });
    std::printf("%.3f %.3f\n", arguments, peak);
  }

  /// What this program, started anew, says of one contender.
  std::pair<double, double> memory_elsewhere(const std::string& name,
                                             const std::string& contender) const {
    const std::string command =
        fmt::format("/proc/{}/exe --threads {}{} --one '{}' '{}'", getpid(), settings_.threads,
                    settings_.quick ? " --quick" : "", name, contender);
    double arguments = -1.0;
    double peak = -1.0;
    FILE* pipe = popen(command.c_str(), "r");
    const bool read = pipe != nullptr && std::fscanf(pipe, "%lf %lf", &arguments, &peak) == 2;
    if (pipe != nullptr) pclose(pipe);
    if (!read) throw std::runtime_error(fmt::format("{}, {}: no memory measured", name, contender));
    return {arguments, peak};
  }

  static void expect_same_numbers(const std::string& name, const std::vector<Entry>& entries,
                                  const std::vector<Job>& jobs, double tolerance) {
    const torch::NoGradGuard no_grad;
    Tensors ours;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      Tensors results = [&] {
        const torch::AutoGradMode grad(true);
        return jobs[i].run();
      }();
      if (jobs[i].in_our_layout) results = jobs[i].in_our_layout(results);
      if (i == 0) ours = results;
      if (results.size() != ours.size()) throw std::logic_error(name + ": results missing");
      for (std::size_t part = 0; part < ours.size(); ++part) {
        const double error = (results[part] - ours[part]).abs().max().item<double>() /
                             ours[part].abs().max().item<double>();
        if (!(error < tolerance)) {
          throw std::runtime_error(fmt::format("{}: {} differs from {} by {}", name,
                                               entries[i].name, entries[0].name, error));
        }
      }
    }
  }

  Settings settings_;
  RoofOptions roof_options_;
  RoofKeeper roofs_;
  double idle_mib_ = 0.0;
  std::set<std::string> names_;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
};

}  // namespace mpssm::bench
