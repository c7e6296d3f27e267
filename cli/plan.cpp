// SPDX-License-Identifier: MIT
// mpssm plan: what a training step costs on several ranks, before they are started.
#include <memory>

#include "mpssm/run/scale.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {

void add_plan(CLI::App& app, Action& action) {
  auto options = std::make_shared<run::ScaleRequest>();
  ranks::ScaleQuery& query = options->query;
  CLI::App* verb = app.add_subcommand("plan", "Count what a step costs on several ranks");
  verb->add_option("dataset", options->data, "name or path (default: --nodes and --edges)");
  verb->add_option("--set", options->settings, "KEY=VALUE of a training on these data")
      ->allow_extra_args(false);
  const auto add = [&](const char* name, double& value, const char* help) {
    verb->add_option(name, value, help)->check(CLI::NonNegativeNumber);
  };
  add("--ranks", query.ranks, "processes that share the work");
  add("--nodes", query.nodes, "of the graph");
  add("--edges", query.edges, "of the graph");
  add("--channels", query.channels, "of the network");
  add("--blocks", query.blocks, "of the network");
  add("--hops", query.hops, "of a block");
  verb->add_flag("--dense", query.dense, "a dense W");
  add("--cut", query.cut, "share of the edges between parts (default: dealt by chance)");
  add("--memory", query.memory_gib, "GiB of a rank (default: whatever it takes)");
  add("--latency", query.latency_us, "microseconds of an exchange on the network");
  verb->add_option("--network", options->network, "between ranks: 25Gbit (default: one machine)");
  verb->add_option("--measure", options->measure, "measure prices and keep them in this file");
  verb->add_option("--costs", options->costs, "prices kept by --measure");
  verb->footer(
      "\nExample: mpssm plan --nodes 1e8 --edges 2e9 --ranks 64 --network 25Gbit --cut 0.05");
  add_json(*verb, options->json);
  verb->callback(
      [options, &action] { action = [options] { return print(run::answer(*options)), 0; }; });
}

}  // namespace mpssm::cli
