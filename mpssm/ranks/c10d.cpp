// SPDX-License-Identifier: MIT
// The one file that knows c10d. It takes its public headers alone; those of Gloo, which they
// include, are not in libtorch's packages: cmake/GlooHeaders.cmake says what stands in for them.
#include "mpssm/ranks/c10d.h"

#ifdef MPSSM_HAS_GLOO

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fmt/core.h>
#include <future>
#include <memory>
#include <sched.h>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace mpssm::ranks {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

Milliseconds milliseconds(double seconds) {
  return Milliseconds(static_cast<std::int64_t>(1000.0 * seconds));
}

/// How long a rank that has lost another looks for who else has noticed: whoever has not by then is
/// the one that is lost.
constexpr double kLookAround = 3.0;
constexpr Milliseconds kPoll(20);

/// On one machine the loopback: what a host's name resolves to may be anything. Otherwise as c10d
/// does it, by GLOO_SOCKET_IFNAME or the host's name.
auto device_for(const Place& place) {
  using Gloo = c10d::ProcessGroupGloo;
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"); interface != nullptr) {
    return Gloo::createDeviceForInterface(interface);
  }
  return place.is_one_machine ? Gloo::createDeviceForHostname("127.0.0.1")
                              : Gloo::createDefaultDevice();
}

/// A new name for each attempt: the store of an agent outlives the ranks that it starts again.
std::string prefix_of(std::int64_t attempt) { return fmt::format("mpssm/{}", attempt); }

/// Threads that start while it lives are never let in before the one that wakes them has to wait.
/// Gloo's thread of links asks again and again for a link that is just being written to, and where
/// it pushes the writer off its core, it does so for as long as it may stay there: 4 ms of a
/// processor for each exchange of a few bytes, and a twentieth of that without.
class PatientThreads {
 public:
  PatientThreads() : policy_(sched_getscheduler(0)) {
    sched_getparam(0, &parameters_);
    const sched_param none{};
    if (policy_ == SCHED_OTHER) sched_setscheduler(0, SCHED_BATCH, &none);
  }
  ~PatientThreads() {
    if (policy_ == SCHED_OTHER) sched_setscheduler(0, policy_, &parameters_);
  }
  PatientThreads(const PatientThreads&) = delete;
  PatientThreads& operator=(const PatientThreads&) = delete;

 private:
  int policy_;
  sched_param parameters_ = {};
};

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(const Place& place, double timeout) : place_(place), timeout_(timeout) {
    meet();
    const PatientThreads links;
    try {
      auto options = c10d::ProcessGroupGloo::Options::create(milliseconds(timeout));
      options->devices.push_back(device_for(place));
      options->threads = 1;
      group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(
          c10::make_intrusive<c10d::PrefixStore>("links", store_), static_cast<int>(place.rank),
          static_cast<int>(place.size), options);
    } catch (const std::exception& error) {
      fail(error.what());
    }
    greet();
  }

  std::int64_t rank() const override { return place_.rank; }
  std::int64_t size() const override { return place_.size; }
  double timeout() const override { return timeout_; }
  bool is_restart() const override { return place_.attempt > 0; }

  void post(const std::string& key, const std::string& text) override {
    store_->set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
  }

  std::optional<std::string> read(const std::string& key, double seconds) override {
    const auto end = Clock::now() + milliseconds(seconds);
    while (!store_->check({key})) {
      if (Clock::now() >= end) return std::nullopt;
      std::this_thread::sleep_for(kPoll);
    }
    const std::vector<std::uint8_t> text = store_->get(key);
    return std::string(text.begin(), text.end());
  }

 protected:
  void run_exchange(const void* send, std::span<const std::int64_t> send_sizes, void* receive,
                    std::span<const std::int64_t> receive_sizes) override {
    std::vector<std::int64_t> to(send_sizes.begin(), send_sizes.end());
    std::vector<std::int64_t> from(receive_sizes.begin(), receive_sizes.end());
    at::Tensor in = bytes(const_cast<void*>(send), to);
    at::Tensor out = bytes(receive, from);
    try {
      group_->alltoall_base(out, in, from, to)->wait();
    } catch (const std::exception& error) {
      fail(error.what());
    }
  }

 private:
  static at::Tensor bytes(void* data, const std::vector<std::int64_t>& sizes) {
    std::int64_t count = 0;
    for (const std::int64_t size : sizes) count += size;
    return at::from_blob(data, {count}, at::kByte);
  }

  void meet() {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(place_.port);
    options.isServer = place_.rank == 0 && !place_.agent_has_store;
    options.waitWorkers = false;
    options.timeout = milliseconds(timeout_);
    try {
      store_ = c10::make_intrusive<c10d::PrefixStore>(
          prefix_of(place_.attempt), c10::make_intrusive<c10d::TCPStore>(place_.address, options));
      post(fmt::format("here/{}", place_.rank), "");
    } catch (const std::exception& error) {
      throw RankLost(fmt::format("rank {} of {}: nobody answers at MASTER_ADDR {}, port {}{}",
                                 place_.rank, place_.size, place_.address, place_.port,
                                 place_.agent_has_store ? "" : ", where rank 0 should be"));
    }
    // Who does not come is named here; Gloo would only say that somebody is missing.
    const auto end = Clock::now() + milliseconds(timeout_);
    for (std::int64_t p = 0; p < place_.size; ++p) {
      const double left = std::chrono::duration<double>(end - Clock::now()).count();
      if (read(fmt::format("here/{}", p), std::max(left, 0.0))) continue;
      throw RankLost(fmt::format("rank {} of {}: rank {} did not come within {:.0f} s", place_.rank,
                                 place_.size, p, timeout_));
    }
  }

  /// Nobody goes on before everybody has all links: a rank that refuses its work and leaves while
  /// another still links makes Gloo write lines of its own into the other's errors.
  void greet() {
    const std::vector<std::int64_t> one_byte(static_cast<std::size_t>(place_.size), 1);
    const std::vector<std::uint8_t> sent(one_byte.size());
    std::vector<std::uint8_t> received(one_byte.size());
    run_exchange(sent.data(), one_byte, received.data(), one_byte);
  }

  /// Closes the links, so that the others notice at once, and says who does not.
  [[noreturn]] void fail(const std::string& why) {
    group_.reset();
    // By another thread: where the link to the store is cut, nothing comes back.
    const auto line = std::make_shared<std::promise<std::string>>();
    std::future<std::string> found = line->get_future();
    std::thread([line, store = store_, place = place_, timeout = timeout_, why] {
      try {
        line->set_value(who_is_lost(*store, place, timeout, why));
      } catch (const std::exception&) {
        line->set_value(store_is_lost(place));
      }
    }).detach();
    const bool is_ready =
        found.wait_for(milliseconds(kLookAround + 2.0)) == std::future_status::ready;
    throw RankLost(fmt::format("rank {} of {}: {}", place_.rank, place_.size,
                               is_ready ? found.get() : store_is_lost(place_)));
  }

  static std::string store_is_lost(const Place& place) {
    return fmt::format("{} at {} has ended or lost its link",
                       place.agent_has_store ? "who started the ranks" : "rank 0", place.address);
  }

  /// Who has noticed that somebody is lost says so; who does not is the one.
  static std::string who_is_lost(c10d::Store& store, const Place& place, double timeout,
                                 const std::string& why) {
    // Who leaves closes its links, so that the next one sees an end and not a silence: the first
    // knows.
    const std::vector<std::uint8_t> silence = {1};
    bool timed_out = why.find("imed out") != std::string::npos;
    store.set(fmt::format("left/{}", place.rank),
              timed_out ? silence : std::vector<std::uint8_t>{0});
    const auto end = Clock::now() + milliseconds(std::min(kLookAround, timeout));
    std::string lost;
    for (std::int64_t p = 0; p < place.size; ++p) {
      const std::string left = fmt::format("left/{}", p);
      const std::string error = fmt::format("error/{}", p);
      bool has_left = false;
      while (!(has_left = store.check({left}))) {
        if (store.check({error})) {
          const std::vector<std::uint8_t> text = store.get(error);
          return fmt::format("rank {} has stopped: {}", p, std::string(text.begin(), text.end()));
        }
        if (Clock::now() >= end) {
          lost += fmt::format("{}{}", lost.empty() ? "" : ", ", p);
          break;
        }
        std::this_thread::sleep_for(kPoll);
      }
      if (has_left) timed_out = timed_out || store.get(left) == silence;
    }
    if (lost.empty()) return "the ranks have lost each other: " + why.substr(0, why.find('\n'));
    return fmt::format("rank {} {}", lost,
                       timed_out ? fmt::format("has not answered for {:.0f} s", timeout)
                                 : "has ended or lost its link");
  }

  Place place_;
  double timeout_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

class TcpMeetingPoint final : public MeetingPoint {
 public:
  TcpMeetingPoint() {
    c10d::TCPStoreOptions options;
    options.port = 0;  // whichever is free
    options.isServer = true;
    options.waitWorkers = false;
    store_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  }
  std::int64_t port() const override { return store_->getPort(); }
  void post(const std::string& key, const std::string& text) override {
    c10::make_intrusive<c10d::PrefixStore>(prefix_of(0), store_)
        ->set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
  }

 private:
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

}  // namespace

bool is_available() { return true; }

std::unique_ptr<Communicator> join(const Place& place, double timeout) {
  if (place.size == 1) return alone();
  return std::make_unique<GlooCommunicator>(place, timeout);
}

std::unique_ptr<MeetingPoint> open_meeting_point() { return std::make_unique<TcpMeetingPoint>(); }

}  // namespace mpssm::ranks

#else

namespace mpssm::ranks {
namespace {

[[noreturn]] void throw_unavailable() {
  throw base::Error(
      "ranks: this mpssm was built with a libtorch that has no Gloo; the one of PyPI has it");
}

}  // namespace

bool is_available() { return false; }

std::unique_ptr<Communicator> join(const Place& place, double) {
  if (place.size == 1) return alone();
  throw_unavailable();
}

std::unique_ptr<MeetingPoint> open_meeting_point() { throw_unavailable(); }

}  // namespace mpssm::ranks

#endif
