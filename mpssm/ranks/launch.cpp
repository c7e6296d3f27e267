// SPDX-License-Identifier: MIT
#include "mpssm/ranks/launch.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fmt/core.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "mpssm/base/error.h"
#include "mpssm/ranks/c10d.h"

namespace mpssm::ranks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMost = 1024;
// A signal handler can read nothing safer than this.
std::array<volatile pid_t, kMost> children;
volatile std::sig_atomic_t num_children = 0;

extern "C" void hand_on(int signal) {
  for (int i = 0; i < num_children; ++i) {
    if (children[i] > 0) kill(children[i], signal);
  }
}

/// The strings of a null-terminated list, as exec() wants them.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// Arguments of this process.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> arguments;
  for (std::size_t at = 0; at < all.size(); at += arguments.back().size() + 1) {
    arguments.emplace_back(all.c_str() + at);
  }
  return arguments;
}

std::vector<std::string> environment_of(std::int64_t rank, std::int64_t count, std::int64_t port) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(fmt::format("RANK={}", rank));
  variables.push_back(fmt::format("LOCAL_RANK={}", rank));
  variables.push_back(fmt::format("WORLD_SIZE={}", count));
  variables.push_back(fmt::format("LOCAL_WORLD_SIZE={}", count));
  variables.push_back("MASTER_ADDR=127.0.0.1");
  variables.push_back(fmt::format("MASTER_PORT={}", port));
  variables.push_back("TORCHELASTIC_USE_AGENT_STORE=True");
  if (std::getenv("OMP_NUM_THREADS") == nullptr && std::getenv("MPSSM_NUM_THREADS") == nullptr) {
    variables.push_back("OMP_NUM_THREADS=1");
  }
  return variables;
}

pid_t start(std::vector<char*>& arguments, std::vector<char*>& variables) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  // Nothing here may allocate or lock: other threads of the parent are not there.
  setpgid(0, 0);  // the terminal's Ctrl-C comes through the parent, once
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  execve("/proc/self/exe", arguments.data(), variables.data());
  _exit(127);
}

}  // namespace

int launch(std::int64_t count, double timeout) {
  if (count > kMost) {
    throw base::Error({.where = "--ranks",
                       .expected = fmt::format("at most {} on one machine", kMost),
                       .got = std::to_string(count)});
  }
  const auto meeting_point = open_meeting_point();
  std::signal(SIGINT, hand_on);
  std::signal(SIGTERM, hand_on);
  // Not under nohup, which has it ignored.
  if (std::signal(SIGHUP, hand_on) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  std::vector<std::string> arguments = own_arguments();
  std::vector<char*> argument_list = pointers(arguments);
  for (std::int64_t rank = 0; rank < count; ++rank) {
    std::vector<std::string> variables = environment_of(rank, count, meeting_point->port());
    std::vector<char*> variable_list = pointers(variables);
    const pid_t child = start(argument_list, variable_list);
    if (child < 0) {
      const std::string why = std::strerror(errno);
      hand_on(SIGKILL);
      throw base::Error(fmt::format("--ranks: cannot start rank {}: {}", rank, why),
                        base::ErrorKind::kSystem);
    }
    children[rank] = child;
    num_children = static_cast<int>(rank + 1);
  }

  // Who has lost another needs a moment to say so.
  const auto grace = std::chrono::duration<double>(timeout + 5.0);
  std::vector<int> codes(count, 0);
  std::string ended_by_signal;
  std::optional<Clock::time_point> first_failure;
  bool is_killed = false;
  for (std::int64_t left = count; left > 0;) {
    int status = 0;
    const pid_t child = waitpid(-1, &status, first_failure && !is_killed ? WNOHANG : 0);
    if (child < 0 && errno == EINTR) continue;
    if (child < 0) break;
    if (child == 0) {
      is_killed = Clock::now() - *first_failure > grace;
      if (is_killed) hand_on(SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      continue;
    }
    for (std::int64_t rank = 0; rank < count; ++rank) {
      if (children[rank] != child) continue;
      children[rank] = 0;
      --left;
      codes[rank] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (codes[rank] != 0 && !first_failure) first_failure = Clock::now();
      if (!WIFSIGNALED(status)) continue;
      // For those that wait for its word: a rank without an exchange notices no lost link.
      const int signal = WTERMSIG(status);
      const std::string why = fmt::format("was ended by signal {} ({})", signal, strsignal(signal));
      meeting_point->post(fmt::format("ended/{}", rank), why);
      if (ended_by_signal.empty())
        ended_by_signal = fmt::format("rank {} of {} {}", rank, count, why);
    }
  }
  if (!ended_by_signal.empty()) throw base::Error(ended_by_signal, base::ErrorKind::kSystem);
  for (const int code : codes) {
    if (code != 0) return code;
  }
  return 0;
}

}  // namespace mpssm::ranks
