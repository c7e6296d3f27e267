// SPDX-License-Identifier: MIT
// Every plan against the definition, written out in plain loops; gradients against differences of
// it; memory against guards; results for any number of workers against one.
#include "mpssm/engine/recurrence.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/engine/thread_pool.h"
#include "mpssm/graph/generators.h"
#include "mpssm/graph/order.h"

namespace mpssm::engine {
namespace {

using Numbers = std::vector<double>;

Numbers random_numbers(std::int64_t count, std::uint64_t seed, double scale = 1.0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0.0, scale);
  Numbers numbers(static_cast<std::size_t>(count));
  for (double& number : numbers) number = normal(random);
  return numbers;
}

/// Arguments of one problem, in double.
struct Case {
  RecurrenceCall call;
  Numbers input, w_state, initial;

  std::int64_t output_size() const {
    const RecurrenceShape& shape = call.shape;
    return (shape.all_outputs() ? shape.num_steps : 1) * shape.state();
  }
};

std::string describe(const Case& c) {
  return std::string(to_string(c.call.plan)) + (c.call.shape.temporal ? " temporal" : " static") +
         (c.call.shape.all_outputs() ? " all" : " last") + (c.call.has_initial ? " initial" : "") +
         " groups " + std::to_string(c.call.shape.gso.num_groups()) + " hops " +
         std::to_string(c.call.shape.hops_per_step) + " batch " +
         std::to_string(c.call.shape.batch) + " steps " + std::to_string(c.call.shape.num_steps) +
         " channels " + std::to_string(c.call.shape.channels);
}

/// x W of one row.
void times_w(const Case& c, const double* x, double* y) {
  const std::int64_t channels = c.call.shape.channels;
  if (c.call.shape.diagonal) {
    for (std::int64_t j = 0; j < channels; j += 2) {
      const std::complex<double> z =
          std::complex(x[j], x[j + 1]) * std::complex(c.w_state[j], c.w_state[j + 1]);
      y[j] = z.real();
      y[j + 1] = z.imag();
    }
    return;
  }
  const std::vector<std::int64_t> begins = c.call.shape.gso.channel_begins(channels);
  const double* w = c.w_state.data();
  for (std::size_t g = 0; g + 1 < begins.size(); ++g) {
    const std::int64_t width = begins[g + 1] - begins[g];
    for (std::int64_t j = 0; j < width; ++j) {
      double sum = 0.0;
      for (std::int64_t i = 0; i < width; ++i) sum += x[begins[g] + i] * w[i * width + j];
      y[begins[g] + j] = sum;
    }
    w += width * width;
  }
}

/// P Q', written out.
graph::Gso written_out(const graph::LowRankOperator& a) {
  std::vector<std::int64_t> row_ptr = {0};
  std::vector<std::int32_t> col;
  Numbers values;
  for (std::int64_t g = 0; g < a.num_graphs(); ++g) {
    for (std::int64_t i = a.graph_ptr()[g]; i < a.graph_ptr()[g + 1]; ++i) {
      for (std::int64_t j = a.graph_ptr()[g]; j < a.graph_ptr()[g + 1]; ++j) {
        col.push_back(static_cast<std::int32_t>(j));
        values.push_back(0.0);
        for (std::int64_t k = 0; k < a.rank(); ++k) {
          values.back() += a.p()[i * a.rank() + k] * a.q()[j * a.rank() + k];
        }
      }
      row_ptr.push_back(static_cast<std::int64_t>(col.size()));
    }
  }
  return graph::Gso::from_csr(row_ptr, col, values, {a.graph_ptr().begin(), a.graph_ptr().end()});
}

graph::Operators written_out(const graph::Operators& operators) {
  if (!operators.has_low_rank()) return operators;
  std::vector<graph::OperatorGroup> groups;
  for (std::int64_t g = 0; g < operators.num_groups(); ++g) {
    groups.push_back(
        {operators.is_low_rank(g) ? written_out(operators.low_rank(g)) : operators.of_group(g),
         operators.share(g)});
  }
  return graph::Operators(groups);
}

/// x <- A x W, each group of channels with its own A and W.
void hop(const Case& c, Numbers& x, std::int64_t copy, std::int64_t step) {
  const RecurrenceShape& shape = c.call.shape;
  const std::int64_t channels = shape.channels;
  Numbers product(x.size());
  for (std::int64_t i = 0; i < shape.num_nodes(); ++i) {
    times_w(c, &x[i * channels], &product[i * channels]);
  }
  const std::vector<std::int64_t> begins = shape.gso.channel_begins(channels);
  for (std::int64_t g = 0; g < shape.gso.num_groups(); ++g) {
    const auto a = shape.gso.at(copy, step, g).view<double>();
    for (std::int64_t i = 0; i < shape.num_nodes(); ++i) {
      for (std::int64_t j = begins[g]; j < begins[g + 1]; ++j) {
        double sum = 0.0;
        for (std::int64_t e = a.row_ptr[i]; e < a.row_ptr[i + 1]; ++e) {
          sum += a.value[e] * product[a.col[e] * channels + j];
        }
        x[i * channels + j] = sum;
      }
    }
  }
}

/// X(t+1) = A^r X(t) W^r + C(t+1), as it is written.
Numbers definition(const Case& given) {
  Case c = given;
  c.call.shape.gso = written_out(given.call.shape.gso);
  const RecurrenceShape& shape = c.call.shape;
  Numbers output(static_cast<std::size_t>(c.output_size()));
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    Numbers x(static_cast<std::size_t>(shape.block()));
    if (c.call.has_initial) {
      std::copy_n(c.initial.begin() + b * shape.block(), shape.block(), x.begin());
    }
    for (std::int64_t t = 0; t < shape.num_steps; ++t) {
      for (std::int64_t r = 0; r < shape.hops_per_step; ++r) hop(c, x, b, t);
      const double* input =
          c.input.data() + (shape.temporal ? b * shape.num_steps + t : b) * shape.block();
      for (std::int64_t i = 0; i < shape.block(); ++i) x[i] += input[i];
      if (shape.all_outputs()) {
        std::copy(x.begin(), x.end(), output.begin() + (b * shape.num_steps + t) * shape.block());
      }
    }
    if (!shape.all_outputs()) std::copy(x.begin(), x.end(), output.begin() + b * shape.block());
  }
  return output;
}

/// Memory of exactly the size asked for, with a guard behind it, full of numbers that hurt.
class Guarded {
 public:
  explicit Guarded(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    const std::size_t padded = (bytes_ + kGuard + 63) / 64 * 64;
    memory_.reset(static_cast<unsigned char*>(std::aligned_alloc(64, padded)));
    std::memset(memory_.get(), 0xff, bytes_);  // not a number, read as any float
    std::memset(memory_.get() + bytes_, 0x5a, padded - bytes_);
  }
  void* data() const { return memory_.get(); }
  Workspace workspace() const { return {data(), static_cast<std::int64_t>(bytes_)}; }
  bool is_whole() const {
    for (std::size_t i = 0; i < kGuard; ++i) {
      if (memory_.get()[bytes_ + i] != 0x5a) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 256;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::size_t bytes_;
  std::unique_ptr<unsigned char, Free> memory_;
};

template <typename T, typename From>
std::vector<T> as(const std::vector<From>& numbers) {
  return std::vector<T>(numbers.begin(), numbers.end());
}

template <typename T>
struct Result {
  std::vector<T> output, input, w_state, initial, gso_values;
  bool operator==(const Result&) const = default;
};

/// Forward, and backward for the gradient of the output `grad` unless that is empty.
template <typename T>
Result<T> run(const Case& c, const Numbers& grad, const Executor& executor) {
  SCOPED_TRACE(describe(c));
  const RecurrenceCall& call = c.call;
  const std::vector<T> input = as<T>(c.input), w = as<T>(c.w_state), initial = as<T>(c.initial);
  const RecurrenceInputs<T> inputs{input.data(), w.data(),
                                   call.has_initial ? initial.data() : nullptr};
  Result<T> result;
  result.output.assign(static_cast<std::size_t>(c.output_size()), T{-1});
  const Guarded saved(saved_size<T>(call) * static_cast<std::int64_t>(sizeof(T)));
  const Guarded forward_memory(forward_bytes<T>(call, executor.workers()));
  EXPECT_TRUE(forward<T>(call, inputs, result.output.data(), static_cast<T*>(saved.data()),
                         forward_memory.workspace(), executor));
  EXPECT_TRUE(saved.is_whole() && forward_memory.is_whole());
  if (grad.empty()) return result;

  const RecurrenceReads reads = backward_reads(call);
  const RecurrenceKept<T> kept{{reads.input ? input.data() : nullptr, w.data(),
                                reads.initial && call.has_initial ? initial.data() : nullptr},
                               reads.output ? result.output.data() : nullptr,
                               static_cast<T*>(saved.data())};
  const auto room = [](bool wanted, std::size_t size) {
    return std::vector<T>(wanted ? size : 0, T{-1});
  };
  result.input = room(call.wanted.input, input.size());
  result.w_state = room(call.wanted.w_state, w.size());
  result.initial = room(call.wanted.initial, initial.size());
  result.gso_values =
      room(call.wanted.gso_values, static_cast<std::size_t>(call.shape.gso.num_values()));
  const auto pointer = [](std::vector<T>& numbers) {
    return numbers.empty() ? nullptr : numbers.data();
  };
  const Guarded backward_memory(backward_bytes<T>(call, executor.workers()));
  const std::vector<T> typed_grad = as<T>(grad);
  backward<T>(call, kept, typed_grad.data(),
              {pointer(result.input), pointer(result.w_state), pointer(result.initial),
               pointer(result.gso_values)},
              backward_memory.workspace(), executor);
  EXPECT_TRUE(backward_memory.is_whole());
  return result;
}

/// Numbers of a W: one of each group of channels if it is dense.
std::int64_t w_size(const RecurrenceShape& shape) {
  if (shape.diagonal) return shape.channels;
  const std::vector<std::int64_t> begins = shape.gso.channel_begins(shape.channels);
  std::int64_t sum = 0;
  for (std::size_t g = 0; g + 1 < begins.size(); ++g) {
    sum += (begins[g + 1] - begins[g]) * (begins[g + 1] - begins[g]);
  }
  return sum;
}

Case make_case(Plan plan, const graph::Operators& gso, std::int64_t batch, std::int64_t steps,
               std::int64_t channels, bool temporal, Outputs outputs, bool initial) {
  Case c;
  const bool diagonal = plan == Plan::kDiagonal || plan == Plan::kSpectral;
  c.call.plan = plan;
  c.call.shape = {.gso = gso,
                  .batch = batch,
                  .num_steps = steps,
                  .channels = channels,
                  .temporal = temporal,
                  .diagonal = diagonal,
                  .outputs = outputs};
  c.call.has_initial = initial;
  const std::int64_t state = c.call.shape.state();
  c.input = random_numbers((temporal ? steps : 1) * state, 1);
  c.w_state = random_numbers(w_size(c.call.shape), 2,
                             diagonal ? 0.5 : 0.6 / std::sqrt(static_cast<double>(channels)));
  if (initial) c.initial = random_numbers(state, 3);
  return c;
}

/// Every kind of problem that a plan takes.
std::vector<Case> all_cases(Plan plan, const graph::Operators& gso, std::int64_t channels,
                            std::int64_t hops_per_step = 1) {
  std::vector<Case> cases;
  for (const bool temporal : {false, true}) {
    for (const Outputs outputs : {Outputs::kLast, Outputs::kAll}) {
      if (plan == Plan::kDoubling && (temporal || outputs == Outputs::kAll)) continue;
      for (const bool initial : {false, true}) {
        for (const std::int64_t batch : {1, 2}) {
          for (const std::int64_t steps : {1, 2, 7}) {
            cases.push_back(
                make_case(plan, gso, batch, steps, channels, temporal, outputs, initial));
            cases.back().call.shape.hops_per_step = hops_per_step;
          }
        }
      }
    }
  }
  return cases;
}

graph::Gso directed() {
  graph::EdgeList edges;
  edges.num_nodes = 6;
  edges.src = {0, 1, 2, 3, 4, 5, 0, 2};
  edges.dst = {1, 2, 3, 4, 5, 0, 3, 5};
  return graph::make_gso(graph::Graph::from_edges(edges, graph::Direction::kDirected),
                         {.kind = graph::GsoKind::kRandomWalk});
}
graph::Gso undirected() { return graph::make_gso(graph::make_random_connected(9, 16, 5)); }

/// Three groups of channels, one of which has half of them.
graph::Operators in_groups(const graph::Gso& gso, bool symmetric) {
  const auto n = gso.num_nodes();
  const graph::Graph other = graph::make_random_connected(n, n + 3, 8);
  return graph::Operators(
      {{graph::make_gso(other, {.kind = symmetric ? graph::GsoKind::kSymNormalizedNoLoops
                                                  : graph::GsoKind::kRandomWalk})},
       {gso, 2},
       {graph::make_gso(other, {.kind = graph::GsoKind::kIdentity})}});
}

/// Four groups, three of which have entries at the same places, two of these in memory of their
/// own.
graph::Operators in_like_groups(const graph::Gso& gso) {
  const auto times = [&](double factor) {
    std::vector<double> values(gso.values<double>().begin(), gso.values<double>().end());
    for (double& value : values) value *= factor;
    return values;
  };
  return graph::Operators(
      {{gso.with_values(times(-0.5))},
       {gso, 3},
       {graph::Gso::from_csr({gso.row_ptr().begin(), gso.row_ptr().end()},
                             {gso.col().begin(), gso.col().end()}, times(0.75))},
       {graph::make_gso(graph::make_ring(gso.num_nodes()), {.kind = graph::GsoKind::kIdentity})}});
}

graph::LowRankOperator random_factors(std::vector<std::int64_t> graph_ptr, std::int64_t rank) {
  const std::int64_t count = graph_ptr.back() * rank;
  const double scale = 0.7 / std::sqrt(static_cast<double>(graph_ptr[1]));
  return {graph::GsoKind::kCustom, rank, random_numbers(count, 11, scale),
          random_numbers(count, 12, scale), std::move(graph_ptr)};
}

/// Two graphs; a virtual node of each and others of rank 3 stand beside a sparse operator.
graph::Operators beside_low_rank(std::int64_t nodes = 4) {
  const graph::Gso gso = graph::make_gso(graph::make_batch(
      std::vector{graph::make_random_connected(nodes, nodes + 2, 5), graph::make_ring(nodes + 1)}));
  return graph::Operators({{.gso = {}, .low_rank = graph::virtual_node(gso.graph_ptr())},
                           {gso, 2},
                           {.gso = {}, .low_rank = random_factors({0, nodes, 2 * nodes + 1}, 3)}});
}

void expect_near(const Numbers& expected, const Numbers& got, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], tolerance * (1.0 + std::abs(expected[i])))
        << what << " at " << i;
  }
}

/// d <grad, definition> / d numbers, by central differences.
Numbers differences(const Case& c, Numbers Case::*numbers, const Numbers& grad) {
  const auto value = [&](const Case& changed) {
    const Numbers output = definition(changed);
    double sum = 0.0;
    for (std::size_t i = 0; i < output.size(); ++i) sum += grad[i] * output[i];
    return sum;
  };
  constexpr double kStep = 1e-6;
  Numbers result;
  for (std::size_t i = 0; i < (c.*numbers).size(); ++i) {
    Case up = c, down = c;
    (up.*numbers)[i] += kStep;
    (down.*numbers)[i] -= kStep;
    result.push_back((value(up) - value(down)) / (2.0 * kStep));
  }
  return result;
}

class EveryPlan : public ::testing::TestWithParam<Plan> {
 protected:
  static graph::Gso gso() { return GetParam() == Plan::kSpectral ? undirected() : directed(); }
  static graph::Operators groups() { return in_groups(gso(), GetParam() == Plan::kSpectral); }
  static graph::Operators like_groups() { return in_like_groups(gso()); }
  /// With one operator and three, one hop per step and several, as far as the plan has them.
  static std::vector<Case> cases(std::int64_t channels, std::int64_t channels_of_groups) {
    std::vector<Case> all = all_cases(GetParam(), gso(), channels);
    const auto add = [&](const std::vector<Case>& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    add(all_cases(GetParam(), groups(), channels_of_groups));
    add(all_cases(GetParam(), beside_low_rank(), channels_of_groups));
    if (GetParam() == Plan::kDoubling) return all;
    add(all_cases(GetParam(), gso(), channels, 3));
    add(all_cases(GetParam(), groups(), channels_of_groups, 2));
    add(all_cases(GetParam(), like_groups(), channels_of_groups, 2));
    add(all_cases(GetParam(), beside_low_rank(), channels_of_groups, 3));
    return all;
  }
};

TEST_P(EveryPlan, GivesWhatTheDefinitionSays) {
  for (const std::int64_t channels : {2, 18}) {
    for (const Case& c : cases(channels, std::max<std::int64_t>(channels, 8))) {
      expect_near(definition(c), run<double>(c, {}, SerialExecutor()).output, 1e-12, describe(c));
    }
  }
}

TEST_P(EveryPlan, HasTheGradientsOfTheDefinition) {
  for (Case c : cases(4, 8)) {
    c.call.wanted = {.input = true, .w_state = true, .initial = c.call.has_initial};
    const Numbers grad = random_numbers(c.output_size(), 4);
    const Result<double> got = run<double>(c, grad, SerialExecutor());
    expect_near(differences(c, &Case::input, grad), got.input, 1e-6, describe(c) + " input");
    expect_near(differences(c, &Case::w_state, grad), got.w_state, 1e-6, describe(c) + " w");
    expect_near(differences(c, &Case::initial, grad), got.initial, 1e-6, describe(c) + " initial");
  }
}

TEST_P(EveryPlan, GivesEachGradientByItself) {
  for (Case c : cases(4, 8)) {
    const Numbers grad = random_numbers(c.output_size(), 4);
    c.call.wanted = {.input = true, .w_state = true, .initial = c.call.has_initial};
    const Result<double> together = run<double>(c, grad, SerialExecutor());
    c.call.wanted = {.input = true};
    EXPECT_EQ(run<double>(c, grad, SerialExecutor()).input, together.input) << describe(c);
    c.call.wanted = {.w_state = true};
    EXPECT_EQ(run<double>(c, grad, SerialExecutor()).w_state, together.w_state) << describe(c);
    if (!c.call.has_initial) continue;
    c.call.wanted = {.initial = true};
    EXPECT_EQ(run<double>(c, grad, SerialExecutor()).initial, together.initial) << describe(c);
  }
}

TEST_P(EveryPlan, HasTheSameBitsOnAnyNumberOfWorkers) {
  // Large enough for several workers and, with 40 channels, for several slices and a padded one.
  const bool sequences = GetParam() != Plan::kDoubling;
  const bool spectral = GetParam() == Plan::kSpectral;  // decomposes each of them
  const graph::Gso large = graph::make_gso(spectral ? graph::make_random_connected(450, 900, 5)
                                                    : graph::make_random_connected(1500, 3000, 5));
  const graph::Operators three = in_groups(large, spectral);
  const graph::Operators alike = in_like_groups(large);
  // Enough for several pieces of a sum over all nodes.
  const graph::Operators low_rank = beside_low_rank(spectral ? 300 : 5000);
  for (const auto& [operators, temporal] :
       std::vector<std::pair<graph::Operators, bool>>{{large, false},
                                                      {large, sequences},
                                                      {three, false},
                                                      {three, sequences},
                                                      {alike, false},
                                                      {alike, sequences},
                                                      {low_rank, false},
                                                      {low_rank, sequences}}) {
    Case c = make_case(GetParam(), operators, 2, 5, 40, temporal,
                       temporal ? Outputs::kAll : Outputs::kLast, true);
    if (temporal && !operators.is_single()) c.call.shape.hops_per_step = 2;
    c.call.wanted = {.input = true,
                     .w_state = true,
                     .initial = true,
                     .gso_values = operators.factor_group() >= 0};
    const Numbers grad = random_numbers(c.output_size(), 4);
    const Result<float> one = run<float>(c, grad, SerialExecutor());
    for (const std::int64_t workers : {2, 3, 7}) {
      EXPECT_TRUE(run<float>(c, grad, ThreadPool(workers)) == one)
          << describe(c) << " on " << workers;
    }
  }
}

/// The numbers of some channels of an array [..., channels].
template <typename T>
std::vector<T> channels_of(const std::vector<T>& all, std::int64_t channels, std::int64_t begin,
                           std::int64_t end) {
  std::vector<T> part;
  for (std::size_t row = 0; row < all.size(); row += channels) {
    part.insert(part.end(), all.begin() + row + begin, all.begin() + row + end);
  }
  return part;
}

TEST_P(EveryPlan, GivesEachGroupOfChannelsTheBitsItHasAlone) {
  for (const auto& [three, channels] :
       std::vector<std::pair<graph::Operators, std::int64_t>>{{groups(), 8},
                                                              {groups(), 70},
                                                              {groups(), 144},
                                                              {like_groups(), 12},
                                                              {like_groups(), 70},
                                                              {like_groups(), 144},
                                                              {beside_low_rank(), 70}}) {
    for (Case c : all_cases(GetParam(), three, channels)) {
      const std::vector<std::int64_t> begins = three.channel_begins(channels);
      c.call.wanted = {.input = true, .w_state = true, .initial = c.call.has_initial};
      const Numbers grad = random_numbers(c.output_size(), 4);
      for (const Precision precision : {Precision::kFloat32, Precision::kBf16}) {
        c.call.shape.precision = precision;
        const Result<float> together = run<float>(c, grad, SerialExecutor());
        std::int64_t w_begin = 0;
        for (std::int64_t g = 0; g < three.num_groups(); ++g) {
          const auto part = [&](const auto& all) {
            return channels_of(all, channels, begins[g], begins[g + 1]);
          };
          Case alone = c;
          alone.call.shape.gso = three.alone(g);
          alone.call.shape.channels = begins[g + 1] - begins[g];
          alone.input = part(c.input);
          alone.initial = part(c.initial);
          const std::int64_t w_end = w_begin + w_size(alone.call.shape);
          alone.w_state.assign(c.w_state.begin() + w_begin, c.w_state.begin() + w_end);
          const Result<float> got = run<float>(alone, part(grad), SerialExecutor());
          EXPECT_EQ(got.output, part(together.output)) << describe(c) << " group " << g;
          EXPECT_EQ(got.input, part(together.input)) << describe(c) << " group " << g;
          EXPECT_EQ(got.initial, part(together.initial)) << describe(c) << " group " << g;
          EXPECT_EQ(got.w_state, std::vector<float>(together.w_state.begin() + w_begin,
                                                    together.w_state.begin() + w_end))
              << describe(c) << " group " << g;
          w_begin = w_end;
        }
      }
    }
  }
}

// A sum over more nodes than a float could count by ones.
TEST(EngineRecurrence, AVirtualNodeIsTheMeanOfItsGraph) {
  constexpr std::int64_t kNodes = 40'000, kSteps = 6;
  const graph::Operators mean(
      {{.gso = {}, .low_rank = graph::virtual_node(std::vector<std::int64_t>{0, kNodes})}});
  Case c = make_case(Plan::kDiagonal, mean, 1, kSteps, 2, false, Outputs::kLast, false);
  c.w_state = {0.5, 0.0};
  double sums[] = {0.0, 0.0};
  for (std::size_t i = 0; i < c.input.size(); ++i) sums[i % 2] += c.input[i] += 1.0;
  const std::vector<float> got = run<float>(c, {}, SerialExecutor()).output;
  // X(T) = C + mean(C) (sigma + ... + sigma^(T-1))
  const double weight = 1.0 - std::pow(0.5, kSteps - 1);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], c.input[i] + weight * sums[i % 2] / kNodes, 2e-6);
  }
}

TEST_P(EveryPlan, GoesOnFromAStateAsIfItHadNotStopped) {
  if (GetParam() == Plan::kDoubling) return;  // has no sequences
  for (const std::int64_t hops : {1, 3}) {
    Case whole = make_case(GetParam(), hops == 1 ? beside_low_rank() : groups(), 1, 7, 8, true,
                           Outputs::kAll, true);
    whole.call.shape.hops_per_step = hops;
    const Numbers expected = run<double>(whole, {}, SerialExecutor()).output;
    const std::int64_t block = whole.call.shape.block();
    Numbers pieces;
    for (const auto& [begin, end] : {std::pair{0, 2}, std::pair{2, 3}, std::pair{3, 7}}) {
      Case piece = whole;
      piece.call.shape.num_steps = end - begin;
      piece.input.assign(whole.input.begin() + begin * block, whole.input.begin() + end * block);
      if (begin > 0) piece.initial.assign(pieces.end() - block, pieces.end());
      const Numbers output = run<double>(piece, {}, SerialExecutor()).output;
      pieces.insert(pieces.end(), output.begin(), output.end());
    }
    expect_near(expected, pieces, 1e-12, describe(whole));
  }
}

INSTANTIATE_TEST_SUITE_P(Recurrence, EveryPlan,
                         ::testing::Values(Plan::kStepwise, Plan::kDoubling, Plan::kDiagonal,
                                           Plan::kSpectral),
                         [](const auto& plan) { return std::string(to_string(plan.param)); });

// Sums over the entries of a row keep their order, so only a sum over the nodes may round
// otherwise.
TEST(EngineRecurrence, GivesTheSameBitsInAnyOrderOfItsNodes) {
  const graph::Graph graph = graph::make_random_connected(30, 50, 5);
  const graph::Gso walk = graph::make_gso(graph, {.kind = graph::GsoKind::kRandomWalk});
  for (const graph::Gso& gso : {directed(), undirected(), walk}) {
    const auto& nodes = graph::node_order(gso).node;
    ASSERT_FALSE(std::is_sorted(nodes.begin(), nodes.end()));
    for (const Plan plan : {Plan::kDiagonal, Plan::kDoubling}) {
      for (const std::int64_t channels : {2, 18, 64}) {
        for (Case c : all_cases(plan, gso, channels)) {
          c.call.wanted = {.input = true, .w_state = true, .initial = c.call.has_initial};
          const Numbers grad = random_numbers(c.output_size(), 4);
          c.call.shape.ordering = Ordering::kNever;
          Result<float> as_given = run<float>(c, grad, SerialExecutor());
          c.call.shape.ordering = Ordering::kAlways;
          Result<float> ordered = run<float>(c, grad, SerialExecutor());
          expect_near(as<double>(as_given.w_state), as<double>(ordered.w_state), 1e-5, describe(c));
          as_given.w_state = ordered.w_state = {};
          EXPECT_TRUE(ordered == as_given) << describe(c);
        }
      }
    }
  }
}

// A shuffled grid, large enough to be ordered unasked: on any number of workers alike, though
// slices are narrower on more of them.
TEST(EngineRecurrence, OrdersALargeGraphWhateverTheWorkers) {
  constexpr std::int64_t kSide = 260;
  graph::EdgeList edges;
  edges.num_nodes = kSide * kSide;
  const auto name = [&](std::int64_t i) { return i * 7919 % edges.num_nodes; };  // far apart
  for (std::int64_t i = 0; i + kSide < edges.num_nodes; ++i) {
    for (const std::int64_t step : {std::int64_t{1}, kSide}) {
      edges.src.push_back(name(i));
      edges.dst.push_back(name(i + step));
    }
  }
  const graph::Gso gso =
      graph::make_gso(graph::Graph::from_edges(edges, graph::Direction::kUndirected));
  Case c = make_case(Plan::kDiagonal, gso, 1, 17, 4, false, Outputs::kLast, false);
  c.call.wanted = {.w_state = true};
  const Numbers grad = random_numbers(c.output_size(), 4);
  const Result<float> one = run<float>(c, grad, SerialExecutor());
  EXPECT_TRUE(run<float>(c, grad, ThreadPool(2)) == one);
  c.call.shape.ordering = Ordering::kAlways;
  EXPECT_TRUE(run<float>(c, grad, SerialExecutor()) == one);
  c.call.shape.ordering = Ordering::kNever;
  EXPECT_FALSE(run<float>(c, grad, SerialExecutor()).w_state == one.w_state);
}

// A grid in order, larger than a cache: hops go through it in waves, which changes the order of
// sums over the nodes alone.
TEST(EngineRecurrence, TakesHopsThroughALargeGraphInWaves) {
  constexpr std::int64_t kSide = 260;
  graph::EdgeList edges;
  edges.num_nodes = kSide * kSide;
  for (std::int64_t i = 0; i + kSide < edges.num_nodes; ++i) {
    for (const std::int64_t step : {std::int64_t{1}, kSide}) {
      edges.src.push_back(i);
      edges.dst.push_back(i + step);
    }
  }
  for (const auto direction : {graph::Direction::kUndirected, graph::Direction::kDirected}) {
    const graph::Gso gso = graph::make_gso(graph::Graph::from_edges(edges, direction),
                                           {.kind = graph::GsoKind::kRandomWalk});
    for (const bool has_initial : {false, true}) {
      for (const Plan plan : {Plan::kDiagonal, Plan::kDoubling}) {
        Case c = make_case(plan, gso, 1, 11, 4, false, Outputs::kLast, has_initial);
        c.call.wanted = {.input = true, .w_state = true, .initial = has_initial};
        const Numbers grad = random_numbers(c.output_size(), 4);
        const Result<float> in_waves = run<float>(c, grad, SerialExecutor());
        EXPECT_TRUE(run<float>(c, grad, ThreadPool(2)) == in_waves) << describe(c);
        c.call.shape.ordering = Ordering::kNever;
        Result<float> hop_by_hop = run<float>(c, grad, SerialExecutor());
        expect_near(as<double>(in_waves.w_state), as<double>(hop_by_hop.w_state), 1e-5,
                    describe(c));
        hop_by_hop.w_state = in_waves.w_state;
        EXPECT_TRUE(hop_by_hop == in_waves) << describe(c);
      }
    }
  }
}

/// d <grad, definition> / d A's entries, by central differences.
Numbers entry_differences(const Case& c, const Numbers& grad) {
  const auto values = c.call.shape.gso.only().values<double>();
  Numbers expected;
  for (std::size_t e = 0; e < values.size(); ++e) {
    double sum = 0.0;
    for (const double sign : {1.0, -1.0}) {
      Numbers moved(values.begin(), values.end());
      moved[e] += sign * 1e-6;
      Case changed = c;
      changed.call.shape.gso = c.call.shape.gso.only().with_values(moved);
      const Numbers output = definition(changed);
      for (std::size_t i = 0; i < output.size(); ++i) sum += sign * grad[i] * output[i];
    }
    expected.push_back(sum / 2e-6);
  }
  return expected;
}

/// d <grad, definition> / d factors of low rank, by central differences.
Numbers factor_differences(const Case& c, const Numbers& grad) {
  const graph::Operators& operators = c.call.shape.gso;
  const graph::LowRankOperator& a = operators.low_rank(operators.factor_group());
  Numbers factors(a.p().begin(), a.p().end());
  factors.insert(factors.end(), a.q().begin(), a.q().end());
  Numbers expected;
  for (std::size_t e = 0; e < factors.size(); ++e) {
    double sum = 0.0;
    for (const double sign : {1.0, -1.0}) {
      Numbers moved = factors;
      moved[e] += sign * 1e-6;
      Case changed = c;
      changed.call.shape.gso = operators.with_factors(moved);
      const Numbers output = definition(changed);
      for (std::size_t i = 0; i < output.size(); ++i) sum += sign * grad[i] * output[i];
    }
    expected.push_back(sum / 2e-6);
  }
  return expected;
}

TEST_P(EveryPlan, HasTheGradientOfFactorsOfLowRank) {
  for (const std::int64_t hops : {1, 2}) {
    if (hops > 1 && GetParam() == Plan::kDoubling) continue;
    for (Case c : all_cases(GetParam(), beside_low_rank(), 8, hops)) {
      if (c.call.shape.num_steps == 2) continue;  // as many as can fail
      c.call.wanted = {.gso_values = true};
      const Numbers grad = random_numbers(c.output_size(), 4);
      const Numbers alone = run<double>(c, grad, SerialExecutor()).gso_values;
      expect_near(factor_differences(c, grad), alone, 1e-6, describe(c));
      c.call.wanted = {.input = true, .w_state = true, .initial = c.call.has_initial};
      Result<double> others = run<double>(c, grad, SerialExecutor());
      c.call.wanted.gso_values = true;
      others.gso_values = alone;
      EXPECT_TRUE(run<double>(c, grad, SerialExecutor()) == others) << describe(c);
    }
  }
}

class PlanOfEntries : public ::testing::TestWithParam<Plan> {};

TEST_P(PlanOfEntries, HasTheGradientOfTheEntries) {
  for (const bool diagonal : {GetParam() == Plan::kDiagonal, true}) {
    for (Case c : all_cases(GetParam(), directed(), 4)) {
      c.call.shape.diagonal = diagonal;
      c.call.wanted = {.gso_values = true};
      const Numbers grad = random_numbers(c.output_size(), 4);
      const Numbers alone = run<double>(c, grad, SerialExecutor()).gso_values;
      expect_near(entry_differences(c, grad), alone, 1e-6, describe(c));
      c.call.wanted = {.input = true, .w_state = true, .initial = c.call.has_initial};
      Result<double> others = run<double>(c, grad, SerialExecutor());
      c.call.wanted.gso_values = true;
      others.gso_values = alone;
      EXPECT_TRUE(run<double>(c, grad, SerialExecutor()) == others) << describe(c);
    }
  }
}

// As many steps as make stretches of one and of several states, whole and broken off.
TEST_P(PlanOfEntries, HasItForEveryNumberOfSteps) {
  for (std::int64_t steps = 1; steps <= 18; ++steps) {
    for (const bool temporal : {false, true}) {
      Case c = make_case(GetParam(), directed(), 1, steps, 4, temporal, Outputs::kLast, false);
      c.call.wanted = {.gso_values = true};
      const Numbers grad = random_numbers(c.output_size(), 4);
      expect_near(entry_differences(c, grad), run<double>(c, grad, SerialExecutor()).gso_values,
                  1e-6, describe(c));
    }
  }
}

TEST_P(PlanOfEntries, HasTheSameBitsOfThemOnAnyNumberOfWorkers) {
  const graph::Gso large = graph::make_gso(graph::make_random_connected(1500, 3000, 5));
  for (const auto& [channels, outputs] : {std::pair(40, Outputs::kLast), {6, Outputs::kAll}}) {
    Case c = make_case(GetParam(), large, 2, 5, channels, true, outputs, true);
    c.call.wanted = {.input = true, .w_state = true, .initial = true, .gso_values = true};
    const Numbers grad = random_numbers(c.output_size(), 4);
    const Result<float> one = run<float>(c, grad, SerialExecutor());
    for (const std::int64_t workers : {2, 7}) {
      EXPECT_TRUE(run<float>(c, grad, ThreadPool(workers)) == one)
          << describe(c) << " on " << workers;
    }
  }
}

/// Three graphs on 6 nodes: edges appear, vanish, and change their weight.
graph::Operators changing(std::int64_t copies, std::int64_t steps, bool grouped) {
  std::vector<graph::Operators> operators = {directed()};
  for (const double weight : {0.5, 2.0}) {
    graph::EdgeList edges;
    edges.num_nodes = 6;
    edges.src = {0, 1, 2, 4, 5};
    edges.dst = {1, 0, 3, 5, 2};
    edges.weight = {1.0, weight, 1.0, 3.0 * weight, 1.0};
    operators.push_back(
        graph::make_gso(graph::Graph::from_edges(edges, graph::Direction::kDirected)));
  }
  if (grouped) {
    for (graph::Operators& each : operators) each = in_groups(each.only(), false);
  }
  std::vector<std::int32_t> index;
  for (std::int64_t i = 0; i < copies * steps; ++i) {
    index.push_back(static_cast<std::int32_t>(i * i % 7 % 3));
  }
  return graph::Operators::sequence(operators, index, steps);
}

TEST_P(PlanOfEntries, TakesASequenceOfGraphs) {
  for (const auto& [diagonal, grouped] : {std::pair(GetParam() == Plan::kDiagonal, false),
                                          {true, false},
                                          {GetParam() == Plan::kDiagonal, true}}) {
    const std::int64_t channels = grouped ? 8 : 4;
    const graph::Operators like = changing(1, 1, grouped).largest();
    for (Case c : all_cases(GetParam(), like, channels, grouped ? 2 : 1)) {
      const RecurrenceShape& shape = c.call.shape;
      c.call.shape.diagonal = diagonal;
      if (diagonal) c.w_state.resize(static_cast<std::size_t>(channels));
      for (const std::int64_t copies : {std::int64_t{1}, shape.batch}) {
        c.call.shape.gso = changing(copies, shape.num_steps, grouped);
        c.call.wanted = {.input = true, .w_state = true, .initial = c.call.has_initial};
        const Numbers grad = random_numbers(c.output_size(), 4);
        const Result<double> got = run<double>(c, grad, SerialExecutor());
        expect_near(definition(c), got.output, 1e-12, describe(c));
        expect_near(differences(c, &Case::input, grad), got.input, 1e-6, describe(c) + " input");
        expect_near(differences(c, &Case::w_state, grad), got.w_state, 1e-6, describe(c) + " w");
        expect_near(differences(c, &Case::initial, grad), got.initial, 1e-6,
                    describe(c) + " initial");
      }
    }
  }
}

TEST_P(PlanOfEntries, HasTheSameBitsOfASequenceOnAnyNumberOfWorkers) {
  std::vector<graph::Operators> operators;
  for (const std::uint64_t seed : {5, 6}) {
    operators.push_back(
        in_groups(graph::make_gso(graph::make_random_connected(1500, 3000, seed)), false));
  }
  Case c = make_case(GetParam(), operators[0], 2, 5, 40, true, Outputs::kAll, true);
  c.call.shape.gso = graph::Operators::sequence(operators, {0, 1, 1, 0, 1, 1, 0, 1, 0, 0}, 5);
  c.call.wanted = {.input = true, .w_state = true, .initial = true};
  const Numbers grad = random_numbers(c.output_size(), 4);
  const Result<float> one = run<float>(c, grad, SerialExecutor());
  for (const std::int64_t workers : {2, 3, 7}) {
    EXPECT_TRUE(run<float>(c, grad, ThreadPool(workers)) == one) << describe(c) << workers;
  }
}

INSTANTIATE_TEST_SUITE_P(Recurrence, PlanOfEntries,
                         ::testing::Values(Plan::kStepwise, Plan::kDiagonal),
                         [](const auto& plan) { return std::string(to_string(plan.param)); });

// Four times the steps in about twice the memory, where the loop keeps every state.
TEST(EngineRecurrence, EntriesOfPlanDiagonalNeedTheRootOfTheStepsInMemory) {
  const graph::Gso gso = graph::make_gso(graph::make_random_connected(500, 900, 5));
  const auto bytes = [&](std::int64_t hops) {
    Case c = make_case(Plan::kDiagonal, gso, 1, hops + 1, 64, false, Outputs::kLast, false);
    c.call.wanted = {.input = true, .w_state = true, .gso_values = true};
    EXPECT_EQ(saved_size<float>(c.call), 0);
    return backward_bytes<float>(c.call, 1);
  };
  EXPECT_LE(bytes(4096), 2 * bytes(1024));
  EXPECT_LE(bytes(1024), 80 * 500 * 16 * 4);  // slices of 16 lanes
}

TEST(EngineRecurrence, DoublingSaysThatItsNumbersLeaveTheRange) {
  // A^16 is huge, W^16 tiny, their product neither.
  const graph::Gso adjacency = graph::make_gso(graph::make_random_connected(40, 700, 1),
                                               {.kind = graph::GsoKind::kAdjacency});
  Case c = make_case(Plan::kDoubling, adjacency, 1, 33, 2, false, Outputs::kLast, false);
  c.w_state = {0.01, 0.0, 0.0, 0.01};
  const std::vector<float> input = as<float>(c.input), w = as<float>(c.w_state);
  std::vector<float> output(static_cast<std::size_t>(c.output_size()));
  const Guarded memory(forward_bytes<float>(c.call, 1));
  EXPECT_FALSE(forward<float>(c.call, {input.data(), w.data(), nullptr}, output.data(), nullptr,
                              memory.workspace(), SerialExecutor()));
}

TEST(EngineRecurrence, RefusesAWorkspaceOfAnotherCall) {
  const Case c = make_case(Plan::kDiagonal, directed(), 1, 3, 4, false, Outputs::kLast, false);
  Numbers output(static_cast<std::size_t>(c.output_size()));
  const Guarded memory(forward_bytes<double>(c.call, 1) - 64);
  EXPECT_THROW((void)forward<double>(c.call, {c.input.data(), c.w_state.data(), nullptr},
                                     output.data(), nullptr, memory.workspace(), SerialExecutor()),
               std::length_error);
}

TEST(EngineRecurrence, TrainsADiagonalModelInTheMemoryOfOneStep) {
  const graph::Gso gso = graph::make_gso(graph::make_random_connected(500, 900, 5));
  const auto bytes = [&](std::int64_t steps) {
    Case c = make_case(Plan::kDiagonal, gso, 1, steps, 32, false, Outputs::kLast, false);
    c.call.wanted = {.input = true, .w_state = true};
    return forward_bytes<float>(c.call, 2) + backward_bytes<float>(c.call, 2) +
           saved_size<float>(c.call);
  };
  EXPECT_EQ(bytes(5000), bytes(50));
}

// ---- bfloat16 -----------------------------------------------------------------------------------

/// |got - expected| over |expected|, both as vectors.
double relative_error(const Numbers& expected, const std::vector<float>& got) {
  double error = 0.0, size = 0.0;
  EXPECT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(got[i] - expected[i], 2);
    size += std::pow(expected[i], 2);
  }
  return size == 0.0 ? std::sqrt(error) : std::sqrt(error / size);
}

class InBf16 : public ::testing::TestWithParam<Plan> {
 protected:
  static graph::Gso gso() { return directed(); }
};

// A rounding loses up to 2^-8 of a number, and half as much on average. Values and gradients of up
// to seven steps pass some ten of them one after the other, at random: 2^-9 sqrt(10) is 0.6 %. That
// of a dense W is the same at every step: 7 2^-9 is 1.4 %. So 3 %, with sums that cancel in it.
TEST_P(InBf16, IsFloat32WithinTheErrorOfItsRoundings) {
  for (const std::int64_t channels : {2, 18, 64}) {
    for (Case c : all_cases(GetParam(), gso(), channels)) {
      SCOPED_TRACE(describe(c));
      c.call.wanted = {.input = true, .w_state = true, .initial = c.call.has_initial};
      const Numbers grad = random_numbers(c.output_size(), 4);
      const Result<double> exact = run<double>(c, grad, SerialExecutor());
      c.call.shape.precision = Precision::kBf16;
      const Result<float> got = run<float>(c, grad, SerialExecutor());
      EXPECT_LT(relative_error(exact.output, got.output), 0.03);
      EXPECT_LT(relative_error(exact.input, got.input), 0.03);
      EXPECT_LT(relative_error(exact.w_state, got.w_state), 0.03);
      EXPECT_LT(relative_error(exact.initial, got.initial), 0.03);
      if (c.call.shape.num_steps < 7 || !runs_in_bf16(c.call)) continue;
      EXPECT_GT(relative_error(exact.output, got.output), 1e-5) << "nothing was rounded";
    }
  }
}

TEST_P(InBf16, HasTheSameBitsOnAnyNumberOfWorkers) {
  const graph::Gso large = graph::make_gso(graph::make_random_connected(1500, 3000, 5));
  for (const std::int64_t channels : {40, 136}) {
    for (const bool initial : {false, true}) {
      Case c = make_case(GetParam(), large, 2, 6, channels, false, Outputs::kLast, initial);
      c.call.shape.precision = Precision::kBf16;
      c.call.wanted = {.input = true, .w_state = true, .initial = initial};
      const Numbers grad = random_numbers(c.output_size(), 4);
      const Result<float> one = run<float>(c, grad, SerialExecutor());
      for (const std::int64_t workers : {2, 3, 7}) {
        EXPECT_TRUE(run<float>(c, grad, ThreadPool(workers)) == one)
            << describe(c) << " on " << workers;
      }
    }
  }
}

TEST_P(InBf16, GivesEachGradientByItself) {
  for (Case c : all_cases(GetParam(), gso(), 18)) {
    const Numbers grad = random_numbers(c.output_size(), 4);
    c.call.shape.precision = Precision::kBf16;
    c.call.wanted = {.input = true, .w_state = true, .initial = c.call.has_initial};
    const Result<float> together = run<float>(c, grad, SerialExecutor());
    c.call.wanted = {.input = true};
    EXPECT_EQ(run<float>(c, grad, SerialExecutor()).input, together.input) << describe(c);
    c.call.wanted = {.w_state = true};
    EXPECT_EQ(run<float>(c, grad, SerialExecutor()).w_state, together.w_state) << describe(c);
  }
}

INSTANTIATE_TEST_SUITE_P(Recurrence, InBf16,
                         ::testing::Values(Plan::kStepwise, Plan::kDoubling, Plan::kDiagonal),
                         [](const auto& plan) { return std::string(to_string(plan.param)); });

// What has no form in bfloat16 is float32, to the bit.
TEST(EngineRecurrence, InBf16SeriesAndModesStayInFloat32) {
  for (const Plan plan : {Plan::kDiagonal, Plan::kSpectral}) {
    for (Case c : all_cases(plan, undirected(), 18)) {
      c.call.shape.precision = Precision::kBf16;
      if (runs_in_bf16(c.call)) continue;
      c.call.wanted = {.input = true, .w_state = true, .initial = c.call.has_initial};
      const Numbers grad = random_numbers(c.output_size(), 4);
      const Result<float> got = run<float>(c, grad, SerialExecutor());
      c.call.shape.precision = Precision::kFloat32;
      EXPECT_TRUE(run<float>(c, grad, SerialExecutor()) == got) << describe(c);
    }
  }
}

// A^16 is huge, sigma^16 tiny.
TEST(EngineRecurrence, DiagonalInBf16SaysThatItsNumbersLeaveTheRange) {
  const graph::Gso adjacency = graph::make_gso(graph::make_random_connected(40, 700, 1),
                                               {.kind = graph::GsoKind::kAdjacency});
  Case c = make_case(Plan::kDiagonal, adjacency, 1, 33, 2, false, Outputs::kLast, false);
  c.call.shape.precision = Precision::kBf16;
  c.w_state = {0.01, 0.0};
  const std::vector<float> input = as<float>(c.input), w = as<float>(c.w_state);
  std::vector<float> output(static_cast<std::size_t>(c.output_size()));
  const Guarded memory(forward_bytes<float>(c.call, 1));
  EXPECT_FALSE(forward<float>(c.call, {input.data(), w.data(), nullptr}, output.data(), nullptr,
                              memory.workspace(), SerialExecutor()));
}

// sigma near 1 and a thousand steps: X grows to hundreds of times C. A loop that rounds X at every
// step would stop growing where C is half the distance between two numbers, at 256 C.
TEST(EngineRecurrence, InBf16DoesNotStandStillAfterManySteps) {
  const graph::Gso gso = graph::make_gso(graph::make_random_connected(60, 100, 5));
  for (const std::int64_t steps : {100, 1000}) {
    Case c = make_case(Plan::kDiagonal, gso, 1, steps, 8, false, Outputs::kLast, false);
    for (std::size_t i = 0; i < c.w_state.size(); i += 2) {
      c.w_state[i] = 0.9995;
      c.w_state[i + 1] = 0.0;
    }
    for (double& number : c.input) number = std::abs(number);
    c.call.wanted = {.input = true, .w_state = true};
    Numbers grad = random_numbers(c.output_size(), 4);
    for (double& number : grad) number = std::abs(number);
    const Result<double> exact = run<double>(c, grad, SerialExecutor());
    c.call.shape.precision = Precision::kBf16;
    const Result<float> got = run<float>(c, grad, SerialExecutor());
    EXPECT_LT(relative_error(exact.output, got.output), 0.1) << steps;
    EXPECT_LT(relative_error(exact.input, got.input), 0.1) << steps;
    EXPECT_LT(relative_error(exact.w_state, got.w_state), 0.1) << steps;
  }
}

TEST(EngineRecurrence, KeepsHalfAsMuchInBf16) {
  const graph::Gso gso = graph::make_gso(graph::make_random_connected(500, 900, 5));
  for (const Plan plan : {Plan::kDoubling, Plan::kDiagonal}) {
    Case c = make_case(plan, gso, 1, 17, 64, false, Outputs::kLast, false);
    c.call.wanted = {.input = true, .w_state = true};
    const auto kept = [&] {
      return saved_size<float>(c.call) + (backward_reads(c.call).input ? c.call.shape.state() : 0);
    };
    const std::int64_t in_float = kept();
    c.call.shape.precision = Precision::kBf16;
    EXPECT_EQ(2 * kept(), in_float) << to_string(plan);
  }
}

TEST(EngineRecurrence, RefusesBf16InDouble) {
  Case c = make_case(Plan::kDiagonal, directed(), 1, 3, 4, false, Outputs::kLast, false);
  c.call.shape.precision = Precision::kBf16;
  EXPECT_THROW(forward_bytes<double>(c.call, 1), std::invalid_argument);
}

TEST(EngineRecurrence, OnlyGradientsOfEveryStepTakeASliceOfTheirOwn) {
  constexpr std::int64_t kNodes = 50;
  RecurrenceCall call{.plan = Plan::kDiagonal,
                      .shape = {.gso = graph::make_gso(graph::make_ring(kNodes)),
                                .num_steps = 5,
                                .channels = 32,
                                .diagonal = true},
                      .wanted = {.input = true, .w_state = true}};
  const std::int64_t last = backward_bytes<float>(call, 1);
  call.shape.outputs = Outputs::kAll;
  constexpr std::int64_t kSliceBytes = kNodes * 32 * 4;
  EXPECT_EQ(backward_bytes<float>(call, 1) - last, kSliceBytes);
}

}  // namespace
}  // namespace mpssm::engine
