// SPDX-License-Identifier: MIT
#include "mpssm/ops/call.h"

#include <memory>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "mpssm/engine/kept_memory.h"

namespace mpssm::ops {

using engine::KeptMemory;

at::Tensor empty_tensor(at::IntArrayRef sizes, const at::TensorOptions& options) {
  std::size_t bytes = options.dtype().itemsize();
  for (const std::int64_t size : sizes) bytes *= static_cast<std::size_t>(size);
  if (bytes < engine::kLeastKept) {
    return at::empty(sizes, options);
  }
  auto block = std::make_unique<KeptMemory::Block>(engine::kept_memory().take(bytes));
  void* const memory = block->memory;
  const auto give = [](void* context) {
    const std::unique_ptr<KeptMemory::Block> back(static_cast<KeptMemory::Block*>(context));
    engine::kept_memory().give(*back);
  };
  // Torch's own allocator stands by for those who make the tensor larger.
  const c10::Storage storage(c10::Storage::use_byte_size_t(), bytes,
                             at::DataPtr(memory, block.release(), give, at::kCPU),
                             c10::GetAllocator(at::kCPU), /*resizable=*/true);
  return at::empty({0}, options).set_(storage, 0, sizes);
}

at::Tensor empty_if_absent(const at::Tensor& tensor, const at::Tensor& like) {
  return tensor.defined() ? tensor : at::empty({0}, like.options());
}

at::Tensor absent_if_empty(const at::Tensor& tensor) {
  return tensor.numel() > 0 ? tensor : at::Tensor();
}

void check_single_backward(const char* op, const char* way_out) {
  TORCH_CHECK_NOT_IMPLEMENTED(!at::GradMode::is_enabled(), op, " gives first derivatives only",
                              way_out, " (create_graph)");
}

void check_precision(const char* op, engine::Precision precision, const at::Tensor& x) {
  TORCH_CHECK_TYPE(precision == engine::Precision::kFloat32 || x.scalar_type() == at::kFloat, op,
                   ": precision ", std::string(to_string(precision)),
                   " takes tensors of type Float, got ", x.scalar_type());
}

}  // namespace mpssm::ops
