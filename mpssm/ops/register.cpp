// SPDX-License-Identifier: MIT
#include "mpssm/ops/register.h"

#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/library.h>

#include "mpssm/ops/canonical.h"
#include "mpssm/ops/pool.h"
#include "mpssm/ops/recurrence.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/ops/spmm.h"

namespace mpssm::ops {
namespace {

using Handle = c10::intrusive_ptr<GsoHandle>;

/// edge_index: int64 [2, E], row 0 sources, row 1 destinations, as listed (each direction by
/// itself).
Handle make_handle(const at::Tensor& edge_index, const at::Tensor& edge_weight,
                   std::int64_t num_nodes, const std::string& kind) {
  TORCH_CHECK_VALUE(
      edge_index.dim() == 2 && edge_index.size(0) == 2 && edge_index.scalar_type() == at::kLong,
      "Gso: expected edge_index of type Long and shape [2, E], got ", edge_index.scalar_type(), " ",
      edge_index.sizes());
  const at::Tensor index = canonical(edge_index.cpu());
  const std::int64_t num_edges = index.size(1);
  TORCH_CHECK_VALUE(edge_weight.numel() == 0 || edge_weight.numel() == num_edges,
                    "Gso: expected edge_weight of shape [", num_edges, "] or empty, got ",
                    edge_weight.sizes());
  graph::EdgeList edges;
  edges.num_nodes = num_nodes;
  const auto* from = index.data_ptr<std::int64_t>();
  edges.src.assign(from, from + num_edges);
  edges.dst.assign(from + num_edges, from + 2 * num_edges);
  if (edge_weight.numel() > 0) {
    const at::Tensor weight = canonical(edge_weight.cpu().to(at::kDouble));
    edges.weight.assign(weight.data_ptr<double>(), weight.data_ptr<double>() + num_edges);
  }
  return c10::make_intrusive<GsoHandle>(
      graph::make_gso(graph::Graph::from_edges(edges, graph::Direction::kDirected),
                      {.kind = graph::gso_kind_from_name(kind)}));
}

RecurrenceOptions options_from(const std::string& plan, bool all_outputs,
                               const at::Tensor& initial) {
  return {.plan = engine::plan_from_name(plan),
          .outputs = all_outputs ? Outputs::kAll : Outputs::kLast,
          .initial = initial};
}

// Optional tensors arrive as undefined ones, so one set of schemas serves every version of torch.
at::Tensor spmm_op(const Handle& gso, const at::Tensor& x) { return spmm(gso->gso, x); }

at::Tensor recurrence_static_op(const Handle& gso, const at::Tensor& u, const at::Tensor& w_state,
                                const at::Tensor& w_in, const at::Tensor& initial,
                                std::int64_t num_steps, const std::string& plan, bool all_outputs) {
  return recurrence_static(gso->gso, u, {w_state, w_in}, num_steps,
                           options_from(plan, all_outputs, initial))
      .output;
}

at::Tensor recurrence_temporal_op(const Handle& gso, const at::Tensor& u, const at::Tensor& w_state,
                                  const at::Tensor& w_in, const at::Tensor& initial,
                                  const std::string& plan, bool all_outputs) {
  return recurrence_temporal(gso->gso, u, {w_state, w_in}, options_from(plan, all_outputs, initial))
      .output;
}

at::Tensor pool_op(const Handle& gso, const at::Tensor& x, const std::string& pooling) {
  return pool(gso->gso, x, engine::pooling_from_name(pooling));
}

}  // namespace

TORCH_LIBRARY(mpssm, library) {
  library.class_<GsoHandle>("Gso")
      .def(torch::init(&make_handle))
      .def("num_nodes", [](const Handle& self) { return self->gso.num_nodes(); })
      .def("num_nonzeros", [](const Handle& self) { return self->gso.num_nonzeros(); });
  // Gradients come from the C++ functions themselves, so they are registered above autograd.
  library.def("spmm(__torch__.torch.classes.mpssm.Gso gso, Tensor x) -> Tensor", spmm_op);
  library.def(
      "recurrence_static(__torch__.torch.classes.mpssm.Gso gso, Tensor u, Tensor w_state, "
      "Tensor w_in, Tensor initial, int num_steps, str plan=\"auto\", bool all_outputs=False) -> "
      "Tensor",
      recurrence_static_op);
  library.def(
      "recurrence_temporal(__torch__.torch.classes.mpssm.Gso gso, Tensor u, Tensor w_state, "
      "Tensor w_in, Tensor initial, str plan=\"auto\", bool all_outputs=True) -> Tensor",
      recurrence_temporal_op);
  library.def("pool(__torch__.torch.classes.mpssm.Gso gso, Tensor x, str pooling) -> Tensor",
              pool_op);
  library.def("set_num_threads(int num_threads) -> ()", set_num_threads);
}

}  // namespace mpssm::ops
