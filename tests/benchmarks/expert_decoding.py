"""Greedy decoding and beam search as an expert would write them in ONNX.

The caches grow by ``Concat``: on onnxruntime writing into a buffer of the full size copies all of it in each step.
Tokens are stacked by the loop and come to their place after it. Where a token's embedding is only multiplied by a
weight, its table holds the products.
"""

from __future__ import annotations

import numpy as np
import onnx
from expert_recurrent import GRU_STEP
from onnx_text import Weights, array, model
from workload_models import BeamSearch, GreedyDecoder


def _layers(given: GreedyDecoder) -> tuple[str, Weights]:
    """The nodes of a decoder step from ``x_0`` to ``x_n``, and their weights."""
    lines, weights = [], {}
    for i, layer in enumerate(given.layers):
        for name in ("qkv", "merge", "grow", "shrink"):
            linear = getattr(layer, name)
            weights[f"{name}_w_{i}"], weights[f"{name}_b_{i}"] = array(linear.weight.T), array(linear.bias)
        for name in ("norm1", "norm2"):
            norm = getattr(layer, name)
            weights[f"{name}_w_{i}"], weights[f"{name}_b_{i}"] = array(norm.weight), array(norm.bias)
        # The scale of the scores goes into the queries' weights.
        width = given.heads * given.head_width
        weights[f"qkv_w_{i}"][:, :width] /= given.head_width**0.5
        weights[f"qkv_b_{i}"][:width] /= given.head_width**0.5
        lines.append(f"""
        normed_{i} = LayerNormalization(x_{i}, norm1_w_{i}, norm1_b_{i})
        qkv_{i} = Gemm(normed_{i}, qkv_w_{i}, qkv_b_{i})
        parts_{i} = Reshape(qkv_{i}, by_head)
        q_{i}, k_{i}, v_{i} = Split<axis = 1, num_outputs = 3>(parts_{i})
        query_{i} = Reshape(q_{i}, head_first)
        key_{i} = Reshape(k_{i}, head_first)
        value_{i} = Reshape(v_{i}, head_first)
        all_keys_{i} = Concat<axis = 2>(keys_{i}, key_{i})
        all_values_{i} = Concat<axis = 2>(values_{i}, value_{i})
        columns_{i} = Transpose<perm = [0, 1, 3, 2]>(all_keys_{i})
        likeness_{i} = MatMul(query_{i}, columns_{i})
        attention_{i} = Softmax<axis = -1>(likeness_{i})
        read_{i} = MatMul(attention_{i}, all_values_{i})
        heads_{i} = Reshape(read_{i}, flat)
        merged_{i} = Gemm(heads_{i}, merge_w_{i}, merge_b_{i})
        middle_{i} = Add(x_{i}, merged_{i})
        normed_again_{i} = LayerNormalization(middle_{i}, norm2_w_{i}, norm2_b_{i})
        grown_{i} = Gemm(normed_again_{i}, grow_w_{i}, grow_b_{i})
        active_{i} = Relu(grown_{i})
        shrunk_{i} = Gemm(active_{i}, shrink_w_{i}, shrink_b_{i})
        x_{i + 1} = Add(middle_{i}, shrunk_{i})""")
    return "\n".join(lines), weights


def _decoder_step(given: GreedyDecoder) -> tuple[str, Weights]:
    """The nodes of a step of decoding, from token, step number and caches to the next token."""
    lines, weights = _layers(given)
    step = f"""
        embedded = Gather(tokens, token)
        position = Gather(positions, i)
        x_0 = Add(embedded, position)
        {lines}
        normed_last = LayerNormalization(x_{len(given.layers)}, norm_w, norm_b)
        likely = Gemm(normed_last, out_w, out_b)
        extra = Gather(forced, i)
        scores = Add(likely, extra)
        best = ArgMax<axis = 1, keepdims = 0>(scores)
        new_token = Where(finished, end, best)
        ended = Equal(new_token, end)
        new_finished = Or(finished, ended)
        as_ints = Cast<to = 2>(new_finished)
        least = ReduceMin<keepdims = 0>(as_ints)
        all_done = Cast<to = 9>(least)
        go_on = Not(all_done)
    """
    weights |= {
        "tokens": array(given.tokens.weight),
        "positions": array(given.positions.weight),
        "forced": array(given.forced),
        "norm_w": array(given.norm.weight),
        "norm_b": array(given.norm.bias),
        "out_w": array(given.out.weight.T),
        "out_b": array(given.out.bias),
        "end": np.array(given.end),
        "by_head": np.array([0, 3, given.heads, given.head_width]),
        "head_first": np.array([0, given.heads, 1, given.head_width]),
        "flat": np.array([0, given.heads * given.head_width]),
    }
    return step, weights


def greedy(given: GreedyDecoder) -> onnx.ModelProto:
    """A ``Loop`` whose caches grow, and whose tokens are stacked."""
    step, weights = _decoder_step(given)
    count = range(len(given.layers))
    caches = [f"keys_{i}" for i in count] + [f"values_{i}" for i in count]
    takes = "".join(f", float[B, N, P, D] {each}" for each in caches)
    gives = "".join(f", float[B, N, Q, D] all_{each}" for each in caches)
    outputs = "".join(f", last_{each}" for each in caches)
    text = f"""
    expert (int64[B] first) => (int64[B, L] ids) {{
        batch = Shape(first)
        cache_size = Concat<axis = 0>(batch, cache_rest)
        empty = ConstantOfShape(cache_size)
        nobody = Equal(first, impossible)
        last_token, last_finished{outputs}, stacked = Loop<body = step
            (int64 i, bool go, int64[B] token, bool[B] finished{takes})
            => (bool go_on, int64[B] new_token, bool[B] new_finished{gives}, int64[B] row) {{
            {step}
            row = Identity(new_token)
        }}>(limit, yes, first, nobody{", empty" * len(caches)})
        front = Unsqueeze(first, axis_0)
        rows = Concat<axis = 0>(front, stacked)
        ids = Transpose<perm = [1, 0]>(rows)
    }}"""
    weights |= {
        "cache_rest": np.array([given.heads, 0, given.head_width]),
        "impossible": np.array(-1),
        "limit": np.array(given.limit),
        "yes": np.array(True),
        "axis_0": np.array([0]),
    }
    return model(text, weights)


def greedy_step(given: GreedyDecoder) -> onnx.ModelProto:
    """One step, for a loop of Python around it: token, whether to go on, and the state."""
    step, weights = _decoder_step(given)
    count = range(len(given.layers))
    caches = [f"keys_{i}" for i in count] + [f"values_{i}" for i in count]
    takes = "".join(f", float[B, N, P, D] {each}" for each in caches)
    gives = "".join(f", float[B, N, Q, D] all_{each}" for each in caches)
    text = f"""
    step (int64 i, int64[B] token, bool[B] finished{takes})
        => (bool go_on, int64[B] new_token, bool[B] new_finished{gives}) {{
        {step}
    }}"""
    return model(text, weights)


def beam_search(given: BeamSearch) -> onnx.ModelProto:
    """A ``Loop`` over the beams; the cell's product with an embedding is a row of a table."""
    hidden = given.cell.hidden_size
    b_x, b_h = array(given.cell.bias_ih), array(given.cell.bias_hh)
    b_x[: 2 * hidden] += b_h[: 2 * hidden]
    b_h[: 2 * hidden] = 0
    only_end = np.full(given.vocabulary, -np.inf, np.float32)
    only_end[given.end] = 0
    first_scores = np.full(given.beams, -np.inf, np.float32)
    first_scores[0] = 0
    weights: Weights = {
        "table": array(given.embedding.weight) @ array(given.cell.weight_ih.T) + b_x,
        "encoded": np.tanh(array(given.encode(given.embedding.weight))),
        "u": array(given.cell.weight_hh.T),
        "b_h": b_h,
        "two_and_one": np.array([2 * hidden, hidden]),
        "out_w": array(given.out.weight.T),
        "out_b": array(given.out.bias),
        "only_end": only_end,
        "first_scores": first_scores,
        "start": np.full(given.beams, given.begin),
        "start_column": np.full((given.beams, 1), given.begin),
        "nobody": np.zeros(given.beams, bool),
        "no_length": np.zeros(given.beams, np.float32),
        "shape": np.array([given.beams, hidden]),
        "beams": np.array([given.beams]),
        "vocabulary": np.array(given.vocabulary),
        "end": np.array(given.end),
        "all": np.array([-1]),
        "axis_0": np.array([0]),
        "axis_1": np.array([1]),
        "yes": np.array(True),
        "limit": np.array(given.steps),
        "five": np.array(5, np.float32),
        "six": np.array(6, np.float32),
        "alpha": np.array(0.6, np.float32),
    }
    text = """
    expert (int64[S] source) => (int64[L] hypothesis, float score) {
        rows = Gather(encoded, source)
        sum = ReduceSum<keepdims = 0>(rows, axis_0)
        state = Expand(sum, shape)
        h_end, token_end, hypotheses, scores, finished_end, lengths = Loop<body = step
            (int64 i, bool go, float[K, H] h, int64[K] token, int64[K, P] told, float[K] score_in, bool[K] finished,
             float[K] length)
            => (bool go_on, float[K, H] new_h, int64[K] new_token, int64[K, Q] new_told, float[K] new_score,
                bool[K] new_finished, float[K] new_length) {
            from_x = Gather(table, token)
            x_rz, x_n = Split<axis = 1>(from_x, two_and_one)
"""
    text += GRU_STEP
    text += """
            logits = Gemm(next, out_w, out_b)
            log_probs = LogSoftmax<axis = -1>(logits)
            over = Unsqueeze(finished, axis_1)
            allowed = Where(over, only_end, log_probs)
            column = Unsqueeze(score_in, axis_1)
            total = Add(column, allowed)
            flat = Reshape(total, all)
            new_score, index = TopK(flat, beams)
            parent = Div(index, vocabulary)
            new_token = Mod(index, vocabulary)
            new_h = Gather(next, parent)
            kept = Gather(told, parent)
            new_column = Unsqueeze(new_token, axis_1)
            new_told = Concat<axis = 1>(kept, new_column)
            was_finished = Gather(finished, parent)
            running = Not(was_finished)
            more = Cast<to = 1>(running)
            old_length = Gather(length, parent)
            new_length = Add(old_length, more)
            ended = Equal(new_token, end)
            new_finished = Or(was_finished, ended)
            as_ints = Cast<to = 2>(new_finished)
            least = ReduceMin<keepdims = 0>(as_ints)
            all_done = Cast<to = 9>(least)
            go_on = Not(all_done)
        }>(limit, yes, state, start, start_column, first_scores, nobody, no_length)
        longer = Add(lengths, five)
        scaled = Div(longer, six)
        penalty = Pow(scaled, alpha)
        normalised = Div(scores, penalty)
        best = ArgMax<axis = 0, keepdims = 0>(normalised)
        hypothesis = Gather(hypotheses, best)
        score = Gather(normalised, best)
    }"""
    return model(text, weights)
