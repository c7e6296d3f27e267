// SPDX-License-Identifier: MIT
// What was found out about a trained network: for people, for programs, as a picture.
#pragma once

#include <string>

#include "mpssm/analysis/model_answers.h"
#include "mpssm/data/bare_graph.h"
#include "mpssm/report/picture_kind.h"

namespace mpssm::report {

// `graph` is that of the input.

/// Lines and tables.
std::string to_text(const data::BareGraph& graph, const analysis::ModelAnswer& answer);

/// One JSON object on one line; numbers that are not finite become null.
std::string to_json(const data::BareGraph& graph, const analysis::ModelAnswer& answer);

/// The picture that fits the question.
PictureKind usual_picture(const analysis::ModelAnswer& answer);
/// SVG: kCurve, or kGraph for an answer about one prediction.
std::string to_svg(const data::BareGraph& graph, const analysis::ModelAnswer& answer,
                   PictureKind kind);

}  // namespace mpssm::report
