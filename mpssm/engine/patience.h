// SPDX-License-Identifier: MIT
// How a thread waits for another: awake while its core would be idle anyway, asleep as soon as
// others want that core.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace mpssm::engine {

/// Tells the core that nothing happens, so that its other half gets on and power is saved.
inline void idle_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// One thread's experience with staying awake.
class Patience {
 public:
  /// True once is_so() is; false if it is better to sleep. A thread that finds time missing
  /// between two looks was put off its core by somebody with work to do, and does not stay awake
  /// again for a while.
  template <typename Condition>
  bool is_rewarded(const Condition& is_so) {
    if (is_so()) return true;
    const Time start = Clock::now();
    if (start < sleepy_until_) return false;
    for (Time last = start; last - start < kAwake;) {
      for (int i = 0; i < kLooks; ++i) {
        idle_briefly();
        if (is_so()) return true;
      }
      const Time now = Clock::now();
      if (now - last > kMissing) {
        sleepy_until_ = now + kSleepy;
        return is_so();
      }
      last = now;
    }
    return false;
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  static constexpr int kLooks = 32;  // about a microsecond
  static constexpr std::chrono::microseconds kAwake{2000};
  static constexpr std::chrono::microseconds kMissing{100};
  static constexpr std::chrono::milliseconds kSleepy{50};

  Time sleepy_until_{};
};

/// Where threads sleep until a condition holds.
class SleepingPlace {
 public:
  template <typename Condition>
  void sleep_until(const Condition& is_so) {
    std::unique_lock lock(mutex_);
    ++sleepers_;
    wake_.wait(lock, is_so);
    --sleepers_;
  }

  /// After the condition was made true, by a sequentially consistent write.
  void wake() {
    if (sleepers_ == 0) return;
    { const std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<int> sleepers_{0};
};

}  // namespace mpssm::engine
