"""A loop with tests of NaN in its body is run without them, and once more as it is if there was NaN.

Before::

    h_end, places = Scan<num_scan_inputs = 1>(h, xs) <body = step (h, x) {
        sum = Add(h, x)
        place = ... IsNaN(sum) ...                      # the place of the greatest element, or of the first NaN
        next = ...
    }>

After::

    h_plain, places_plain, sums = Scan<num_scan_inputs = 1>(h, xs) <body = step (h, x) {
        sum = Add(h, x)
        place = ArgMax(sum)
        next = ...
        total = ReduceSum<keepdims = 0>(sum)
    }>
    wrong = IsNaN(ReduceSum<keepdims = 0>(sums))
    h_end, places = If(wrong) <
        then_branch = unusual () => (h_1, places_1) { h_1, places_1 = Scan(h, xs) ... },               # as before
        else_branch = usual () => (h_2, places_2) { h_2 = Identity(h_plain)  places_2 = Identity(places_plain) }
    >

A sum is NaN if a part is; it also is of infinities of both signs, for which the loop as it was is as right.

A state that is NaN at the end if there was NaN in any trip tells so by itself (:mod:`dy2st.onnx.passes.lasting_nan`).

So it is in a ``Loop`` of a few trips at most. Another one ends with the trip in which there is NaN, and tells so by one
more state: what it would go on to do may never end. So in that trip, and in all later ones of the others, what depends
on a place that may be wrong must be known to compute something: no row is looked up where there may be none. ``TopK``
gets no NaN, which have no order.

The file has the body twice. So this is done for bodies of few nodes, in which the tests are many.
Source: speculative execution with recovery, Gabbay, Mendelson, "Speculative Execution Based on Value Prediction", 1996.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import onnx_ir as ir

from dy2st.onnx.building import BOOL, arm, cast, constant, op, ops, put_in_place, recording
from dy2st.onnx.passes.expansions import ELEMENTWISE
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx
from dy2st.onnx.passes.interval_analysis import Intervals
from dy2st.onnx.passes.lasting_nan import lasting_state
from dy2st.onnx.passes.loop_invariants import LOOPS, has_no_result, never_fails, takes_its_places
from dy2st.onnx.passes.loop_sizes import kept_sizes
from dy2st.onnx.passes.nan_clusters import Cluster
from dy2st.onnx.passes.node_constructs import PADDED, RERUN, UNUSUAL, stand_for_none
from dy2st.onnx.passes.repeated_nodes import DRAWS, is_pure

# Of a body that is in the file twice.
MOST_NODES = 48
# So many nodes of a body for each that is saved in a trip.
MOST_FOR_ONE = 10
# So many trips are made to their end where there was NaN.
FEW_TRIPS = 4096
# Whether these compute something is decided by the shapes of their operands alone, and so are the shapes of results.
_BY_SHAPE = frozenset(
    """Abs ArgMax ArgMin Cast Ceil Concat Cos Erf Exp Floor Gemm Identity IsInf IsNaN LayerNormalization Log LogSoftmax
    MatMul Neg Not Reciprocal ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu
    Round Shape Sigmoid Sign Sin Size Softmax Softplus Split Sqrt Tan Tanh Transpose""".split()
)
_ATTRIBUTES = frozenset(("body", "num_scan_inputs", "scan_input_directions"))


def rerun_for_nan(model: ir.Model, opset: int) -> None:
    """Write such loops so; in place, inner loops first."""
    _in_graph(model.graph, opset, Intervals(model.graph))


def _in_graph(graph: ir.Graph, opset: int, intervals: Intervals) -> None:
    for node in list(graph):
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH and attribute.as_graph().name != UNUSUAL:
                _in_graph(attribute.as_graph(), opset, intervals)
        if node.op_type in LOOPS and is_onnx(node) and set(node.attributes) <= _ATTRIBUTES:
            _rerun(node, opset, intervals)


def _ends(node: ir.Node) -> bool:
    """Whether a loop makes few trips, or one for each row, whatever is computed in them."""
    trips = constant_integers(node.inputs[0]) if node.op_type == "Loop" else None
    return node.op_type == "Scan" or (trips is not None and trips[0] <= FEW_TRIPS)


def _rerun(node: ir.Node, opset: int, intervals: Intervals) -> None:
    body = node.attributes["body"].as_graph()
    clusters = _clusters(body, opset)
    count = sum(1 for _ in body.all_nodes())
    saved = sum(_saved(cluster, opset) for cluster in clusters) - (0 if _ends(node) else 2)
    if not clusters or count > MOST_NODES or count > saved * MOST_FOR_ONE:
        return
    if not _goes_on(node, body, [result for cluster in clusters for result in cluster.results], intervals):
        return
    exact = body.clone(allow_outer_scope_values=True)
    with recording(opset) as made:
        wrong, plain = _plain(node, body, clusters, opset)
        values = _branch(node, exact, wrong, plain, opset)
    for new, old in zip(values, node.outputs, strict=True):
        new.type, new.shape = old.type, old.shape
    put_in_place(node, made.nodes, values)
    branch = values[0].producer()
    assert branch is not None
    stand_for_none(branch)
    branch.metadata_props.pop(PADDED, None)
    branch.metadata_props[RERUN] = "the other arm has what the loop before it gave"


def _clusters(body: ir.Graph, opset: int) -> list[Cluster]:
    """Those of a body whose results have plain forms, no node in two of them."""
    found: list[Cluster] = []
    for node in body:
        if node.op_type != "IsNaN" or not is_onnx(node) or any(node in each.nodes for each in found):
            continue
        cluster = Cluster(node)
        plain = cluster.plain(opset)
        if plain is None:
            continue
        plain.forget()
        if not any(each.op_type == "TopK" for each in cluster.nodes):
            found.append(cluster)
    return found


def _saved(cluster: Cluster, opset: int) -> int:
    """How many nodes fewer a trip has without the tests of a cluster, and with a sum."""
    plain = cluster.plain(opset)
    assert plain is not None
    plain.forget()
    own, results = set(cluster.nodes), set(cluster.results)
    read = {out for node in own for out in node.outputs if any(use.node not in own for use in out.uses())}
    gone = [node for node in own if not any(out in read - results or out.is_graph_output() for out in node.outputs)]
    return len(gone) - len([node for node in plain.nodes if node.op_type != "Constant"]) - 1


def _goes_on(loop: ir.Node, body: ir.Graph, results: Sequence[ir.Value], intervals: Intervals) -> bool:
    """Whether the body computes something of results that may be wrong, and nothing that differs from run to run."""
    if any(node.op_type in {*LOOPS, *DRAWS} for node in body.all_nodes()):
        return False
    doubtful = set(results)
    alike = all(all(kept_sizes(start, end)) for start, end in _states(loop, body) if start is not None)
    is_scan, ends = loop.op_type == "Scan", _ends(loop)
    inside, after = (body.inputs, body.outputs) if is_scan else (body.inputs[1:], body.outputs)
    states = list(zip(inside, after, strict=False)) if ends else []
    while True:
        for node in body:
            read = {value for each in (node, *_within(node)) for value in each.inputs}
            if read & doubtful:
                if not _computes(node, intervals, alike=alike):
                    return False
                doubtful.update(node.outputs)
        more = {before for before, after in states if after in doubtful} - doubtful
        if not more:
            return True
        doubtful |= more


def _states(loop: ir.Node, body: ir.Graph) -> Iterator[tuple[ir.Value | None, ir.Value]]:
    """The states of a loop, before it and after a trip."""
    if loop.op_type == "Loop":
        return zip(loop.inputs[2:], body.outputs[1:], strict=False)
    count = len(loop.inputs) - loop.attributes["num_scan_inputs"].as_int()
    return zip(loop.inputs[:count], body.outputs, strict=False)


def _within(node: ir.Node) -> list[ir.Node]:
    graphs = [each.as_graph() for each in node.attributes.values() if each.type == ir.AttributeType.GRAPH]
    return [inner for graph in graphs for inner in graph.all_nodes()]


def _computes(node: ir.Node, intervals: Intervals, *, alike: bool) -> bool:
    """Whether a node gives something whatever its operands are; a branch, whichever arm it takes.

    ``alike``: operands have the same shapes in all trips. Then what the shapes alone decide is as it is in the loop as
    it was.
    """
    if node.op_type == "If" and is_onnx(node):
        return all(_computes(inner, intervals, alike=alike) for inner in _within(node))
    if not is_pure(node):
        return False
    by_shape = alike and (node.op_type in _BY_SHAPE or (node.op_type in ELEMENTWISE and not has_no_result(node)))
    return by_shape or never_fails(node) or takes_its_places(node) or _finds_rows(node, intervals, alike=alike)


def _finds_rows(node: ir.Node, intervals: Intervals, *, alike: bool) -> bool:
    """Whether a node takes from, or writes to, places that a dimension of fixed size has."""
    if node.op_type not in ({"Gather", "GatherElements", "ScatterElements", "ScatterND"} if alike else {"Gather"}):
        return False
    data, places = node.inputs[:2]
    if data is None or data.shape is None or places is None:
        return False
    if node.op_type == "ScatterND" and (places.shape is None or list(places.shape) != [1]):
        return False
    size, found = data.shape[node.attributes.get_int("axis", 0)], intervals.of(places)
    return isinstance(size, int) and -size <= found.low and found.high < size


def _plain(
    node: ir.Node, body: ir.Graph, clusters: Sequence[Cluster], opset: int
) -> tuple[ir.Value, Sequence[ir.Value]]:
    """Record the loop without tests, whose body is this one: whether there was NaN, and its results."""
    for cluster in clusters:
        plain = cluster.plain(opset)
        assert plain is not None
        cluster.replace(plain.nodes, plain.values)
    doubtful = dict.fromkeys(each.value for each in clusters)
    is_loop = not _ends(node)
    lasting = {value: None if is_loop else lasting_state(value, node) for value in doubtful}
    places = {place for place in lasting.values() if place is not None}
    if None not in lasting.values():
        return _at_the_end(node, body, places)
    with recording(opset) as made:
        sums = [op("ReduceSum", value, keepdims=0) for value in doubtful]
        total = sums[0]
        for each in sums[1:]:
            total = op("Add", total, cast(each, total.dtype))
        told = op("IsNaN", total) if is_loop else total
        if is_loop:
            fine, going = op("Not", told), body.outputs[0]
            same = going.producer()
            always = same is not None and same.op_type == "Identity" and same.inputs[0] is body.inputs[1]
            body.outputs[0] = fine if always else op("And", going, fine)
    told.shape = ir.Shape([])
    stem = f"{next(out.name for out in node.outputs if out.name)}_nan"
    for count, inner in enumerate(made.nodes):
        inner.metadata_props.update(clusters[0].test.metadata_props)
        inner.outputs[0].name = f"{stem}_{count}"
        inner.name = f"node_{inner.outputs[0].name}"
    body.extend(made.nodes)
    inputs = list(node.inputs)
    dtypes = [out.dtype for out in node.outputs]
    place = len(dtypes)
    if is_loop:
        place = len(inputs) - 2
        before = ir.Value(name=f"{stem}_before", type=ir.TensorType(BOOL), shape=ir.Shape([]))
        body.inputs.append(before)
        body.outputs.insert(1 + place, told)
        inputs.append(constant(value=False, dtype=BOOL))
    else:
        body.outputs.append(told)
    dtypes.insert(place, told.dtype)
    attributes = {name: each.value for name, each in node.attributes.items()}
    values = list(ops(node.op_type, *inputs, dtypes=dtypes, **attributes))
    loop = values[0].producer()
    assert loop is not None
    found = values.pop(place)
    for new, old in zip(values, node.outputs, strict=True):
        new.type, new.shape = old.type, old.shape
    return (found if is_loop else op("IsNaN", op("ReduceSum", found, keepdims=0))), values


def _at_the_end(node: ir.Node, body: ir.Graph, places: Collection[int]) -> tuple[ir.Value, Sequence[ir.Value]]:
    """Record the loop without tests, of which some states tell at its end whether there was NaN, and its results."""
    attributes = {name: each.value for name, each in node.attributes.items() if name != "body"}
    values = ops(node.op_type, *node.inputs, dtypes=[out.dtype for out in node.outputs], body=body, **attributes)
    for new, old in zip(values, node.outputs, strict=True):
        new.type, new.shape = old.type, old.shape
    sums = [op("ReduceSum", values[place], keepdims=0) for place in sorted(places)]
    wrong = op("IsNaN", sums[0])
    for each in sums[1:]:
        wrong = op("Or", wrong, op("IsNaN", each))
    return wrong, values


def _branch(
    node: ir.Node, exact: ir.Graph, wrong: ir.Value, plain: Sequence[ir.Value], opset: int
) -> Sequence[ir.Value]:
    """Record the results: of the loop with its tests if there was NaN, and else those that there are."""
    dtypes = [out.dtype for out in node.outputs]
    attributes = {name: each.value for name, each in node.attributes.items() if name != "body"}
    with recording(opset) as made:
        again = ops(node.op_type, *node.inputs, dtypes=dtypes, body=exact, **attributes)
    unusual = arm(made.nodes, again, like=node, name=UNUSUAL)
    for each in unusual.all_nodes():
        stand_for_none(each)
        each.metadata_props.pop(PADDED, None)
    with recording(opset) as made:
        given = [op("Identity", value) for value in plain]
    usual = arm(made.nodes, given, like=node, name="usual")
    for outs in (again, given):
        for new, old in zip(outs, node.outputs, strict=True):
            new.type, new.shape = old.type, old.shape
    return ops("If", wrong, dtypes=dtypes, then_branch=unusual, else_branch=usual)
