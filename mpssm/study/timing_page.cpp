// SPDX-License-Identifier: MIT
// The parts of the page on measured times.
#include <fmt/core.h>
#include <system_error>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/report/text.h"
#include "mpssm/study/page.h"

namespace mpssm::study {
namespace {

/// How the time of the first network grows from one row of hops to the next, where the work grows
/// as the hops do: whoever reads the figure sees how rough it is.
std::string growth_of(const std::vector<FigureTable::Line>& lines) {
  std::string words;
  const FigureTable::Line* last = nullptr;
  for (const FigureTable::Line& line : lines) {
    if (line.network != lines.front().network) continue;
    if (last != nullptr) {
      words += fmt::format("{}{:.1f} ({:.0f})", words.empty() ? "" : ", ",
                           line.milliseconds / last->milliseconds,
                           static_cast<double>(line.hops) / static_cast<double>(last->hops));
    }
    last = &line;
  }
  return words;
}

std::string code_of(const TimingSetup& setup) {
  return setup.code.empty() ? "With which code and on which machine: not recorded.\n"
                            : "With " + base::printable(setup.code, 300) + ".\n";
}

}  // namespace

std::string runtime_markdown(const std::optional<RuntimeTable>& table) {
  if (!table) return "\n## Runtime\n\nNot run. `mpssm reproduce runtime`\n";
  std::string page = fmt::format(
      "\n"
      "## Runtime\n"
      "\n"
      "`mpssm reproduce runtime`: {} nodes, {} edges, hidden width {}, {} threads; the fastest of "
      "several rounds, networks taking turns.\n"
      "The graph has the size of Roman-empire but is random, and so are the features and the "
      "labels: nothing is learned, and a real\n"
      "graph's order of nodes may be kinder to the cache. Training is forward, loss and backward, "
      "without the optimiser's step.\n"
      "All networks have encoder and readout; MP-SSM has 2 blocks of depth/2 hops, each with its "
      "MLP, and GCN and GPS are ours (4 heads; 20 columns of\n"
      "encodings; where memory would not hold a training step there is no row). The\n"
      "paper, on a GPU and with other code: 1.15 to 1.26 times a GCN in training, 1.17 to 1.39 in "
      "inference.\n"
      "{}"
      "\n"
      "| depth | network | training ms | over GCN | inference ms | over GCN |\n"
      "|---|---|---|---|---|---|\n",
      table->setup.nodes, table->setup.edges, table->setup.hidden, table->setup.threads,
      code_of(table->setup));
  for (const RuntimeTable::Line& line : table->lines) {
    page += fmt::format("| {} | {} | {:.1f} | {:.2f} | {:.1f} | {:.2f} |\n", line.depth,
                        line.network, line.training_ms, line.training_over_gcn, line.inference_ms,
                        line.inference_over_gcn);
  }
  return page;
}

std::string run_timing(Timing which, const std::filesystem::path& results,
                       const TimingOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(results, error);
  if (error) throw base::Error(results.string(), "cannot create: " + error.message());
  check_timing_files(results);
  if (which == Timing::kRuntime) {
    const RuntimeTable table = measure_runtime(options);
    write_runtime(results, table);
    return runtime_markdown(table);
  }
  const FigureTable table = measure_figure(options);
  write_figure(results, table);
  return figure_markdown(table);
}

std::string figure_markdown(const std::optional<FigureTable>& table) {
  constexpr const char* kOfNetworks =
      "Whole networks: an encoder from one channel, as the\n"
      "paper's figure has it, and a readout around each; MP-SSM is one block with B and its MLP, "
      "the GCN has tanh and no residual.\n"
      "All plans give the same numbers for one W; loop and doubling have a dense one, the others a "
      "diagonal one. ";
  constexpr const char* kOfRecurrences =
      "The rows of "
      "MP-SSM time the recurrence alone, on as many\n"
      "input channels (the paper's figure has one): no B, no MLP. The GCN has encoder and readout "
      "as well; with shared weights it has\n"
      "neither. So this compares the plans with each other; it is no fair race against the GCN. ";
  if (!table) return "\n## Inference figure\n\nNot run. `mpssm reproduce figure`\n";
  std::string page = fmt::format(
      "\n"
      "## Inference figure\n"
      "\n"
      "`mpssm reproduce figure`: a random graph of {} nodes, {} edges, width {}. {}"
      "The spectral plan's eigenvectors\n"
      "are computed once per graph and not timed. The GCN's times are rough: from row to row they "
      "grow by the factor (and its work\n"
      "by) {}.\n"
      "{}"
      "\n"
      "![Inference time against hops](../results/figure.svg)\n"
      "\n"
      "| hops | network | ms |\n"
      "|---|---|---|\n",
      table->setup.nodes, table->setup.edges, table->setup.hidden,
      table->times == FigureTimes::kNetworks ? kOfNetworks : kOfRecurrences,
      growth_of(table->lines), code_of(table->setup));
  for (const FigureTable::Line& line : table->lines) {
    page += fmt::format("| {} | {} | {:.3f} |\n", line.hops, line.network, line.milliseconds);
  }
  return page;
}

}  // namespace mpssm::study
