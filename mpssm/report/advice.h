// SPDX-License-Identifier: MIT
// Advice about a graph: for people and for programs.
#pragma once

#include <string>

#include "mpssm/analysis/advice.h"
#include "mpssm/data/bare_graph.h"
#include "mpssm/report/explorer.h"

namespace mpssm::report {

/// Lines and tables.
std::string to_text(const data::BareGraph& graph, const analysis::Advice& advice);

/// Puts the advised edges, the pair they are for and shares of nodes onto the drawing of the graph.
void mark_advice(const analysis::Advice& advice, Explorer& explorer);

/// What the drawing needs beside the operator: bridges; where it is known, the limit of deep walks.
/// `lambda_star`: of the graph, 0 if it was not looked for.
void describe_graph(const graph::Graph& graph, double lambda_star, Explorer& explorer);

/// A page with the advice and the graph.
std::string advice_page_html(const data::BareGraph& graph, const analysis::Advice& advice,
                             const Explorer& explorer);

/// One JSON object on one line; numbers that are not finite become null.
std::string to_json(const data::BareGraph& graph, const analysis::Advice& advice);

}  // namespace mpssm::report
