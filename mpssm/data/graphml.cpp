// SPDX-License-Identifier: MIT
// GraphML as NetworkX, igraph, Gephi and yEd write it: nodes and edges with <data> by <key>.
#include <algorithm>
#include <exception>
#include <expat.h>
#include <fmt/core.h>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/attribute_table.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/readers.h"
#include "mpssm/io/gzip.h"

namespace mpssm::data {
namespace {

constexpr const char* kGraphmlHint = "networkx.write_graphml writes such files";

class GraphmlReader {
 public:
  explicit GraphmlReader(const std::filesystem::path& path)
      : where_(shown(path)), parser_(XML_ParserCreate(nullptr), XML_ParserFree) {
    if (parser_ == nullptr) throw std::bad_alloc();
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(parser_.get(), on_start, on_end);
    XML_SetCharacterDataHandler(parser_.get(), on_text);
    XML_SetEntityDeclHandler(parser_.get(), on_entity);
  }

  AttributeGraph read(const std::string& text) {
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    for (std::size_t at = 0; at <= text.size(); at += kPiece) {
      const std::size_t count = std::min(kPiece, text.size() - at);
      const bool is_last = at + count == text.size();
      const XML_Status status =
          XML_Parse(parser_.get(), text.data() + at, static_cast<int>(count), is_last ? 1 : 0);
      if (fault_) std::rethrow_exception(fault_);
      if (status == XML_STATUS_OK) {
        if (is_last) break;
        continue;
      }
      throw base::Error({.where = place(),
                         .expected = "GraphML",
                         .got = XML_ErrorString(XML_GetErrorCode(parser_.get())),
                         .hint = kGraphmlHint});
    }
    if (!seen_graph_) {
      throw base::Error({.where = where_,
                         .expected = "<graphml> with a <graph> in it",
                         .got = "none",
                         .hint = kGraphmlHint});
    }
    return std::move(graph_);
  }

 private:
  enum class Table { kNone, kNodes, kEdges };

  struct Key {
    std::string name;
    bool of_nodes = true;
    bool of_edges = true;
    std::optional<std::string> fallback = {};
  };

  static void on_start(void* self, const XML_Char* name, const XML_Char** attributes) {
    static_cast<GraphmlReader*>(self)->guard(
        [&](GraphmlReader& reader) { reader.start(name, attributes); });
  }
  static void on_end(void* self, const XML_Char*) {
    static_cast<GraphmlReader*>(self)->guard([](GraphmlReader& reader) { reader.end(); });
  }
  static void on_text(void* self, const XML_Char* text, int size) {
    static_cast<GraphmlReader*>(self)->guard([&](GraphmlReader& reader) {
      if (reader.takes_text_) reader.text_.append(text, static_cast<std::size_t>(size));
    });
  }
  static void on_entity(void* self, const XML_Char*, int, const XML_Char*, int, const XML_Char*,
                        const XML_Char*, const XML_Char*, const XML_Char*) {
    static_cast<GraphmlReader*>(self)->guard([](GraphmlReader& reader) {
      reader.fail("plain GraphML", "a declaration of entities", "take it out of the file");
    });
  }

  // No exception may pass through the parser, which is C.
  template <typename Action>
  void guard(const Action& action) {
    if (fault_) return;
    try {
      action(*this);
    } catch (...) {
      fault_ = std::current_exception();
      XML_StopParser(parser_.get(), XML_FALSE);
    }
  }

  std::string place() const {
    return fmt::format("{}:{}", where_,
                       static_cast<std::uint64_t>(XML_GetCurrentLineNumber(parser_.get())));
  }

  [[noreturn]] void fail(const std::string& expected, const std::string& got,
                         const std::string& hint = kGraphmlHint) const {
    throw base::Error({.where = place(), .expected = expected, .got = got, .hint = hint});
  }

  static std::optional<std::string_view> attribute(const XML_Char** attributes, const char* name) {
    for (; *attributes != nullptr; attributes += 2) {
      if (std::string_view(attributes[0]) == name) return attributes[1];
    }
    return std::nullopt;
  }

  std::string_view need(const std::string& element, const XML_Char** attributes,
                        const char* name) const {
    const auto value = attribute(attributes, name);
    if (!value) fail(fmt::format("<{}> with '{}'", element, name), "none");
    return *value;
  }

  void start(const std::string& element, const XML_Char** attributes) {
    constexpr std::size_t kMaxDepth = 64;
    if (open_.size() >= kMaxDepth) fail("elements within elements 64 deep at most", "more");
    if (open_.empty() && element != "graphml") fail("<graphml>", "<" + shown_name(element) + ">");
    if (inside_data_) {
      is_nested_ = true;  // drawings of an editor
    } else if (element == "key") {
      start_key(attributes);
    } else if (element == "default" && key_ != nullptr) {
      begin_text();
    } else if (element == "graph") {
      start_graph(attributes);
    } else if (element == "node") {
      graph_.nodes.add_row();
      graph_.nodes.set("id", need(element, attributes, "id"));
      start_row(Table::kNodes);
    } else if (element == "edge") {
      graph_.edges.add_row();
      graph_.edges.set("source", need(element, attributes, "source"));
      graph_.edges.set("target", need(element, attributes, "target"));
      start_row(Table::kEdges);
    } else if (element == "hyperedge" || element == "port") {
      fail("nodes and edges between two of them", "<" + element + ">");
    } else if (element == "data" && table_ != Table::kNone) {
      start_data(attributes);
    }
    open_.push_back(element);
  }

  void end() {
    const std::string element = std::move(open_.back());
    open_.pop_back();
    if (element == "data" && inside_data_ && open_.size() == data_depth_) {
      end_data();
    } else if (inside_data_) {
      return;
    } else if (element == "default" && key_ != nullptr) {
      key_->fallback = std::move(text_);
      takes_text_ = false;
    } else if (element == "key") {
      key_ = nullptr;
    } else if (element == "node" || element == "edge") {
      end_row();
    }
  }

  void start_key(const XML_Char** attributes) {
    const std::string id(need("key", attributes, "id"));
    Key key{.name = std::string(attribute(attributes, "attr.name").value_or(id))};
    const std::string_view whose = attribute(attributes, "for").value_or("all");
    key.of_nodes = whose == "node" || whose == "all";
    key.of_edges = whose == "edge" || whose == "all";
    const auto [found, is_new] = keys_.emplace(id, std::move(key));
    if (!is_new) fail("each <key> once", "'" + shown_name(id) + "' again");
    key_ = &found->second;
  }

  void start_graph(const XML_Char** attributes) {
    if (seen_graph_) {
      fail("one <graph>", "another one",
           "many graphs are read from tables with a column 'graph', nested ones not at all");
    }
    seen_graph_ = true;
    graph_.directed = attribute(attributes, "edgedefault").value_or("undirected") == "directed";
  }

  void start_row(Table table) {
    if (!seen_graph_ || table_ != Table::kNone) fail("nodes and edges inside <graph>", "others");
    table_ = table;
    given_.clear();
  }

  void end_row() {
    for (const auto& [id, key] : keys_) {
      const bool belongs = table_ == Table::kNodes ? key.of_nodes : key.of_edges;
      if (!belongs || !key.fallback) continue;
      if (std::find(given_.begin(), given_.end(), id) == given_.end()) set(key.name, *key.fallback);
    }
    table_ = Table::kNone;
  }

  void start_data(const XML_Char** attributes) {
    data_key_ = std::string(need("data", attributes, "key"));
    if (!keys_.contains(data_key_)) {
      fail("a key that a <key> declares", "'" + shown_name(data_key_) + "'");
    }
    inside_data_ = true;
    is_nested_ = false;
    data_depth_ = open_.size();
    begin_text();
  }

  void end_data() {
    inside_data_ = false;
    takes_text_ = false;
    given_.push_back(data_key_);
    const std::string& name = keys_.at(data_key_).name;
    if (is_nested_) {
      rows().leave_out(name);
    } else {
      set(name, text_);
    }
  }

  void set(const std::string& name, std::string_view value) {
    const bool is_taken =
        table_ == Table::kNodes ? name == "id" : name == "source" || name == "target";
    if (is_taken) return rows().leave_out(name);
    rows().set(name, value);
  }

  AttributeTable& rows() { return table_ == Table::kNodes ? graph_.nodes : graph_.edges; }
  void begin_text() {
    text_.clear();
    takes_text_ = true;
  }
  static std::string shown_name(std::string_view name) { return base::printable(name, 40); }

  std::string where_;
  std::unique_ptr<XML_ParserStruct, void (*)(XML_Parser)> parser_;
  std::exception_ptr fault_;
  AttributeGraph graph_{.nodes = AttributeTable(where_ + ": nodes"),
                        .edges = AttributeTable(where_ + ": edges")};
  std::vector<std::string> open_;  // elements
  std::map<std::string, Key> keys_;
  Key* key_ = nullptr;  // whose element is open
  bool seen_graph_ = false;
  Table table_ = Table::kNone;
  std::vector<std::string> given_;  // keys of the row
  std::string data_key_;
  std::size_t data_depth_ = 0;
  bool inside_data_ = false;
  bool is_nested_ = false;
  bool takes_text_ = false;
  std::string text_;
};

}  // namespace

Dataset read_graphml(const std::filesystem::path& path, const LoadOptions& options) {
  const std::string text = io::read_text(path);
  return read_attribute_graph(path, GraphmlReader(path).read(text), options);
}

}  // namespace mpssm::data
