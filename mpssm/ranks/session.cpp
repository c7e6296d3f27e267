// SPDX-License-Identifier: MIT
#include "mpssm/ranks/session.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <fmt/core.h>
#include <string>
#include <unistd.h>

#include "mpssm/ranks/c10d.h"
#include "mpssm/ranks/launch.h"
#include "mpssm/ranks/place.h"

namespace mpssm::ranks {
namespace {

/// While it lives, what this process writes to stdout and stderr goes nowhere.
class Silence {
 public:
  explicit Silence(bool is_wanted) {
    if (!is_wanted) return;
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0) return;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      kept_[i] = fcntl(kStreams[i], F_DUPFD_CLOEXEC, 3);
      dup2(nowhere, kStreams[i]);
    }
    close(nowhere);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  ~Silence() {
    std::fflush(stdout);
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (kept_[i] < 0) continue;
      dup2(kept_[i], kStreams[i]);
      close(kept_[i]);
    }
  }

 private:
  static constexpr std::array<int, 2> kStreams = {STDOUT_FILENO, STDERR_FILENO};
  std::array<int, 2> kept_ = {-1, -1};
};

/// Tells the others why this rank stops. True if rank 0 has stopped for the same reason.
bool is_said_by_first(Communicator& ranks, const std::string& why) {
  constexpr double kPatience = 2.0;
  try {
    ranks.post(fmt::format("error/{}", ranks.rank()), why);
    return !ranks.is_first() && ranks.read("error/0", kPatience) == why;
  } catch (const std::exception&) {
    return false;  // the store is gone, and nobody to tell
  }
}

int run_rank(Communicator& ranks, const std::function<int(Communicator&)>& body) {
  std::signal(SIGPIPE, SIG_IGN);  // a link that breaks while written to is an error to be named
  std::exception_ptr failure;
  {
    const Silence silence(!ranks.is_first());
    try {
      return body(ranks);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  try {
    std::rethrow_exception(failure);
  } catch (const RankLost&) {
    throw;  // names itself and the other
  } catch (const std::exception& error) {
    const std::string text(error.what());
    const std::string why = text.substr(0, text.find('\n'));
    if (is_said_by_first(ranks, why)) return 1;
    if (ranks.is_first()) throw;
    throw base::Error(fmt::format("rank {} of {}", ranks.rank(), ranks.size()), why);
  }
}

}  // namespace

int run_session(const SessionOptions& options, const std::function<int(Communicator&)>& body) {
  if (const auto place = place_from_environment()) {
    if (options.ranks > 0 && options.ranks != place->size) {
      throw base::Error({.where = "--ranks",
                         .expected = fmt::format("{}, as WORLD_SIZE says", place->size),
                         .got = std::to_string(options.ranks),
                         .hint = "leave --ranks out under torchrun"});
    }
    const auto ranks = join(*place, options.timeout);
    return run_rank(*ranks, body);
  }
  if (options.ranks > 1) return launch(options.ranks, options.timeout);
  return body(*alone());
}

}  // namespace mpssm::ranks
