// SPDX-License-Identifier: MIT
// Small datasets with something to learn, one of each shape, and what a training on them leaves
// behind.
#pragma once

#include <cmath>
#include <filesystem>
#include <random>
#include <string>

#include "mpssm/data/dataset.h"
#include "mpssm/data/load.h"
#include "mpssm/graph/generators.h"
#include "mpssm/io/file.h"
#include "mpssm/train/config.h"

namespace mpssm::train::testing {

inline data::Dataset make_board_data() { return data::load("board:12x12"); }

inline data::Dataset make_graphs_data() { return data::load("properties:sssp:24"); }

/// Waves that travel around a ring.
inline data::Dataset make_series_data() {
  data::SeriesData series;
  series.graph = graph::make_ring(6);
  series.num_steps = 120;
  series.num_nodes = 6;
  series.lags = 6;
  series.horizon = 3;
  series.standardise = true;
  series.period = 24;
  for (int t = 0; t < 120; ++t) {
    for (int i = 0; i < 6; ++i) {
      series.values.push_back(static_cast<float>(10.0 + 3.0 * std::sin(0.4 * t - i)));
    }
    series.time_of_day.push_back(static_cast<float>(t % 24) / 24.0F);
  }
  data::Dataset dataset;
  dataset.name = "waves";
  dataset.task = data::Task::kForecast;
  dataset.metric = "mae";
  dataset.content = std::move(series);
  return dataset;
}

inline Config small_config() {
  Config config;
  config.model.channels = 8;
  config.model.blocks = 2;
  config.model.hops = 2;
  config.model.dropout = 0.1;
  config.train.epochs = 4;
  config.train.batch = 8;
  config.train.lr = 1e-2;
  config.train.checkpoint_seconds = 0.0;
  return config;
}

inline std::string result_of(const std::filesystem::path& folder) {
  return io::read_file(folder / "model.safetensors") + io::read_file(folder / "metrics.csv");
}

}  // namespace mpssm::train::testing
