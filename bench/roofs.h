// SPDX-License-Identifier: MIT
// What one core of this machine can do at best, measured: multiply-adds, and bytes read in order or
// in rows at random. A kernel's share of such a roof says what is left to gain. Knows no torch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mpssm::bench {

/// Rounds of a measurement, of which the fastest counts.
struct RoofOptions {
  int rounds = 7;
};

struct RoofTiming {
  double amount = 0.0;               ///< of a round: flops, or bytes
  double milliseconds = 0.0;         ///< of the fastest round
  double milliseconds_median = 0.0;  ///< over the rounds
  double working_mib = 0.0;          ///< memory that is read

  /// In units of 10^9 per second.
  double rate() const { return amount / milliseconds / 1e6; }
};

/// Multiply-adds of floats, two flops each, in independent chains of the widest vectors.
RoofTiming measure_fma(const RoofOptions& options);

/// Sums `bytes` of floats in order.
RoofTiming measure_read(std::int64_t bytes, const RoofOptions& options);

/// Rows of `row_bytes` (a multiple of kGatherBytes), laid out one after the other in huge pages
/// where the system gives them.
struct GatherShape {
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
};
inline constexpr std::int64_t kGatherBytes = 128;
/// Sums rows drawn at random, with the prefetch distance that serves best.
RoofTiming measure_gather(const GatherShape& shape, const RoofOptions& options);

/// A roof with a name.
struct Roof {
  std::string name;
  std::string unit;  ///< of rate()
  std::string size;  ///< what is measured, for people
  std::function<RoofTiming(const RoofOptions&)> measure;
};
std::vector<Roof> all_roofs();

/// What a call has to do, counted.
struct Work {
  double flops = 0.0;           ///< of dense products; a multiply-add is two
  double gathered_bytes = 0.0;  ///< rows of the state, one for each entry of A
  GatherShape from = {};        ///< what they are gathered from; no rows: no roof is known

  bool has_roof() const { return flops > 0.0 || (gathered_bytes > 0.0 && from.rows > 0); }
};

/// Measures the roofs that pieces of work stand under, and keeps the best seen of each.
class RoofKeeper {
 public:
  explicit RoofKeeper(const RoofOptions& options) : options_(options) {}

  /// Call it next to the work in time: a shared machine has good and bad moments.
  void measure(const std::vector<Work>& works);

  /// The time that the roofs leave for `work`, one part after the other. Measure first.
  double milliseconds(const Work& work) const;

 private:
  RoofOptions options_;
  double fma_ = 0.0;
  std::map<std::pair<std::int64_t, std::int64_t>, double> gathers_;  // by rows and their bytes
};

}  // namespace mpssm::bench
