// SPDX-License-Identifier: MIT
// mpssm advise: how deep, which edge, what if.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>

#include "mpssm/ops/runtime.h"
#include "mpssm/report/advice.h"
#include "mpssm/run/open_run.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

struct AdviseOptions {
  std::string what, source, target, by = "value";
  std::vector<std::string> remove, add;
  analysis::AdviceQuestion question;
  double weight = 1.0;
  bool json = false;
  std::filesystem::path data_dir;
};

constexpr const char* kAdviseFooter = R"(
Examples:
  mpssm advise edges.csv --depth 0.5                      hops until half of the limit arrives
  mpssm advise clique-chain:6x10 --rewire 3 --tau 50      edges that help the worst pair most
  mpssm advise edges.csv --remove a,b --add a,c --source a --target d    what if
  mpssm advise runs/mine --remove a,b                     and what a run would predict then

Without a question: depth and rewiring. The operator is the default one (sym_normalized), W = 1.)";

int advise(const AdviseOptions& options) {
  ops::set_process_threads(0);
  const data::BareGraph graph = run::graph_of(options.what, options.data_dir);
  const auto node = [&](const std::string& id) {
    return id.empty() ? -1 : data::find_node(graph, id);
  };
  analysis::AdviceQuestion question = options.question;
  question.graph = graph.graph;
  question.source = node(options.source);
  question.target = node(options.target);
  if (options.by == "share") question.order = analysis::Order::kShare;
  question.edit = run::edit_of(graph, options.remove, options.add, options.weight);
  if (question.edit.empty() && question.rewire == 0 && !question.depth) {
    question.depth = 0.5;
    question.rewire = 5;
  }
  analysis::Advice advice = analysis::advise(question, ops::Threads(), follow);
  if (advice.what_if && run::is_run(options.what)) {
    advice.what_if->predictions =
        run::changed_predictions(options.what, options.data_dir, question.edit);
  }
  std::fputs((options.json ? report::to_json(graph, advice) + "\n" : report::to_text(graph, advice))
                 .c_str(),
             stdout);
  return 0;
}

}  // namespace

void add_advise(CLI::App& app, Action& action) {
  auto options = std::make_shared<AdviseOptions>();
  AdviseOptions& o = *options;
  CLI::App* verb = app.add_subcommand("advise", "How deep, which edge to add, what a change does");
  verb->add_option("graph", o.what, "run folder, or a graph as sensitivity takes it")->required();
  verb->add_option("--depth", o.question.depth, "share of the limit that pairs should have")
      ->check(CLI::Range(1e-6, 1.0 - 1e-6));
  verb->add_option("--max-tau", o.question.max_tau, "where the search for the depth gives up")
      ->check(at_least(1));
  verb->add_option("--rewire", o.question.rewire, "the K best new edges")->check(at_least(1));
  verb->add_option("--by", o.by, "the worst pair by value or by share of its limit")
      ->check(CLI::IsMember({"value", "share"}));
  verb->add_option("--tau", o.question.tau, "hops")->check(at_least(1));
  verb->add_option("--source", o.source, "node that sends")->type_name("NODE");
  verb->add_option("--target", o.target, "node that receives")->type_name("NODE");
  verb->add_option("--remove", o.remove, "what if this edge went")->type_name("U,V");
  verb->add_option("--add", o.add, "what if this edge came")->type_name("U,V");
  verb->add_option("--weight", o.weight, "of new edges")->check(CLI::PositiveNumber);
  verb->add_flag("--json", o.json, "one JSON object instead");
  verb->add_option("--data-dir", o.data_dir, "folder to look for registered files first");
  verb->footer(kAdviseFooter);
  verb->callback([options, &action] { action = [options] { return advise(*options); }; });
}

}  // namespace mpssm::cli
