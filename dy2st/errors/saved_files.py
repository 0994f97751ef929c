"""``D2S909`` to ``D2S912``: programs in files, and tests beside them."""

from __future__ import annotations

from dy2st.errors.usage import UsageError


class SavedFileError(UsageError):
    """A file of programs can't be read, or can't be written.

    It is missing, damaged, cut short, something else than what ``dy2st.save`` writes, or of a newer version of the
    format than this dy2st knows: such a file is never read in part. Or the folder is missing, not writable or full:
    nothing is left behind then, and an older file stays as it was.

    Before:
        import pathlib
        import dy2st
        pathlib.Path("model.dy2st").write_text("no programs")
        loaded = dy2st.load("model.dy2st")

    After:
        import dy2st, torch
        def twice(x):
            return x * 2
        dy2st.save(dy2st.to_static(twice), "model.dy2st", [(torch.ones(3),)])
        loaded = dy2st.load("model.dy2st")
    """

    code = "D2S909"


class UnsavableError(UsageError):
    """A program has something that a file of programs can't hold.

    Such a file is data: tensors, numbers, texts and the names of torch's own operators. Objects of classes of yours,
    functions, operators of other libraries and custom autograd functions whose gradients are wanted are code, and
    loading a file runs none.

    Before:
        import dy2st, torch
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, gradient):
                return gradient * 2
        def twice(x):
            return Double.apply(x)
        x = torch.ones(3, requires_grad=True)
        dy2st.save(dy2st.to_static(twice), "model.dy2st", [(x,)])

    After:
        import dy2st, torch
        def twice(x):
            return x * 2
        x = torch.ones(3, requires_grad=True)
        dy2st.save(dy2st.to_static(twice), "model.dy2st", [(x,)])
    """

    code = "D2S910"


class SavedCallError(UsageError):
    """A loaded program is called with something that it was not captured for.

    What a program depends on is fixed in the file: the structure of the arguments, dtypes, ranks and sizes that no
    ``input_spec`` names, the values of arguments that are no tensors, the default dtype, autocast. A loaded program
    can't be captured anew: save it with more examples, or with dynamic dimensions.

    Before:
        import dy2st, torch
        def twice(x):
            return x * 2
        dy2st.save(dy2st.to_static(twice), "model.dy2st", [(torch.ones(3),)])
        result = dy2st.load("model.dy2st")(torch.ones(4))

    After:
        import dy2st, torch
        def twice(x):
            return x * 2
        dy2st.save(dy2st.to_static(twice, input_spec=["f32[n]"]), "model.dy2st")
        result = dy2st.load("model.dy2st")(torch.ones(4))
    """

    code = "D2S911"


class EmbeddedTestsError(UsageError):
    """The tests of an ONNX file can't be read, can't be made, or are those of another file.

    They lie beside it, under its name and ``.tests.safetensors``: ``dy2st convert --embed-tests`` and
    ``dy2st.embed_tests`` write them, and they go where the file goes. Tests that are damaged, cut short, something
    else, or of a newer version of the format than this dy2st knows are never run in part. They can be made of tensors
    of numbers alone: not for a file that takes or gives texts, sequences or optional values.

    Before:
        import dy2st, torch
        model = torch.nn.Linear(3, 1)
        dy2st.onnx.export(model, (torch.ones(3),), "model.onnx")
        report = dy2st.check_embedded("model.onnx")

    After:
        import dy2st, torch
        model = torch.nn.Linear(3, 1)
        dy2st.onnx.export(model, (torch.ones(3),), "model.onnx")
        dy2st.embed_tests(model, [(torch.ones(3),)], "model.onnx")
        report = dy2st.check_embedded("model.onnx")
    """

    code = "D2S912"
