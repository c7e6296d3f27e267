// SPDX-License-Identifier: MIT
// What was found out about a bare graph: for people, for programs, as a picture.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/analysis/graph_answers.h"
#include "mpssm/data/bare_graph.h"
#include "mpssm/graph/gso.h"
#include "mpssm/report/picture_kind.h"

namespace mpssm::report {

/// What a question costs beside the graph, as far as it is worth saying: a line each.
/// `steps_of_all_pairs` is nullopt if not all pairs are looked at, else it takes `all_pairs_bytes`.
std::vector<std::string> cost_notes(std::int64_t num_nodes,
                                    std::optional<std::int64_t> steps_of_all_pairs,
                                    std::int64_t all_pairs_bytes);

/// Lines and tables.
std::string to_text(const data::BareGraph& graph, const analysis::GraphAnswer& answer);

/// One JSON object on one line; numbers that are not finite become null.
std::string to_json(const data::BareGraph& graph, const analysis::GraphAnswer& answer);

/// The picture that fits a question about these nodes, -1: none.
PictureKind usual_picture(std::int64_t source, std::int64_t target);
/// SVG. kMap needs answer.map, kGraph answer.of_node.
std::string to_svg(const data::BareGraph& graph, const analysis::GraphAnswer& answer,
                   PictureKind kind);

/// A page to look into the graph with, beginning at the nodes that were asked for: explorer.h.
std::string to_html(const data::BareGraph& graph, const graph::Gso& gso,
                    const analysis::GraphAnswer& answer);

}  // namespace mpssm::report
