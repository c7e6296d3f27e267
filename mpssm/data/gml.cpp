// SPDX-License-Identifier: MIT
// GML as NetworkX writes it: graph [ node [ id 0 label "a" ... ] edge [ source 0 target 1 ... ] ].
#include <algorithm>
#include <cctype>
#include <fmt/core.h>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/base/utf8.h"
#include "mpssm/data/attribute_table.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/readers.h"
#include "mpssm/io/csv.h"
#include "mpssm/io/gzip.h"

namespace mpssm::data {
namespace {

constexpr const char* kGmlHint = "networkx.write_gml writes such files";

struct GmlValue {
  std::string key = {};
  std::string text = {};  // of a number or of a string without its quotes
  bool is_list = false;
  std::int64_t line = 0;
};
using GmlObject = std::vector<GmlValue>;  // a node or an edge

class GmlReader {
 public:
  GmlReader(std::string where, std::string_view text) : where_(std::move(where)), text_(text) {}

  AttributeGraph read() {
    bool seen_graph = false;
    while (skip_blanks(), at_ < text_.size()) {
      const std::string key = take_key();
      skip_blanks();
      if (key == "graph" && peek() == '[') {
        if (std::exchange(seen_graph, true)) {
          fail("one graph", "another one", "many graphs are read from tables");
        }
        read_graph();
      } else {
        skip_value(0);
      }
    }
    if (!seen_graph) {
      throw base::Error(
          {.where = where_, .expected = "graph [ ... ]", .got = "none", .hint = kGmlHint});
    }
    return tables();
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void advance() {
    if (text_[at_++] == '\n') ++line_;
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(peek())) != 0) {
        advance();
      } else if (peek() == '#') {
        while (at_ < text_.size() && peek() != '\n') advance();
      } else {
        return;
      }
    }
  }

  [[noreturn]] void fail(const std::string& expected, const std::string& got,
                         const std::string& hint = kGmlHint) const {
    throw base::Error({.where = fmt::format("{}:{}", where_, line_),
                       .expected = expected,
                       .got = got,
                       .hint = hint});
  }

  std::string found() const {
    return at_ < text_.size() ? "'" + base::printable(text_.substr(at_, 1)) + "'"
                              : "the end of the file";
  }

  std::string take_key() {
    const std::size_t begin = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '_') ++at_;
    if (at_ == begin) fail("the name of an attribute", found());
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string take_text() {
    if (peek() != '"') {
      const std::size_t begin = at_;
      while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(peek())) == 0 &&
             peek() != ']' && peek() != '[') {
        ++at_;
      }
      const std::string word(text_.substr(begin, at_ - begin));
      const bool is_number =
          io::to_number(word) || word == "NAN" || word == "+INF" || word == "-INF" || word == "INF";
      if (is_number) return word;
      at_ = begin;
      fail("a number, a text in quotes or [",
           word.empty() ? found() : "'" + base::printable(word, 40) + "'");
    }
    const std::int64_t first_line = line_;
    advance();
    std::string value;
    while (peek() != '"') {
      if (at_ >= text_.size()) {
        line_ = first_line;
        fail("a text that ends with a quote", "none to the end of the file");
      }
      if (peek() == '&') {
        value += take_entity();
      } else {
        value += peek();
        advance();
      }
    }
    advance();
    return value;
  }

  // &amp; &quot; &lt; &gt; &apos; &#228;; any other & is itself.
  std::string take_entity() {
    const std::size_t end = text_.substr(at_, 12).find(';');
    const std::string_view name =
        end == std::string_view::npos ? std::string_view() : text_.substr(at_ + 1, end - 1);
    std::string value;
    for (const auto& [known, character] :
         {std::pair("amp", "&"), {"quot", "\""}, {"lt", "<"}, {"gt", ">"}, {"apos", "'"}}) {
      if (name == known) value = character;
    }
    if (name.size() > 1 && name[0] == '#') {
      if (const auto code = io::to_integer(name.substr(1))) value = utf8_of(*code);
    }
    if (value.empty()) {
      ++at_;
      return "&";
    }
    at_ += end + 1;
    return value;
  }

  static std::string utf8_of(std::int64_t code) {
    std::string text;
    const auto add = [&](std::int64_t byte) { text += static_cast<char>(byte); };
    if (code <= 0 || code > 0x10FFFF) return text;
    if (code < 0x80) {
      add(code);
    } else if (code < 0x800) {
      add(0xC0 | code >> 6);
      add(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      add(0xE0 | code >> 12);
      add(0x80 | (code >> 6 & 0x3F));
      add(0x80 | (code & 0x3F));
    } else {
      add(0xF0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3F));
      add(0x80 | (code >> 6 & 0x3F));
      add(0x80 | (code & 0x3F));
    }
    return base::is_utf8(text) ? text : std::string();
  }

  // Whatever it is; lists in lists to a depth that no file needs.
  void skip_value(int depth) {
    constexpr int kMaxDepth = 64;
    if (peek() != '[') {
      take_text();
      return;
    }
    if (depth >= kMaxDepth) fail("lists within lists 64 deep at most", "more");
    advance();
    while (skip_blanks(), peek() != ']') {
      if (at_ >= text_.size()) fail("]", found());
      take_key();
      skip_blanks();
      skip_value(depth + 1);
    }
    advance();
  }

  GmlObject take_object() {
    if (peek() != '[') fail("[", found());
    advance();
    GmlObject object;
    while (skip_blanks(), peek() != ']') {
      if (at_ >= text_.size()) fail("]", found());
      GmlValue value{.key = take_key(), .line = line_};
      skip_blanks();
      value.is_list = peek() == '[';
      if (value.is_list) {
        skip_value(0);
      } else {
        value.text = take_text();
      }
      object.push_back(std::move(value));
    }
    advance();
    return object;
  }

  void read_graph() {
    advance();
    while (skip_blanks(), peek() != ']') {
      if (at_ >= text_.size()) fail("]", found());
      const std::int64_t line = line_;
      const std::string key = take_key();
      skip_blanks();
      if (key == "node" || key == "edge") {
        GmlObject object = take_object();
        check(object, key, line);
        (key == "node" ? nodes_ : edges_).push_back(std::move(object));
      } else if (key == "directed") {
        directed_ = take_text() == "1";
      } else {
        skip_value(0);
      }
    }
    advance();
  }

  static const GmlValue* find(const GmlObject& object, std::string_view key) {
    for (const GmlValue& value : object) {
      if (value.key == key && !value.is_list) return &value;
    }
    return nullptr;
  }

  void check(const GmlObject& object, const std::string& kind, std::int64_t line) const {
    const std::vector<const char*> needed = kind == "node"
                                                ? std::vector<const char*>{"id"}
                                                : std::vector<const char*>{"source", "target"};
    for (const char* key : needed) {
      if (find(object, key) != nullptr) continue;
      throw base::Error({.where = fmt::format("{}:{}", where_, line),
                         .expected = fmt::format("{} with '{}'", kind, key),
                         .got = "none",
                         .hint = kGmlHint});
    }
  }

  // Labels name the nodes if there is one for each, and no two alike.
  bool are_named() const {
    std::unordered_set<std::string_view> seen;
    for (const GmlObject& node : nodes_) {
      const GmlValue* label = find(node, "label");
      if (label == nullptr || !seen.insert(label->text).second) return false;
    }
    return true;
  }

  AttributeGraph tables() const {
    AttributeGraph graph{.nodes = AttributeTable(where_ + ": nodes"),
                         .edges = AttributeTable(where_ + ": edges"),
                         .directed = directed_};
    const bool named = are_named();
    std::unordered_map<std::string_view, std::string_view> name_of;
    for (const GmlObject& node : nodes_) {
      const GmlValue& id = *find(node, "id");
      const std::string_view name = named ? std::string_view(find(node, "label")->text) : id.text;
      if (!name_of.emplace(id.text, name).second) {
        throw base::Error({.where = fmt::format("{}:{}", where_, id.line),
                           .expected = "each id once",
                           .got = fmt::format("{} again", base::printable(id.text)),
                           .hint = "give the node another id"});
      }
      graph.nodes.add_row();
      graph.nodes.set("id", name);
      add_attributes(node,
                     named ? std::vector<std::string_view>{"id", "label"}
                           : std::vector<std::string_view>{"id"},
                     graph.nodes);
    }
    for (const GmlObject& edge : edges_) {
      graph.edges.add_row();
      for (const char* end : {"source", "target"}) {
        const GmlValue& id = *find(edge, end);
        const auto found_name = name_of.find(id.text);
        if (found_name == name_of.end()) {
          throw base::Error({.where = fmt::format("{}:{}", where_, id.line),
                             .expected = "the id of a node",
                             .got = base::printable(id.text),
                             .hint = "add that node, or take the edge out"});
        }
        graph.edges.set(end, found_name->second);
      }
      add_attributes(edge, {"source", "target"}, graph.edges);
    }
    return graph;
  }

  static void add_attributes(const GmlObject& object, const std::vector<std::string_view>& taken,
                             AttributeTable& table) {
    std::unordered_set<std::string_view> seen(taken.begin(), taken.end());
    for (const GmlValue& value : object) {
      if (value.is_list) {
        table.leave_out(value.key);
      } else if (seen.insert(value.key).second) {
        table.set(value.key, value.text);
      } else if (std::find(taken.begin(), taken.end(), value.key) == taken.end()) {
        table.leave_out(value.key);  // given again: a list of NetworkX
      }
    }
  }

  std::string where_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  bool directed_ = false;
  std::vector<GmlObject> nodes_;
  std::vector<GmlObject> edges_;
};

}  // namespace

Dataset read_gml(const std::filesystem::path& path, const LoadOptions& options) {
  const std::string text = io::read_text(path);
  if (!base::is_utf8(text)) {
    throw base::Error({.where = shown(path),
                       .expected = "UTF-8",
                       .got = "other bytes",
                       .hint = "save the file as UTF-8"});
  }
  return read_attribute_graph(path, GmlReader(shown(path), text).read(), options);
}

}  // namespace mpssm::data
