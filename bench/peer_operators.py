# SPDX-License-Identifier: MIT
"""Cases of single operators: what a call costs, the sparse product, the recurrence forward and in training."""

import functools

import torch
from peer_problems import (PRODUCTS, Case, Job, dense_loop, diagonal_loop, join_pairs, random_graph,
                           recurrence, split_pairs, torch_bag, with_gradients)

import mpssm


def call_case():
    """On a graph so small that next to nothing is computed: what a call costs by itself, with and without
    what autograd records, beside the shortest operator of torch and a loop of two hops in it."""
    nodes, channels, hops = 8, 4, 2

    def job(make, recorded):
        torch.manual_seed(0)
        u, sigma = torch.randn(nodes, channels), torch.polar(torch.rand(channels // 2), torch.rand(channels // 2))
        call = make(random_graph(nodes, 10), u.requires_grad_(recorded), sigma.requires_grad_(recorded))

        def run():
            with torch.set_grad_enabled(recorded):
                return [call().detach()]

        return Job(run)

    def ours(graph, u, sigma):
        gso = graph.gso()
        return lambda: mpssm.recurrence(gso, u, sigma, steps=hops + 1)

    def spmm(graph, u, sigma):
        gso = graph.gso()
        return lambda: mpssm.spmm(gso, u)

    def loop(graph, u, sigma):
        product = torch_bag(graph)
        re, im = (half.requires_grad_(u.requires_grad) for half in split_pairs(u.detach()))
        return lambda: join_pairs(*diagonal_loop(product, re, im, sigma.real, sigma.imag, hops))

    def shortest(graph, u, sigma):
        return lambda: torch.relu(u)

    makes = {"mpssm.recurrence": ours, "torch bag": loop, "mpssm.spmm": spmm, "torch.relu": shortest}
    contenders = {name + (", recorded" if recorded else ""): functools.partial(job, make, recorded)
                  for name, make in makes.items() for recorded in (True, False)}
    return Case("call", f"n = {nodes}, c = {channels}, k = {hops}", contenders,
                [name for name in contenders if name.startswith(("mpssm.recurrence", "torch bag"))])


def spmm_case(nodes, edges, degree, channels):
    def inputs():
        torch.manual_seed(0)
        return random_graph(nodes, edges), torch.randn(nodes, channels)

    def ours():
        graph, x = inputs()
        gso = graph.gso()
        return Job(lambda: [mpssm.spmm(gso, x)])

    def by(make):
        graph, x = inputs()
        product = make(graph)
        return Job(lambda: [product(x)])

    def by_scipy():
        graph, x = inputs()
        a, array = graph.scipy, x.numpy()
        return Job(lambda: [torch.from_numpy(a @ array)])

    return Case(f"spmm-{nodes}-degree{degree}-c{channels}",
                f"n = {nodes}, mean degree {degree} and self-loops, c = {channels}",
                {"mpssm": ours, "SciPy": by_scipy,
                 **{name: functools.partial(by, make) for name, make in PRODUCTS.items()}})


def recurrence_case(nodes, edges, channels, hops, diagonal, training):
    def inputs():
        torch.manual_seed(0)
        u = torch.randn(nodes, channels, requires_grad=training)
        gradient = torch.randn(nodes, channels) if training else None
        if diagonal:
            half = channels // 2
            w = torch.polar(0.8 + 0.19 * torch.rand(half), 3.14 * torch.rand(half))
        else:
            w = torch.nn.init.orthogonal_(torch.empty(channels, channels))
        return random_graph(nodes, edges), u, w.requires_grad_(training), gradient

    def run_with_mode(run):
        def inner():
            with torch.set_grad_enabled(training):
                return run()
        return inner

    def ours():
        graph, u, w, gradient = inputs()
        gso = graph.gso()
        run = run_with_mode(lambda: with_gradients(
            [recurrence(gso, u, w, None, hops)], [u, w], [gradient] if training else None))
        return Job(run, lambda results: [torch.view_as_real(result) if result.is_complex()
                                         else result for result in results])

    def dense(make, compiled):
        graph, u, w, gradient = inputs()
        product = make(graph)

        def loop(u, w):
            return dense_loop(product, u, w, hops)

        if compiled:
            loop = torch.compile(loop)
        return Job(run_with_mode(lambda: with_gradients(
            [loop(u, w)], [u, w], [gradient] if training else None)), compiled=compiled)

    def paired(make, compiled, width):
        graph, u, w, gradient = inputs()
        product = make(graph)
        step = width // 2 if width else channels // 2

        def slices(x):
            return [part.contiguous().requires_grad_(training) for part in x.split(step, -1)]

        u_re, u_im = map(slices, split_pairs(u.detach()))
        w_re, w_im = map(slices, (w.detach().real, w.detach().imag))
        gradients = (list(zip(*(half.split(step, -1) for half in split_pairs(gradient))))
                     if training else [None] * len(u_re))
        gradients = [parts and [part.contiguous() for part in parts] for parts in gradients]
        del u, w

        def loop(re, im, sigma_re, sigma_im):
            return diagonal_loop(product, re, im, sigma_re, sigma_im, hops)

        if compiled:
            loop = torch.compile(loop)

        def run():
            return [number for leaves, wanted in zip(zip(u_re, u_im, w_re, w_im), gradients)
                    for number in with_gradients(loop(*leaves), leaves, wanted)]

        def in_our_layout(results):
            count = 6 if training else 2
            columns = [torch.cat(results[i::count], -1) for i in range(count)]
            ours = [join_pairs(columns[0], columns[1])]
            if training:
                ours += [join_pairs(columns[2], columns[3]), torch.stack(columns[4:], -1)]
            return ours

        return Job(run_with_mode(run), in_our_layout, compiled)

    contenders = {"mpssm auto": ours}
    for name, make in PRODUCTS.items():
        for compiled in (False, True):
            if compiled and name != "torch bag":
                continue  # torch cannot compile its CSR tensors, and bag is its best
            label = name + (", compiled" if compiled else "")
            contenders[label] = (functools.partial(paired, make, compiled, 0) if diagonal
                                 else functools.partial(dense, make, compiled))
    if diagonal:
        contenders["torch bag, slices of 32, compiled"] = functools.partial(
            paired, torch_bag, True, min(32, channels))
    kind = f"{'training' if training else 'forward'}-{'diagonal' if diagonal else 'dense'}"
    return Case(kind, f"n = {nodes}, c = {channels}, k = {hops}", contenders)
