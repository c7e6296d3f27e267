// SPDX-License-Identifier: MIT
#include "mpssm/ranks/scale_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/core.h>
#include <sstream>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/ranks/halo.h"

namespace mpssm::ranks {
namespace {

constexpr double kNano = 1e-9;
constexpr double kNumberBytes = 4.0;

constexpr std::pair<const char*, double ScaleCosts::*> kPrices[] = {
    {"gather_slices", &ScaleCosts::gather_slices},
    {"gather_slices_grid", &ScaleCosts::gather_slices_grid},
    {"gather_rows", &ScaleCosts::gather_rows},
    {"gather_rows_grid", &ScaleCosts::gather_rows_grid},
    {"multiply_add", &ScaleCosts::multiply_add},
    {"number", &ScaleCosts::number},
    {"output", &ScaleCosts::output},
    {"sharing", &ScaleCosts::sharing},
    {"exchange", &ScaleCosts::exchange},
    {"byte", &ScaleCosts::byte},
};

double entries(const ScaleQuery& query) { return 2.0 * query.edges + query.nodes; }

/// Of all nodes, forward and backward, the recurrence aside. Products with a few features or
/// outputs are passes over numbers rather than multiply-adds.
double node_work(const ScaleQuery& query, const ScaleCosts& costs) {
  const double square = query.channels * query.channels;
  const double products = query.channels * (query.features + query.outputs) +
                          query.blocks * (3.0 + (query.dense ? query.hops : 0.0)) * square;
  // A product forward is two backward: the gradient of its input and that of its weight.
  return query.nodes * kNano *
         (3.0 * products * costs.multiply_add + numbers_of_node(query) * costs.number);
}

/// Loss and its gradient, of all nodes.
double loss_work(const ScaleQuery& query, const ScaleCosts& costs) {
  return query.nodes * query.outputs * costs.output * kNano;
}

/// Numbers that are read at once, for that many channels of a rank: a line of the cache, whether
/// all of it is asked for or not; in a grid the other half is the next neighbour's.
double lanes_of(double channels, double grid_like) {
  const auto full = [&](double numbers) { return numbers * std::ceil(channels / numbers); };
  constexpr double kSlice = 8.0;
  constexpr double kLine = 16.0;
  return std::lerp(full(kLine), full(kSlice), grid_like);
}

/// Hops forward and backward of that many channels, by slices of a rank's channels or by rows.
double hop_work(const ScaleQuery& query, double channels, double price, double price_in_grid) {
  return 2.0 * query.blocks * query.hops * entries(query) * channels *
         std::lerp(price, price_in_grid, query.grid_like) * kNano;
}
double slice_work(const ScaleQuery& query, const ScaleCosts& costs, double channels) {
  return hop_work(query, lanes_of(channels, query.grid_like), costs.gather_slices,
                  costs.gather_slices_grid);
}

double whole_work(const ScaleQuery& query, const ScaleCosts& costs) {
  return node_work(query, costs) + loss_work(query, costs) +
         slice_work(query, costs, query.channels);
}

ScaleCosts while_others_work(ScaleCosts costs) {
  for (double ScaleCosts::*const price :
       {&ScaleCosts::gather_slices, &ScaleCosts::gather_slices_grid, &ScaleCosts::gather_rows,
        &ScaleCosts::gather_rows_grid, &ScaleCosts::number}) {
    costs.*price *= costs.sharing;
  }
  return costs;
}

/// Kept for the backward pass and at once, in rows of all channels, as nn::memory_estimate counts
/// them.
double kept_bytes(const ScaleQuery& query, double nodes) {
  const double states = query.dense ? query.hops : 0.0;
  return (4.8 * query.blocks + states * query.blocks + 4.0) * nodes * query.channels * kNumberBytes;
}
/// Features and labels as read and as tensors; the program itself.
double node_data_bytes(const ScaleQuery& query, double nodes) {
  constexpr double kProgram = 220e6;
  return nodes * (8.0 * query.features + 60.0) + kProgram;
}
constexpr double kWholeEntry = 36.0;  // as list of edges, as graph, as operator
constexpr double kOwnEntry = 12.0;    // column and value; a copy while it is read

/// The wire, if there is one; packing and the kernel's work are in the price of a byte.
void add_network(const ScaleQuery& query, const ScaleCosts& costs, WayCost& cost) {
  cost.network_seconds =
      cost.exchanges * costs.exchange * kNano + cost.bytes_sent * costs.byte * kNano;
  if (query.bits_per_second <= 0.0) return;
  cost.network_seconds +=
      8.0 * cost.bytes_sent / query.bits_per_second + cost.exchanges * query.latency_us * 1e-6;
}

/// Gradients of a rank's terms and the sum, see sum_in_order().
double gradient_bytes(const ScaleQuery& query, double own_terms) {
  return (own_terms + 1.0) * num_weights(query) * (query.ranks - 1.0) / query.ranks * kNumberBytes;
}

std::string amount(double bytes) {
  constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  while (bytes >= 1000.0 && unit + 1 < std::size(kUnits)) {
    bytes /= 1000.0;
    ++unit;
  }
  return fmt::format("{:.3g} {}", bytes, kUnits[unit]);
}

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", 1e6 * seconds);
  if (seconds < 1.0) return fmt::format("{:.3g} ms", 1e3 * seconds);
  if (seconds < 100.0) return fmt::format("{:.3g} s", seconds);
  return fmt::format("{:.0f} s", seconds);
}

}  // namespace

const ScaleCosts& builtin_scale_costs() {
  static const ScaleCosts costs{
      .gather_slices = 0.161,
      .gather_slices_grid = 0.0970,
      .gather_rows = 0.371,
      .gather_rows_grid = 0.243,
      .multiply_add = 0.0284,
      .number = 24.0,
      .output = 27.2,
      .sharing = 1.03,
      .exchange = 92900.0,
      .byte = 0.734,
      .origin = "built in, measured on an AMD EPYC of two cores with 32 MiB of cache, quiet"};
  return costs;
}

std::string to_text(const ScaleCosts& costs) {
  std::string text;
  for (const auto& [name, price] : kPrices) text += fmt::format("{}={:.6g}\n", name, costs.*price);
  return text;
}

ScaleCosts scale_costs_from_text(const std::string& text, const std::string& origin) {
  ScaleCosts costs{.origin = origin};
  std::istringstream lines(text);
  std::string line;
  std::size_t found = 0;
  while (std::getline(lines, line)) {
    for (const auto& [name, price] : kPrices) {
      const std::string head = std::string(name) + "=";
      if (!line.starts_with(head)) continue;
      costs.*price = std::strtod(line.c_str() + head.size(), nullptr);
      if (costs.*price >= 0.0 && std::isfinite(costs.*price)) ++found;
    }
  }
  if (found == std::size(kPrices)) return costs;
  throw base::Error({.where = origin,
                     .expected = "lines NAME=NANOSECONDS as mpssm plan --measure writes them",
                     .got = fmt::format("{} of {}", found, std::size(kPrices))});
}

double grid_likeness(double next_entries, double entries) {
  constexpr double kInGrid = 2.0 / 3.0;
  return entries > 0.0 ? std::min(1.0, next_entries / entries / kInGrid) : 0.0;
}

double numbers_of_node(const ScaleQuery& query) {
  return query.features + query.blocks * query.channels + query.outputs;
}

double num_weights(const ScaleQuery& query) {
  const double c = query.channels;
  const double of_state = query.dense ? c * c : c;
  return c * (query.features + 1.0) + query.blocks * (3.0 * c * c + of_state + 6.0 * c) + 2.0 * c +
         query.outputs * (c + 1.0);
}

double counted_halo(const ScaleQuery& query) {
  if (query.halo >= 0.0) return query.halo;
  const double others = query.nodes * (1.0 - 1.0 / query.ranks);
  if (others <= 0.0) return 0.0;
  const double cut = query.cut >= 0.0 ? query.cut : 1.0 - 1.0 / query.ranks;
  const double ends = cut * 2.0 * query.edges / query.ranks;
  return others * (1.0 - std::exp(-ends / others));
}

double counted_ring_halo(const ScaleQuery& query) {
  if (query.halo >= 0.0 || query.cut >= 0.0 || query.ranks < 2.0) return query.ring_halo;
  const double others = query.nodes * (1.0 - 1.0 / query.ranks);
  const double halo = counted_halo(query);
  const double again = halo + std::max(0.0, query.hops - 2.0) * others;
  return query.hops > 1.0 && others + kRowComputedAgain * again < query.hops * halo ? others : -1.0;
}

std::vector<WayCost> scale_plan(const ScaleQuery& query, const ScaleCosts& prices) {
  const double p = query.ranks;
  const ScaleCosts costs = p > 1.0 ? while_others_work(prices) : prices;
  const double row = query.channels * kNumberBytes;
  std::vector<WayCost> ways;

  WayCost alone{.way = Way::kAlone};
  alone.compute_seconds = whole_work(query, prices);
  alone.memory_bytes = kept_bytes(query, query.nodes) + node_data_bytes(query, query.nodes) +
                       kWholeEntry * entries(query);
  alone.because = "sends nothing";
  ways.push_back(alone);

  WayCost batches{.way = Way::kBatches};
  batches.compute_seconds = whole_work(query, costs) / p;
  batches.bytes_sent = gradient_bytes(query, 1.0);
  batches.exchanges = 3.0;
  batches.memory_bytes = alone.memory_bytes - kept_bytes(query, query.nodes) * (1.0 - 1.0 / p);
  batches.because = "sends gradients alone";
  if (query.graphs < 2.0) batches.why_not = "one graph is one sample";
  ways.push_back(batches);

  WayCost channels{.way = Way::kChannels};
  // Every rank has the output of all nodes, and their loss.
  channels.compute_seconds = node_work(query, costs) / p + loss_work(query, costs) +
                             slice_work(query, costs, query.channels / p);
  // Four changes of hands in a block, whatever the hops, and the output on every rank.
  channels.bytes_sent = 4.0 * query.blocks * query.nodes * row * (p - 1.0) / (p * p) +
                        query.nodes / p * query.outputs * kNumberBytes * (p - 1.0) +
                        gradient_bytes(query, std::max(1.0, 16.0 / p));
  channels.exchanges = 4.0 * query.blocks + 5.0;
  channels.memory_bytes = kept_bytes(query, query.nodes / p) +
                          4.0 * query.nodes / p * row +  // on their way
                          node_data_bytes(query, query.nodes) + kWholeEntry * entries(query);
  channels.because = "sends 4 N C (P - 1) / P^2 numbers a block, whatever the hops";
  if (query.dense) channels.why_not = "a dense W mixes the channels of all ranks";
  if (query.graphs > 1.0) channels.why_not = "many graphs are shared by graphs";
  if (query.channels / 2.0 < p) channels.why_not = "there is not a pair of channels for each rank";
  ways.push_back(channels);

  WayCost nodes{.way = Way::kNodes};
  const double halo = counted_halo(query);
  const double rings = counted_ring_halo(query);
  const bool by_rings = rings >= 0.0;
  const double own = query.nodes / p;
  // Rows of others that are computed again: all rings but the last of those that are still to come.
  const double again = by_rings ? (query.hops - 1.0) / query.hops * rings / own : 0.0;
  const double hops =
      hop_work(query, query.channels, costs.gather_rows, costs.gather_rows_grid) * (1.0 + again);
  nodes.compute_seconds = (node_work(query, costs) + loss_work(query, costs) + hops) / p;
  const double fills = by_rings ? 1.0 : query.hops;
  const double read = by_rings ? rings : halo;
  nodes.bytes_sent = 2.0 * query.blocks * fills * read * row + gradient_bytes(query, 1.0);
  nodes.exchanges = 2.0 * query.blocks * fills + 5.0;
  nodes.memory_bytes = kept_bytes(query, own) +
                       ((by_rings ? 4.0 : 2.0) * own + (by_rings ? 5.0 : 3.0) * read) * row +
                       node_data_bytes(query, own) +
                       kOwnEntry * entries(query) / p * (1.0 + (by_rings ? rings / own : 0.0));
  nodes.because = by_rings
                      ? fmt::format(
                            "sends {:.3g} rows of others once for the {:.0f} hops of each of "
                            "{:.0f} block(s), both ways",
                            read, query.hops, query.blocks)
                      : fmt::format("sends {:.3g} rows of others at each of {:.0f} hops, both ways",
                                    halo, query.blocks * query.hops);
  if (query.graphs > 1.0) nodes.why_not = "many graphs are shared by graphs";
  ways.push_back(nodes);

  for (WayCost& way : ways) {
    if (p > 1.0 && way.way != Way::kAlone) {
      add_network(query, costs, way);
    } else {
      way.bytes_sent = way.exchanges = 0.0;
    }
    if (query.memory_gib > 0.0 && way.memory_bytes > query.memory_gib * 1073741824.0 &&
        way.why_not.empty()) {
      way.why_not = fmt::format("more than {:.3g} GiB for each rank", query.memory_gib);
    }
  }
  return ways;
}

const WayCost* winner(const std::vector<WayCost>& ways) {
  const WayCost* best = nullptr;
  for (const WayCost& way : ways) {
    if (!way.why_not.empty()) continue;
    if (best == nullptr || way.seconds() < best->seconds()) best = &way;
  }
  return best;
}

std::string plan_text(const ScaleQuery& query, const ScaleCosts& costs) {
  const std::vector<WayCost> ways = scale_plan(query, costs);
  std::string text = fmt::format(
      "{:.4g} nodes, {:.4g} edges, {:.0f} channels, {:.0f} block(s) of {:.0f} hops, {} W; {:.0f} "
      "rank(s) of one core, {}\n",
      query.nodes, query.edges, query.channels, query.blocks, query.hops,
      query.dense ? "dense" : "diagonal", query.ranks,
      query.bits_per_second > 0.0 ? fmt::format("{:.4g} Gbit/s and {:.3g} us between them",
                                                query.bits_per_second / 1e9, query.latency_us)
                                  : "on one machine");
  text += fmt::format("{:<17} {:>9} {:>9} {:>9} {:>10} {:>10}\n", "a step", "time", "compute",
                      "exchange", "sent", "memory");
  for (const WayCost& way : ways) {
    text += fmt::format(
        "{:<17} {:>9} {:>9} {:>9} {:>10} {:>10}{}\n", to_string(way.way), time_text(way.seconds()),
        time_text(way.compute_seconds), time_text(way.network_seconds), amount(way.bytes_sent),
        amount(way.memory_bytes), way.why_not.empty() ? "" : "  no: " + way.why_not);
  }
  text += "sent and memory: of a rank; prices: " + costs.origin + "\n";
  if (query.graphs < 2.0) {
    text += fmt::format("halo: {:.4g} nodes of others for each rank, {}\n", counted_halo(query),
                        query.halo >= 0.0  ? query.halo_from
                        : query.cut >= 0.0 ? "counted from --cut"
                                           : "nodes dealt by chance; --cut says how few edges a "
                                             "partition cuts");
    if (const double rings = counted_ring_halo(query); rings >= 0.0) {
      text += fmt::format(
          "within the {:.0f} hops of a block {:.4g}, fetched once: less than at every hop\n",
          query.hops, rings);
    }
  }
  const WayCost* const best = winner(ways);
  return text + (best == nullptr
                     ? "none of them fits"
                     : fmt::format("best: {}, which {}", to_string(best->way), best->because));
}

std::string plan_json(const ScaleQuery& query, const ScaleCosts& costs) {
  const std::vector<WayCost> ways = scale_plan(query, costs);
  const WayCost* const best = winner(ways);
  std::string text = fmt::format(
      "{{\"ranks\": {}, \"halo\": {:.9g}, \"ring_halo\": {}, \"best\": {}, \"ways\": [",
      query.ranks, counted_halo(query),
      counted_ring_halo(query) < 0.0 ? "null" : fmt::format("{:.9g}", counted_ring_halo(query)),
      best == nullptr ? "null" : fmt::format("\"{}\"", to_string(best->way)));
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const WayCost& way = ways[i];
    text += fmt::format(
        "{}{{\"way\": \"{}\", \"compute_seconds\": {:.9g}, \"exchange_seconds\": {:.9g}, "
        "\"bytes_sent\": {:.12g}, \"exchanges\": {:.9g}, \"memory_bytes\": {:.12g}, \"why_not\": "
        "{}}}",
        i == 0 ? "" : ", ", to_string(way.way), way.compute_seconds, way.network_seconds,
        way.bytes_sent, way.exchanges, way.memory_bytes,
        way.why_not.empty() ? "null" : "\"" + way.why_not + "\"");
  }
  return text + "]}";
}

double bits_from_text(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit(end);
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1.0}, {"bit", 1.0}, {"Kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {"Tbit", 1e12}};
  for (const auto& [name, factor] : kUnits) {
    if (unit == name && number > 0.0 && std::isfinite(number)) return number * factor;
  }
  throw base::Error({.where = "--network", .expected = "a speed such as 25Gbit", .got = text});
}

}  // namespace mpssm::ranks
