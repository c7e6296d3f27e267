// SPDX-License-Identifier: MIT
// The table of datasets known by name.
#include "mpssm/data/registry.h"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

namespace mpssm::data {
namespace {

constexpr const char* kGppProtocol =
    "fixed split 5120/640/1280; labels divided by the largest of train; log10 of the MSE, averaged "
    "in each graph first; best validation epoch";
constexpr const char* kTemporalProtocol =
    "first 90 % of the windows train (their last ninth val), the rest test; MSE on values as "
    "stored; best validation epoch";
constexpr const char* kTrafficProtocol =
    "12 steps in, 12 out; windows 70/10/20 in time order; inputs standardised by train; MAE where "
    "the target is not 0; best validation epoch";

DatasetInfo property(const char* name, Task task, const char* summary, const char* target) {
  const DatasetFile file = {
      "gpp/gpp_25-35.npz", "9f72c449205abe260079a4c514bf1716df2550e452225d0ca3570c44a019dccd",
      "the generator of GitHub lukecavabarrett/pna, multitask_benchmark/datasets_generation (seed "
      "1234, sizes 25 to 34), as packed arrays"};
  return {.name = name,
          .family = "properties",
          .task = task,
          .metric = "log10_mse",
          .summary = summary,
          .protocol = kGppProtocol,
          .files = {file},
          .target = target};
}

DatasetInfo heterophilous(const char* name, const char* file, Task task, const char* summary,
                          const char* sha256) {
  const bool is_binary = task == Task::kNodeBinary;
  return {.name = name,
          .family = "heterophilous",
          .task = task,
          .metric = is_binary ? "roc_auc" : "accuracy",
          .summary = summary,
          .protocol = fmt::format("10 fixed random 50/25/25 splits; {}; best validation step",
                                  is_binary ? "ROC AUC" : "accuracy"),
          .files = {{fmt::format("hetero/{}", file), sha256,
                     fmt::format("GitHub yandex-research/heterophilous-graphs, data/{}", file)}}};
}

DatasetInfo temporal(const char* name, const char* summary, DatasetFile file,
                     std::vector<DatasetFile> alternatives) {
  file.source = "GitHub benedekrozemberczki/pytorch_geometric_temporal, dataset/" +
                file.name.substr(file.name.find('/') + 1);
  return {.name = name,
          .family = "temporal",
          .task = Task::kForecast,
          .metric = "mse",
          .summary = summary,
          .protocol = kTemporalProtocol,
          .files = {std::move(file)},
          .alternatives = std::move(alternatives)};
}

/// Of weeks.
DatasetInfo yearly(DatasetInfo info) {
  info.period = 365.25 / 7.0;
  return info;
}

DatasetInfo wikimath(DatasetInfo info) {
  info.over_all_time = true;
  info.lags = 8;
  info.period = 7.0;
  return info;
}

DatasetInfo wikimath_reconstructed() {
  DatasetInfo info = temporal(
      "wikimath-reconstructed", "WikiMath with its series reconstructed, not for comparison",
      {"wikimath/wikimath_reconstructed.npz",
       "c69ea270d920687149b9f956bf7f3b6629d030d03dc3446bb7708fce8075fd0d", ""},
      {});
  info.files[0].source =
      "computed from the 8-day means in GitHub gabrielxcosta/Spatiotemporal-GNN-Forecasting, "
      "networks/WikiMaths: visits standardised over all time, as the original's loader does";
  return wikimath(std::move(info));
}

DatasetInfo traffic(const char* name, const char* summary, std::vector<DatasetFile> files,
                    const char* fallback) {
  return {.name = name,
          .family = "traffic",
          .task = Task::kForecast,
          .metric = "mae",
          .summary = summary,
          .protocol = kTrafficProtocol,
          .files = std::move(files),
          .fallback = fallback};
}

DatasetInfo peptides(const char* name, Task task, const char* summary, const char* protocol,
                     DatasetFile file) {
  return {.name = name,
          .family = "peptides",
          .task = task,
          .metric = task == Task::kGraphLabels ? "average_precision" : "mae",
          .summary = summary,
          .protocol = protocol,
          .files = {std::move(file)},
          .target = "labels"};
}

std::vector<DatasetInfo> graph_datasets() {
  return {
      property("diameter", Task::kGraphRegression, "longest shortest path of each graph",
               "diameter"),
      property("sssp", Task::kNodeRegression, "hops from a marked node to every node", "sssp"),
      property("eccentricity", Task::kNodeRegression, "hops from each node to the farthest one",
               "eccentricity"),
      property("gpp-published-sssp", Task::kNodeRegression,
               "what published tables call SSSP: in fact the graph Laplacian of a random feature",
               "laplacian_feat"),
      property("gpp-published-eccentricity", Task::kNodeRegression,
               "what published tables call Eccentricity: in fact hops from a marked node", "sssp"),
      peptides(
          "peptides-func", Task::kGraphLabels, "10 functions of 15535 peptides",
          "fixed stratified split 10873/2331/2331; mean average precision over 10 labels; best "
          "validation epoch",
          {"peptides-func/peptides_func_graphs.npz",
           "2cd2a04e69e2d3cb0c0b9d4a588e0217aa4cee9fe17b244556baa2611998d216",
           "GitHub vijaydwivedi75/lrgb (Peptides-func), made into packed arrays with OGB's "
           "smiles2graph"}),
      peptides("peptides-struct", Task::kGraphRegression, "11 shape measures of 15535 peptides",
               "fixed stratified split 10873/2331/2331; MAE over 11 targets standardised over all "
               "graphs; best validation epoch",
               {"peptides-struct/peptides_struct_graphs.npz", "",
                "GitHub vijaydwivedi75/lrgb (Peptides-struct), made into packed arrays with OGB's "
                "smiles2graph"}),
  };
}

std::vector<DatasetInfo> node_datasets() {
  return {
      heterophilous("minesweeper", "minesweeper.npz", Task::kNodeBinary,
                    "mines on a board of 100 x 100 cells, half of them hidden",
                    "e664c8dacf1e8ac466c2c09ed4b237bd2c5541f47a6eae9c6092cb87f16412b3"),
      heterophilous("tolokers", "tolokers.npz", Task::kNodeBinary,
                    "banned workers of a crowdsourcing platform",
                    "dacf3ac94cec53d03cd2adb5255c08b33dee1656c33ca8164a464bd9450a1667"),
      heterophilous("roman-empire", "roman_empire.npz", Task::kNodeClasses,
                    "syntactic roles of the words of an article", ""),
      heterophilous("amazon-ratings", "amazon_ratings.npz", Task::kNodeClasses,
                    "ratings of products bought together", ""),
      heterophilous("questions", "questions.npz", Task::kNodeBinary,
                    "users who stay active on a question-answering site", ""),
  };
}

std::vector<DatasetInfo> series_datasets() {
  const char* dcrnn = "GitHub liyaguang/DCRNN, data/sensor_graph, as arrays";
  return {
      yearly(temporal("chickenpox", "weekly cases in 20 counties of Hungary",
                      {"chickenpox/chickenpox.json",
                       "724b48cfb274b2ecbb855bdb99b970b5ef9dd3671694fa477435dc1e08293735", ""},
                      {{"chickenpox/chickenpox.npz",
                        "45fd155464e31d6c65b5caecf1b2058b04e378ae3d93078341c4141007a04f3f", ""}})),
      temporal("pedalme", "weekly bicycle deliveries in 15 districts of London",
               {"pedalme/pedalme_london.json",
                "8c42b893441901fb805c4f0f937543d5bb9297884ac3dec7622a3e9f7c35a79b", ""},
               {{"pedalme/pedalme_london.npz",
                 "b9b7b391f6acee4995ce513ca375da69700cb46033d04e483fc6e78b6cdcb185", ""}}),
      wikimath(temporal("wikimath", "daily visits of 1068 Wikipedia articles on mathematics",
                        {"wikimath/wikivital_mathematics.json", "", ""}, {})),
      wikimath_reconstructed(),
      traffic("metr-la", "speeds at 207 sensors in Los Angeles",
              {{"traffic/metr_la.npz", "",
                "metr-la.h5 of GitHub liyaguang/DCRNN, saved as array 'speed' [34272, 207]"},
               {"traffic/metr_la_graph.npz",
                "58aab000781485a89b3d9863604f5d94e6d2f07f22551a01531307db5c3cf0d3", dcrnn}},
              "metr-la-29"),
      traffic("metr-la-29", "speeds at 29 of the sensors of METR-LA, not for comparison",
              {{"traffic/metr_la_subset29.npz",
                "fbeb3aeb595cbfa5540478e1d84e0d908002a204107b5340f44735de7695aaff",
                "GitHub cmpe295-smart-city-traffic-ai-platform/DCRNN_PyTorch_Modified and "
                "tanwimallick/dcrnn_samba, data/METR-LA, windows joined"}},
              ""),
      traffic("pems-bay", "speeds at 325 sensors in the San Francisco Bay Area",
              {{"traffic/pems_bay.npz", "",
                "pems-bay.h5 of GitHub liyaguang/DCRNN, saved as array 'speed' [52116, 325]"},
               {"traffic/pems_bay_graph.npz",
                "ca9028a5a515df977f9e4325de663db8a0bd544690e91bf81db36750424dce7d", dcrnn}},
              "pems-bay-67"),
      traffic("pems-bay-67", "speeds at 67 of the sensors of PeMS-Bay, not for comparison",
              {{"traffic/pems_bay_subset67.npz",
                "4c566731d6cc3d0cdb27a45afe3ca857ad41b2512981d3d6d1096c1106b75aeb",
                "GitHub cmpe295-smart-city-traffic-ai-platform/DCRNN_PyTorch_Modified, "
                "data/PEMS-BAY, windows joined"}},
              ""),
  };
}

std::vector<DatasetInfo> make_registry() {
  std::vector<DatasetInfo> all = graph_datasets();
  for (auto* make : {node_datasets, series_datasets}) {
    for (DatasetInfo& info : make()) all.push_back(std::move(info));
  }
  return all;
}

}  // namespace

std::span<const DatasetInfo> registry() {
  static const std::vector<DatasetInfo> all = make_registry();
  return all;
}

const DatasetInfo* find_dataset(std::string_view name) {
  const auto all = registry();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [name](const DatasetInfo& info) { return info.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace mpssm::data
