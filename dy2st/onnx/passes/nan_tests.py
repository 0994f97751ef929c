"""What is there for NaN alone is taken out where none can reach, and is computed apart in a loop.

torch says where the first NaN is, and onnxruntime's ``ReduceMax``, ``ArgMax`` and ``TopK`` pass over it. So an extreme
is written with a test.

Before::

    place = ArgMax<axis = 1, keepdims = 1>(x)
    is_nan = IsNaN(x)
    number = Cast<to = 2>(is_nan)
    first = ArgMax<axis = 1, keepdims = 1>(number)
    some = ReduceMax<keepdims = 1>(is_nan, [1])
    found = Where(some, first, place)

After, if no element of ``x`` is NaN, or all of a row are as behind a ``Softmax`` along it::

    found = ArgMax<axis = 1, keepdims = 1>(x)

That no element is NaN may follow from the weights: :mod:`dy2st.onnx.passes.interval_analysis`.

After, if all elements of ``x`` that are numbers are less than infinity, as those of a sigmoid are::

    key = Where(is_nan, inf, x)
    found = ArgMax<axis = 1, keepdims = 1>(key)

In the body of a loop, for ``x`` of which nothing is known, the whole loop is written without a test where it can be
(:mod:`dy2st.onnx.passes.nan_reruns`). Else there is a branch, in the body if ``x`` is large. After::

    sum = ReduceSum<keepdims = 0>(x)
    wrong = IsNaN(sum)
    found = If(wrong) <
        then_branch = exact () => (found_1) { ... },                           # as before
        else_branch = plain () => (found_2) { found_2 = ArgMax<axis = 1, keepdims = 1>(x) }
    >

A sum is NaN if a part is; it also is of infinities of both signs, for which the exact way is as right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import onnx_ir as ir

from dy2st.onnx.building import arm, op, ops, recording
from dy2st.onnx.passes.graph_facts import is_onnx
from dy2st.onnx.passes.interval_analysis import Intervals
from dy2st.onnx.passes.loop_invariants import LOOPS
from dy2st.onnx.passes.nan_clusters import Cluster, CopiedCluster
from dy2st.onnx.passes.nan_reruns import rerun_for_nan
from dy2st.onnx.passes.node_constructs import UNUSUAL, stand_for_none
from dy2st.onnx.passes.without_nan import WithoutNaN

# So many elements cost more to test one by one than to add up, and a branch: in a loop, and outside of all. Fewer would
# gain little, outside, for some four nodes more.
WORTH_A_BRANCH = 512
WORTH_A_BRANCH_ONCE = 80


def take_nan_tests(model: ir.Model, opset: int) -> None:
    """Take such tests out, or put one before a branch; in place, subgraphs included."""
    intervals = Intervals(model.graph)
    for node, in_loop in list(_nodes(model.graph)):
        if _is_test(node):
            cluster = Cluster(node)
            plain = cluster.plain(opset, intervals)
            if plain is not None and not plain.is_exact:
                plain.forget()
                large = in_loop and _is_large(cluster.value)
                plain = cluster.filled(opset, intervals) if not large else None
            if plain is not None:
                cluster.replace(plain.nodes, plain.values)
    rerun_for_nan(model, opset)
    for node, in_loop in list(_nodes(model.graph)):
        if _is_test(node):
            cluster = Cluster(node)
            least = WORTH_A_BRANCH if in_loop else WORTH_A_BRANCH_ONCE
            plain = cluster.plain(opset) if _is_large(cluster.value, least) else None
            if plain is not None:
                plain.forget()
                with recording(opset) as made:
                    found = _branch(cluster, opset)
                cluster.replace(made.nodes, found)


def _nodes(graph: ir.Graph, *, in_loop: bool = False) -> Iterator[tuple[ir.Node, bool]]:
    """The nodes of a graph and of what it holds, but for what is unusual; and whether they are in a loop."""
    for node in graph:
        yield node, in_loop
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH and attribute.as_graph().name != UNUSUAL:
                yield from _nodes(attribute.as_graph(), in_loop=in_loop or (node.op_type in LOOPS and is_onnx(node)))


def _is_test(node: ir.Node) -> bool:
    """Whether a node is a test of NaN that something waits for; nodes that were taken out are none."""
    return node.op_type == "IsNaN" and is_onnx(node) and node.graph is not None and bool(node.outputs[0].uses())


def _branch(cluster: Cluster, opset: int) -> list[ir.Value]:
    """The results of an ``If``: as they are where there may be NaN, and without a test where there is none."""
    wrong = op("IsNaN", op("ReduceSum", cluster.value, keepdims=0))
    arms = []
    for name, way in (("exact", CopiedCluster(cluster).of), ("plain", WithoutNaN(cluster.value).of)):
        with recording(opset) as made:
            outputs: list[ir.Value] = []
            for result in cluster.results:
                value = way(result)
                own = value is not None and value.producer() in made.nodes and value not in outputs
                outputs.append(value if own and value is not None else op("Identity", value))
        for out, result in zip(outputs, cluster.results, strict=True):
            out.type, out.shape = result.type, result.shape
        arms.append(arm(made.nodes, outputs, like=cluster.test, name=name))
    dtypes = [result.dtype for result in cluster.results]
    values = ops("If", wrong, dtypes=dtypes, then_branch=arms[0], else_branch=arms[1])
    branch = values[0].producer()
    assert branch is not None
    branch.metadata_props.update(cluster.test.metadata_props)
    stand_for_none(branch)
    return list(values)


def _is_large(value: ir.Value, least: int = WORTH_A_BRANCH) -> bool:
    """Whether there are many elements; a size that is not known counts as a small batch."""
    sizes = [size if isinstance(size, int) else 4 for size in value.shape or ()]
    return math.prod(sizes) >= least
