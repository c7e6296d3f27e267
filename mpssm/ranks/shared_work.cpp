// SPDX-License-Identifier: MIT
#include "mpssm/ranks/shared_work.h"

#include <exception>
#include <fmt/core.h>
#include <utility>

namespace mpssm::ranks {
namespace {

constexpr double kLookAgain = 2.0;  // seconds
constexpr std::chrono::seconds kBetweenSigns(1);

std::string sign_key(const std::string& work, std::int64_t rank) {
  return fmt::format("{}/alive/{}", work, rank);
}

}  // namespace

SharedWork::SharedWork(Communicator& ranks, std::string name)
    : ranks_(ranks), name_(std::move(name)), last_(static_cast<std::size_t>(ranks.size())) {
  if (ranks_.size() > 1) signs_ = std::thread([this] { give_signs(); });
}

SharedWork::~SharedWork() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  wake_.notify_all();
  if (signs_.joinable()) signs_.join();
}

void SharedWork::give_signs() {
  std::unique_lock lock(mutex_);
  try {
    for (std::int64_t count = 0; !is_over_; ++count) {
      ranks_.post(sign_key(name_, ranks_.rank()), std::to_string(count));
      wake_.wait_for(lock, kBetweenSigns, [this] { return is_over_; });
    }
  } catch (const std::exception&) {
    // The store is gone: whoever needs it notices, too.
  }
}

std::string SharedWork::key_of(std::size_t piece) const {
  return fmt::format("{}/{}", name_, piece);
}

void SharedWork::tell(std::size_t piece, const std::string& text) {
  ranks_.post(key_of(piece), text);
}

std::optional<std::string> SharedWork::hear(std::size_t piece, bool waits) {
  for (;;) {
    std::optional<std::string> text = ranks_.read(key_of(piece), waits ? kLookAgain : 0.0);
    if (text) return text;
    check(owner(piece));
    if (!waits) return std::nullopt;
  }
}

void SharedWork::check(std::int64_t rank) {
  if (rank == ranks_.rank()) return;
  if (const auto error = ranks_.read(fmt::format("error/{}", rank), 0.0)) {
    throw base::Error(fmt::format("rank {} of {}", rank, ranks_.size()), *error);
  }
  const auto lose = [&](const std::string& why) {
    throw RankLost(
        fmt::format("rank {} of {}: rank {} {}", ranks_.rank(), ranks_.size(), rank, why));
  };
  if (const auto end = ranks_.read(fmt::format("ended/{}", rank), 0.0)) lose(*end);
  Sign& last = last_[static_cast<std::size_t>(rank)];
  const std::string now = ranks_.read(sign_key(name_, rank), 0.0).value_or("");
  if (now != last.text) {
    last = {.text = now};
  } else if (std::chrono::duration<double>(Clock::now() - last.since).count() > ranks_.timeout()) {
    lose(fmt::format("has not answered for {:.0f} s", ranks_.timeout()));
  }
}

}  // namespace mpssm::ranks
