// SPDX-License-Identifier: MIT
#include "mpssm/task/problem.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/base/error.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/run/experiment.h"
#include "mpssm/task/metrics.h"
#include "mpssm/train/built_model.h"

#include "tests/train/small_data.h"

namespace mpssm::task {
namespace {

using data::Part;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using train::testing::make_board_data;
using train::testing::make_graphs_data;
using train::testing::make_series_data;
using train::testing::small_config;

/// A model whose output is the same for every node, graph and window: what metrics should be is
/// then plain.
class ConstantModel : public nn::GraphModule {
 public:
  ConstantModel(const ProblemShape& shape, float value) : shape_(shape), value_(value) {}
  torch::Tensor forward(const torch::Tensor& x, const graph::Operators& gso) override {
    std::vector<std::int64_t> shape = {gso.num_nodes(), shape_.out_channels};
    if (shape_.readout == nn::Readout::kGraph) shape[0] = gso.num_graphs();
    if (shape_.readout == nn::Readout::kForecast) shape.insert(shape.begin(), x.size(0));
    return torch::full(shape, value_);
  }

 private:
  ProblemShape shape_;
  float value_;
};

ConstantModel constant_model(const Problem& problem, float value) {
  return ConstantModel(problem.shape(), value);
}

std::vector<std::int64_t> all_of(std::int64_t count) {
  std::vector<std::int64_t> samples(count);
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

std::string predictions(const Problem& problem, nn::GraphModule& model) {
  const torch::NoGradGuard no_grad;
  std::string text;
  problem.write_predictions(model, [&](std::string_view piece) { text += piece; });
  return text;
}

std::int64_t count_lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

TEST(OrderedSum, IsTheSumForAnyNumberOfThreads) {
  torch::manual_seed(1);
  for (const std::int64_t size : {0, 1, 4096, 4097, 70'000, 20'000'000}) {
    auto x = torch::rand({size});
    ops::set_num_threads(1);
    const auto one = ordered_sum(x);
    ops::set_num_threads(2);
    const auto two = ordered_sum(x);
    EXPECT_EQ(one.item<float>(), two.item<float>()) << size;
    EXPECT_NEAR(one.item<double>(), x.to(torch::kDouble).sum().item<double>(), 1e-5 * size + 1e-6);
  }
  auto x = torch::rand({9000}).requires_grad_();
  ordered_sum(x).backward();
  EXPECT_TRUE(torch::equal(x.grad(), torch::ones({9000})));
  ops::set_num_threads(0);
}

/// Keeps what it was given.
class ListeningModel : public ConstantModel {
 public:
  explicit ListeningModel(const Problem& problem) : ConstantModel(problem.shape(), 0.0F) {}
  torch::Tensor forward(const torch::Tensor& x, const graph::Operators& gso) override {
    heard.push_back(x.clone());
    return ConstantModel::forward(x, gso);
  }
  std::vector<torch::Tensor> heard;
};

TEST(Encodings, AreAppendedAndChangeSignsInTrainingOnly) {
  train::Config config = small_config();
  config.data.encodings = "rwse:3,lap:4,degree";
  for (const data::Dataset& dataset : {make_board_data(), make_graphs_data(), make_series_data()}) {
    const auto plain = make_problem(dataset, train::problem_options(small_config()));
    const auto problem = make_problem(dataset, train::problem_options(config));
    const std::int64_t width = problem->shape().in_channels;
    ASSERT_EQ(width, plain->shape().in_channels + 8) << dataset.name;
    const auto own = problem->sample(0).x;
    EXPECT_EQ(own.size(-1), width);
    EXPECT_TRUE(torch::equal(own.slice(-1, 0, width - 8), plain->sample(0).x));

    ListeningModel model(*problem);
    const std::int64_t samples[] = {0};
    torch::manual_seed(5);
    model.train();
    for (int step = 0; step < 4; ++step) problem->loss(model, samples);
    model.eval();
    problem->loss(model, samples);
    problem->evaluate(model, Part::kVal);
    const torch::Tensor fixed = model.heard[4];
    bool has_changed = false;
    for (int step = 0; step < 4; ++step) {
      const torch::Tensor x = model.heard[step];
      EXPECT_TRUE(torch::equal(x.slice(-1, 0, width - 5), fixed.slice(-1, 0, width - 5)));
      EXPECT_TRUE(torch::equal(x.slice(-1, width - 1), fixed.slice(-1, width - 1)));
      const torch::Tensor modes = x.slice(-1, width - 5, width - 1);
      EXPECT_TRUE(torch::equal(modes.abs(), fixed.slice(-1, width - 5, width - 1).abs()));
      has_changed = has_changed || !torch::equal(modes, fixed.slice(-1, width - 5, width - 1));
    }
    EXPECT_TRUE(has_changed) << dataset.name;
  }
}

/// The same network, told one-hot columns.
class OneHotModel : public nn::GraphModule {
 public:
  explicit OneHotModel(nn::GraphModule& model) : model_(model) {}
  torch::Tensor forward(const torch::Tensor& x, const graph::Operators& gso) override {
    width = x.size(1);
    return model_.forward(x, gso);
  }
  std::int64_t width = 0;

 private:
  nn::GraphModule& model_;
};

TEST(GraphsProblem, CategoriesAsNumbersGiveWhatOneHotColumnsGive) {
  data::Dataset dataset = make_graphs_data();
  auto& graphs = std::get<data::GraphsData>(dataset.content);
  graphs.vocabulary = {5, 3};
  for (std::int64_t i = 0; i < graphs.node_ptr.back(); ++i) {
    graphs.codes.push_back(static_cast<std::uint8_t>(i % 6));  // 5 is unknown
    graphs.codes.push_back(static_cast<std::uint8_t>(i / 7 % 3));
  }
  train::Config config = small_config();
  config.data.encodings = "rwse:2";
  for (const auto kind :
       {train::ModelKind::kMpssm, train::ModelKind::kGcn, train::ModelKind::kLinearGcn}) {
    config.model.kind = kind;
    const auto problem = make_problem(dataset, train::problem_options(config));
    ASSERT_EQ(problem->shape().in_channels, 10);
    const train::BuiltModel built = train::build_model(*problem, config);
    EXPECT_TRUE(built.module->takes_codes());
    built.module->eval();
    OneHotModel one_hot(*built.module);
    one_hot.eval();
    const Metrics expected = problem->evaluate(one_hot, Part::kVal);
    EXPECT_EQ(one_hot.width, 10);
    EXPECT_NEAR(problem->evaluate(*built.module, Part::kVal).at("loss"), expected.at("loss"),
                1e-5 * expected.at("loss"));
    EXPECT_EQ(problem->sample(0).x.size(1), 10);
  }
}

TEST(Encodings, OfEdgesAreTheSumOverThemAndLearnedFromTrainingGraphsAlone) {
  data::Dataset dataset = make_graphs_data();
  auto& graphs = std::get<data::GraphsData>(dataset.content);
  data::EdgeTable& table = graphs.edge_table;
  table.columns = {{.name = "kind", .values = {}, .words = {"a", "b", "rare"}}};
  for (std::int64_t g = 0; g < graphs.num_graphs(); ++g) {
    const bool is_train = graphs.part[g] == Part::kTrain;
    for (std::int64_t e = graphs.edge_ptr[g]; e < graphs.edge_ptr[g + 1]; ++e) {
      table.src.push_back(static_cast<std::int32_t>(graphs.node_ptr[g]) + graphs.edge_src[e]);
      table.dst.push_back(static_cast<std::int32_t>(graphs.node_ptr[g]) + graphs.edge_dst[e]);
      table.columns[0].values.push_back(is_train ? static_cast<double>(e % 2) : 2.0);
    }
  }
  train::Config config = small_config();
  config.data.encodings = "degree,edges";
  const auto problem = make_problem(dataset, train::problem_options(config));
  const auto plain = make_problem(dataset, train::problem_options(small_config()));
  const std::int64_t width = plain->shape().in_channels;
  EXPECT_EQ(problem->shape().in_channels, width + 3);  // "rare" is in no training graph
  const Preprocessing learned = problem->preprocessing();
  ASSERT_EQ(learned.edge_columns.size(), 1U);
  EXPECT_EQ(learned.edge_columns[0].categories, (std::vector<std::string>{"a", "b"}));
  for (std::int64_t g = 0; g < graphs.num_graphs(); ++g) {
    auto expected = torch::zeros({graphs.node_ptr[g + 1] - graphs.node_ptr[g], 2});
    for (std::int64_t e = graphs.edge_ptr[g]; e < graphs.edge_ptr[g + 1]; ++e) {
      if (graphs.part[g] == Part::kTrain) expected[graphs.edge_dst[e]][e % 2] += 1.0;
    }
    EXPECT_TRUE(torch::equal(problem->sample(g).x.slice(1, width + 1), expected)) << g;
  }
  const auto again = make_problem(dataset, train::problem_options(config), &learned);
  EXPECT_TRUE(torch::equal(again->sample(3).x, problem->sample(3).x));
  const data::Dataset bare = make_graphs_data();
  EXPECT_THAT([&] { make_problem(bare, train::problem_options(config)); },
              ThrowsMessage<base::Error>(HasSubstr("data.encodings: edges: nothing is known")));
}

TEST(Encodings, AreRefusedForLinks) {
  train::Config config = small_config();
  config.data.encodings = "degree";
  data::Dataset dataset = make_board_data();
  dataset.task = data::Task::kLinks;
  EXPECT_THAT([&] { make_problem(dataset, train::problem_options(config)); },
              ThrowsMessage<base::Error>(HasSubstr("data.encodings: not for links")));
}

TEST(NodeProblem, LossOfAConstantIsTheEntropyOfTheLabels) {
  const data::Dataset dataset = make_board_data();
  const auto problem = make_problem(dataset, train::problem_options(small_config()));
  auto model = constant_model(*problem, 0.0F);
  EXPECT_NEAR(problem->loss(model, all_of(1)).item<double>(), std::log(2.0), 1e-6);
  const Metrics metrics = problem->evaluate(model, Part::kTest);
  EXPECT_NEAR(metrics.at("loss"), std::log(2.0), 1e-6);
  EXPECT_EQ(metrics.at("roc_auc"), 0.5);
}

TEST(Problem, LossOfAPartIsThatOfItsEvaluation) {
  const data::Dataset board = make_board_data();
  const auto nodes = make_problem(board, train::problem_options(small_config()));
  const data::Dataset traffic = make_series_data();
  const auto series = make_problem(traffic, train::problem_options(small_config()));
  for (const Problem* problem : {nodes.get(), series.get()}) {
    auto model = constant_model(*problem, 0.25F);
    for (const Part part : {Part::kVal, Part::kTest}) {
      const double expected = problem->evaluate(model, part).at("loss");
      EXPECT_NEAR(problem->loss_of_part(model, part).item<double>(), expected, 1e-5 * expected);
    }
  }
  const data::Dataset many = make_graphs_data();
  const auto graphs = make_problem(many, train::problem_options(small_config()));
  auto model = constant_model(*graphs, 0.0F);
  EXPECT_THAT([&] { graphs->loss_of_part(model, Part::kVal); },
              ThrowsMessage<base::Error>(HasSubstr("expected one graph")));
}

TEST(NodeProblem, ClassWeightsGiveEachClassHalfOfTheLoss) {
  const data::Dataset dataset = make_board_data();
  train::Config config = small_config();
  config.train.class_weights = true;
  const auto problem = make_problem(dataset, train::problem_options(config));
  auto model = constant_model(*problem, 2.0F);
  const double expected = 0.5 * (std::log1p(std::exp(2.0)) + std::log1p(std::exp(-2.0)));
  EXPECT_NEAR(problem->loss(model, all_of(1)).item<double>(), expected, 1e-5);
}

TEST(NodeProblem, HidesTheTestLabelsFromTheLoss) {
  data::Dataset dataset = make_board_data();
  const auto before = make_problem(dataset, train::problem_options(small_config()));
  auto model = constant_model(*before, 0.7F);
  const double loss = before->loss(model, all_of(1)).item<double>();
  data::Dataset changed = make_board_data();
  auto& nodes = std::get<data::NodeData>(changed.content);
  for (std::size_t i = 0; i < nodes.target.size(); ++i) {
    if (nodes.splits[0][i] != Part::kTrain) nodes.target[i] = 1.0F - nodes.target[i];
  }
  const auto after = make_problem(changed, train::problem_options(small_config()));
  EXPECT_EQ(after->loss(model, all_of(1)).item<double>(), loss);
  EXPECT_NE(after->evaluate(model, Part::kTest).at("loss"),
            before->evaluate(model, Part::kTest).at("loss"));
}

TEST(NodeProblem, PredictsNewUnlabelledNodesOnTheScaleOfTheLabels) {
  data::Dataset dataset = make_board_data();
  dataset.task = data::Task::kNodeRegression;
  auto& nodes = std::get<data::NodeData>(dataset.content);
  nodes.class_names.clear();
  for (float& y : nodes.target) y = 1000.0F + 10.0F * y;
  const auto problem = make_problem(dataset, train::problem_options(small_config()));
  const Preprocessing learned = problem->preprocessing();
  EXPECT_NEAR(learned.mean, 1002.0, 2.0);
  auto model = constant_model(*problem, 0.0F);
  EXPECT_LT(problem->loss(model, all_of(1)).item<double>(), 1.1);  // of standardised labels

  dataset.is_new = true;
  for (float& y : nodes.target) y = std::numeric_limits<float>::quiet_NaN();
  const auto applied = make_problem(dataset, train::problem_options(small_config()), &learned);
  char expected[64];
  std::snprintf(expected, sizeof expected, "\n0,%.7g\n", learned.mean);
  EXPECT_THAT(predictions(*applied, model), HasSubstr(expected));
}

TEST(NodeProblem, RefusesASplitThatIsNotThere) {
  const data::Dataset dataset = make_board_data();
  train::Config config = small_config();
  config.data.split = 10;
  EXPECT_THAT([&] { make_problem(dataset, train::problem_options(config)); },
              ThrowsMessage<base::Error>(HasSubstr("splits 0 to 9, got 10")));
}

TEST(GraphsProblem, ErrorsAreMeansOverGraphsOnBothScales) {
  const data::Dataset dataset = make_graphs_data();
  const auto& graphs = std::get<data::GraphsData>(dataset.content);
  const auto problem = make_problem(dataset, train::problem_options(small_config()));
  auto model = constant_model(*problem, 0.25F);
  double sum = 0.0;
  std::int64_t count = 0;
  for (std::int64_t g = 0; g < graphs.num_graphs(); ++g) {
    if (graphs.part[g] != Part::kTest) continue;
    double of_graph = 0.0;
    for (std::int64_t i = graphs.node_ptr[g]; i < graphs.node_ptr[g + 1]; ++i) {
      of_graph += std::pow(0.25 - graphs.target.values[i] / graphs.label_scale, 2);
    }
    sum += of_graph / static_cast<double>(graphs.node_ptr[g + 1] - graphs.node_ptr[g]);
    ++count;
  }
  const double mse = sum / static_cast<double>(count);
  const Metrics metrics = problem->evaluate(model, Part::kTest);
  EXPECT_NEAR(metrics.at("mse"), mse, 1e-6);
  EXPECT_NEAR(metrics.at("loss"), mse, 1e-6);
  EXPECT_NEAR(metrics.at("log10_mse"), std::log10(mse), 1e-5);
  EXPECT_NEAR(metrics.at("log10_mse_raw"),
              std::log10(mse * graphs.label_scale * graphs.label_scale), 1e-5);
}

/// The graphs above with a class for each: small, middle or large.
data::Dataset make_classes_of_graphs(std::int64_t num_classes) {
  data::Dataset dataset = make_graphs_data();
  auto& graphs = std::get<data::GraphsData>(dataset.content);
  dataset.task = num_classes == 2 ? data::Task::kGraphBinary : data::Task::kGraphClasses;
  dataset.metric = "accuracy";
  graphs.label_scale = 1.0;
  graphs.target = {.rows = graphs.num_graphs(), .columns = 1};
  for (std::int64_t g = 0; g < graphs.num_graphs(); ++g) {
    graphs.target.values.push_back(static_cast<float>(g % num_classes));
  }
  for (std::int64_t c = 0; c < num_classes; ++c) {
    graphs.class_names.push_back(std::string(1, static_cast<char>('a' + c)));
  }
  return dataset;
}

TEST(GraphsProblem, LossOfAConstantIsTheEntropyOfTheClasses) {
  for (const std::int64_t num_classes : {2, 3}) {
    data::Dataset dataset = make_classes_of_graphs(num_classes);
    auto& graphs = std::get<data::GraphsData>(dataset.content);
    const auto problem = make_problem(dataset, train::problem_options(small_config()));
    EXPECT_EQ(problem->shape().out_channels, num_classes == 2 ? 1 : 3);
    auto model = constant_model(*problem, 0.0F);
    const double entropy = std::log(static_cast<double>(num_classes));
    EXPECT_NEAR(problem->loss(model, all_of(10)).item<double>(), entropy, 1e-6);
    EXPECT_NEAR(problem->evaluate(model, Part::kTest).at("loss"), entropy, 1e-6);
    EXPECT_THAT(predictions(*problem, model), HasSubstr("graph,split"));
    EXPECT_THAT(predictions(*problem, model), HasSubstr(",predicted,p(a),p(b)"));
    const std::vector<Reference> references = problem->references();
    ASSERT_EQ(references.size(), 2u);
    EXPECT_NEAR(references[0].test.at("accuracy"), 1.0 / static_cast<double>(num_classes), 0.3);
    // A graph without a label changes nothing but its own line.
    graphs.target.values[0] = data::kNoLabel;
    const auto with_gap = make_problem(dataset, train::problem_options(small_config()));
    EXPECT_NEAR(with_gap->loss(model, all_of(10)).item<double>(), entropy, 0.2);
    EXPECT_EQ(count_lines(predictions(*with_gap, model)), graphs.num_graphs() + 1);
  }
}

TEST(NodeProblem, ReferencesAreWhatTheirNamesSay) {
  // Two rings of one class each, joined by nothing; features say nothing.
  data::Dataset dataset = make_board_data();
  auto& nodes = std::get<data::NodeData>(dataset.content);
  const std::int64_t n = nodes.graph.num_nodes();
  graph::EdgeList edges{.num_nodes = n};
  for (std::int64_t i = 0; i < n; ++i) {
    edges.src.push_back(i);
    edges.dst.push_back((i + 2) % n);
    nodes.target[i] = static_cast<float>(i % 2);
  }
  nodes.graph = graph::Graph::from_edges(edges);
  const auto problem = make_problem(dataset, train::problem_options(small_config()));
  const std::vector<Reference> references = problem->references();
  ASSERT_EQ(references.size(), 3u);
  EXPECT_EQ(references[0].name, "most frequent class");
  EXPECT_EQ(references[0].test.at("roc_auc"), 0.5);
  EXPECT_EQ(references[1].name, "logistic regression on features alone");
  EXPECT_LT(references[1].test.at("accuracy"), 0.8);
  EXPECT_EQ(references[2].name, "label propagation");
  EXPECT_EQ(references[2].test.at("accuracy"), 1.0);
  // Features that say it all.
  dataset.task = data::Task::kNodeRegression;
  nodes.class_names.clear();
  for (std::int64_t i = 0; i < n; ++i) {
    nodes.target[i] = 100.0F + 3.0F * nodes.features.values[i * nodes.features.columns];
  }
  const auto values = make_problem(dataset, train::problem_options(small_config()));
  EXPECT_GT(values->references()[1].test.at("r2"), 0.95);
  EXPECT_LT(values->references()[0].test.at("r2"), 0.01);
}

TEST(GraphsProblem, BatchesDoNotChangeTheLossOrTheMetrics) {
  for (const char* name : {"properties:sssp:24", "properties:diameter:24"}) {
    const data::Dataset dataset = data::load(name);
    train::Config config = small_config();
    const auto small = make_problem(dataset, train::problem_options(config));
    config.train.batch = 1000;
    const auto large = make_problem(dataset, train::problem_options(config));
    torch::manual_seed(2);
    const auto model = train::build_model(*small, config).module;
    model->eval();
    const torch::NoGradGuard no_grad;
    EXPECT_NEAR(small->evaluate(*model, Part::kVal).at("loss"),
                large->evaluate(*model, Part::kVal).at("loss"), 1e-5);
    double sum = 0.0;
    for (std::int64_t i = 0; i < small->num_train(); ++i) {
      sum += small->loss(*model, std::vector{i}).item<double>();
    }
    EXPECT_NEAR(large->loss(*model, all_of(large->num_train())).item<double>(),
                sum / static_cast<double>(small->num_train()), 1e-5);
  }
}

TEST(SeriesProblem, PredictsOnTheOriginalScaleAndMasksNulls) {
  data::Dataset dataset = make_series_data();
  auto& series = std::get<data::SeriesData>(dataset.content);
  series.null_value = 0.0F;
  for (std::size_t i = 0; i < series.values.size(); i += 7) series.values[i] = 0.0F;
  const auto problem = make_problem(dataset, train::problem_options(small_config()));
  const data::WindowSplit split = data::window_split(series);
  const Preprocessing scale = problem->preprocessing();
  auto model = constant_model(*problem, 0.5F);
  const double forecast = 0.5 * scale.scale + scale.mean;
  double sum = 0.0;
  double count = 0.0;
  for (std::int64_t w = split.test; w < split.end; ++w) {
    for (std::int64_t t = w + series.lags; t < w + series.lags + series.horizon; ++t) {
      for (std::int64_t i = 0; i < 6; ++i) {
        const double truth = series.values[t * 6 + i];
        if (truth == 0.0) continue;
        sum += std::abs(forecast - truth);
        count += 1.0;
      }
    }
  }
  const Metrics metrics = problem->evaluate(model, Part::kTest);
  EXPECT_NEAR(metrics.at("mae"), sum / count, 1e-4);
  EXPECT_TRUE(metrics.contains("mae_3"));
  // Mean and deviation as numpy gives them over all training windows, each step as often as seen.
  std::vector<double> seen;
  for (std::int64_t w = 0; w < split.val; ++w) {
    for (std::int64_t i = w * 6; i < (w + series.lags) * 6; ++i) seen.push_back(series.values[i]);
  }
  const double mean =
      std::accumulate(seen.begin(), seen.end(), 0.0) / static_cast<double>(seen.size());
  double variance = 0.0;
  for (const double x : seen) variance += (x - mean) * (x - mean);
  EXPECT_NEAR(scale.mean, mean, 1e-9);
  EXPECT_NEAR(scale.scale, std::sqrt(variance / static_cast<double>(seen.size())), 1e-9);
}

TEST(SeriesProblem, ReferencesAreWhatTheirNamesSay) {
  const data::Dataset dataset = make_series_data();
  const auto& series = std::get<data::SeriesData>(dataset.content);
  const data::WindowSplit split = data::window_split(series);
  double zero = 0.0;
  double last = 0.0;
  double count = 0.0;
  for (std::int64_t w = split.test; w < split.end; ++w) {
    for (std::int64_t h = 0; h < series.horizon; ++h) {
      for (std::int64_t i = 0; i < 6; ++i) {
        const double truth = series.values[(w + series.lags + h) * 6 + i];
        zero += std::abs(truth);
        last += std::abs(truth - series.values[(w + series.lags - 1) * 6 + i]);
        count += 1.0;
      }
    }
  }
  Metrics by_name;
  for (const Reference& reference :
       make_problem(dataset, train::problem_options(small_config()))->references()) {
    by_name[reference.name] = reference.test.at("mae");
  }
  EXPECT_NEAR(by_name.at("zero"), zero / count, 1e-4);
  EXPECT_NEAR(by_name.at("last value"), last / count, 1e-4);
  // A sine obeys a linear recurrence, so a line on six lags is exact; 24 steps are not its period.
  EXPECT_LT(by_name.at("line (ridge)"), 0.05);
  EXPECT_GT(by_name.at("historical average"), 0.5);
}

TEST(SeriesProblem, LastObservedValueLooksPastMissingOnes) {
  data::Dataset dataset = make_series_data();
  auto& series = std::get<data::SeriesData>(dataset.content);
  series.null_value = 0.0F;
  // Gaps longer than a window, so that some windows hold nothing but missing values.
  const std::int64_t gap = series.lags + 3;
  for (std::int64_t t = 0; t < series.num_steps; ++t) {
    if (t / gap % 2 == 1) series.values[t * 6 + 2] = 0.0F;
  }
  const data::WindowSplit split = data::window_split(series);
  double error = 0.0;
  double count = 0.0;
  double num_blind = 0.0;
  for (std::int64_t w = split.test; w < split.end; ++w) {
    for (std::int64_t i = 0; i < 6; ++i) {
      std::int64_t t = w + series.lags - 1;
      while (series.values[t * 6 + i] == 0.0F) --t;
      if (t < w) ++num_blind;
      for (std::int64_t h = 0; h < series.horizon; ++h) {
        const double truth = series.values[(w + series.lags + h) * 6 + i];
        if (truth == 0.0) continue;
        error += std::abs(truth - series.values[t * 6 + i]);
        count += 1.0;
      }
    }
  }
  ASSERT_GT(num_blind, 0.0);
  Metrics by_name;
  for (const Reference& reference :
       make_problem(dataset, train::problem_options(small_config()))->references()) {
    by_name[reference.name] = reference.test.at("mae");
  }
  EXPECT_FALSE(by_name.contains("last value"));
  EXPECT_NEAR(by_name.at("last observed value"), error / count, 1e-4);
}

TEST(SeriesProblem, ANetworkWithASkipStartsAtTheRidgeRegression) {
  data::Dataset dataset = make_series_data();
  auto& series = std::get<data::SeriesData>(dataset.content);
  // Not a line's to fit exactly.
  for (std::size_t i = 0; i < series.values.size(); i += 5) series.values[i] *= 1.5F;
  for (const bool standardise : {true, false}) {
    series.standardise = standardise;
    train::Config config = small_config();
    config.model.skip = true;
    config.model.readout_layers = standardise ? 2 : 12;  // readout_11 is after readout_9
    const auto problem = make_problem(dataset, train::problem_options(config));
    const train::BuiltModel built = train::build_model(*problem, config);
    train::start_from_data(*problem, built);
    const auto model = built.module;
    model->eval();
    const torch::NoGradGuard no_grad;
    const Reference line = problem->references().back();
    ASSERT_EQ(line.name, "line (ridge)");
    ASSERT_GT(line.test.at("mse"), 0.1);
    const Metrics start = problem->evaluate(*model, Part::kTest);
    for (const char* metric : {"mse", "mae", "mae_3"}) {
      EXPECT_NEAR(start.at(metric), line.test.at(metric), 1e-4) << metric;
    }
  }
}

TEST(SeriesProblem, TakesEachStepOverTheGraphOfItsTime) {
  data::Dataset dataset = make_series_data();
  auto& series = std::get<data::SeriesData>(dataset.content);
  train::Config config = small_config();
  config.data.graph_over_time = true;
  EXPECT_THAT([&] { make_problem(dataset, train::problem_options(config)); },
              ThrowsMessage<base::Error>(HasSubstr("has edges without times")));
  series.changing.graphs = {graph::make_ring(6), graph::make_path(6)};
  for (std::int64_t t = 0; t < series.num_steps; ++t) {
    series.changing.of_step.push_back(static_cast<std::int32_t>(t % 3 % 2));
  }
  const auto problem = make_problem(dataset, train::problem_options(config));
  const Problem::Sample sample = problem->sample(1);
  ASSERT_TRUE(sample.gso.is_sequence());
  ASSERT_EQ(sample.gso.num_steps(), series.lags);
  for (std::int64_t t = 0; t < series.lags; ++t) {
    const bool is_path = (t + 1) % 3 % 2 == 1;
    EXPECT_EQ(sample.gso.at(0, t).num_nonzeros(), is_path ? 16 : 18);
  }
  // Every window of a batch has its own graphs: the loss of many is the mean of the single ones.
  const train::BuiltModel built = train::build_model(*problem, config);
  built.module->eval();
  double sum = 0.0;
  const std::vector<std::int64_t> windows = {0, 1, 2, 5, 9};
  for (const std::int64_t window : windows) {
    sum += problem->loss(*built.module, {&window, 1}).item<double>() / 5.0;
  }
  EXPECT_NEAR(problem->loss(*built.module, windows).item<double>(), sum, 1e-5 * sum);
  config.data.graph_over_time = false;
  const auto fixed = make_problem(dataset, train::problem_options(config));
  EXPECT_TRUE(fixed->sample(1).gso.is_single());
  EXPECT_THAT(
      [&] {
        config.data.graph_over_time = true;
        make_problem(make_board_data(), train::problem_options(config));
      },
      ThrowsMessage<base::Error>(HasSubstr("for series only")));
}

TEST(SeriesProblem, TrainsOnTheValidationPartIfAskedTo) {
  const data::Dataset dataset = make_series_data();
  const data::WindowSplit split = data::window_split(std::get<data::SeriesData>(dataset.content));
  train::Config config = small_config();
  EXPECT_EQ(make_problem(dataset, train::problem_options(config))->num_train(), split.val);
  config.train.on_validation = true;
  EXPECT_EQ(make_problem(dataset, train::problem_options(config))->num_train(), split.test);
  const data::Dataset board = make_board_data();
  EXPECT_THAT([&] { make_problem(board, train::problem_options(config)); },
              ThrowsMessage<base::Error>(HasSubstr("train.on_validation: for series only")));
}

TEST(Problem, PredictionsHaveOneLinePerSample) {
  for (const data::Dataset& dataset : {make_board_data(), make_graphs_data(), make_series_data(),
                                       data::load("properties:diameter:8")}) {
    const auto problem = make_problem(dataset, train::problem_options(small_config()));
    auto model = constant_model(*problem, 0.1F);
    std::int64_t expected = 0;
    if (const auto* nodes = std::get_if<data::NodeData>(&dataset.content)) {
      expected = nodes->graph.num_nodes();
    } else if (const auto* graphs = std::get_if<data::GraphsData>(&dataset.content)) {
      expected = dataset.task == data::Task::kNodeRegression ? graphs->node_ptr.back()
                                                             : graphs->num_graphs();
    } else {
      const auto split = data::window_split(std::get<data::SeriesData>(dataset.content));
      expected = 6 * (split.end - split.test);
    }
    EXPECT_EQ(count_lines(predictions(*problem, model)), expected + 1) << dataset.name;
  }
}

TEST(BuildModel, EveryKindForGraphsLearnsOnThem) {
  const data::Dataset dataset = make_graphs_data();
  for (const auto& [kind, name] : train::kModelKinds) {
    if (kind == train::ModelKind::kGgrnn || kind == train::ModelKind::kGraphSsm) continue;
    train::Config config = small_config();
    config.model.kind = kind;
    const auto problem = make_problem(dataset, train::problem_options(config));
    torch::manual_seed(1);
    const train::BuiltModel built = train::build_model(*problem, config);
    EXPECT_GE(built.num_parameters, run::least_parameters(config)) << name;
    const std::vector<std::int64_t> samples = {0, 1, 2};
    torch::Tensor loss = problem->loss(*built.module, samples);
    loss.backward();
    for (const auto& parameter : built.module->named_parameters()) {
      EXPECT_TRUE(parameter.value().grad().defined()) << name << " " << parameter.key();
    }
  }
}

TEST(BuildModel, RefusesAGcnOnASeries) {
  const data::Dataset dataset = make_series_data();
  train::Config config = small_config();
  config.model.kind = train::ModelKind::kGcn;
  const auto problem = make_problem(dataset, train::problem_options(config));
  EXPECT_THAT([&] { train::build_model(*problem, config); },
              ThrowsMessage<base::Error>(HasSubstr("no temporal mode")));
}

}  // namespace
}  // namespace mpssm::task
