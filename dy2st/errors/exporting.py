"""``D2S3xx`` and ``D2S4xx``: what torch.export and the ONNX file say."""

from __future__ import annotations

from dy2st.errors.base import Dy2stError


class CaptureError(Dy2stError):
    """torch.export could not capture the model as it was asked to.

    What is declared of the sizes contradicts the example, or what the model makes of them. The other ``D2S3xx`` errors
    are cases of this one.

    Before:
        import torch
        dynamic_shapes = {"x": {0: torch.export.Dim("n", min=6)}}
        def model(x):
            return x * 2

    After:
        import torch
        dynamic_shapes = {"x": {0: torch.export.Dim("n", max=6)}}
        def model(x):
            return x * 2
    """

    code = "D2S301"


class RaisedError(CaptureError):
    """The model's code raises an exception while it is traced, though not when it runs eagerly.

    A trace runs with stand-ins for tensors, which have a shape and a dtype but no values and no storage. Code that asks
    for more than that, or that does something else during an export, fails.

    Before:
        import ctypes
        def model(x):
            return x + ctypes.c_float.from_address(x.data_ptr()).value

    After:
        def model(x):
            return x + x.flatten()[0]
    """

    code = "D2S302"


class SpecializedError(CaptureError):
    """A size that is declared dynamic decides what the graph is.

    Code that dy2st does not convert takes one way or another by the size of a tensor, or the number of an operator's
    results depends on it: the graph has what the example's size gives, and would be wrong for others. Declare that
    dimension static, or write the model so that any size will do. If one size is all you need, allow it: with
    ``--allow-specialize LINE`` (``allow_specialize=`` in Python) what that line fixes is fixed in the file, which says
    so in its metadata.

    Before:
        import dy2st, torch
        dynamic_shapes = {"x": {0: torch.export.Dim("n")}}
        @dy2st.not_to_static
        def scale(x):
            return 2 if x.shape[0] > 3 else 1
        def model(x):
            return x * scale(x)

    After:
        import torch
        dynamic_shapes = {"x": {0: torch.export.Dim("n")}}
        def scale(x):
            return 2 if x.shape[0] > 3 else 1
        def model(x):
            return x * scale(x)
    """

    code = "D2S303"


class OutputError(CaptureError):
    """The model returns something that a program can't return.

    The results of a program are tensors and numbers, in tuples, lists, dicts and what else torch's pytree knows.
    Strings and None that no tensor decides about stay as they are.

    Before:
        import dy2st, torch
        def model(x):
            return {x.sum(), x.mean()}
        program = dy2st.export(model, (torch.ones(3),))

    After:
        import dy2st, torch
        def model(x):
            return x.sum(), x.mean()
        program = dy2st.export(model, (torch.ones(3),))
    """

    code = "D2S304"


class CommunicationError(CaptureError):
    """The model talks with other processes while it is traced, or computes with tensors that are spread over several.

    A program is run by one process. A collective (``all_reduce``, ``send``), and what torch wraps around a module to
    spread it (``DistributedDataParallel``, ``DTensor``), would be lost from it, or would have other gradients. Export
    the module inside, and each part between two collectives. ``dy2st.to_static`` doesn't raise this: it runs such a
    function as it is.

    Before:
        import dy2st, torch
        import torch.distributed as dist
        def model(x):
            y = x * 2
            dist.all_reduce(y)
            return y
        program = dy2st.export(model, (torch.ones(3),))

    After:
        import dy2st, torch
        def model(x):
            return x * 2
        program = dy2st.export(model, (torch.ones(3),))
    """

    code = "D2S305"


class SparseTensorError(CaptureError):
    """The model computes with a sparse tensor in a way that ONNX has no operators for.

    A graph has dense tensors alone. A sparse tensor that the model makes is kept as its entries: these can be made
    dense, coalesced, transposed, scaled, and multiplied with a dense vector or matrix. For anything else, and for one
    from outside of the model, make it dense (``to_dense()``), or keep its indices and values as tensors of their own.

    Before:
        import dy2st, torch
        def model(x):
            a = torch.eye(3).to_sparse()
            return torch.relu(a) @ x
        program = dy2st.export(model, (torch.ones(3),))

    After:
        import dy2st, torch
        def model(x):
            a = torch.eye(3).to_sparse()
            return torch.relu(a.to_dense()) @ x
        program = dy2st.export(model, (torch.ones(3),))
    """

    code = "D2S307"


class NoGradientError(CaptureError):
    """A derivative is asked for that a graph can't compute: of a loss that is trained, or inside the model itself.

    ``torch.autograd.grad`` and ``backward()`` inside a model become operators of the graph. Not so where a gradient
    would go back into earlier iterations of a loop that is still running, through a ``torch.autograd.Function``, or
    where whether there is one at all depends on the data.

    ``dy2st.onnx.export_training`` writes the derivative of a loop as a loop, which runs over the states that the
    forward loop has kept; these have one size. And it computes an iteration, or an arm of a branch, again: random
    numbers that are drawn there would be others.

    Before:
        import dy2st, torch
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.nn.Parameter(torch.ones(()))
            def forward(self, x):
                y = x * self.scale
                while y.sum() < 10:
                    y = torch.cat([y, y * self.scale])
                return y
        step = dy2st.onnx.export_training(Model(), (torch.ones(2),), loss=torch.sum)

    After:
        import dy2st, torch
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.nn.Parameter(torch.ones(()))
            def forward(self, x):
                y = x * self.scale
                while y.sum() < 10:
                    y = y + y * self.scale
                return y
        step = dy2st.onnx.export_training(Model(), (torch.ones(2),), loss=torch.sum)
    """

    code = "D2S306"


class OnnxError(Dy2stError):
    """The program can't be written as ONNX, or the file can't be run or saved: the base of the ``D2S4xx`` errors.

    The exported model does not pass ``onnx.checker``, onnxruntime can't load it, or torch's exporter fails on it. A
    newer ``--opset`` or the operation written with simpler ones may help.

    Before:
        import pathlib
        import dy2st, torch
        def model(x):
            return x * 2
        pathlib.Path("model.onnx").write_text("no model")
        report = dy2st.check(model, [(torch.ones(3),)], onnx_file="model.onnx")

    After:
        import dy2st, torch
        def model(x):
            return x * 2
        dy2st.onnx.export(model, (torch.ones(3),), "model.onnx")
        report = dy2st.check(model, [(torch.ones(3),)], onnx_file="model.onnx")
    """

    code = "D2S401"


class UntranslatedError(OnnxError):
    """An operator of the program has no ONNX translation.

    ONNX has fewer operators than torch, and torch's exporter composes only some of the others.

    Before:
        import torch
        def model(x):
            return torch.special.bessel_j0(x)

    After:
        def model(x):
            return 1 - x**2 / 4 + x**4 / 64
    """

    code = "D2S403"


class RandomInputError(OnnxError):
    """Random numbers that are to be inputs have no place among them.

    With ``random_inputs=True`` each draw of the model is an input of the file. So each call draws the same number of
    tensors, of sizes that follow from those of the arguments: not in a staged loop or branch, and not as many as data
    decides. Draw them before.

    Before:
        import dy2st, torch
        def noisy(x):
            while x.abs().sum() > 1:
                x = x / 2 + torch.rand(3) / 8
            return x
        dy2st.onnx.export(noisy, (torch.ones(3),), random_inputs=True)

    After:
        import dy2st, torch
        def noisy(x):
            noise = torch.rand(3) / 8
            while x.abs().sum() > 1:
                x = x / 2 + noise
            return x
        dy2st.onnx.export(noisy, (torch.ones(3),), random_inputs=True)
    """

    code = "D2S405"


class SaveError(OnnxError):
    """The ONNX file can't be written where it was asked for.

    The folder does not exist or is not writable, the disk is full, or the path is something other than a file. Nothing
    is left behind: dy2st writes beside the target and moves the finished file into place.

    Before:
        import dy2st, torch
        model = torch.nn.Linear(3, 1)
        dy2st.onnx.export(model, (torch.ones(3),), "missing_folder/model.onnx")

    After:
        import pathlib
        import dy2st, torch
        model = torch.nn.Linear(3, 1)
        pathlib.Path("out").mkdir(exist_ok=True)
        dy2st.onnx.export(model, (torch.ones(3),), "out/model.onnx")
    """

    code = "D2S402"
