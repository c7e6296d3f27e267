# SPDX-License-Identifier: MIT
"""How an operator of ours is made known to torch: kernel, shapes for tracing, gradient.

An operator lives in torch's dispatcher as ``torch.ops.mpssm_engine.<name>``, which is what tracing,
compiling and exporting see. Called on plain tensors in eager mode it goes straight to the kernel by
an autograd function made of the same pieces: the dispatcher's way through Python costs several times
as much as a small call.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

NAMESPACE = "mpssm_engine"
_library = torch.library.Library(NAMESPACE, "FRAGMENT")
_PLAIN = (Tensor, torch.nn.Parameter)

#: The arguments that stand for an operator A: ``Gso.arrays``.
GSO = ("Tensor row_ptr, Tensor col, Tensor value, Tensor transposed_row_ptr, "
       "Tensor transposed_col, Tensor transposed_value, Tensor graph_ptr")


def _is_plain(tensor: Tensor) -> bool:
    """Whether nobody but autograd needs to see a call on this tensor."""
    return (type(tensor) in _PLAIN and tensor.is_cpu and not torch.compiler.is_compiling()
            and not is_in_torch_dispatch_mode()
            and not torch._C._are_functorch_transforms_active())


def pointer(tensor: Optional[Tensor]) -> int:
    """Where the numbers of a tensor are, 0 if there is none."""
    return 0 if tensor is None else tensor.data_ptr()


def contiguous(tensor: Optional[Tensor]) -> Optional[Tensor]:
    return None if tensor is None else tensor.contiguous()


def _no_second_derivative(ctx: Any, *grads: Any) -> Any:
    raise NotImplementedError(
        "mpssm: the engine gives first derivatives only (create_graph); use plan='reference'")


def define(schema: str, kernel: Callable[..., Any], fake: Callable[..., Any],
           setup: Optional[Callable[..., None]] = None,
           backward: Optional[Callable[..., Any]] = None,
           main: int = 0, differentiable: Tuple[int, ...] = ()) -> Callable[..., Any]:
    """Registers an operator and returns what to call. ``setup(ctx, inputs, output)`` and
    ``backward(ctx, *grads)`` as in torch.autograd.Function; without them the operator refuses to be
    differentiated. ``main`` is the place of the argument that decides how a call goes,
    ``differentiable`` are the places of those that may require a gradient."""
    name = schema.partition("(")[0]
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    _library.impl(name, kernel, "CPU")
    qualified = f"{NAMESPACE}::{name}"
    torch.library.register_fake(qualified, fake, lib=_library)
    torch.library.register_autograd(qualified, backward or _no_second_derivative,
                                    setup_context=setup, lib=_library)
    dispatched = getattr(getattr(torch.ops, NAMESPACE), name).default
    if backward is None or setup is None:

        def call_once(*args: Any) -> Any:
            # Grad mode is on in a backward pass if and only if that is recorded, too.
            if not _is_plain(args[main]):
                return dispatched(*args)
            return _no_second_derivative(None) if torch.is_grad_enabled() else kernel(*args)

        return call_once

    def forward(ctx: Any, *args: Any) -> Any:
        output = kernel(*args)
        setup(ctx, args, output)
        return output

    function: Any = type(name, (torch.autograd.Function,),
                         {"forward": staticmethod(forward), "backward": staticmethod(backward)})

    def call(*args: Any) -> Any:
        if not _is_plain(args[main]):
            return dispatched(*args)
        if torch.is_grad_enabled():
            for place in differentiable:
                if args[place] is not None and args[place].requires_grad:
                    return function.apply(*args)
        return kernel(*args)

    return call
