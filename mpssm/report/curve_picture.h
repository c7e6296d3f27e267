// SPDX-License-Identifier: MIT
// Curves over a common axis as an SVG picture: a loss, an error, a bound with its band.
#pragma once

#include <string>
#include <vector>

namespace mpssm::report {

enum class LineStyle { kSolid, kDashed, kDotted };

/// Points joined in their order. A point that is not finite, or not positive on a logarithmic
/// axis, is a gap; a point between two gaps is a dot.
struct Curve {
  std::string name;  ///< in the legend; empty: not there
  std::vector<double> x = {};
  std::vector<double> y = {};
  LineStyle style = LineStyle::kSolid;
  bool markers = false;  ///< dots on the points, on some of them if there are many
};

/// The area between two curves. It has the colour of the curve of the same name, if there is one,
/// and shares its place in the legend. On a logarithmic axis a lower edge that is not positive is
/// the bottom of the picture.
struct Band {
  std::string name;
  std::vector<double> x = {};
  std::vector<double> lower = {};
  std::vector<double> upper = {};
};

struct CurvePicture {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Curve> curves = {};
  std::vector<Band> bands = {};
  bool log_x = false;
  bool log_y = false;
};

/// One plot with the legend to its right, about 900 units wide. Eight colours that colour-blind
/// readers can tell apart, then the same again. Long curves are thinned out to what can be seen, so
/// that the picture stays below 100 KB. If there is no point to draw, the plot says so. Throws
/// std::invalid_argument if the coordinates of a curve or band differ in number.
std::string curve_svg(const CurvePicture& picture);

}  // namespace mpssm::report
