// SPDX-License-Identifier: MIT
// The picture read back: where nodes, edges and labels are.
#include "mpssm/report/graph_picture.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/svg_reader.h"

namespace mpssm::report {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using testing::corners;
using testing::Element;
using testing::expect_inside;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using testing::kInfinity;
using testing::kNan;
using testing::named;
using ::testing::Not;
using testing::parse;
using testing::Places;
using ::testing::SizeIs;
using ::testing::StrEq;
using testing::texts;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

using Edges = std::vector<std::pair<std::int32_t, std::int32_t>>;

std::vector<Element> draw_graph(const GraphPicture& picture) {
  std::vector<Element> elements = parse(graph_svg(picture));
  expect_inside(elements);
  return elements;
}

const std::vector<Point> kSquare = {{0, 0}, {2, 0}, {2, 2}, {0, 2}};
const Edges kRing = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};
const std::vector<double> kValues = {0.0, 1.0, 2.0, 3.0};

GraphPicture square() { return {"title", "value", kRing, kSquare, kValues}; }

TEST(GraphPicture, KeepsShapeAndDirections) {
  const std::vector<Element> nodes = named(draw_graph(square()), "circle");
  ASSERT_EQ(nodes.size(), 4u);
  const double side = nodes[1].at("cx") - nodes[0].at("cx");
  EXPECT_GT(side, 300);
  EXPECT_NEAR(nodes[1].at("cy"), nodes[0].at("cy"), 0.01);
  EXPECT_NEAR(nodes[2].at("cx"), nodes[1].at("cx"), 0.01);
  EXPECT_NEAR(nodes[0].at("cy") - nodes[3].at("cy"), side, 0.01);  // y is upwards
}

TEST(GraphPicture, SizeAndPlaceOfThePositionsDoNotMatter) {
  std::vector<Point> moved = kSquare;
  for (Point& p : moved) p = {1024 * p.x + 512, 1024 * p.y - 4096};
  GraphPicture other = square();
  other.position = moved;
  EXPECT_EQ(graph_svg(other), graph_svg(square()));
}

TEST(GraphPicture, EdgesJoinTheirNodes) {
  GraphPicture picture = square();
  const Edges edges = {{0, 2}, {1, 1}, {3, 1}};  // a loop has no line
  picture.edges = edges;
  const std::vector<Element> elements = draw_graph(picture);
  const std::vector<Element> nodes = named(elements, "circle");
  const std::vector<Element> paths = named(elements, "path");
  ASSERT_EQ(paths.size(), 1u);
  const std::vector<Places> lines = corners(paths[0].get("d"));
  ASSERT_EQ(lines.size(), 2u);
  const auto expect_at = [&](const std::pair<double, double>& place, int node) {
    EXPECT_NEAR(place.first, nodes[node].at("cx"), 0.06);
    EXPECT_NEAR(place.second, nodes[node].at("cy"), 0.06);
  };
  expect_at(lines[0][0], 0);
  expect_at(lines[0][1], 2);
  expect_at(lines[1][0], 3);
  expect_at(lines[1][1], 1);
}

TEST(GraphPicture, ColoursTellTheValues) {
  GraphPicture picture = square();
  std::vector<std::string> fills;
  for (const Element& node : named(draw_graph(picture), "circle"))
    fills.push_back(node.get("fill"));
  EXPECT_EQ(std::set<std::string>(fills.begin(), fills.end()).size(), 4u);
  EXPECT_EQ(fills.front(), "#faf3e5");
  EXPECT_EQ(fills.back(), "#1d162a");
  const std::vector<double> special = {0.0, kNan, 1.0, 10.0};
  picture.value = special;
  picture.log_scale = true;
  EXPECT_THAT(texts(draw_graph(picture), "text"), IsSupersetOf({"zero", "not finite", "value"}));
  const std::vector<double> logarithmic = {1.0, 1e3, 1e6, 1e9};
  picture.value = logarithmic;
  std::vector<std::string> same;
  for (const Element& node : named(draw_graph(picture), "circle")) same.push_back(node.get("fill"));
  EXPECT_EQ(same, fills);
}

TEST(GraphPicture, MarksNodesWithARing) {
  GraphPicture picture = square();
  picture.marked = {2};
  const std::vector<Element> circles = named(draw_graph(picture), "circle");
  ASSERT_EQ(circles.size(), 5u);
  const Element& node = circles[3];  // on top of the others
  const Element& ring = circles[4];
  EXPECT_EQ(ring.get("cx"), node.get("cx"));
  EXPECT_EQ(ring.get("cy"), node.get("cy"));
  EXPECT_EQ(ring.get("fill"), "none");
  EXPECT_GT(ring.at("r"), node.at("r"));
  EXPECT_LT(node.at("cy"), circles[0].at("cy"));  // node 2 is above node 0
}

TEST(GraphPicture, LabelsAreTooltipsAndTextAtMarkedNodes) {
  GraphPicture picture = square();
  picture.label = {"zeroth", "first", "", "third"};
  picture.marked = {3};
  const std::vector<Element> elements = draw_graph(picture);
  EXPECT_THAT(texts(elements, "title"), UnorderedElementsAre("title", "zeroth", "first", "third"));
  EXPECT_THAT(texts(elements, "text"), AllOf(Contains("third"), Not(Contains("first"))));
  picture.label.clear();
  EXPECT_THAT(texts(draw_graph(picture), "title"), SizeIs(1));
}

TEST(GraphPicture, LabelsOfNeighboursDoNotOverlap) {
  const std::vector<Point> row = {{0, 0}, {0.03, 0}, {0.06, 0}, {1, 0}};
  GraphPicture picture = square();
  picture.position = row;
  picture.label = {"label a", "label b", "label c", "label d"};
  picture.marked = {0, 1, 2, 3};
  std::vector<Element> labels;
  for (const Element& text : named(draw_graph(picture), "text")) {
    if (text.text.starts_with("label")) labels.push_back(text);
  }
  ASSERT_EQ(labels.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < i; ++j) {
      const bool is_beside = std::abs(labels[i].at("x") - labels[j].at("x")) > 50;
      const bool is_above = std::abs(labels[i].at("y") - labels[j].at("y")) > 14;
      EXPECT_TRUE(is_beside || is_above) << i << " and " << j;
    }
  }
}

TEST(GraphPicture, LabelsHideNoNodesWhereThereIsRoom) {
  std::vector<Point> position(50);  // a cluster with the marked node inside, and a far one
  for (int i = 0; i < 49; ++i) position[i] = {i % 7 * 0.04, (i - i % 7) / 7.0 * 0.04};
  position[49] = {2, 0};
  const std::vector<double> value(position.size(), 1.0);
  GraphPicture picture{"", "", {}, position, value, {24}};
  picture.label.assign(position.size(), "label");
  const std::vector<Element> elements = draw_graph(picture);
  for (const Element& text : named(elements, "text")) {
    if (text.text != "label") continue;
    for (const Element& node : named(elements, "circle")) {
      const bool is_beside = std::abs(node.at("cx") - text.at("x")) > 20;
      const bool is_above = std::abs(node.at("cy") - (text.at("y") - 5)) > 8;
      EXPECT_TRUE(is_beside || is_above);
    }
  }
  EXPECT_EQ(named(elements, "path").size(), 1u);  // the line to the node; there are no edges
}

TEST(GraphPicture, ManyNodesAreSmall) {
  double last = kInfinity;
  for (const int size : {1, 50, 200, 500, 3000}) {
    std::vector<Point> position(size);
    for (int i = 0; i < size; ++i) position[i] = {1.0 * (i % 37), i / 37.0};
    const std::vector<double> value(size, 1.0);
    const std::vector<Element> nodes = named(draw_graph({"", "", {}, position, value}), "circle");
    ASSERT_EQ(nodes.size(), static_cast<std::size_t>(size));
    EXPECT_LE(nodes[0].at("r"), last);
    EXPECT_GE(nodes[0].at("r"), 2.0);
    last = nodes[0].at("r");
  }
}

TEST(GraphPicture, DrawsAwkwardGraphs) {
  const double huge = std::numeric_limits<double>::max();
  draw_graph({});
  for (const std::vector<Point>& position : {std::vector<Point>{{3, 4}},
                                             {{3, 4}, {3, 4}},
                                             {{0, 0}, {0, 1}},
                                             {{0, 0}, {1, 0}},
                                             {{-huge, huge}, {huge, -huge}},
                                             {{0, 0}, {5e-324, 0}},
                                             {{1e300, 0}, {1e300, 1}}}) {
    const std::vector<double> value(position.size(), kNan);
    const Edges edges = {{0, static_cast<std::int32_t>(position.size()) - 1}};
    GraphPicture picture{"", "", edges, position, value};
    for (std::size_t i = 0; i < position.size(); ++i) {
      picture.marked.push_back(static_cast<std::int32_t>(i));
      picture.label.push_back(std::string(i == 0 ? 1000 : 0, 'x'));
    }
    draw_graph(picture);
    picture.log_scale = true;
    draw_graph(picture);
  }
}

TEST(GraphPicture, EscapesHostileText) {
  const std::string hostile = "</title><script>\x03 & \"\xfe";
  GraphPicture picture = square();
  picture.title = picture.value_label = hostile;
  picture.label.assign(4, hostile);
  picture.marked = {0, 1};
  draw_graph(picture);
  const std::string svg = graph_svg(picture);
  EXPECT_THAT(svg, HasSubstr("&lt;/title&gt;&lt;script&gt;  &amp; &quot; "));
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("\xfe"))));
}

TEST(GraphPicture, RefusesWrongArguments) {
  const auto expect_refused = [](const GraphPicture& picture, const std::string& message) {
    EXPECT_THAT([&] { graph_svg(picture); }, ThrowsMessage<std::invalid_argument>(StrEq(message)));
  };
  GraphPicture picture = square();
  picture.value = picture.value.first(3);
  expect_refused(picture, "graph_svg: expected values of 4 nodes, got 3");
  picture = square();
  picture.label = {"a"};
  expect_refused(picture, "graph_svg: expected no labels or those of 4 nodes, got 1");
  picture = square();
  picture.marked = {4};
  expect_refused(picture, "graph_svg: expected marked nodes among 4 nodes, got 4");
  const Edges edges = {{0, -1}};
  picture = square();
  picture.edges = edges;
  expect_refused(picture, "graph_svg: expected edges among 4 nodes, got -1");
  const std::vector<Point> position = {{0, 0}, {2, 0}, {2, kInfinity}, {0, 2}};
  picture = square();
  picture.position = position;
  EXPECT_THROW(graph_svg(picture), std::invalid_argument);
}

}  // namespace
}  // namespace mpssm::report
