"""``D2S909`` to ``D2S911``: programs in files."""

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
    functions, operators of other libraries and custom autograd functions are code, and loading a file runs none.

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
        dy2st.save(dy2st.to_static(twice), "model.dy2st", [(torch.ones(3),)])

    After:
        import dy2st, torch
        def twice(x):
            return x * 2
        dy2st.save(dy2st.to_static(twice), "model.dy2st", [(torch.ones(3),)])
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
