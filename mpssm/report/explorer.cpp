// SPDX-License-Identifier: MIT
// The operator goes onto the page as differences of columns, one or two bytes an entry; its values
// only where they do not follow from the degrees.
#include "mpssm/report/explorer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "mpssm/io/json_text.h"
#include "mpssm/report/page_text.h"
#include "mpssm/report/svg.h"
#include "mpssm/report/text.h"

namespace mpssm::report {
namespace {

static_assert(std::endian::native == std::endian::little, "the page reads arrays as little-endian");

/// Whether every entry is 1 / sqrt(D_i D_j), D the number of entries in a row.
bool follows_from_degrees(const graph::Gso& gso) {
  if (!gso.is_symmetric()) return false;
  const auto row_ptr = gso.row_ptr();
  const auto degree = [&](std::int64_t i) {
    return static_cast<double>(row_ptr[i + 1] - row_ptr[i]);
  };
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    for (std::int64_t e = row_ptr[i]; e < row_ptr[i + 1]; ++e) {
      const double expected = 1.0 / std::sqrt(degree(i) * degree(gso.col()[e]));
      if (std::abs(gso.values<double>()[e] - expected) > 1e-14) return false;
    }
  }
  return true;
}

/// What a node takes on the page: its row, its colours, its name.
std::int64_t bytes_of(const Explorer& explorer, std::int64_t node, bool has_values) {
  const auto row_ptr = explorer.gso.row_ptr();
  const std::int64_t entries = row_ptr[node + 1] - row_ptr[node];
  const std::int64_t stored = explorer.gso.is_symmetric() ? entries / 2 + 1 : entries;
  const std::int64_t name = explorer.node_ids.empty() ? 0 : std::ssize(explorer.node_ids[node]) + 3;
  return stored * (has_values ? 15 : 4) + 18 + 6 * std::ssize(explorer.colours) + name;
}

class ByteStream {
 public:
  void put(std::uint64_t value) {
    for (; value >= 128; value /= 128) bytes_.push_back(static_cast<char>(value % 128 + 128));
    bytes_.push_back(static_cast<char>(value));
  }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

template <typename T>
std::string packed(const std::vector<T>& values) {
  return page::base64(
      std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
}

struct PackedOperator {
  std::string entries;
  std::string values;  ///< empty: they follow from the degrees
};

/// Rows and columns of `nodes`. Per row: neighbours that are not among them, entries, columns.
PackedOperator pack(const graph::Gso& gso, const std::vector<std::int32_t>& nodes,
                    bool has_values) {
  std::vector<std::int32_t> rank(static_cast<std::size_t>(gso.num_nodes()), -1);
  for (std::size_t n = 0; n < nodes.size(); ++n) rank[nodes[n]] = static_cast<std::int32_t>(n);
  const auto back = gso.transpose_view<double>();
  ByteStream stream;
  std::vector<double> values;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const std::int32_t i = nodes[n];
    std::uint64_t missing = 0;
    std::vector<std::uint64_t> columns;
    for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
      const std::int32_t j = rank[gso.col()[e]];
      if (j < 0) ++missing;
      if (j < 0 || (gso.is_symmetric() && j < static_cast<std::int32_t>(n))) continue;
      columns.push_back(static_cast<std::uint64_t>(j));
      if (has_values) values.push_back(gso.values<double>()[e]);
    }
    if (!gso.is_symmetric()) {
      for (std::int64_t e = back.row_ptr[i]; e < back.row_ptr[i + 1]; ++e) {
        if (rank[back.col[e]] < 0) ++missing;
      }
    }
    stream.put(missing);
    stream.put(columns.size());
    std::uint64_t before = gso.is_symmetric() ? n : 0;
    for (const std::uint64_t column : columns) {
      stream.put(column - before);
      before = column;
    }
  }
  return {page::base64(stream.bytes()), has_values ? packed(values) : ""};
}

std::vector<Point> places_of(const Explorer& explorer, const std::vector<std::int32_t>& nodes) {
  const bool is_whole = std::ssize(nodes) == explorer.gso.num_nodes();
  if (!explorer.position.empty() && is_whole) return explorer.position;
  if (!is_whole || std::ssize(nodes) > kMaxLayoutNodes) return {};
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;
  for (std::int64_t i = 0; i < explorer.gso.num_nodes(); ++i) {
    for (std::int64_t e = explorer.gso.row_ptr()[i]; e < explorer.gso.row_ptr()[i + 1]; ++e) {
      const std::int32_t j = explorer.gso.col()[e];
      const bool is_once = j < i || !explorer.gso.is_symmetric();
      if (j != i && is_once) edges.emplace_back(static_cast<std::int32_t>(i), j);
    }
  }
  return stress_layout(explorer.gso.num_nodes(), edges);
}

/// In 65535ths of the unit square.
std::string packed_places(const std::vector<Point>& places) {
  double size = 1e-12;
  Point low{0.0, 0.0};
  if (!places.empty()) low = places.front();
  for (const Point& p : places) low = {std::min(low.x, p.x), std::min(low.y, p.y)};
  for (const Point& p : places) size = std::max({size, p.x - low.x, p.y - low.y});
  std::vector<std::uint16_t> numbers;
  for (const Point& p : places) {
    numbers.push_back(static_cast<std::uint16_t>(std::lround(65535 * (p.x - low.x) / size)));
    numbers.push_back(static_cast<std::uint16_t>(std::lround(65535 * (p.y - low.y) / size)));
  }
  return packed(numbers);
}

void check_explorer(const Explorer& explorer) {
  const auto nodes = static_cast<std::size_t>(explorer.gso.num_nodes());
  bool is_good = nodes > 0 && !explorer.blocks.empty() && !explorer.blocks[0].norm.empty() &&
                 (explorer.node_ids.empty() || explorer.node_ids.size() == nodes) &&
                 (explorer.position.empty() || explorer.position.size() == nodes) &&
                 explorer.target >= 0 && explorer.target < explorer.gso.num_nodes() &&
                 explorer.source < explorer.gso.num_nodes() &&
                 (explorer.degree.empty() || explorer.degree.size() == nodes);
  for (const NodeColour& colour : explorer.colours) is_good &= colour.value.size() == nodes;
  for (const HopNorms& block : explorer.blocks) {
    is_good &= block.norm.size() == explorer.blocks[0].norm.size();
  }
  if (!is_good)
    throw std::invalid_argument("explorer_html: expected values for every node and hop");
}

nlohmann::ordered_json data_of(const Explorer& explorer, const std::vector<std::int32_t>& nodes,
                               bool is_drawn_whole, const std::vector<Point>& places) {
  const bool is_whole = std::ssize(nodes) == explorer.gso.num_nodes();
  const bool has_values = !follows_from_degrees(explorer.gso);
  const PackedOperator matrix = pack(explorer.gso, nodes, has_values);
  const auto rank_of = [&](std::int64_t node) -> std::int64_t {
    const auto found = std::lower_bound(nodes.begin(), nodes.end(), node);
    return found != nodes.end() && *found == node ? found - nodes.begin() : -1;
  };
  nlohmann::ordered_json json = {
      {"nodes", nodes.size()},
      {"symmetric", explorer.gso.is_symmetric()},
      {"target", rank_of(explorer.target)},
      {"source", rank_of(explorer.source)},
      {"hops", std::min<std::int64_t>(explorer.hops, std::ssize(explorer.blocks[0].norm) - 1)},
      {"entries", matrix.entries}};
  if (has_values) json["values"] = matrix.values;
  if (is_drawn_whole) json["places"] = packed_places(places);
  if (!is_whole) json["numbers"] = packed(nodes);
  if (!explorer.node_ids.empty()) {
    auto ids = nlohmann::ordered_json::array();
    for (const std::int32_t node : nodes) ids.push_back(explorer.node_ids[node]);
    json["ids"] = std::move(ids);
  }
  const auto edges_json = [&](const std::vector<Explorer::Edge>& edges) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& [u, v] : edges) {
      if (rank_of(u) >= 0 && rank_of(v) >= 0) list.push_back({rank_of(u), rank_of(v)});
    }
    return list;
  };
  auto worst = nlohmann::ordered_json::array();
  for (const Explorer::Pair& pair : explorer.worst) {
    if (rank_of(pair.source) < 0 || rank_of(pair.target) < 0) continue;
    worst.push_back({rank_of(pair.source), rank_of(pair.target)});
  }
  json["worst"] = std::move(worst);
  json["worstHops"] = explorer.worst_hops;
  json["bridges"] = edges_json(explorer.bridges);
  json["advised"] = edges_json(explorer.advised);
  json["harmful"] = edges_json(explorer.harmful);
  if (is_whole && !explorer.degree.empty()) {
    json["lambda"] = explorer.lambda_star;
    if (has_values) json["degree"] = packed(explorer.degree);
  }
  json["blocks"] = nlohmann::ordered_json::array();
  for (const HopNorms& block : explorer.blocks) {
    json["blocks"].push_back({{"name", block.name}, {"norm", block.norm}});
  }
  json["colours"] = nlohmann::ordered_json::array();
  for (const NodeColour& colour : explorer.colours) {
    std::vector<float> values;
    for (const std::int32_t node : nodes) values.push_back(static_cast<float>(colour.value[node]));
    json["colours"].push_back(
        {{"name", colour.name}, {"classes", colour.classes}, {"value", packed(values)}});
  }
  return json;
}

}  // namespace

std::vector<std::int32_t> explored_nodes(const Explorer& explorer) {
  const graph::Gso& gso = explorer.gso;
  const bool has_values = !follows_from_degrees(gso);
  const auto back = gso.transpose_view<double>();
  std::vector<bool> seen(static_cast<std::size_t>(gso.num_nodes()), false);
  std::vector<std::int32_t> nodes;
  std::int64_t bytes = 0;
  const auto take = [&](std::int64_t node) {
    if (seen[node] || bytes > kMaxExplorerBytes) return;
    seen[node] = true;
    bytes += bytes_of(explorer, node, has_values);
    if (bytes <= kMaxExplorerBytes) nodes.push_back(static_cast<std::int32_t>(node));
  };
  take(explorer.target);
  for (std::size_t head = 0; head < nodes.size(); ++head) {
    const std::int32_t i = nodes[head];
    for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) take(gso.col()[e]);
    if (gso.is_symmetric()) continue;
    for (std::int64_t e = back.row_ptr[i]; e < back.row_ptr[i + 1]; ++e) take(back.col[e]);
  }
  for (std::int64_t node = 0; node < gso.num_nodes(); ++node) take(node);  // other components
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::string explorer_html(const Explorer& explorer) {
  check_explorer(explorer);
  const std::vector<std::int32_t> nodes = explored_nodes(explorer);
  const std::vector<Point> places = places_of(explorer, nodes);
  const std::int64_t total = explorer.gso.num_nodes();
  const bool is_drawn_whole = !places.empty();
  std::string options = "<option value=\"influence\">influence on the chosen node</option>";
  for (std::size_t c = 0; c < explorer.colours.size(); ++c) {
    options +=
        fmt::format("<option value=\"{}\">{}</option>", c, svg::escaped(explorer.colours[c].name));
  }
  std::string blocks;
  for (std::size_t b = 0; b < explorer.blocks.size(); ++b) {
    blocks +=
        fmt::format("<option value=\"{}\">{}</option>", b, svg::escaped(explorer.blocks[b].name));
  }
  if (explorer.blocks.size() > 1) {
    blocks = "<label>Block <select id=\"ex-block\">" + blocks + "</select></label>";
  } else {
    blocks.clear();
  }
  const auto name_of = [&](std::int64_t node) {
    if (node < 0) return std::string();
    return explorer.node_ids.empty() ? std::to_string(node) : explorer.node_ids[node];
  };
  std::string out;
  if (std::ssize(nodes) < total) {
    out += fmt::format(
        "<p class=\"note\">This page holds {} of the {} nodes: those nearest to node {}. Influence "
        "is shown where no way through the rest could change it.</p>\n",
        page::grouped(std::ssize(nodes)), page::grouped(total),
        svg::escaped(name_of(explorer.target)));
  }
  if (!is_drawn_whole) {
    out += "<p class=\"note\">Drawn are up to 250 nodes around the one that is chosen.</p>\n";
  }
  out += fmt::format(
      R"(<div class="controls" role="group" aria-label="What the drawing shows">
<label>Colour by <select id="ex-by">{}</select></label>
<label>Node <input type="text" id="ex-node" value="{}" autocomplete="off" spellcheck="false">
</label>
<label for="ex-hops"><span>Hops: <output id="ex-tau" for="ex-hops">{}</output></span>
<input type="range" id="ex-hops" min="0" max="{}" step="1" value="{}"></label>
{}<label>Also from node
<input type="text" id="ex-source" value="{}" autocomplete="off" spellcheck="false"></label>
{}</div>
<p id="ex-status" role="status" aria-live="polite"></p>
<div class="explorer"><div>
<svg id="ex-svg" tabindex="0" role="application" aria-describedby="ex-status"
aria-label="The graph. Arrow keys move to the next node, Enter chooses it."></svg>
<p id="ex-tip" class="muted" aria-hidden="true">&nbsp;</p>
<div id="ex-scale"></div>
<p id="ex-edges" class="muted" hidden>Too many edges to draw: nodes only.</p>
<ul class="legend" id="ex-marks"></ul>
<p class="muted">A click chooses the node that hears; with Shift, the node that the last curve is
about.</p>
</div><div>
<figure><h3>How much arrives, by hops</h3><div id="ex-curve"></div>
<figcaption>|(A<sup>&tau;</sup>)<sub>ij</sub>| &#8214;W<sup>&tau;</sup>&#8214;, exact: the state is
linear in what other nodes hold.<span id="ex-limit-note" hidden> Dashed: where the pair ends,
&#8730;(D<sub>i</sub>D<sub>j</sub>) / vol, and how far from it it can be at most.</span></figcaption></figure>
<div id="ex-worst" hidden><h3>Pairs that hear each other least</h3>
<p class="muted">In <span id="ex-worst-hops"></span> hops. A press shows the pair.</p><div class="jumps"></div></div>
<div class="wide"><table id="ex-top"><caption>Most heard at this number of hops</caption>
<thead><tr><th scope="col">node</th><th scope="col" class="n">hops away</th>
<th scope="col" class="n">influence</th></tr></thead><tbody></tbody></table></div>
</div></div>
)",
      options, svg::escaped(name_of(explorer.target)), explorer.hops,
      std::ssize(explorer.blocks[0].norm) - 1, explorer.hops, blocks,
      svg::escaped(name_of(explorer.source)),
      is_drawn_whole ? ""
                     : "<button type=\"button\" class=\"do\" id=\"ex-centre\">Centre the drawing "
                       "on the node</button>");
  return out + "<script type=\"application/json\" id=\"explorer-data\">" +
         page::script_safe(io::json_text(data_of(explorer, nodes, is_drawn_whole, places))) +
         "</script>\n";
}

}  // namespace mpssm::report
