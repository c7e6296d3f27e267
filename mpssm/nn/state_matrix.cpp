// SPDX-License-Identifier: MIT
#include "mpssm/nn/state_matrix.h"

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

#include <ATen/Dispatch.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/init.h>
#include <torch/types.h>

#include "mpssm/nn/orthogonal.h"
#include "mpssm/ops/canonical.h"

namespace mpssm::nn {
namespace {

/// sigma = exp(-exp(nu) + i theta), one pass over a few hundred numbers instead of five operators.
/// nu and theta are canonical, float or double, on the CPU.
struct StableSigma : torch::autograd::Function<StableSigma> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& nu,
                               const torch::Tensor& theta) {
    torch::Tensor sigma =
        torch::empty(nu.sizes(), nu.options().dtype(c10::toComplexType(nu.scalar_type())));
    AT_DISPATCH_FLOATING_TYPES(nu.scalar_type(), "StableSigma", [&] {
      const scalar_t* log_decay = nu.data_ptr<scalar_t>();
      const scalar_t* phase = theta.data_ptr<scalar_t>();
      auto* out = sigma.data_ptr<c10::complex<scalar_t>>();
      for (std::int64_t i = 0; i < nu.numel(); ++i) {
        const scalar_t modulus = std::exp(-std::exp(log_decay[i]));
        out[i] = {modulus * std::cos(phase[i]), modulus * std::sin(phase[i])};
      }
    });
    context->save_for_backward({nu, sigma});
    return sigma;
  }

  // d sigma = sigma (-exp(nu) d nu + i d theta); torch's gradient g of sigma means dL = Re(conj(g)
  // d sigma).
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor product = grads[0].conj() * saved[1];
    return {-saved[0].exp() * torch::real(product), -torch::imag(product)};
  }
};

}  // namespace

StateMatrixImpl::StateMatrixImpl(const StateMatrixOptions& options) : options_(options) {
  TORCH_CHECK_VALUE(options.channels >= 1, "StateMatrix: expected channels >= 1, got ",
                    options.channels);
  TORCH_CHECK_VALUE(options.kind == StateKind::kDense || options.channels % 2 == 0,
                    "StateMatrix: expected an even number of channels for a diagonal W (they are "
                    "taken in pairs), got ",
                    options.channels);
  TORCH_CHECK_VALUE(0.0 < options.min_modulus && options.min_modulus <= options.max_modulus &&
                        options.max_modulus < 1.0,
                    "StateMatrix: expected 0 < min_modulus <= max_modulus < 1, got ",
                    options.min_modulus, " and ", options.max_modulus);
  const std::int64_t half = options.channels / 2;
  switch (options.kind) {
    case StateKind::kDense:
      for (std::size_t g = 0; g < options.group_channels.size(); ++g) {
        const std::int64_t width = options.group_channels[g];
        group_weights.push_back(
            register_parameter("weight_" + std::to_string(g), torch::empty({width, width})));
      }
      if (!group_weights.empty()) break;
      weight = register_parameter("weight", torch::empty({options.channels, options.channels}));
      break;
    case StateKind::kDiagonal:
      sigma = register_parameter("sigma", torch::empty({half, 2}));
      break;
    case StateKind::kStable:
      nu = register_parameter("nu", torch::empty({half}));
      theta = register_parameter("theta", torch::empty({half}));
      break;
  }
  reset_parameters();
}

void StateMatrixImpl::reset_parameters() {
  const torch::NoGradGuard no_grad;
  if (options_.kind == StateKind::kDense) {
    std::vector<torch::Tensor> all = group_weights;
    if (all.empty()) all.push_back(weight);
    for (torch::Tensor& w : all) {
      if (options_.dense_init == DenseInit::kOrthogonal) {
        fill_orthogonal(w, options_.dense_scale);
      } else {
        const double bound = 1.0 / std::sqrt(static_cast<double>(w.size(0)));
        torch::nn::init::uniform_(w, -bound, bound);
      }
    }
    return;
  }
  const std::int64_t half = options_.channels / 2;
  // Uniform by area, as in linear recurrent units; conjugates are implied, so half the circle is
  // all.
  const double low = options_.min_modulus * options_.min_modulus;
  const double high = options_.max_modulus * options_.max_modulus;
  const auto like = (options_.kind == StateKind::kStable ? nu : sigma).options();
  const torch::Tensor modulus = (torch::rand({half}, like) * (high - low) + low).sqrt();
  const torch::Tensor phase = torch::rand({half}, like) * std::numbers::pi;
  if (options_.kind == StateKind::kStable) {
    nu.copy_((-modulus.log()).log());
    theta.copy_(phase);
  } else {
    sigma.copy_(torch::stack({modulus * phase.cos(), modulus * phase.sin()}, -1));
  }
}

torch::Tensor StateMatrixImpl::forward() const {
  switch (options_.kind) {
    case StateKind::kDense: {
      if (group_weights.empty()) return weight;
      std::vector<torch::Tensor> flat;
      for (const torch::Tensor& w : group_weights) flat.push_back(w.flatten());
      return torch::cat(flat);
    }
    case StateKind::kDiagonal:
      return torch::view_as_complex(ops::canonical(sigma));
    case StateKind::kStable:
      break;
  }
  if (nu.is_meta()) {
    return torch::empty(nu.sizes(), nu.options().dtype(c10::toComplexType(nu.scalar_type())));
  }
  if (!ops::has_kernel({nu, theta})) return torch::polar((-nu.exp()).exp(), theta);
  return StableSigma::apply(ops::canonical(nu), ops::canonical(theta));
}

std::vector<torch::Tensor> StateMatrixImpl::of_groups() const {
  if (options_.group_channels.empty()) return {forward()};
  if (options_.kind == StateKind::kDense) return group_weights;
  std::vector<std::int64_t> pairs;
  for (const std::int64_t channels : options_.group_channels) pairs.push_back(channels / 2);
  return forward().split_with_sizes(pairs);
}

}  // namespace mpssm::nn
