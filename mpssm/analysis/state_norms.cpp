// SPDX-License-Identifier: MIT
#include "mpssm/analysis/state_norms.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <stdexcept>
#include <string>

#include <ATen/ATen.h>

namespace mpssm::analysis {
namespace {

constexpr std::int64_t kMaxTau = 10'000;

/// W^tau held as 2^exponent * power, so that neither overflows and no digit is lost.
class Powers {
 public:
  explicit Powers(const at::Tensor& w) : w_(w), power_(at::eye(w.size(0), w.options())) {}

  void walk_to(std::int64_t tau) {
    for (; tau_ < tau && !is_zero_; ++tau_) {
      power_ = at::mm(power_, w_);
      const double size = power_.abs().max().item<double>();
      is_zero_ = size == 0.0;
      if (is_zero_) return;
      int exponent = 0;
      std::frexp(size, &exponent);
      power_ *= std::ldexp(1.0, -exponent);
      exponent_ += exponent;
    }
  }
  double frobenius_norm() const { return is_zero_ ? 0.0 : scaled(power_.norm().item<double>()); }
  double norm() const {
    if (is_zero_) return 0.0;
    return scaled(std::get<1>(at::linalg_svd(power_)).max().item<double>());
  }

 private:
  double scaled(double number) const {
    constexpr std::int64_t kBeyondDouble = 1 << 20;
    return std::ldexp(number,
                      static_cast<int>(std::clamp(exponent_, -kBeyondDouble, kBeyondDouble)));
  }

  at::Tensor w_;
  at::Tensor power_;
  std::int64_t exponent_ = 0;
  std::int64_t tau_ = 0;
  bool is_zero_ = false;
};

/// Complex double [C/2] or double [C, C].
at::Tensor checked(const at::Tensor& w) {
  const bool is_diagonal = w.is_complex() && w.dim() == 1;
  const bool is_dense = !w.is_complex() && w.dim() == 2 && w.size(0) == w.size(1);
  if (!is_diagonal && !is_dense) {
    throw std::invalid_argument(
        fmt::format("W: expected real [C, C] or complex [C/2], got {}", c10::str(w.sizes())));
  }
  const at::Tensor precise =
      w.detach().to(at::kCPU, is_diagonal ? at::kComplexDouble : at::kDouble).contiguous();
  const at::Tensor parts = is_diagonal ? at::view_as_real(precise) : precise;
  if (!at::isfinite(parts).all().item<bool>()) {
    throw std::invalid_argument("W: expected finite numbers");
  }
  return precise;
}

double largest_modulus(const at::Tensor& numbers) {
  return numbers.numel() == 0 ? 0.0 : numbers.abs().max().item<double>();
}

}  // namespace

std::vector<double> power_norms(const at::Tensor& w, std::span<const std::int64_t> taus) {
  const at::Tensor precise = checked(w);
  std::vector<double> norms(taus.size());
  if (std::any_of(taus.begin(), taus.end(), [](std::int64_t tau) { return tau < 0; })) {
    throw std::invalid_argument("power_norms: expected no negative tau");
  }
  if (precise.is_complex()) {
    // A pair of channels is turned and scaled: a normal matrix, its norm is its radius.
    const double modulus = largest_modulus(precise);
    std::transform(taus.begin(), taus.end(), norms.begin(),
                   [&](std::int64_t tau) { return std::pow(modulus, static_cast<double>(tau)); });
    return norms;
  }
  std::vector<std::size_t> order(taus.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return taus[a] < taus[b]; });
  Powers powers(precise);
  for (const std::size_t i : order) {
    powers.walk_to(taus[i]);
    norms[i] = powers.norm();
  }
  return norms;
}

double spectral_radius(const at::Tensor& w) {
  const at::Tensor precise = checked(w);
  return largest_modulus(precise.is_complex() ? precise : at::linalg_eigvals(precise));
}

namespace {

/// First tau with ||W^tau|| < threshold, -1 if not up to kMaxTau.
std::int64_t first_below(const at::Tensor& w, double radius, double threshold) {
  if (radius >= 1.0) return -1;
  if (w.is_complex()) {
    const double tau = std::floor(std::log(threshold) / std::log(radius)) + 1.0;
    return radius == 0.0 ? 1 : tau <= kMaxTau ? static_cast<std::int64_t>(tau) : -1;
  }
  // The Frobenius norm is at most sqrt(C) times the spectral one: far above the threshold it
  // spares the decomposition.
  const double surely_above = threshold * std::sqrt(static_cast<double>(w.size(0)));
  Powers powers(w);
  for (std::int64_t tau = 1; tau <= kMaxTau; ++tau) {
    powers.walk_to(tau);
    if (powers.frobenius_norm() < surely_above && powers.norm() < threshold) return tau;
  }
  return -1;
}

}  // namespace

StateReach state_reach(const at::Tensor& w, std::int64_t hops) {
  StateReach reach{.radius = spectral_radius(w)};
  std::vector<std::int64_t> taus;
  for (std::int64_t tau = 0; tau <= hops; ++tau) taus.push_back(tau);
  const std::vector<double> norms = power_norms(w, taus);
  double total = 0.0;
  for (std::size_t tau = 0; tau < norms.size(); ++tau) {
    total += norms[tau];
    reach.mean_hop += static_cast<double>(tau) * norms[tau];
  }
  reach.mean_hop /= total;

  reach.forgets_after = first_below(checked(w), reach.radius, 0.01);
  return reach;
}

}  // namespace mpssm::analysis
