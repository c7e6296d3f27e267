// SPDX-License-Identifier: MIT
// mpssm sensitivity: how much of one node reaches another, on a graph or in a trained model.
#include "mpssm/run/sensitivity.h"

#include <cstdio>
#include <fmt/core.h>
#include <memory>
#include <span>
#include <utility>

#include "mpssm/base/printable.h"
#include "mpssm/graph/named.h"
#include "mpssm/io/file.h"
#include "mpssm/io/number_list.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/report/run_page.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

struct SensitivityOptions {
  run::SensitivityRequest request;
  std::string tau, by = "value", plot, picture, html;
  std::int64_t threads = 0;
  ranks::SessionOptions session;
};

std::string sensitivity_footer() {
  std::string text = R"(
Examples, of a graph (W = 1 unless --w is given):
  mpssm sensitivity --make clique-chain:6x10 --limit          between its first and last bridge
  mpssm sensitivity edges.csv --source a --target b --bounds  S(tau) of a pair, with its bounds
  mpssm sensitivity edges.csv --source a --plot reach.svg     what a reaches, as a picture
  mpssm sensitivity minesweeper --worst 10 --depth 0.5        worst pairs, and how deep they need
  mpssm sensitivity parts/ --source 0 --ranks 4               of a graph in parts, by four processes
Of a trained model:
  mpssm sensitivity runs/mine --multi-hop                     reach of each block, and from how far
  mpssm sensitivity runs/mine --target 17 --plot who.svg      what prediction 17 depends on
  mpssm sensitivity runs/mine --predictions 10 --compare runs/gcn
  mpssm sensitivity runs/mine --target 17 --data changed/      on data the model was not trained on

--make takes)";
  for (const graph::NamedFamily& family : graph::named_families()) text += " " + family.pattern();
  return text + "\nWhat each number means: docs/sensitivity.md";
}

// SensitivityOptions that would be passed over in silence.
constexpr const char* kOfRuns[] = {"--compare", "--block", "--sample",   "--predictions",
                                   "--top",     "--data",  "--multi-hop"};
constexpr const char* kOfGraphs[] = {"--worst",  "--by",        "--depth", "--max-tau",
                                     "--bounds", "--gso",       "--w",     "--directed",
                                     "--seed",   "--vanishing", "--all",   "--html"};
constexpr const char* kOfWholes[] = {"--worst", "--depth",     "--limit", "--bounds",  "--directed",
                                     "--seed",  "--vanishing", "--all",   "--picture", "--html"};
constexpr std::pair<const char*, const char*> kNeeds[] = {
    {"--by", "--worst"}, {"--picture", "--plot"}, {"--max-tau", "--depth"}};

void check_options(const CLI::App& verb, const run::SensitivityRequest& request) {
  const run::Subject subject = run::subject_of(request);
  const auto given = [&](const char* option) { return verb.count(option) > 0; };
  refuse_if(request.what.empty() && request.make.empty(),
            "sensitivity: expected a graph, a run folder or --make");
  refuse_if(!request.what.empty() && !request.make.empty(),
            "sensitivity: expected a graph or --make, got both");
  const auto refuse_those = [&](const char* wanted, std::span<const char* const> all) {
    for (const char* option : all) {
      refuse_if(given(option), fmt::format("{} is for a {}, got {}", option, wanted,
                                           base::printable(request.make + request.what)));
    }
  };
  subject == run::Subject::kRun ? refuse_those("graph", kOfGraphs) : refuse_those("run", kOfRuns);
  if (subject == run::Subject::kParts) refuse_those("whole graph", kOfWholes);
  for (const auto& [option, needed] : kNeeds) {
    refuse_if(given(option) && !given(needed),
              fmt::format("{}: expected {} with it", option, needed));
  }
  refuse_if(given("--directed") && !request.make.empty(),
            "--directed is for tables of your own; --make makes undirected graphs");
  refuse_if(given("--block") && request.source.empty(),
            "--block: expected --source and --target with it");
  refuse_if(given("--source") && request.source.empty(), "--source: expected a node, got nothing");
  refuse_if(given("--target") && request.target.empty(), "--target: expected a node, got nothing");
  refuse_if(request.all && !(request.source.empty() && request.target.empty()),
            "--all: expected no --source and --target with it");
  const double share = request.wishes.depth.value_or(0.5);
  refuse_if(!(share > 0.0 && share < 1.0),
            fmt::format("--depth: expected a share between 0 and 1, got {:g}", share));
}

void write_named(const std::string& file, const std::string& text) {
  if (file.empty()) return;
  io::write_file(file, text);
  say("wrote " + file);
}

int answer(const CLI::App& verb, const SensitivityOptions& options, ranks::Communicator& ranks) {
  run::SensitivityRequest request = options.request;
  check_options(verb, request);
  request.gso_is_given = verb.count("--gso") > 0;
  request.asked_for_taus = !options.tau.empty();
  request.taus = io::parse_number_list("--tau", request.asked_for_taus ? options.tau : "1:100",
                                       /*max_value=*/10'000'000, /*max_count=*/100'000);
  if (options.by == "share") request.wishes.order = analysis::Order::kShare;
  request.draws = !options.plot.empty();
  request.html = !options.html.empty();
  if (!options.picture.empty()) request.picture = report::picture_kind_from_name(options.picture);
  if (request.draws) io::check_replaceable(options.plot, report::kPictureMark);
  if (request.html) {
    io::check_replaceable(options.html, {.bytes = report::page_start(), .kind = "a page of mpssm"});
  }
  ops::set_process_threads(options.threads);
  const run::SensitivityResult result =
      run::ask(request, ranks, ops::Threads(), follow, [](const std::string& note) { say(note); });
  if (!ranks.is_first()) return 0;
  write_named(options.html, result.page);
  write_named(options.plot, result.picture);
  std::fputs(result.words.c_str(), stdout);
  return 0;
}

}  // namespace

void add_sensitivity(CLI::App& app, Action& action) {
  auto options = std::make_shared<SensitivityOptions>();
  run::SensitivityRequest& o = options->request;
  CLI::App* verb = app.add_subcommand(
      "sensitivity", "How much of one node reaches another, exactly, on a graph or in a model");
  verb->footer(sensitivity_footer());
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
  take("--tau", options->tau, "LIST", "hops: 0:1000:50 or 11,12,100 (default: 1:100)");
  count("--worst", o.wishes.worst, 1, "the K worst pairs at the last tau, and why")->type_name("K");
  verb->add_option("--by", options->by,
                   "what makes a pair worst: its value, or its share of the limit")
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
  take("--plot", options->plot, "FILE", "SVG picture to write");
  take("--html", options->html, "FILE", "graph: page to write, to look into it by mouse or keys");
  verb->add_option("--picture", options->picture,
                   "curve over tau (default for a pair), map of all pairs (for a graph), or graph "
                   "with coloured nodes (for one node)")
      ->check(CLI::IsMember({"curve", "map", "graph"}));
  take("--data", o.data, "DATA", "run: other data of the same kind (default: its own)");
  take("--data-dir", o.data_dir, "DIR", "folder to look for registered files first");
  verb->add_option("--threads", options->threads, "threads to use (0: all cores)")
      ->check(thread_count());
  add_ranks(*verb, options->session);
  verb->callback([=, &action] {
    action = [=] {
      return ranks::run_session(options->session,
                                [&](auto& all) { return answer(*verb, *options, all); });
    };
  });
}

}  // namespace mpssm::cli
