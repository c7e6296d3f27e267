// SPDX-License-Identifier: MIT
// mpssm sensitivity: how much of one node reaches another, on a graph or in a trained model.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cmath>
#include <cstdio>
#include <fmt/core.h>
#include <memory>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "mpssm/analysis/graph_question.h"
#include "mpssm/analysis/model_question.h"
#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/graph/named.h"
#include "mpssm/io/file.h"
#include "mpssm/io/number_list.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/report/graph_answer.h"
#include "mpssm/report/model_answer.h"
#include "mpssm/report/run_page.h"
#include "mpssm/run/open_run.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

using report::PictureKind;
using report::shown;

struct SensitivityOptions {
  std::string what, make;           ///< graph or run, or a family
  std::string source, target, tau;  ///< empty: none, the usual ones
  std::string compare, plot, picture, html;
  std::string gso = "sym_normalized", by = "value";
  analysis::GraphWishes wishes;
  bool directed = false, all = false, json = false, multi_hop = false;
  std::int64_t block = 1, sample = 0, predictions = 0, top = 10, threads = 0;
  std::string data;  ///< other than those of the run
  std::filesystem::path data_dir;
};

std::string footer() {
  std::string text = R"(
Examples, of a graph (W = 1 unless --w is given):
  mpssm sensitivity --make clique-chain:6x10 --limit          between its first and last bridge
  mpssm sensitivity edges.csv --source a --target b --bounds  S(tau) of a pair, with its bounds
  mpssm sensitivity edges.csv --source a --plot reach.svg     what a reaches, as a picture
  mpssm sensitivity minesweeper --worst 10 --depth 0.5        worst pairs, and how deep they need
Of a trained model:
  mpssm sensitivity runs/mine --multi-hop                     reach of each block, and from how far
  mpssm sensitivity runs/mine --target 17 --plot who.svg      what prediction 17 depends on
  mpssm sensitivity runs/mine --predictions 10 --compare runs/gcn
  mpssm sensitivity runs/mine --target 17 --data changed/      on data the model was not trained on

--make takes)";
  for (const graph::NamedFamily& family : graph::named_families()) text += " " + family.pattern();
  return text + "\nWhat each number means: docs/sensitivity.md";
}

// Options that would be passed over in silence.
constexpr const char* kOfRuns[] = {"--compare", "--block", "--sample",   "--predictions",
                                   "--top",     "--data",  "--multi-hop"};
constexpr const char* kOfGraphs[] = {"--worst",  "--by",        "--depth", "--max-tau",
                                     "--bounds", "--gso",       "--w",     "--directed",
                                     "--seed",   "--vanishing", "--all",   "--html"};
constexpr std::pair<const char*, const char*> kNeeds[] = {
    {"--by", "--worst"}, {"--picture", "--plot"}, {"--max-tau", "--depth"}};

void check_options(const CLI::App& verb, const SensitivityOptions& options, bool of_run) {
  const auto given = [&](const char* option) { return verb.count(option) > 0; };
  refuse_if(options.what.empty() && options.make.empty(),
            "sensitivity: expected a graph, a run folder or --make");
  refuse_if(!options.what.empty() && !options.make.empty(),
            "sensitivity: expected a graph or --make, got both");
  for (const char* option : of_run ? std::span<const char* const>(kOfGraphs) : kOfRuns) {
    refuse_if(given(option), option +
                                 std::string(of_run ? " is for a graph, got the run "
                                                    : " is for a run, got the graph ") +
                                 base::printable(options.make + options.what));
  }
  for (const auto& [option, needed] : kNeeds) {
    refuse_if(given(option) && !given(needed),
              fmt::format("{}: expected {} with it", option, needed));
  }
  refuse_if(given("--directed") && !options.make.empty(),
            "--directed is for tables of your own; --make makes undirected graphs");
  refuse_if(given("--block") && options.source.empty(),
            "--block: expected --source and --target with it");
  refuse_if(given("--source") && options.source.empty(), "--source: expected a node, got nothing");
  refuse_if(given("--target") && options.target.empty(), "--target: expected a node, got nothing");
  refuse_if(options.all && !(options.source.empty() && options.target.empty()),
            "--all: expected no --source and --target with it");
  const double share = options.wishes.depth.value_or(0.5);
  refuse_if(!(share > 0.0 && share < 1.0),
            fmt::format("--depth: expected a share between 0 and 1, got {:g}", share));
}

std::vector<std::int64_t> read_taus(const SensitivityOptions& options) {
  return io::parse_number_list("--tau", options.tau.empty() ? "1:100" : options.tau,
                               /*max_value=*/10'000'000, /*max_count=*/100'000);
}

std::int64_t node_named(const data::BareGraph& graph, const std::string& id) {
  return id.empty() ? -1 : data::find_node(graph, id);
}

PictureKind picture_kind(const SensitivityOptions& options, PictureKind usual) {
  return options.picture.empty() ? usual : report::picture_kind_from_name(options.picture);
}

template <typename Answer>
int give(const SensitivityOptions& options, const data::BareGraph& graph, const Answer& answer,
         PictureKind picture) {
  if (!options.plot.empty()) {
    io::write_file(options.plot, report::to_svg(graph, answer, picture));
    say("wrote " + options.plot);
  }
  const std::string words =
      options.json ? report::to_json(graph, answer) + "\n" : report::to_text(graph, answer);
  std::fputs(words.c_str(), stdout);
  return 0;
}

data::BareGraph read_graph(const SensitivityOptions& options) {
  const auto seed = static_cast<std::uint64_t>(options.wishes.seed);
  if (!options.make.empty()) return data::make_graph(options.make, seed);
  data::LoadOptions load;
  load.data_dir = options.data_dir;
  if (options.directed) load.directed = data::EdgeUse::kForward;
  return data::load_or_make_graph(options.what, load, seed);
}

int answer_about_graph(const SensitivityOptions& options) {
  std::vector<std::int64_t> taus = read_taus(options);
  refuse_if(!std::isfinite(options.wishes.w), "--w: expected a finite number");
  const data::BareGraph graph = read_graph(options);
  for (const std::string& note : graph.notes) say("note: " + note);
  const std::int64_t nodes = graph.graph.num_nodes();
  refuse_if(nodes == 0, graph.name + ": expected a node");
  std::pair ends{node_named(graph, options.source), node_named(graph, options.target)};
  if (ends == std::pair<std::int64_t, std::int64_t>(-1, -1) && !options.all) {
    ends = analysis::usual_pair(graph.name, graph.graph).value_or(ends);
  }
  analysis::GraphQuestion question(graph.graph, graph::gso_kind_from_name(options.gso),
                                   std::move(taus));
  std::tie(question.source, question.target) = ends;
  analysis::GraphWishes& wishes = question.wishes = options.wishes;
  const bool draws = !options.plot.empty();
  const PictureKind picture = picture_kind(options, report::usual_picture(ends.first, ends.second));
  wishes.map = draws && picture == PictureKind::kMap;
  wishes.of_node = draws && picture == PictureKind::kGraph;
  wishes.order = options.by == "share" ? analysis::Order::kShare : analysis::Order::kValue;
  question.extremes = nodes <= analysis::kMaxAllPairs || wishes.worst > 0 || wishes.depth || draws;
  analysis::check(question, graph.name);
  if (!question.limit && (wishes.lambda_star || wishes.bounds)) {
    say("note: no limit: " + question.why_no_limit);
  }
  const ops::Threads threads;
  for (const std::string& note : report::cost_notes(nodes, question.steps_of_all_pairs(),
                                                    analysis::all_pairs_bytes(nodes, threads))) {
    say(note);
  }
  if (question.is_whole() && !question.extremes) {
    say("note: too many pairs for extremes over all of them; give --source or --target");
  }
  const analysis::GraphAnswer answer = analysis::answer(question, threads, follow);
  if (!options.html.empty()) {
    io::check_replaceable(options.html, {.bytes = report::page_start(), .kind = "a page of mpssm"});
    io::write_file(options.html, report::to_html(graph, question.gso, answer));
    say("wrote " + options.html);
  }
  return give(options, graph, answer, picture);
}

run::OpenRun open_run(const std::string& path, const SensitivityOptions& options) {
  run::ReopenOptions how{.data_dir = options.data_dir, .skip_new_classes = true};
  if (!options.data.empty()) how.new_data = options.data;
  run::OpenRun run = run::open_run(path, how);
  for (const std::string& note : run.experiment.dataset->notes) say("note: " + note);
  try {
    run::take_sample(run, options.sample);
  } catch (const base::Error& error) {
    throw error.at("--sample");
  }
  return run;
}

analysis::ModelQuestion question_of(const SensitivityOptions& options, const run::OpenRun& run) {
  return {.run = run.name,
          .network = *run.experiment.model.module,
          .x = run.input.x,
          .gso = run.input.gso,
          .graph = run.graph.graph,
          .num_steps = run.experiment.problem->shape().num_steps,
          .predicts_graphs = run.predicts_graphs,
          .block = options.block,
          .lambda_star = options.wishes.lambda_star,
          .top = options.top};
}

void check_run(const SensitivityOptions& options, const analysis::ModelQuestion& question) {
  refuse_if(question.source >= 0 && question.target < 0,
            "--source: of a run, expected --target too: which prediction is meant");
  const std::int64_t blocks = analysis::num_blocks(question.network);
  refuse_if(blocks > 0 && options.block > blocks,
            fmt::format("--block: expected 1 to {}, got {}", shown(blocks), shown(options.block)));
  refuse_if(question.predicts_graphs && (options.predictions > 0 || !options.compare.empty()),
            "--predictions and --compare: this model predicts for whole graphs, there is no "
            "distance to compare by; give --sample");
  refuse_if(question.predicts_graphs && question.target >= 0 && question.source < 0,
            "--target: this model predicts for whole graphs; give --sample alone");
  refuse_if(options.picture == "map", "--picture map: of a run, expected curve or graph");
  refuse_if(options.picture == "graph" && question.target < 0 && !question.predicts_graphs,
            "--picture graph: expected --target, got none");
}

int answer_about_run(const SensitivityOptions& options) {
  std::vector<std::int64_t> taus = read_taus(options);
  const run::OpenRun run = open_run(options.what, options);
  analysis::ModelQuestion question = question_of(options, run);
  question.taus = std::move(taus);
  question.source = node_named(run.graph, options.source);
  question.target = node_named(run.graph, options.target);
  check_run(options, question);
  if (question.target >= 0 && !run.predicts_graphs) question.targets = {question.target};
  question.multi_hop = options.multi_hop;
  if (question.target < 0) question.targets = run::spread_over_test(run, options.predictions);
  std::optional<run::OpenRun> other;
  std::optional<analysis::ModelQuestion> compare;
  if (!options.compare.empty()) {
    refuse_if(question.targets.empty(), "--compare: expected --target or --predictions with it");
    other.emplace(open_run(options.compare, options));
    refuse_if(!run::have_same_graph(run, *other) || other->predicts_graphs,
              fmt::format("--compare: expected a run on the same graph as {}, got {} on {}",
                          run.name, other->name, other->graph.name));
    question.compare = &compare.emplace(question_of(options, *other));
  }
  analysis::ModelAnswer answer = analysis::answer(question, follow);
  answer.dataset = run.experiment.dataset->name;
  answer.kind = to_string(run.experiment.config.model.kind);
  answer.asked_for_taus = !options.tau.empty();
  return give(options, run.graph, answer, picture_kind(options, report::usual_picture(answer)));
}

int run(const CLI::App& verb, const SensitivityOptions& options) {
  const std::filesystem::path path = options.what;
  std::error_code ignored;
  const bool of_run = !path.empty() && (path.filename() == "model.safetensors" ||
                                        is_regular_file(path / "config.toml", ignored));
  check_options(verb, options, of_run);
  if (!options.plot.empty()) io::check_replaceable(options.plot, report::kPictureMark);
  ops::set_process_threads(options.threads);
  return of_run ? answer_about_run(options) : answer_about_graph(options);
}

}  // namespace

void add_sensitivity(CLI::App& app, Action& action) {
  auto options = std::make_shared<SensitivityOptions>();
  SensitivityOptions& o = *options;
  CLI::App* verb = app.add_subcommand(
      "sensitivity", "How much of one node reaches another, exactly, on a graph or in a model");
  verb->footer(footer());
  const auto take = [&](const char* name, auto& value, const char* type, const char* help) {
    return verb->add_option(name, value, help)->type_name(type);
  };
  const auto count = [&](const char* name, std::int64_t& value, int least, const char* help) {
    return verb->add_option(name, value, help)->check(at_least(least));
  };
  verb->add_option("graph", o.what,
                   "run folder; or graph: dataset name, npz, edges.csv or a folder with one");
  take("--make", o.make, "SPEC", "a graph of a known family instead");
  count("--seed", o.wishes.seed, 0, "of random families");
  take("--source", o.source, "NODE", "node j that sends");
  take("--target", o.target, "NODE", "node i that receives");
  verb->add_flag("--all", o.all, "all pairs, also of a family that has a pair of its own");
  take("--tau", o.tau, "LIST", "hops: 0:1000:50 or 11,12,100 (default: 1:100)");
  count("--worst", o.wishes.worst, 1, "the K worst pairs at the last tau, and why")->type_name("K");
  verb->add_option("--by", o.by, "what makes a pair worst: its value, or its share of the limit")
      ->check(CLI::IsMember({"value", "share"}))
      ->capture_default_str();
  verb->add_flag("--limit", o.wishes.lambda_star, "where S goes as tau grows, and lambda*");
  verb->add_flag("--bounds", o.wishes.bounds, "bounds at every tau, and whether they hold");
  take("--depth", o.wishes.depth, "SHARE", "hops until this share of the limit arrives");
  count("--max-tau", o.wishes.max_tau, 1, "where --depth gives up")->capture_default_str();
  take("--gso", o.gso, "KIND", "operator on a graph: sym_normalized, random_walk, ...")
      ->check(CLI::IsMember({"sym_normalized", "sym_normalized_no_loops", "random_walk",
                             "adjacency", "laplacian", "identity"}))
      ->capture_default_str();
  take("--w", o.wishes.w, "NUMBER", "W of a graph without a model: a number")
      ->capture_default_str();
  verb->add_flag("--directed", o.directed, "edges of own tables count one way only");
  verb->add_flag("--vanishing", o.wishes.vanishing,
                 "how much faster a ReLU GCN on this graph forgets than its linear twin");
  take("--compare", o.compare, "RUN", "run: second run, side by side");
  count("--block", o.block, 1, "run: whose W the profile of a pair takes")->capture_default_str();
  verb->add_flag("--multi-hop", o.multi_hop, "run: what each block takes from how far, by hops");
  count("--sample", o.sample, 0, "run on many graphs or windows: which one");
  count("--predictions", o.predictions, 1, "run: what this many predictions depend on, by hops")
      ->type_name("K");
  count("--top", o.top, 0, "run: how many of the most influential nodes to list")
      ->capture_default_str();
  verb->add_flag("--json", o.json, "one JSON object on stdout instead of tables");
  take("--plot", o.plot, "FILE", "SVG picture to write");
  take("--html", o.html, "FILE", "graph: page to write, to look into it by mouse or keys");
  verb->add_option("--picture", o.picture,
                   "curve over tau (default for a pair), map of all pairs (for a graph), or graph "
                   "with coloured nodes (for one node)")
      ->check(CLI::IsMember({"curve", "map", "graph"}));
  take("--data", o.data, "DATA", "run: other data of the same kind (default: its own)");
  take("--data-dir", o.data_dir, "DIR", "folder to look for registered files first");
  verb->add_option("--threads", o.threads, "threads to use (0: all cores)")->check(thread_count());
  verb->callback([=, &action] { action = [=] { return run(*verb, *options); }; });
}

}  // namespace mpssm::cli
