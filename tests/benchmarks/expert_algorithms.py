"""The other models of ``workloads.py`` as an expert would write them in ONNX."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx_text import Weights, array, model
from torch import nn
from workload_models import (
    ERROR,
    STAGES,
    ConnectedComponents,
    EarlyExit,
    NeuralODE,
    Newton,
    NonMaximumSuppression,
    Viterbi,
)


def nms(given: NonMaximumSuppression) -> onnx.ModelProto:
    """A ``Loop`` that carries the boxes which are left; the best one of them overlaps itself, and so leaves, too."""
    weights: Weights = {
        "corners": np.array([2, 2]),
        "axis_0": np.array([0]),
        "zero": np.array([0]),
        "one": np.array([1]),
        "start": np.array(0),
        "threshold": np.array(given.threshold, np.float32),
        "axis_1": np.array([1]),
    }
    text = """
    expert (float[N, C] boxes, float[N] scores) => (int64[K] kept) {
        count = Shape(scores)
        ranked, order = TopK(scores, count)
        sorted = Gather(boxes, order)
        columns = Transpose<perm = [1, 0]>(sorted)
        lows, highs = Split<axis = 0>(columns, corners)
        sizes = Sub(highs, lows)
        areas = ReduceProd<keepdims = 0>(sizes, axis_0)
        number = Squeeze(count)
        some = Greater(number, start)
        left_order, left_lows, left_highs, left_areas, kept = Loop<body = step
            (int64 i, bool go, int64[M] alive, float[D, M] low, float[D, M] high, float[M] area)
            => (bool more, int64[P] new_alive, float[D, P] new_low, float[D, P] new_high, float[P] new_area,
                int64 best) {
            best = Gather(alive, start)
            low_0 = Slice(low, zero, one, axis_1)
            high_0 = Slice(high, zero, one, axis_1)
            area_0 = Gather(area, start)
            common_low = Max(low, low_0)
            common_high = Min(high, high_0)
            common_size = Sub(common_high, common_low)
            positive = Relu(common_size)
            common = ReduceProd<keepdims = 0>(positive, axis_0)
            both = Add(area, area_0)
            union = Sub(both, common)
            overlap = Div(common, union)
            stays = LessOrEqual(overlap, threshold)
            new_alive = Compress<axis = 0>(alive, stays)
            new_low = Compress<axis = 1>(low, stays)
            new_high = Compress<axis = 1>(high, stays)
            new_area = Compress<axis = 0>(area, stays)
            left = Size(new_alive)
            more = Greater(left, start)
        }>(, some, order, lows, highs, areas)
    }"""
    return model(text, weights)


def _combined(weights: Sequence[float], name: str, constants: Weights) -> str:
    """The sum of weighted slopes ``k_0``, ``k_1``, ... as ``name``."""
    used = [(i, weight) for i, weight in enumerate(weights) if weight]
    lines = []
    for count, (i, weight) in enumerate(used):
        constants[f"{name}_w{i}"] = np.array(weight, np.float32)
        product = name if len(used) == 1 else f"{name}_{count}" if count == 0 else f"{name}_p{count}"
        lines.append(f"{product} = Mul(k_{i}, {name}_w{i})")
        if count:
            total = name if count == len(used) - 1 else f"{name}_{count}"
            lines.append(f"{total} = Add({name}_{count - 1}, {product})")
    return "\n".join(lines)


def ode(given: NeuralODE) -> onnx.ModelProto:
    """A ``Loop`` without branches: what a rejected step leaves as it is goes through ``Where``."""
    weights: Weights = {
        "w_1": array(given.first.weight.T),
        "b_1": array(given.first.bias),
        "w_2": array(given.second.weight.T),
        "b_2": array(given.second.bias),
        **{
            name: np.array(value, np.float32)
            for name, value in {
                "zero": 0,
                "half": 0.5,
                "near": 1e-5,
                "rtol": given.rtol,
                "atol": given.atol,
                "one": 1,
                "least": 1e-6,
                "power": -0.2,
                "safety": 0.9,
                "fewest": 0.2,
                "most": 5.0,
            }.items()
        },
    }

    def slope(y: str, i: int) -> str:
        return f"""
            inside_{i} = Gemm({y}, w_1, b_1)
            bent_{i} = Tanh(inside_{i})
            k_{i} = Gemm(bent_{i}, w_2, b_2)"""

    stages = slope("y", 0)
    for i, row in enumerate(STAGES, 1):
        stages += f"""
            {_combined(row, f"change_{i}", weights)}
            moved_{i} = Mul(step, change_{i})
            y_{i} = Add(y, moved_{i})
            {slope(f"y_{i}", i)}"""
    last = len(STAGES)
    text = f"""
    expert (float[B, W] y_in, float end) => (float[B, W] y_out, float t_out) {{
        some = Greater(end, near)
        y_out, t_out, h_out = Loop<body = body
            (int64 i, bool go, float[B, W] y, float t, float h)
            => (bool more, float[B, W] new_y, float new_t, float new_h) {{
            left = Sub(end, t)
            step = Min(h, left)
            {stages}
            {_combined(ERROR, "error", weights)}
            size_old = Abs(y)
            size_new = Abs(y_{last})
            size = Max(size_old, size_new)
            relative = Mul(size, rtol)
            allowed = Add(relative, atol)
            scaled = Mul(step, error)
            each = Div(scaled, allowed)
            squared = Mul(each, each)
            mean = ReduceMean<keepdims = 0>(squared)
            ratio = Sqrt(mean)
            good = LessOrEqual(ratio, one)
            later = Add(t, step)
            new_y = Where(good, y_{last}, y)
            new_t = Where(good, later, t)
            bounded = Max(ratio, least)
            root = Pow(bounded, power)
            wanted = Mul(root, safety)
            factor = Clip(wanted, fewest, most)
            new_h = Mul(step, factor)
            rest = Sub(end, new_t)
            more = Greater(rest, near)
        }}>(, some, y_in, zero, half)
    }}"""
    return model(text, weights)


def newton(_: Newton) -> onnx.ModelProto:
    """A ``Loop`` that ends with the test for the next trip; the number of steps is counted by it."""
    test = """
        {0}square = Mul({1}, {1})
        {0}cube = Mul({0}square, {1})
        {0}difference = Sub({0}cube, a)
        {0}distance = Abs({0}difference)
        {0}far = Greater({0}distance, tolerated)
        {0}ints = Cast<to = 2>({0}far)
        {0}most = ReduceMax<keepdims = 0>({0}ints)
        {0}more = Cast<to = 9>({0}most)
    """
    text = f"""
    expert (float[N] a) => (float[N] x, int64 steps) {{
        tolerated = Mul(a, tolerance)
        start = Max(a, one)
        {test.format("first_", "start")}
        x, steps = Loop<body = body
            (int64 i, bool go, float[N] now, int64 count) => (bool more, float[N] next, int64 new_count) {{
            power = Mul(now, now)
            part = Div(a, power)
            double = Add(now, now)
            sum = Add(double, part)
            next = Mul(sum, third)
            {test.format("", "next")}
            new_count = Add(i, counted)
        }}>(, first_more, start, nothing)
    }}"""
    weights: Weights = {
        "tolerance": np.array(1e-5, np.float32),
        "one": np.array(1, np.float32),
        "third": np.array(1 / 3, np.float32),
        "counted": np.array(1),
        "nothing": np.array(0),
    }
    return model(text, weights)


def early_exit(given: EarlyExit) -> onnx.ModelProto:
    """An ``If`` in an ``If`` for each layer."""
    weights: Weights = {
        "exit_w": array(given.exit.weight.T),
        "exit_b": array(given.exit.bias),
        "threshold": np.array(given.threshold, np.float32),
    }
    count = len(given.layers)
    for i, layer in enumerate(given.layers):
        assert isinstance(layer, nn.Linear)
        weights[f"w_{i}"], weights[f"b_{i}"] = array(layer.weight.T), array(layer.bias)

    def layer_and_rest(i: int) -> str:
        found = f"""
            linear_{i} = Gemm(x_{i}, w_{i}, b_{i})
            active_{i} = Relu(linear_{i})
            x_{i + 1} = Add(x_{i}, active_{i})
            logits_{i} = Gemm(x_{i + 1}, exit_w, exit_b)"""
        if i == count - 1:
            return found + f"\nresult_{i} = Identity(logits_{i})"
        return f"""{found}
            p_{i} = Softmax<axis = -1>(logits_{i})
            likely_{i} = ReduceMax<keepdims = 0>(p_{i}, last)
            least_{i} = ReduceMin<keepdims = 0>(likely_{i})
            sure_{i} = Greater(least_{i}, threshold)
            result_{i} = If(sure_{i}) <
                then_branch = stop_{i} () => (float[B, C] stopped_{i}) {{ stopped_{i} = Identity(logits_{i}) }},
                else_branch = go_on_{i} () => (float[B, C] result_{i + 1}) {{ {layer_and_rest(i + 1)} }}
            >"""

    text = f"expert (float[B, W] x_0) => (float[B, C] result_0) {{ {layer_and_rest(0)} }}"
    return model(text, weights | {"last": np.array([-1])})


def viterbi(given: Viterbi) -> onnx.ModelProto:
    """A ``Scan`` over the emissions, and one from the last row of back pointers to the first."""
    tags = len(given.start)
    weights: Weights = {
        "start": array(given.start),
        "end": array(given.end),
        "transitions": array(given.transitions)[None],
        "stay": np.arange(tags)[None],
        "zero": np.array(0),
        "one": np.array([1]),
        "many": np.array([2**62]),
        "axis_0": np.array([0]),
        "axis_1": np.array([1]),
        "axis_2": np.array([2]),
    }
    text = """
    expert (float[T, B, N] emissions, bool[T, B] mask) => (int64[T, B] path, float[B] total) {
        first = Gather(emissions, zero)
        score_0 = Add(start, first)
        later = Slice(emissions, one, many, axis_0)
        later_mask = Slice(mask, one, many, axis_0)
        column = Unsqueeze(later_mask, axis_2)
        score, history = Scan<num_scan_inputs = 2, body = forward
            (float[B, N] before, float[B, N] emission, bool[B, O] here) => (float[B, N] after, int64[B, N] row) {
            from = Unsqueeze(before, axis_2)
            ways = Add(from, transitions)
            best = ReduceMax<keepdims = 0>(ways, axis_1)
            previous = ArgMax<axis = 1, keepdims = 0>(ways)
            more = Add(best, emission)
            after = Where(here, more, before)
            row = Where(here, previous, stay)
        }>(score_0, later, column)
        ended = Add(score, end)
        total = ReduceMax<keepdims = 0>(ended, axis_1)
        tag = ArgMax<axis = 1, keepdims = 1>(ended)
        unused, tags = Scan<num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1],
            body = backward (int64[B, O] current, int64[B, N] pointers) => (int64[B, O] earlier, int64[B, O] told) {
            earlier = GatherElements<axis = 1>(pointers, current)
            told = Identity(earlier)
        }>(tag, history)
        front = Unsqueeze(tag, axis_0)
        columns = Concat<axis = 0>(tags, front)
        path = Squeeze(columns, axis_2)
    }"""
    return model(text, weights)


def components(_: ConnectedComponents) -> onnx.ModelProto:
    """A ``Loop`` with the ends of the edges taken apart before it."""
    text = """
    expert (int64[N] labels, int64[D, M] edges) => (int64[N] found) {
        from = Gather(edges, zero)
        to = Gather(edges, one)
        found = Loop<body = body
            (int64 i, bool go, int64[N] before) => (bool more, int64[N] after) {
            told = Gather(before, from)
            after = ScatterElements<axis = 0, reduction = "min">(before, to, told)
            same = Equal(after, before)
            different = Not(same)
            ints = Cast<to = 2>(different)
            most = ReduceMax<keepdims = 0>(ints)
            more = Cast<to = 9>(most)
        }>(, yes, labels)
    }"""
    return model(text, {"zero": np.array(0), "one": np.array(1), "yes": np.array(True)})
