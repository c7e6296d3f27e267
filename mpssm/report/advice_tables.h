// SPDX-License-Identifier: MIT
// Private to report/: advice as tables that text and page share, and about a trained network as
// JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mpssm/analysis/advice.h"
#include "mpssm/data/bare_graph.h"
#include "mpssm/report/text.h"

namespace mpssm::report {

/// A heading, a table below titles, and what to know about it.
struct AdviceTable {
  std::string heading = {};
  Rows rows = {};
  std::string note = {};
};

std::vector<AdviceTable> tables_of(const data::BareGraph& graph,
                                   const analysis::EdgesAnswer& edges);
std::vector<AdviceTable> tables_of(const data::BareGraph& graph,
                                   const analysis::WhatIfAnswer& answer);
std::vector<AdviceTable> tables_of(const data::BareGraph& graph,
                                   const analysis::Attribution& attribution);
std::vector<AdviceTable> tables_of(const data::BareGraph& graph,
                                   const analysis::Robustness& robustness);

AdviceTable depth_table(const data::BareGraph& graph, const analysis::DepthAdvice& advice);
AdviceTable rewire_table(const data::BareGraph& graph, const analysis::RewireAnswer& answer);
AdviceTable rounds_table(const data::BareGraph& graph,
                         const std::vector<analysis::RewireRound>& rounds, std::int64_t tau);
AdviceTable spare_table(const data::BareGraph& graph, const analysis::RemovalAnswer& answer);

nlohmann::ordered_json to_json_value(const data::BareGraph& graph,
                                     const analysis::EdgesAnswer& edges);
nlohmann::ordered_json to_json_value(const data::BareGraph& graph,
                                     const analysis::Attribution& attribution);
nlohmann::ordered_json to_json_value(const data::BareGraph& graph,
                                     const analysis::Robustness& robustness);

std::string edge_name(const data::BareGraph& graph, std::int32_t u, std::int32_t v);
nlohmann::ordered_json edge_json(const data::BareGraph& graph, std::int32_t u, std::int32_t v);

}  // namespace mpssm::report
