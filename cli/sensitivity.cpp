// SPDX-License-Identifier: MIT
// mpssm sensitivity: how much of one node reaches another, on a graph or in a trained model.
#include "cli/sensitivity.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <utility>

#include "mpssm/graph/named.h"
#include "mpssm/io/csv.h"
#include "mpssm/io/error.h"
#include "mpssm/io/json_text.h"
#include "mpssm/ops/runtime.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxTau = 10'000'000;
constexpr std::int64_t kMaxTaus = 100'000;

std::string footer() {
  std::string text = R"(
Examples, of a graph (W = 1 unless --w is given):
  mpssm sensitivity --make clique-chain:6x10 --limit          between its first and last bridge
  mpssm sensitivity edges.csv --source a --target b --bounds  S(tau) of a pair, with its bounds
  mpssm sensitivity edges.csv --source a --plot reach.svg     what a reaches, as a picture
  mpssm sensitivity minesweeper --worst 10 --depth 0.5        worst pairs, and how deep they need
Of a trained model:
  mpssm sensitivity runs/mine                                 ||W^tau|| and reach of each block
  mpssm sensitivity runs/mine --target 17 --plot who.svg      what prediction 17 depends on
  mpssm sensitivity runs/mine --predictions 10 --compare runs/gcn

--make takes)";
  for (const graph::NamedFamily& family : graph::named_families()) text += " " + family.pattern();
  return text + "\nWhat each number means: docs/sensitivity.md";
}

bool is_run(const fs::path& path) {
  std::error_code ignored;
  return path.filename() == "model.safetensors" ||
         fs::is_regular_file(path / "config.toml", ignored);
}

// Options that would be passed over in silence.
constexpr const char* kOfRuns[] = {"--compare", "--block", "--sample", "--predictions", "--top"};
constexpr const char* kOfGraphs[] = {"--worst",  "--by",        "--depth", "--max-tau",
                                     "--bounds", "--gso",       "--w",     "--directed",
                                     "--seed",   "--vanishing", "--all"};
constexpr std::pair<const char*, const char*> kNeeds[] = {
    {"--by", "--worst"}, {"--picture", "--plot"}, {"--max-tau", "--depth"}};

void check_options(const CLI::App& verb, const SensitivityOptions& options, bool of_run) {
  const auto given = [&](const char* option) { return verb.count(option) > 0; };
  if (options.what.empty() == options.make.empty()) {
    throw io::InputError(options.what.empty()
                             ? "sensitivity: expected a graph, a run folder or --make"
                             : "sensitivity: expected a graph or --make, got both");
  }
  for (const char* option : of_run ? std::span<const char* const>(kOfGraphs) : kOfRuns) {
    if (!given(option)) continue;
    throw io::InputError(
        std::string(option) +
        (of_run ? " is for a graph, got the run " : " is for a run, got the graph ") +
        io::printable(options.make + options.what));
  }
  for (const auto& [option, needed] : kNeeds) {
    if (given(option) && !given(needed)) {
      throw io::InputError(std::string(option) + ": expected " + needed + " with it");
    }
  }
  if (given("--directed") && !options.make.empty()) {
    throw io::InputError("--directed is for tables of your own; --make makes undirected graphs");
  }
  if (given("--block") && options.source.empty()) {
    throw io::InputError("--block: expected --source and --target with it");
  }
  for (const char* node : {"--source", "--target"}) {
    const std::string& id = std::string_view(node) == "--source" ? options.source : options.target;
    if (given(node) && id.empty()) {
      throw io::InputError(std::string(node) + ": expected a node, got nothing");
    }
  }
  if (options.all && !(options.source.empty() && options.target.empty())) {
    throw io::InputError("--all: expected no --source and --target with it");
  }
  if (options.depth && !(*options.depth > 0.0 && *options.depth < 1.0)) {
    throw io::InputError(text("--depth: expected a share between 0 and 1, got %g", *options.depth));
  }
}

int run(const CLI::App& verb, const SensitivityOptions& options) {
  const bool of_run = !options.what.empty() && is_run(options.what);
  check_options(verb, options, of_run);
  ops::set_process_threads(options.threads);
  return of_run ? analyse_run(options) : analyse_graph(options);
}

}  // namespace

std::vector<std::int64_t> parse_taus(const std::string& list) {
  if (list.empty()) return parse_taus(kDefaultTau);
  const auto fail = [&](const std::string& why) {
    throw io::InputError("--tau: expected numbers like 1:100, 0:1000:50 or 11,12,100" + why +
                         ", got '" + io::printable(list) + "'");
  };
  const auto number = [&](std::string_view item) {
    const auto value = io::to_integer(item);
    if (!value || *value < 0) fail("");
    if (*value > kMaxTau) fail(" up to " + std::to_string(kMaxTau));
    return *value;
  };
  std::vector<std::int64_t> taus;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view item = std::string_view(list).substr(begin, end - begin);
    const std::size_t colon = item.find(':');
    const std::int64_t first = number(item.substr(0, colon));
    std::int64_t last = first;
    std::int64_t stride = 1;
    if (colon != std::string_view::npos) {
      const std::string_view rest = item.substr(colon + 1);
      const std::size_t second = rest.find(':');
      last = number(rest.substr(0, second));
      if (second != std::string_view::npos) stride = number(rest.substr(second + 1));
    }
    if (last < first || stride < 1) fail("");
    if ((last - first) / stride + 1 + std::ssize(taus) > kMaxTaus) {
      fail(", at most " + std::to_string(kMaxTaus) + " of them");
    }
    for (std::int64_t tau = first; tau <= last; tau += stride) taus.push_back(tau);
    begin = end + 1;
  }
  std::sort(taus.begin(), taus.end());
  taus.erase(std::unique(taus.begin(), taus.end()), taus.end());
  return taus;
}

std::vector<std::size_t> rows_to_show(std::size_t count) {
  constexpr std::size_t kRows = 24;
  std::vector<std::size_t> rows;
  if (count <= kRows) {
    for (std::size_t i = 0; i < count; ++i) rows.push_back(i);
    return rows;
  }
  // 1, 2, 3, 5 and their tens: what happens early is told in detail.
  for (std::size_t ten = 1; ten <= count; ten *= 10) {
    for (const std::size_t digit : {1, 2, 3, 5}) {
      if (digit * ten <= count) rows.push_back(digit * ten - 1);
    }
  }
  if (rows.back() != count - 1) rows.push_back(count - 1);
  return rows;
}

void Answer::table(const std::vector<std::vector<std::string>>& rows, const std::string& heading) {
  lines += "\n" + heading + (heading.empty() ? "" : "\n") + cli::table(rows);
}

void Answer::print(bool as_json) const {
  if (as_json) {
    cli::print(io::json_text(json));
  } else {
    std::fputs(lines.c_str(), stdout);
  }
}

std::string shown(double value) { return text("%.6g", value); }
std::string shown(std::int64_t value) { return std::to_string(value); }
std::string counted(std::int64_t count, const std::string& what) {
  return shown(count) + " " + what + (count == 1 ? "" : "s");
}
std::string percent(double share) { return text("%.4g", 100.0 * share); }

std::string node_name(const data::BareGraph& graph, std::int64_t node) {
  return graph.node_ids.empty() ? std::to_string(node) : io::printable(graph.node_ids[node]);
}

nlohmann::ordered_json node_json(const data::BareGraph& graph, std::int64_t node) {
  if (node < 0) return nullptr;
  if (graph.node_ids.empty()) return node;
  return graph.node_ids[node];
}

nlohmann::ordered_json count_json(std::optional<std::int64_t> count) {
  if (!count || *count < 0) return nullptr;
  return *count;
}

void add_sensitivity(CLI::App& app, Action& action) {
  auto options = std::make_shared<SensitivityOptions>();
  CLI::App* verb = app.add_subcommand(
      "sensitivity", "How much of one node reaches another, exactly, on a graph or in a model");
  verb->footer(footer());
  verb->add_option("graph", options->what,
                   "run folder; or graph: dataset name, npz, edges.csv or a folder with one");
  verb->add_option("--make", options->make, "a graph of a known family instead")->type_name("SPEC");
  verb->add_option("--seed", options->seed, "of random families")->check(at_least(0));
  verb->add_option("--source", options->source, "node j that sends")->type_name("NODE");
  verb->add_option("--target", options->target, "node i that receives")->type_name("NODE");
  verb->add_flag("--all", options->all, "all pairs, also of a family that has a pair of its own");
  verb->add_option("--tau", options->tau, "hops: 0:1000:50 or 11,12,100 (default: 1:100)")
      ->type_name("LIST");
  verb->add_option("--worst", options->worst, "the K worst pairs at the last tau, and why")
      ->type_name("K")
      ->check(at_least(1));
  verb->add_option("--by", options->by,
                   "what makes a pair worst: its value, or its share of the limit")
      ->check(CLI::IsMember({"value", "share"}))
      ->capture_default_str();
  verb->add_flag("--limit", options->limit, "where S goes as tau grows, and lambda*");
  verb->add_flag("--bounds", options->bounds, "bounds at every tau, and whether they hold");
  verb->add_option("--depth", options->depth, "hops until this share of the limit arrives")
      ->type_name("SHARE");
  verb->add_option("--max-tau", options->max_tau, "where --depth gives up")
      ->check(at_least(1))
      ->capture_default_str();
  verb->add_option("--gso", options->gso, "operator on a graph: sym_normalized, random_walk, ...")
      ->type_name("KIND")
      ->check(CLI::IsMember({"sym_normalized", "sym_normalized_no_loops", "random_walk",
                             "adjacency", "laplacian", "identity"}))
      ->capture_default_str();
  verb->add_option("--w", options->w, "W of a graph without a model: a number")
      ->type_name("NUMBER")
      ->capture_default_str();
  verb->add_flag("--directed", options->directed, "edges of own tables count one way only");
  verb->add_flag("--vanishing", options->vanishing,
                 "how much faster a ReLU GCN on this graph forgets than its linear twin");
  verb->add_option("--compare", options->compare, "run: second run, side by side")
      ->type_name("RUN");
  verb->add_option("--block", options->block, "run: whose W the profile of a pair takes")
      ->check(at_least(1))
      ->capture_default_str();
  verb->add_option("--sample", options->sample, "run on many graphs or windows: which one")
      ->check(at_least(0));
  verb->add_option("--predictions", options->predictions,
                   "run: what this many predictions depend on, by hops")
      ->type_name("K")
      ->check(at_least(1));
  verb->add_option("--top", options->top, "run: how many of the most influential nodes to list")
      ->check(at_least(0))
      ->capture_default_str();
  verb->add_flag("--json", options->json, "one JSON object on stdout instead of tables");
  verb->add_option("--plot", options->plot, "SVG picture to write")->type_name("FILE");
  verb->add_option("--picture", options->picture,
                   "curve over tau (default for a pair), map of all pairs (for a graph), or graph "
                   "with coloured nodes (for one node)")
      ->check(CLI::IsMember({"curve", "map", "graph"}));
  verb->add_option("--data-dir", options->data_dir, "folder to look for registered files first")
      ->type_name("DIR");
  verb->add_option("--threads", options->threads, "threads to use (0: all cores)")
      ->check(thread_count());
  verb->callback([=, &action] { action = [=] { return run(*verb, *options); }; });
}

}  // namespace mpssm::cli
