// SPDX-License-Identifier: MIT
#include "bench/roofs.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fmt/core.h>
#include <new>
#include <set>
#include <stdexcept>
#include <sys/mman.h>

#include "mpssm/base/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/roofs.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mpssm::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Chains: more than a core has multiply-adds in flight, fewer than the registers of any target.
inline constexpr int kChains = 12;
// Sums: enough to hide the latency of an addition.
inline constexpr int kSums = 8;

HWY_INLINE double lane_sum(V v) { return static_cast<double>(hn::GetLane(hn::SumOfLanes(D(), v))); }

template <int kCount>
HWY_INLINE double total(const V (&sums)[kCount]) {
  double all = 0.0;
  for (const V& sum : sums) all += lane_sum(sum);
  return all;
}

/// x = x / 2 + 1 in every lane of every chain, which tends to 2. Returns the sum over lanes.
double fma_loop(std::int64_t turns) {
  const D d;
  const V half = hn::Set(d, 0.5F);
  const V one = hn::Set(d, 1.0F);
  V x[kChains];
  for (V& chain : x) chain = hn::Zero(d);
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    for (int i = 0; i < kChains; ++i) x[i] = hn::MulAdd(x[i], half, one);
  }
  return total(x);
}

double fma_lanes() { return static_cast<double>(kChains) * static_cast<double>(hn::Lanes(D())); }

/// count: a multiple of kSums vectors.
double read_loop(const float* HWY_RESTRICT data, std::int64_t count) {
  const D d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V sums[kSums];
  for (V& sum : sums) sum = hn::Zero(d);
  for (std::int64_t i = 0; i < count; i += kSums * lanes) {
    for (int s = 0; s < kSums; ++s) sums[s] = hn::Add(sums[s], hn::Load(d, data + i + s * lanes));
  }
  return total(sums);
}

/// `index` has `ahead` entries more than `count`, which is a multiple of kSums.
double gather_loop(const float* HWY_RESTRICT data, std::int64_t row_floats,
                   const std::int32_t* HWY_RESTRICT index, std::int64_t count, std::int64_t ahead) {
  constexpr std::int64_t kPiece = kGatherBytes / static_cast<std::int64_t>(sizeof(float));
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(float));
  constexpr int kVectors =
      static_cast<int>(kPiece / std::min<std::int64_t>(hn::MaxLanes(D()), kPiece));
  constexpr int kRows = kSums > kVectors ? kSums / kVectors : 1;  // that are read side by side
  const D d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V sums[kRows][kVectors];
  for (auto& row : sums) {
    for (V& sum : row) sum = hn::Zero(d);
  }
  for (std::int64_t i = 0; i < count; i += kRows) {
    const float* row[kRows];
    for (int r = 0; r < kRows; ++r) {
      row[r] = data + index[i + r] * row_floats;
      if (ahead == 0) continue;
      const float* later = data + index[i + r + ahead] * row_floats;
      for (std::int64_t at = 0; at < row_floats; at += kLine) hwy::Prefetch(later + at);
    }
    for (std::int64_t at = 0; at < row_floats; at += kPiece) {
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
          sums[r][v] = hn::Add(sums[r][v], hn::Load(d, row[r] + at + v * lanes));
        }
      }
    }
  }
  double all = 0.0;
  for (const auto& row : sums) all += total(row);
  return all;
}

}  // namespace mpssm::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::bench {
namespace {

HWY_EXPORT(fma_loop);
HWY_EXPORT(fma_lanes);
HWY_EXPORT(read_loop);
HWY_EXPORT(gather_loop);

/// Floats that are all 1, so that a sum says how many were read.
class Ones {
 public:
  explicit Ones(std::int64_t count) : bytes_(rounded(count * 4)), count_(count) {
    data_ = static_cast<float*>(std::aligned_alloc(kHugePage, bytes_));
    if (data_ == nullptr) throw std::bad_alloc();
    madvise(data_, bytes_, MADV_HUGEPAGE);  // a wish: without it gathers wait for page tables too
    std::fill(data_, data_ + count_, 1.0F);
  }
  ~Ones() { std::free(data_); }
  Ones(const Ones&) = delete;
  Ones& operator=(const Ones&) = delete;

  const float* data() const { return data_; }
  std::int64_t count() const { return count_; }
  double mib() const { return static_cast<double>(count_) * 4.0 / 1048576.0; }

 private:
  static constexpr std::int64_t kHugePage = 2 << 20;
  static std::size_t rounded(std::int64_t bytes) {
    return static_cast<std::size_t>((bytes + kHugePage - 1) / kHugePage * kHugePage);
  }
  std::size_t bytes_;
  std::int64_t count_;
  float* data_;
};

/// Times run(round), which returns what `expected` says, after one round that does not count.
template <typename Run>
RoofTiming timed(double amount, double expected, const RoofOptions& options, const Run& run) {
  std::vector<double> times;
  for (int round = -1; round < options.rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const double sum = run(std::max(round, 0));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (sum != expected) throw std::logic_error(fmt::format("roof: sum {}, not {}", sum, expected));
    if (round >= 0) times.push_back(took.count());
  }
  std::sort(times.begin(), times.end());
  return {.amount = amount,
          .milliseconds = times.front(),
          .milliseconds_median = times[times.size() / 2]};
}

}  // namespace

RoofTiming measure_fma(const RoofOptions& options) {
  // Short rounds and many: one of them is not interrupted, even on a busy machine.
  constexpr std::int64_t kTurns = 1 << 16;
  constexpr int kParts = 16;
  const double lanes = HWY_DYNAMIC_DISPATCH(fma_lanes)();
  return timed(2.0 * lanes * kTurns, 2.0 * lanes, {.rounds = kParts * options.rounds},
               [](int) { return HWY_DYNAMIC_DISPATCH(fma_loop)(kTurns); });
}

RoofTiming measure_read(std::int64_t bytes, const RoofOptions& options) {
  constexpr std::int64_t kLeast = 64 << 20;  // bytes of a round: milliseconds, not microseconds
  const std::int64_t passes = (kLeast + bytes - 1) / bytes;
  const Ones ones(bytes / 4);
  RoofTiming timing = timed(static_cast<double>(passes * bytes),
                            static_cast<double>(passes * ones.count()), options, [&](int) {
                              double sum = 0.0;
                              for (std::int64_t pass = 0; pass < passes; ++pass) {
                                sum += HWY_DYNAMIC_DISPATCH(read_loop)(ones.data(), ones.count());
                              }
                              return sum;
                            });
  timing.working_mib = ones.mib();
  return timing;
}

RoofTiming measure_gather(const GatherShape& shape, const RoofOptions& options) {
  constexpr std::int64_t kFewest = 1 << 18;  // draws of a round
  constexpr std::int64_t kMost = 1 << 20;
  constexpr std::int64_t kDistances[] = {0, 8, 16, 32};
  constexpr std::int64_t kFarthest = 32;
  if (shape.rows <= 0 || shape.row_bytes <= 0 || shape.row_bytes % kGatherBytes != 0) {
    throw std::invalid_argument(
        fmt::format("measure_gather: {} rows of {} bytes, expected a "
                    "multiple of {}",
                    shape.rows, shape.row_bytes, kGatherBytes));
  }
  const std::int64_t row_floats = shape.row_bytes / 4;
  const std::int64_t draws =
      std::clamp(shape.rows * kGatherBytes / shape.row_bytes / 8 * 8, kFewest, kMost);
  const Ones ones(shape.rows * row_floats);
  // Other rows in every round: those of the last one may still be in a cache.
  std::vector<std::int32_t> index(static_cast<std::size_t>(draws * options.rounds + kFarthest));
  base::Random random(1);
  for (std::int32_t& row : index) {
    row = static_cast<std::int32_t>(random.below(shape.rows));
  }
  RoofTiming best;
  for (const std::int64_t ahead : kDistances) {
    const RoofTiming timing =
        timed(static_cast<double>(draws * shape.row_bytes), static_cast<double>(draws * row_floats),
              options, [&](int round) {
                return HWY_DYNAMIC_DISPATCH(gather_loop)(
                    ones.data(), row_floats, index.data() + round * draws, draws, ahead);
              });
    if (best.amount == 0.0 || timing.milliseconds < best.milliseconds) best = timing;
  }
  best.working_mib = ones.mib();
  return best;
}

std::vector<Roof> all_roofs() {
  std::vector<Roof> roofs = {{"fma", "GFLOP/s", "multiply-adds of floats in registers",
                              [](const RoofOptions& options) { return measure_fma(options); }}};
  // Sizes that most machines hold in that level and not in the one before.
  struct Level {
    const char* name;
    const char* size;
    std::int64_t bytes;
  };
  for (const Level& level : {Level{"l2", "512 KiB", 1 << 19}, Level{"l3", "8 MiB", 1 << 23},
                             Level{"dram", "256 MiB", 1 << 28}}) {
    roofs.push_back(
        {fmt::format("read-{}", level.name), "GB/s", fmt::format("{} read in order", level.size),
         [=](const RoofOptions& options) { return measure_read(level.bytes, options); }});
  }
  for (const std::int64_t megabytes : {3, 26, 128}) {
    const GatherShape shape = {megabytes * 1'000'000 / kGatherBytes, kGatherBytes};
    roofs.push_back({fmt::format("gather-{}MB", megabytes), "GB/s",
                     fmt::format("rows of {} bytes at random from {} MB", kGatherBytes, megabytes),
                     [=](const RoofOptions& options) { return measure_gather(shape, options); }});
  }
  return roofs;
}

void RoofKeeper::measure(const std::vector<Work>& works) {
  bool flops = false;
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const Work& work : works) {
    if (!work.has_roof()) continue;
    flops = flops || work.flops > 0.0;
    if (work.gathered_bytes > 0.0) shapes.insert({work.from.rows, work.from.row_bytes});
  }
  if (flops) fma_ = std::max(fma_, measure_fma(options_).rate());
  for (const auto& shape : shapes) {
    double& rate = gathers_[shape];
    rate = std::max(rate, measure_gather({shape.first, shape.second}, options_).rate());
  }
}

double RoofKeeper::milliseconds(const Work& work) const {
  double time = 0.0;
  if (work.flops > 0.0) time += work.flops / fma_ / 1e6;
  if (work.gathered_bytes > 0.0) {
    time += work.gathered_bytes / gathers_.at({work.from.rows, work.from.row_bytes}) / 1e6;
  }
  return time;
}

}  // namespace mpssm::bench
#endif  // HWY_ONCE
