// SPDX-License-Identifier: MIT
// Processes that train together: which one this is, and what they tell each other. No torch here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "mpssm/base/error.h"

namespace mpssm::ranks {

/// Another rank ended, hangs or lost its link; the line names it.
class RankLost : public base::Error {
 public:
  explicit RankLost(const std::string& what) : base::Error(what, base::ErrorKind::kSystem) {}
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::int64_t rank() const = 0;  ///< of this process, from 0
  virtual std::int64_t size() const = 0;  ///< how many there are
  bool is_first() const { return rank() == 0; }
  virtual double timeout() const { return 0.0; }  ///< seconds that the others are waited for
  /// All ranks were started again after one was lost: go on where they were.
  virtual bool is_restart() const { return false; }

  /// Called by all ranks at once: block p of `send` goes to rank p, block p of `receive` is what
  /// rank p sends here. Blocks lie one behind the other, sizes in bytes, and both sides know them.
  /// Throws RankLost if one of the others does not take part within the timeout.
  void exchange(const void* send, std::span<const std::int64_t> send_sizes, void* receive,
                std::span<const std::int64_t> receive_sizes);

  /// Since the start: what went to other ranks, and in how many calls.
  std::int64_t bytes_sent() const { return bytes_sent_; }
  std::int64_t num_exchanges() const { return num_exchanges_; }

  /// Lines that the ranks leave for each other, as long as the store that they met at lives.
  virtual void post(const std::string& key, const std::string& text) = 0;
  /// Waits for it; nullopt if nobody has posted it by then.
  virtual std::optional<std::string> read(const std::string& key, double seconds) = 0;

 protected:
  virtual void run_exchange(const void* send, std::span<const std::int64_t> send_sizes,
                            void* receive, std::span<const std::int64_t> receive_sizes) = 0;

 private:
  std::int64_t bytes_sent_ = 0;
  std::int64_t num_exchanges_ = 0;
};

/// One rank, which is all there are.
std::unique_ptr<Communicator> alone();

/// `count` things in a row, dealt to `ranks` ranks: contiguous, as even as can be.
struct Shares {
  std::int64_t count = 0;
  std::int64_t ranks = 1;
  std::int64_t begin(std::int64_t rank) const { return count * rank / ranks; }
  std::int64_t end(std::int64_t rank) const { return begin(rank + 1); }
  std::int64_t size(std::int64_t rank) const { return end(rank) - begin(rank); }
};

}  // namespace mpssm::ranks
