// SPDX-License-Identifier: MIT
// Plan diagonal. With W = diag(sigma) channels never mix, so each slice of channels goes through
// all steps by itself, in cache, and is written back once.
//
// Backward, with P(0) = G and Q(i) = A' P(i-1), P(i) = conj(sigma) Q(i):
//   the gradient of C(T-i) is P(i), that of sigma is sum_i i <Q(i), C(T-i)>,
// because X(T) = sum_i sigma^i A^i C(T-i) and d sigma^i = i sigma^(i-1). One product with A' per
// step gives both, and no state is ever stored: memory does not depend on T for constant input.
// When every output has a gradient, P takes G(t) in at each step and the stored outputs take the
// place of C.
#include <algorithm>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/kernels/recurrence.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/launch.h"
#include "mpssm/ops/plans.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

using kernels::SliceLayout;

/// How the channels of a problem are cut into slices. Results do not depend on it.
struct Slicing {
  std::int64_t lanes = 0;
  std::int64_t count = 0;

  template <typename T>
  static Slicing make(std::int64_t channels, std::int64_t batch) {
    Slicing slicing;
    slicing.lanes = kernels::kMaxSliceLanes<T>;
    const auto count_with = [&](std::int64_t lanes) { return (channels + lanes - 1) / lanes; };
    // Narrower slices where a full one would be mostly padding or would leave threads idle.
    while (slicing.lanes > kernels::kMinSliceLanes &&
           (slicing.lanes / 2 >= channels || batch * count_with(slicing.lanes) < num_threads())) {
      slicing.lanes /= 2;
    }
    slicing.count = count_with(slicing.lanes);
    return slicing;
  }
};

/// sigma spread over slices: [count][lanes / 2], zero in the padding.
template <typename T>
struct SlicedSigma {
  std::vector<T> re;
  std::vector<T> im;

  SlicedSigma(const at::Tensor& sigma, const Slicing& slicing)
      : re(static_cast<std::size_t>(slicing.count * slicing.lanes / 2)), im(re.size()) {
    const auto* values = sigma.data_ptr<c10::complex<T>>();
    for (std::int64_t c = 0; c < sigma.numel(); ++c) {
      re[static_cast<std::size_t>(c)] = values[c].real();
      im[static_cast<std::size_t>(c)] = values[c].imag();
    }
  }
};

/// Where a slice of [B, N, C] or [B, T, N, C] begins, and how wide it is.
template <typename T>
class SliceView {
 public:
  SliceView(const ProblemShape& shape, const Slicing& slicing, std::int64_t task)
      : shape_(shape),
        lanes_(slicing.lanes),
        batch_(task / slicing.count),
        begin_((task % slicing.count) * slicing.lanes),
        width_(std::min(slicing.lanes, shape.channels - begin_)) {}

  void pack(const T* data, T* slice) const { pack_at(data, batch_ * node_block(), slice); }
  void pack(const T* data, std::int64_t t, T* slice) const { pack_at(data, block_at(t), slice); }
  void unpack(const T* slice, T* data) const { unpack_at(slice, data, batch_ * node_block()); }
  void unpack(const T* slice, T* data, std::int64_t t) const {
    unpack_at(slice, data, block_at(t));
  }

  std::int64_t batch() const { return batch_; }
  std::int64_t channel_begin() const { return begin_ / 2; }  ///< complex
  std::int64_t size() const { return shape_.num_nodes() * lanes_; }

 private:
  std::int64_t node_block() const { return shape_.num_nodes() * shape_.channels; }
  std::int64_t block_at(std::int64_t t) const {
    return (batch_ * shape_.num_steps + t) * node_block();
  }
  void pack_at(const T* data, std::int64_t block, T* slice) const {
    kernels::pack_slice(SliceLayout::kComplex, data + block + begin_, shape_.channels,
                        shape_.num_nodes(), width_, lanes_, slice);
  }
  void unpack_at(const T* slice, T* data, std::int64_t block) const {
    kernels::unpack_slice(SliceLayout::kComplex, slice, shape_.num_nodes(), width_, lanes_,
                          data + block + begin_, shape_.channels);
  }

  const ProblemShape& shape_;
  std::int64_t lanes_;
  std::int64_t batch_;
  std::int64_t begin_;
  std::int64_t width_;
};

std::int64_t work_of(const ProblemShape& shape) {
  return shape.batch * shape.num_steps * shape.channels *
         (shape.gso.num_nonzeros() + shape.num_nodes());
}

template <typename T>
T* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<T>() : nullptr;
}

template <typename T>
at::Tensor forward(const ProblemShape& shape, const at::Tensor& input, const at::Tensor& sigma,
                   const at::Tensor& initial) {
  at::Tensor output =
      shape.all_outputs()
          ? empty_tensor({shape.batch, shape.num_steps, shape.num_nodes(), shape.channels},
                         input.options())
          : empty_tensor({shape.batch, shape.num_nodes(), shape.channels}, input.options());
  const Slicing slicing = Slicing::make<T>(shape.channels, shape.batch);
  const SlicedSigma<T> sliced(sigma, slicing);
  const T* input_data = input.data_ptr<T>();
  const T* initial_data = data_or_null<T>(initial);
  T* output_data = output.data_ptr<T>();

  run_tasks(shape.batch * slicing.count, work_of(shape), [&](std::int64_t task) {
    const SliceView<T> view(shape, slicing, task);
    T* const buffers = thread_scratch<T>(3 * view.size());
    T* const c = buffers;
    T* const states[2] = {buffers + view.size(), buffers + 2 * view.size()};

    kernels::SliceStep<T> step;
    step.a = shape.gso.view<T>();
    step.lanes = slicing.lanes;
    step.sigma_re = sliced.re.data() + view.channel_begin();
    step.sigma_im = sliced.im.data() + view.channel_begin();
    const T* x = nullptr;  // X(t)
    if (initial_data != nullptr) {
      view.pack(initial_data, states[0]);
      x = states[0];
    }
    if (!shape.temporal) view.pack(input_data, c);
    for (std::int64_t t = 0; t < shape.num_steps; ++t) {
      // Without X(0) the first state is C(1) itself, packed into a buffer that later steps leave
      // alone for as long as it is read.
      T* const next = x == states[0] ? states[1] : states[0];
      if (x == nullptr) {
        if (shape.temporal) view.pack(input_data, t, next);
        x = shape.temporal ? next : c;
      } else {
        if (shape.temporal) view.pack(input_data, t, c);
        step.x = x;
        step.add = c;
        step.y = next;
        kernels::slice_step(step);
        x = next;
      }
      if (shape.all_outputs()) view.unpack(x, output_data, t);
    }
    if (!shape.all_outputs()) view.unpack(x, output_data);
  });
  return output;
}

struct DiagonalGradients {
  at::Tensor input;
  at::Tensor sigma;
  at::Tensor initial;
};

struct DiagonalWanted {
  bool input = false;
  bool sigma = false;
  bool initial = false;
};

/// `history`: the stored outputs (kAll) or the input (kLast); read only if sigma's gradient is
/// wanted.
template <typename T>
DiagonalGradients backward(const ProblemShape& shape, const at::Tensor& grad,
                           const at::Tensor& sigma, const at::Tensor& history,
                           const at::Tensor& initial, DiagonalWanted wanted) {
  DiagonalGradients out;
  const std::vector<std::int64_t> one_step = {shape.batch, shape.num_nodes(), shape.channels};
  if (wanted.input) {
    out.input =
        shape.temporal
            ? empty_tensor({shape.batch, shape.num_steps, shape.num_nodes(), shape.channels},
                           grad.options())
            : empty_tensor(one_step, grad.options());
  }
  if (wanted.initial) out.initial = empty_tensor(one_step, grad.options());
  const Slicing slicing = Slicing::make<T>(shape.channels, shape.batch);
  const SlicedSigma<T> sliced(sigma, slicing);
  // One row per task, added up in a fixed order afterwards: the same bits for any number of
  // threads.
  const std::int64_t half = slicing.lanes / 2;
  std::vector<double> sigma_re(static_cast<std::size_t>(shape.batch * slicing.count * half));
  std::vector<double> sigma_im(sigma_re.size());

  const T* grad_data = grad.data_ptr<T>();
  const T* history_data = wanted.sigma ? history.data_ptr<T>() : nullptr;
  const T* initial_data = data_or_null<T>(initial);
  T* grad_input = data_or_null<T>(out.input);
  T* grad_initial = data_or_null<T>(out.initial);
  // The step from X(0) matters only if there is one.
  const bool through_initial = wanted.initial || (wanted.sigma && initial_data != nullptr);

  run_tasks(shape.batch * slicing.count, work_of(shape), [&](std::int64_t task) {
    const SliceView<T> view(shape, slicing, task);
    T* const buffers = thread_scratch<T>(5 * view.size());
    T* const states[2] = {buffers, buffers + view.size()};
    T* const total = buffers + 2 * view.size();
    T* const other = buffers + 3 * view.size();
    T* const add = buffers + 4 * view.size();

    kernels::SliceAdjointStep<T> step;
    step.a_transposed = shape.gso.transpose_view<T>();
    step.lanes = slicing.lanes;
    step.sigma_re = sliced.re.data() + view.channel_begin();
    step.sigma_im = sliced.im.data() + view.channel_begin();
    step.grad_re = sigma_re.data() + task * half;
    step.grad_im = sigma_im.data() + task * half;

    T* p = states[0];
    if (shape.all_outputs()) {
      view.pack(grad_data, shape.num_steps - 1, p);
    } else {
      view.pack(grad_data, p);
    }
    if (shape.temporal) {
      if (wanted.input) view.unpack(p, grad_input, shape.num_steps - 1);
    } else {
      std::copy(p, p + view.size(), total);
      // For kLast the partner of every step is the same C.
      if (wanted.sigma && !shape.all_outputs()) view.pack(history_data, other);
    }
    // t counts the states X(t) that the gradient arrives at; t = 0 is the initial one.
    for (std::int64_t t = shape.num_steps - 1; t >= (through_initial ? 0 : 1); --t) {
      step.p = p;
      step.p_next = p == states[0] ? states[1] : states[0];
      step.add = nullptr;
      if (shape.all_outputs() && t > 0) {
        view.pack(grad_data, t - 1, add);
        step.add = add;
      }
      step.total = !shape.temporal && wanted.input && t > 0 ? total : nullptr;
      step.other = wanted.sigma ? other : nullptr;
      step.weight = shape.all_outputs() ? 1.0 : static_cast<double>(shape.num_steps - t);
      if (wanted.sigma) {
        if (t == 0) {
          view.pack(initial_data, other);
        } else if (shape.temporal || shape.all_outputs()) {
          view.pack(history_data, t - 1, other);
        }
      }
      kernels::slice_adjoint_step(step);
      p = step.p_next;
      if (t == 0) {
        if (wanted.initial) view.unpack(p, grad_initial);
      } else if (shape.temporal && wanted.input) {
        view.unpack(p, grad_input, t - 1);
      }
    }
    if (!shape.temporal && wanted.input) view.unpack(total, grad_input);
  });

  if (wanted.sigma) {
    out.sigma = at::empty_like(sigma);
    auto* values = out.sigma.data_ptr<c10::complex<T>>();
    for (std::int64_t c = 0; c < sigma.numel(); ++c) {
      double re = 0.0;
      double im = 0.0;
      for (std::int64_t b = 0; b < shape.batch; ++b) {
        const auto at = static_cast<std::size_t>(b * slicing.count * half + c);
        re += sigma_re[at];
        im += sigma_im[at];
      }
      values[c] = c10::complex<T>(static_cast<T>(re), static_cast<T>(im));
    }
  }
  return out;
}

struct DiagonalFunction : torch::autograd::Function<DiagonalFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& sigma, const at::Tensor& initial_or_empty,
                            const ProblemShape& shape) {
    const at::Tensor initial = absent_if_empty(initial_or_empty);
    at::Tensor output = with_real_type(input, [&](auto zero) {
      return ops::forward<decltype(zero)>(shape, input, sigma, initial);
    });
    save_shape(context, shape);
    const bool keep = sigma.requires_grad();
    context->save_for_backward({sigma, keep ? (shape.all_outputs() ? output : input) : at::Tensor(),
                                keep ? initial : at::Tensor()});
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("diagonal");
    const ProblemShape shape = saved_shape(context);
    const auto tensors = context->get_saved_variables();
    const DiagonalWanted wanted{context->needs_input_grad(0), context->needs_input_grad(1),
                                context->needs_input_grad(2)};
    const at::Tensor grad = canonical(grads[0]);
    DiagonalGradients out = with_real_type(grad, [&](auto zero) {
      return ops::backward<decltype(zero)>(shape, grad, tensors[0], tensors[1], tensors[2], wanted);
    });
    return {out.input, out.sigma, out.initial, {}};
  }
};

}  // namespace

at::Tensor run_diagonal(const Problem& problem) {
  if (any_requires_grad(problem)) {
    return DiagonalFunction::apply(problem.input, problem.w_state,
                                   empty_if_absent(problem.initial, problem.input), problem.shape);
  }
  return with_real_type(problem.input, [&](auto zero) {
    return forward<decltype(zero)>(problem.shape, problem.input, problem.w_state, problem.initial);
  });
}

}  // namespace mpssm::ops
