// SPDX-License-Identifier: MIT
// Tensors of kept memory for Python, handed over by DLPack: torch takes them without a copy and
// gives the memory back through the deleter, from whatever thread the last tensor dies in.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "mpssm/engine/kept_memory.h"

#include "python/native/error.h"

namespace mpssm::native {
namespace {

// The structures of DLPack (before its version 1, which every torch reads).
struct DlDevice {
  std::int32_t type;
  std::int32_t id;
};
struct DlType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  std::int32_t num_axes;
  DlType type;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct DlManagedTensor {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManagedTensor*);
};

constexpr std::int32_t kDlCpu = 1;
constexpr std::uint8_t kDlFloat = 2;
constexpr std::uint8_t kDlBfloat = 4;
constexpr std::int64_t kMostAxes = 16;

struct KeptTensor {
  DlManagedTensor managed{};
  std::array<std::int64_t, kMostAxes> shape{};
  std::array<std::int64_t, kMostAxes> strides{};
  engine::KeptMemory::Block block;
};

void give_back(DlManagedTensor* managed) {
  const std::unique_ptr<KeptTensor> kept(static_cast<KeptTensor*>(managed->context));
  engine::kept_memory().give(kept->block);
}

/// A contiguous tensor with nothing in it yet; numbers of two bytes are bfloat16.
DlManagedTensor* make_tensor(std::int64_t element_bytes, std::int64_t num_axes,
                             const std::int64_t* shape) {
  if (num_axes > kMostAxes) throw std::invalid_argument("expected a tensor of at most 16 axes");
  auto kept = std::make_unique<KeptTensor>();
  std::int64_t count = 1;
  for (std::int64_t axis = num_axes - 1; axis >= 0; --axis) {
    kept->shape[axis] = shape[axis];
    kept->strides[axis] = count;
    count *= shape[axis];
  }
  kept->block = engine::kept_memory().take(static_cast<std::size_t>(count * element_bytes));
  kept->managed.tensor = {.data = kept->block.memory,
                          .device = {kDlCpu, 0},
                          .num_axes = static_cast<std::int32_t>(num_axes),
                          .type = {element_bytes == 2 ? kDlBfloat : kDlFloat,
                                   static_cast<std::uint8_t>(8 * element_bytes), 1},
                          .shape = kept->shape.data(),
                          .strides = kept->strides.data(),
                          .byte_offset = 0};
  kept->managed.context = kept.get();
  kept->managed.deleter = give_back;
  return &kept.release()->managed;
}

}  // namespace
}  // namespace mpssm::native

using namespace mpssm;

/// Null, and words in mpssm_error(), if there is no memory.
MPSSM_C_API void* mpssm_kept_tensor(std::int64_t element_bytes, std::int64_t num_axes,
                                    const std::int64_t* shape) {
  void* result = nullptr;
  (void)native::guarded([&] { result = native::make_tensor(element_bytes, num_axes, shape); });
  return result;
}

/// Bytes in tensors, and waiting for the next ones.
MPSSM_C_API void mpssm_kept_totals(std::int64_t* totals) {
  const auto [used, kept, most_used] = engine::kept_memory().totals();
  totals[0] = static_cast<std::int64_t>(used);
  totals[1] = static_cast<std::int64_t>(kept);
  totals[2] = static_cast<std::int64_t>(most_used);
}
