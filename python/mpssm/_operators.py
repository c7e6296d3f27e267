# SPDX-License-Identifier: MIT
"""How an operator of ours is made known to torch: kernel, shapes for tracing, gradient.

An operator lives in torch's dispatcher as ``torch.ops.mpssm_engine.<name>``, which is what tracing,
compiling and exporting see. Called on plain tensors in eager mode it goes straight to the kernel by
an autograd function made of the same pieces: the dispatcher's way through Python costs several times
as much as a small call.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

NAMESPACE = "mpssm_engine"
_library = torch.library.Library(NAMESPACE, "FRAGMENT")
_PLAIN = (Tensor, torch.nn.Parameter)

#: The arguments that stand for an operator A: ``Gso.arrays``.
GSO = ("Tensor row_ptr, Tensor col, Tensor value, Tensor transposed_row_ptr, "
       "Tensor transposed_col, Tensor transposed_value, Tensor graph_ptr")
#: What was found out about it: ``Gso.order_arrays``, ``Gso.basis_arrays``; often nothing.
FOUND_OUT = "Tensor[] order, Tensor[] basis"


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


def _blank(inputs: Sequence[Any]) -> List[Any]:
    """No gradient for any of these, in the structure that torch has for them: lists of tensors stay
    lists, and lists of nothing."""
    return [[None] * len(value) if isinstance(value, (list, tuple))
            and all(isinstance(one, Tensor) for one in value) else None for value in inputs]


def define(schema: str, kernel: Callable[..., Any], fake: Callable[..., Any],
           setup: Optional[Callable[..., None]] = None,
           backward: Optional[Callable[..., Any]] = None,
           main: int = 0, differentiable: Tuple[int, ...] = ()) -> Callable[..., Any]:
    """Registers an operator and returns what to call. ``main`` is the place of the argument that
    decides how a call goes, ``differentiable`` are the places of those that may require a gradient.
    ``setup(ctx, inputs, output)`` as in torch.autograd.Function; ``backward(ctx, needs, *grads)`` gives
    the gradients of the differentiable ones, ``needs`` says which of them are asked for. Without
    these two the operator refuses to be differentiated."""
    name = schema.partition("(")[0]
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    _library.impl(name, kernel, "CPU")
    qualified = f"{NAMESPACE}::{name}"
    torch.library.register_fake(qualified, fake, lib=_library)
    dispatched = getattr(getattr(torch.ops, NAMESPACE), name).default
    if backward is None or setup is None:
        torch.library.register_autograd(qualified, _no_second_derivative, lib=_library)

        def call_once(*args: Any) -> Any:
            # Grad mode is on in a backward pass if and only if that is recorded, too.
            if not _is_plain(args[main]):
                return dispatched(*args)
            return _no_second_derivative(None) if torch.is_grad_enabled() else kernel(*args)

        return call_once

    def setup_traced(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.blank = _blank(inputs)
        # Results that are kept for the gradient alone have none: no zeros are made up for them.
        ctx.set_materialize_grads(False)
        setup(ctx, inputs, output)

    def backward_traced(ctx: Any, *grads: Any) -> Any:
        needs = tuple(ctx.needs_input_grad[place] for place in differentiable)
        result = list(ctx.blank)
        if grads[0] is not None:
            for place, grad in zip(differentiable, backward(ctx, needs, *grads)):
                result[place] = grad
        return tuple(result)

    torch.library.register_autograd(qualified, backward_traced, setup_context=setup_traced,
                                    lib=_library)

    # An autograd function takes its time for every argument it is given one by one: those that
    # cannot have a gradient come as one.
    def forward(ctx: Any, args: Tuple[Any, ...], *_: Any) -> Any:
        output = kernel(*args)
        ctx.set_materialize_grads(False)
        setup(ctx, args, output)
        return output

    def backward_eager(ctx: Any, *grads: Any) -> Any:
        if grads[0] is None:
            return (None,) * (1 + len(differentiable))
        return (None, *backward(ctx, ctx.needs_input_grad[1:], *grads))

    function: Any = type(name, (torch.autograd.Function,), {
        "forward": staticmethod(forward), "backward": staticmethod(backward_eager)})
    # Function.apply() but for what that does for torch.func, which never comes here.
    apply = super(torch.autograd.Function, function).apply

    def call(*args: Any) -> Any:
        if not _is_plain(args[main]):
            return dispatched(*args)
        if torch.is_grad_enabled():
            for place in differentiable:
                if args[place] is not None and args[place].requires_grad:
                    return apply(args, *[args[i] for i in differentiable])
        return kernel(*args)

    return call
