// SPDX-License-Identifier: MIT
#include "cli/graph_question.h"

#include <cmath>
#include <filesystem>

#include "mpssm/graph/distances.h"
#include "mpssm/graph/named.h"
#include "mpssm/io/error.h"

namespace mpssm::cli {
namespace {

data::BareGraph read_graph(const SensitivityOptions& options) {
  const bool by_name = !options.make.empty();
  // A family is also understood in the place of a file, if there is no such file.
  if (by_name || (graph::is_named(options.what) && !data::is_name(options.what) &&
                  !std::filesystem::exists(options.what))) {
    const std::string& spec = by_name ? options.make : options.what;
    return {.name = spec,
            .graph = graph::make_named(spec, static_cast<std::uint64_t>(options.seed))};
  }
  data::LoadOptions load;
  load.data_dir = options.data_dir;
  if (options.directed) load.directed = true;
  data::BareGraph bare = data::load_graph(options.what, load);
  for (const std::string& note : bare.notes) say("note: " + note);
  return bare;
}

/// The question that the paper asks of its chain of cliques: from the first bridge node to the
/// last. They are the last nodes, of degree 2.
void choose_bridges(GraphQuestion& question) {
  constexpr std::string_view kChain = "clique-chain";
  if (question.bare.name.compare(0, kChain.size(), kChain) != 0) return;
  const auto row_ptr = question.bare.graph.row_ptr();
  std::int64_t first = question.num_nodes() - 1;
  while (first > 0 && row_ptr[first] - row_ptr[first - 1] == 2) --first;
  if (first == question.num_nodes() - 1) return;  // one bridge or none
  question.source = first;
  question.target = question.num_nodes() - 1;
}

/// The eigenvalue search is quick on small graphs; on large ones it has to be asked for.
bool wants_lambda_star(const GraphQuestion& question) {
  constexpr std::int64_t kQuick = 200'000;
  return question.limit != nullptr && (question.options.limit || question.options.bounds ||
                                       question.gso.num_nonzeros() <= kQuick);
}

}  // namespace

double GraphQuestion::scaled(double entry, std::int64_t tau) const {
  // What does not arrive stays 0, however large the power.
  return entry == 0.0 ? 0.0 : entry * std::pow(std::abs(options.w), static_cast<double>(tau));
}

std::string GraphQuestion::title() const {
  if (is_pair()) return bare.name + ": from " + name(source) + " to " + name(target);
  if (source >= 0) return bare.name + ": what " + name(source) + " sends";
  if (target >= 0) return bare.name + ": what " + name(target) + " hears";
  return bare.name + ": all pairs";
}

GraphQuestion read_question(const SensitivityOptions& options) {
  GraphQuestion question{.options = options, .taus = parse_taus(options.tau)};
  if (!std::isfinite(options.w)) throw io::InputError("--w: expected a finite number");
  question.bare = read_graph(options);
  if (question.num_nodes() == 0) throw io::InputError(question.bare.name + ": expected a node");
  if (!options.source.empty()) question.source = data::find_node(question.bare, options.source);
  if (!options.target.empty()) question.target = data::find_node(question.bare, options.target);
  if (options.source.empty() && options.target.empty() && !options.all) choose_bridges(question);
  question.gso =
      graph::make_gso(question.bare.graph, {.kind = graph::gso_kind_from_name(options.gso)});
  question.why_no_limit = options.gso != "sym_normalized"
                              ? "it is known for the operator sym_normalized only"
                              : analysis::why_no_deep_limit(question.bare.graph);
  if (question.why_no_limit.empty()) {
    question.limit = std::make_unique<analysis::DeepLimit>(question.bare.graph);
  } else if (options.depth) {
    throw io::InputError("--depth: there is no limit: " + question.why_no_limit);
  } else if (options.limit || options.bounds) {
    say("note: no limit: " + question.why_no_limit);
  }
  return question;
}

void describe_graph(const GraphQuestion& question, Answer& answer) {
  const graph::Graph& graph = question.bare.graph;
  const std::int64_t components = graph::components(graph).count;
  answer.json = {{"graph", question.bare.name},
                 {"nodes", graph.num_nodes()},
                 {"edges", graph.num_edges()},
                 {"components", components},
                 {"source", node_json(question.bare, question.source)},
                 {"target", node_json(question.bare, question.target)},
                 {"w", question.options.w},
                 {"gso", question.options.gso},
                 {"limit", nullptr},
                 {"lambda_star", nullptr},
                 {"profile", nlohmann::ordered_json::array()},
                 {"bounds", nullptr}};
  answer.line(question.bare.name + ": " + counted(graph.num_nodes(), "node") + ", " +
              counted(graph.num_edges(), graph.is_symmetric() ? "edge" : "directed edge") + ", " +
              (components == 1 ? "connected" : counted(components, "component")));
  if (wants_lambda_star(question)) {
    const analysis::DeepLimit& limit = *question.limit;
    const double rate =
        question.is_pair() ? limit.lambda_star(question.source) : limit.lambda_star();
    answer.json["lambda_star"] = rate;
    answer.line(text("lambda* %.7f%s: what is not yet settled shrinks by this factor per hop", rate,
                     limit.is_certain() ? "" : " (approximate: the search did not settle)"));
  }
  constexpr std::int64_t kLarge = 100'000;
  if (graph.num_nodes() >= kLarge) {
    constexpr double kMib = 1024.0 * 1024.0;
    say(text("two vectors of %lld nodes: %.0f MiB beside the graph, one sparse product a step",
             static_cast<long long>(graph.num_nodes()),
             2.0 * sizeof(double) * static_cast<double>(graph.num_nodes()) / kMib));
  }
}

std::optional<std::int64_t> pair_depth(const GraphQuestion& question, std::int64_t source,
                                       std::int64_t target) {
  const double limit = question.limit->limit(target, source);
  if (limit == 0.0) return {};
  return analysis::first_reaching(question.gso, source, target, *question.options.depth * limit,
                                  question.options.max_tau);
}

analysis::Progress walk_progress(const GraphQuestion& question, Meter& meter) {
  const auto last = static_cast<double>(question.taus.back());
  return [&meter, last](std::int64_t tau) { meter.update(static_cast<double>(tau) / last); };
}

std::string bounds_verdict(const Answer& answer) {
  return answer.json["bounds"]["holds"].get<bool>() ? "the bounds hold at every tau asked for"
                                                    : "the bounds do NOT hold: please report this";
}

}  // namespace mpssm::cli
