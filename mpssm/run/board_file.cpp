// SPDX-License-Identifier: MIT
#include "mpssm/run/board_file.h"

#include <cstdio>
#include <fmt/core.h>
#include <string>
#include <variant>
#include <vector>

#include "mpssm/io/csv.h"
#include "mpssm/io/file.h"
#include "mpssm/report/board_picture.h"
#include "mpssm/report/text.h"

namespace mpssm::run {
namespace {

struct BoardSize {
  long long rows = 0;
  long long columns = 0;
};

BoardSize size_of(const data::Dataset& dataset) {
  BoardSize size;
  if (dataset.name == "minesweeper" || dataset.name == "board") return {100, 100};
  if (std::sscanf(dataset.name.c_str(), "board:%lldx%lld", &size.rows, &size.columns) != 2) {
    return {};
  }
  return size;
}

}  // namespace

bool is_board(const data::Dataset& dataset) {
  constexpr std::int64_t kFeatures = 7;
  const auto* data = std::get_if<data::NodeData>(&dataset.content);
  const BoardSize size = size_of(dataset);
  // A file of one's own may have the name.
  return data != nullptr && dataset.task == data::Task::kNodeBinary && size.rows > 0 &&
         data->graph.num_nodes() == size.rows * size.columns && data->features.columns == kFeatures;
}

std::vector<report::Point> board_places(const data::Dataset& dataset) {
  if (!is_board(dataset)) return {};
  const BoardSize size = size_of(dataset);
  std::vector<report::Point> places;
  for (long long row = 0; row < size.rows; ++row) {
    for (long long column = 0; column < size.columns; ++column) {
      places.push_back({static_cast<double>(column), static_cast<double>(-row)});
    }
  }
  return places;
}

std::string board_picture(const Experiment& experiment, const report::RunRecord& record) {
  const auto& data = std::get<data::NodeData>(experiment.dataset->content);
  const BoardSize size = size_of(*experiment.dataset);
  const io::CsvTable predictions =
      io::read_csv(std::filesystem::path(record.run) / "predictions.csv");
  const std::size_t last_column = predictions.header.size() - 1;
  std::vector<std::int8_t> shown;
  std::vector<std::uint8_t> mine;
  std::vector<float> probability;
  for (std::int64_t i = 0; i < data.features.rows; ++i) {
    // Feature 0: the number is hidden; feature 1 + c: c mines around.
    const float* feature = data.features.values.data() + i * data.features.columns;
    std::int8_t number = -1;
    for (std::int8_t c = 1; c < data.features.columns; ++c) {
      if (feature[c] > 0.5F) number = static_cast<std::int8_t>(c - 1);
    }
    shown.push_back(number);
    mine.push_back(data.target[i] > 0.5F ? 1 : 0);
    probability.push_back(
        static_cast<float>(io::to_number(predictions.rows[i][last_column]).value_or(0.0)));
  }
  return report::board_svg(
      {size.rows, size.columns, shown, mine, probability,
       fmt::format("test ROC AUC {:.3f}", record.metrics.at("test").at("roc_auc"))});
}

std::filesystem::path write_board(const Experiment& experiment, const report::RunRecord& record) {
  const std::filesystem::path path = std::filesystem::path(record.run) / "board.svg";
  io::write_file(path, board_picture(experiment, record));
  return path;
}

}  // namespace mpssm::run
