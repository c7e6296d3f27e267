// SPDX-License-Identifier: MIT
// mpssm advise: how deep, which edge, what if, what from, how sure.
#include "mpssm/run/advise.h"

#include <cstdio>
#include <memory>

#include "mpssm/io/file.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/report/advice.h"
#include "mpssm/report/run_page.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

struct AdviseOptions {
  run::AdviceRequest request;
  std::string by = "value", save, html;
  bool json = false;
};

constexpr const char* kAdviseFooter = R"(
Examples:
  mpssm advise edges.csv --depth 0.5                      hops until half of the limit arrives
  mpssm advise clique-chain:6x10 --rewire 3 --tau 50      edges that help the worst pair most
  mpssm advise edges.csv --remove a,b --add a,c --source a --target d    what if
  mpssm advise runs/mine --remove a,b                     and what a run would predict then
  mpssm advise edges.csv --rounds 5 --save new.json       five edges, for: train DATA --rewired new.json
  mpssm advise runs/mine --edges 10                       which edges its validation loss wants gone
  mpssm advise runs/mine --target a --attribute           what a prediction is made of
  mpssm advise runs/mine --target a --epsilon 0.1 --move b,c    how far features can move it

Without a question: depth and rewiring. Of a graph,
the operator is the default one (sym_normalized) and W = 1.)";

int advise(const AdviseOptions& options) {
  ops::set_process_threads(0);
  run::AdviceRequest request = options.request;
  if (options.by == "share") request.question.order = analysis::Order::kShare;
  const run::AdviceResult result = run::advise(request, ops::Threads(), follow);
  if (!options.save.empty()) run::save_edit(result, request.weight, options.save);
  if (!options.html.empty()) {
    io::check_replaceable(options.html, {.bytes = report::page_start(), .kind = "a page of mpssm"});
    io::write_file(options.html, run::advice_page(result, request.question.tau));
  }
  for (const std::string& file : {options.save, options.html}) {
    if (!file.empty()) say("wrote " + file);
  }
  const std::string words = options.json ? report::to_json(result.graph, result.advice) + "\n"
                                         : report::to_text(result.graph, result.advice);
  std::fputs(words.c_str(), stdout);
  return 0;
}

}  // namespace

void add_advise(CLI::App& app, Action& action) {
  auto options = std::make_shared<AdviseOptions>();
  run::AdviceRequest& o = options->request;
  CLI::App* verb = app.add_subcommand("advise", "How deep, which edge to add, what a change does");
  verb->add_option("graph", o.what, "run folder, or a graph as sensitivity takes it")->required();
  verb->add_option("--depth", o.question.depth, "share of the limit that pairs should have")
      ->check(CLI::Range(1e-6, 1.0 - 1e-6));
  verb->add_option("--max-tau", o.question.max_tau, "where the search for the depth gives up")
      ->check(at_least(1));
  verb->add_option("--rewire", o.question.rewire, "the K best new edges")->check(at_least(1));
  verb->add_option("--rounds", o.question.rounds, "K new edges, each for the then worst pair")
      ->check(at_least(1));
  verb->add_option("--spare", o.question.spare, "the K edges that a pair misses least")
      ->check(at_least(1));
  verb->add_option("--by", options->by, "the worst pair by value or by share of its limit")
      ->check(CLI::IsMember({"value", "share"}));
  verb->add_option("--tau", o.question.tau, "hops")->check(at_least(1));
  verb->add_option("--source", o.source, "node that sends")->type_name("NODE");
  verb->add_option("--target", o.target, "node that receives")->type_name("NODE");
  verb->add_option("--remove", o.remove, "what if this edge went")->type_name("U,V");
  verb->add_option("--add", o.add, "what if this edge came")->type_name("U,V");
  verb->add_option("--edges", o.edges, "run: K edges that harm, and that help, its validation loss")
      ->check(at_least(1));
  verb->add_flag("--attribute", o.attribute, "run: what the prediction of --target is made of");
  verb->add_option("--block", o.block, "of the state that --attribute is about")
      ->check(at_least(1));
  verb->add_option("--epsilon", o.epsilon, "run: features move by so much, how far does --target")
      ->check(CLI::PositiveNumber);
  verb->add_option("--move", o.move, "nodes whose features move (default: all)")
      ->type_name("NODES")
      ->delimiter(',');
  verb->add_option("--save", options->save, "file for the advised edges")->type_name("FILE");
  verb->add_option("--html", options->html, "page to write")->type_name("FILE");
  verb->add_option("--weight", o.weight, "of new edges")->check(CLI::PositiveNumber);
  verb->add_flag("--json", options->json, "one JSON object instead");
  verb->add_option("--data-dir", o.data_dir, "folder to look for registered files first");
  verb->footer(kAdviseFooter);
  verb->callback([options, &action] { action = [options] { return advise(*options); }; });
}

}  // namespace mpssm::cli
