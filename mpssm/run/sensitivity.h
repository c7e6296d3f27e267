// SPDX-License-Identifier: MIT
// Sensitivity of a graph or a run: from the words of a user to the answers of analysis/, rendered.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/analysis/graph_question.h"
#include "mpssm/engine/executor.h"
#include "mpssm/ranks/communicator.h"
#include "mpssm/report/picture_kind.h"

namespace mpssm::run {

struct SensitivityRequest {
  std::string what = {}, make = {};      ///< run folder or graph, or a family; one of the two
  std::string source = {}, target = {};  ///< nodes by name; empty: none
  std::vector<std::int64_t> taus = {};
  bool asked_for_taus = false;  ///< else they are the usual ones
  std::filesystem::path data_dir = {};
  bool json = false, draws = false, html = false;   ///< what to render
  std::optional<report::PictureKind> picture = {};  ///< nullopt: the one that fits
  // Of a graph.
  analysis::GraphWishes wishes = {};
  std::string gso = "sym_normalized";
  bool gso_is_given = false;  ///< a graph in parts has its own
  bool directed = false, all = false;
  // Of a run.
  std::string compare = {};  ///< second run
  std::string data = {};     ///< other than those of the run
  bool multi_hop = false;
  std::int64_t block = 1, sample = 0, predictions = 0, top = 10;
};

struct SensitivityResult {
  std::string words = {};    ///< tables, or a JSON object on one line
  std::string picture = {};  ///< SVG; empty: not asked for
  std::string page = {};     ///< HTML; likewise
};

enum class Subject { kRun, kGraph, kParts };
Subject subject_of(const SensitivityRequest& request);

/// Notes on the way go to `say`. Ranks share the work on a graph in parts; the first has the
/// answer. Throws base::Error if the question does not fit what it is asked about, beginning with
/// the option.
SensitivityResult ask(const SensitivityRequest& request, ranks::Communicator& ranks,
                      const engine::Executor& executor, const analysis::Stages& stages,
                      const std::function<void(const std::string&)>& say);

}  // namespace mpssm::run
