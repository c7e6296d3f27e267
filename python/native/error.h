// SPDX-License-Identifier: MIT
// How calls through the C interface fail: a number comes back, the words stay with the thread.
#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

#include "mpssm/base/error.h"

namespace mpssm::native {

enum class Status : std::int64_t { kOk = 0, kBadValue = 1, kFailed = 2 };

inline std::string& last_error() {
  static thread_local std::string text;
  return text;
}

/// Runs `body`; no exception leaves it.
template <typename Body>
std::int64_t guarded(const Body& body) {
  const auto failed = [](Status status, const char* what) {
    last_error() = what;
    return static_cast<std::int64_t>(status);
  };
  try {
    body();
    return static_cast<std::int64_t>(Status::kOk);
  } catch (const base::Error& error) {
    return failed(Status::kBadValue, error.what());
  } catch (const std::invalid_argument& error) {
    return failed(Status::kBadValue, error.what());
  } catch (const std::out_of_range& error) {
    return failed(Status::kBadValue, error.what());
  } catch (const std::exception& error) {
    return failed(Status::kFailed, error.what());
  }
}

}  // namespace mpssm::native

/// A function of the C interface: the only symbols that the library shows.
#define MPSSM_C_API extern "C" __attribute__((visibility("default")))
