// SPDX-License-Identifier: MIT
// Pieces of work that ranks do each by itself and tell each other of, through the store and without
// an exchange: they may be hours apart. No torch here.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "mpssm/ranks/communicator.h"

namespace mpssm::ranks {

/// Piece i is that of rank i modulo their number. While it lives, a thread posts that this rank
/// does, so that the others notice if it ends or hangs.
class SharedWork {
 public:
  /// `name`: of this work alone, it goes into the keys of the store. The communicator must outlive
  /// it.
  SharedWork(Communicator& ranks, std::string name);
  SharedWork(const SharedWork&) = delete;
  SharedWork& operator=(const SharedWork&) = delete;
  ~SharedWork();

  bool is_own(std::size_t piece) const { return owner(piece) == ranks_.rank(); }

  /// What came of an own piece.
  void tell(std::size_t piece, const std::string& text);

  /// What came of any piece. nullopt if it is not known yet, or waits for it. Throws base::Error if
  /// its rank has stopped with an error, RankLost if that was ended or gives no sign of life for
  /// the timeout.
  std::optional<std::string> hear(std::size_t piece, bool waits);

 private:
  using Clock = std::chrono::steady_clock;
  struct Sign {
    std::string text = {};
    Clock::time_point since = Clock::now();
  };

  std::int64_t owner(std::size_t piece) const {
    return static_cast<std::int64_t>(piece) % ranks_.size();
  }
  std::string key_of(std::size_t piece) const;
  void check(std::int64_t rank);
  void give_signs();

  Communicator& ranks_;
  std::string name_;
  std::vector<Sign> last_;  // of each rank
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_over_ = false;
  std::thread signs_;
};

}  // namespace mpssm::ranks
