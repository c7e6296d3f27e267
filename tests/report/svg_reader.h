// SPDX-License-Identifier: MIT
// Reads an SVG picture back for tests: its elements, the corners of its paths, what lies outside.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace mpssm::report::testing {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;
  std::string group;  // transform of the innermost group
  std::string get(const std::string& key) const {
    const auto found = attributes.find(key);
    return found == attributes.end() ? "" : found->second;
  }
  double at(const std::string& key) const { return std::stod(get(key)); }
};

// Free of what XML forbids: bare < and &, control characters.
inline bool is_clean(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    const auto starts = [&](const char* entity) { return rest.starts_with(entity); };
    if (rest[0] == '<' || (static_cast<unsigned char>(rest[0]) < 0x20 && rest[0] != '\n'))
      return false;
    if (rest[0] != '&') continue;
    if (!starts("&amp;") && !starts("&lt;") && !starts("&gt;") && !starts("&quot;")) return false;
  }
  return true;
}

// The attributes of a tag from its name on, or a failure.
inline std::map<std::string, std::string> attributes_of(std::string_view tag) {
  std::map<std::string, std::string> out;
  tag.remove_prefix(std::min(tag.find(' '), tag.size()));
  while (!tag.empty()) {
    const std::size_t equals = tag.find("=\"");
    const std::size_t end = equals == tag.npos ? tag.npos : tag.find('"', equals + 2);
    if (tag[0] != ' ' || end == tag.npos) {
      ADD_FAILURE() << "expected attributes: " << tag;
      break;
    }
    const std::string value(tag.substr(equals + 2, end - equals - 2));
    EXPECT_TRUE(is_clean(value)) << value;
    EXPECT_TRUE(out.emplace(tag.substr(1, equals - 1), value).second) << "twice: " << tag;
    tag.remove_prefix(end + 1);
  }
  return out;
}

// Every element in its order. Fails the test unless the picture is well-formed.
inline std::vector<Element> parse(const std::string& svg) {
  std::vector<Element> elements;
  std::vector<std::pair<std::string, std::string>> open;  // name, transform
  EXPECT_TRUE(svg.starts_with("<svg "));
  for (std::size_t at = 0; at < svg.size();) {
    const std::size_t end = std::min(svg.find('>', at), svg.size());
    const std::size_t next = std::min(svg.find('<', end), svg.size());
    std::string tag = svg.substr(at + 1, end - at - 1);
    const std::string text = svg.substr(end + 1, next - end - 1);
    EXPECT_TRUE(is_clean(text)) << text;
    at = next;
    if (tag.starts_with('/')) {
      EXPECT_TRUE(!open.empty() && "/" + open.back().first == tag) << tag;
      if (!open.empty()) open.pop_back();
      EXPECT_TRUE(!open.empty() || at == svg.size()) << "after the end: " << text;
      continue;
    }
    const bool is_closed = tag.ends_with('/');
    if (is_closed) tag.pop_back();
    Element element{tag.substr(0, tag.find(' ')), attributes_of(tag), text,
                    open.empty() ? "" : open.back().second};
    if (!is_closed) open.emplace_back(element.name, element.get("transform"));
    elements.push_back(std::move(element));
  }
  EXPECT_TRUE(open.empty());
  return elements;
}

using Places = std::vector<std::pair<double, double>>;

// The corners of a path, one list for each move.
inline std::vector<Places> corners(const std::string& path) {
  std::vector<Places> out;
  for (const char* next = path.c_str(); *next != '\0';) {
    const char kind = *next++;
    if (kind == 'z') continue;
    const bool is_pair = kind == 'M' || kind == ' ';
    char* end = nullptr;
    const double first = std::strtod(next, &end);
    const double second = is_pair ? std::strtod(end, &end) : 0.0;
    if (end == next || (out.empty() && kind != 'M')) {
      ADD_FAILURE() << "no path: " << next;
      break;
    }
    next = end;
    if (kind == 'M') out.emplace_back();
    auto [x, y] = out.back().empty() ? std::pair{0.0, 0.0} : out.back().back();
    if (is_pair) {
      x = first;
      y = second;
    } else if (kind == 'H') {
      x = first;
    } else if (kind == 'V') {
      y = first;
    } else {
      EXPECT_EQ(kind, 'h');
      x += first;
    }
    out.back().emplace_back(x, y);
  }
  return out;
}

inline Places places_of(const Element& element) {
  const auto x = [&](const char* key) { return element.at(key); };
  if (element.name == "text") return {{x("x"), x("y")}};
  if (element.name == "circle") {
    return {{x("cx") - x("r"), x("cy") - x("r")}, {x("cx") + x("r"), x("cy") + x("r")}};
  }
  if (element.name == "rect" && element.get("width") != "100%") {
    return {{x("x"), x("y")}, {x("x") + x("width"), x("y") + x("height")}};
  }
  Places out;
  for (const Places& part : corners(element.get("d"))) {
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

// Every coordinate is a number inside the view box.
inline void expect_inside(const std::vector<Element>& elements) {
  double width = 0, height = 0;
  ASSERT_EQ(std::sscanf(elements.front().get("viewBox").c_str(), "0 0 %lf %lf", &width, &height),
            2);
  for (const Element& element : elements) {
    double left = 0, top = 0, x_scale = 1, y_scale = 1;
    std::sscanf(element.group.c_str(), "translate(%lf %lf) scale(%lf %lf)", &left, &top, &x_scale,
                &y_scale);
    for (const auto& [x, y] : places_of(element)) {
      const double at_x = left + x * x_scale;
      const double at_y = top + y * y_scale;
      ASSERT_TRUE(at_x >= 0 && at_x <= width && at_y >= 0 && at_y <= height)
          << element.name << " at " << at_x << ", " << at_y;
    }
  }
}

inline std::vector<Element> named(const std::vector<Element>& elements, const std::string& name) {
  std::vector<Element> out;
  std::copy_if(elements.begin(), elements.end(), std::back_inserter(out),
               [&](const Element& element) { return element.name == name; });
  return out;
}

// What stands in the elements of this name.
inline std::vector<std::string> texts(const std::vector<Element>& elements,
                                      const std::string& name = "text") {
  std::vector<std::string> out;
  for (const Element& element : named(elements, name)) out.push_back(element.text);
  return out;
}

}  // namespace mpssm::report::testing
