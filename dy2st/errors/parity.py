"""``D2S5xx``: what the comparison with eager says."""

from __future__ import annotations

from dy2st.errors.base import Dy2stError


class ParityError(Dy2stError):
    """The exported file does not compute what eager computes.

    Raised by ``ParityReport.raise_if_different()``; the report says on which input, at which output and by how much.
    Differences of a few units in the last place come from another order of additions: loosen ``rtol``/``atol``. Larger
    ones are a defect, of dy2st, of the exporter or of onnxruntime.

    Before:
        import dy2st, torch
        scale = [2]
        def model(x):
            return x * scale[0]
        dy2st.onnx.export(model, (torch.ones(3),), "model.onnx")
        scale[0] = 3
        report = dy2st.check(model, [(torch.ones(3),)], onnx_file="model.onnx")
        report.raise_if_different()

    After:
        import dy2st, torch
        scale = [3]
        def model(x):
            return x * scale[0]
        dy2st.onnx.export(model, (torch.ones(3),), "model.onnx")
        report = dy2st.check(model, [(torch.ones(3),)], onnx_file="model.onnx")
        report.raise_if_different()
    """

    code = "D2S501"


class DriftError(ParityError):
    """Eager and the static side differed on a call in production, and ``dy2st.shadow`` was told to raise.

    Before:
        import dy2st, torch
        def model(x):
            return x * 2
        def other(x):
            return x * 3
        answer = dy2st.shadow(model, other, rate=1.0, on_difference="raise")(torch.ones(3))

    After:
        import dy2st, torch
        def model(x):
            return x * 2
        def other(x):
            return x * 3
        answer = dy2st.shadow(model, other, rate=1.0, on_difference="log")(torch.ones(3))
    """

    code = "D2S503"


class TimeLimitError(ParityError):
    """A target was not done in the time that ``--timeout`` gives it: it hangs, or needs more.

    The line is the one of the model's code that ran then, if one did.

    Before:
        import time
        def model(x):
            time.sleep(60)
            return x * 2
        command = "dy2st check example.py:model --input x=f32[3] --timeout 0.5"

    After:
        def model(x):
            return x * 2
        command = "dy2st check example.py:model --input x=f32[3] --timeout 120"
    """

    code = "D2S504"


class LostProcessError(ParityError):
    """The process that checked a target has died: killed, crashed, or ended by the target's own code.

    Targets are checked in processes of their own, so the others go on. A crash in eager code is the model's or torch's;
    a process that was killed may have needed more memory than there is (``--jobs`` with fewer).

    Before:
        import os
        def model(x):
            os._exit(3)
        command = "dy2st check example.py:model --input x=f32[3] --jobs 1"

    After:
        def model(x):
            return x * 2
        command = "dy2st check example.py:model --input x=f32[3] --jobs 1"
    """

    code = "D2S505"


class MissingTargetError(ParityError):
    """A target of the baseline was not checked, although all targets were: it is gone, or is named otherwise.

    Nobody would see that a model is no longer checked. ``--update-baseline`` takes it out of the file.

    Before:
        import json, pathlib
        def model(x):
            return x * 2
        example_inputs = []
        targets = {"old.py": {"problems": [], "uncovered": []}}
        pathlib.Path("baseline.json").write_text(json.dumps({"format": 1, "targets": targets}))
        pathlib.Path("pyproject.toml").write_text('''
            [tool.dy2st]
            baseline = "baseline.json"
            [[tool.dy2st.target]]
            target = "example.py"
            input = "x=f32[3]"
        ''')
        command = "dy2st check"

    After:
        import json, pathlib
        def model(x):
            return x * 2
        example_inputs = []
        targets = {"example.py": {"problems": [], "uncovered": []}}
        pathlib.Path("baseline.json").write_text(json.dumps({"format": 1, "targets": targets}))
        pathlib.Path("pyproject.toml").write_text('''
            [tool.dy2st]
            baseline = "baseline.json"
            [[tool.dy2st.target]]
            target = "example.py"
            input = "x=f32[3]"
        ''')
        command = "dy2st check"
    """

    code = "D2S506"


class UnusableInputError(ParityError):
    """Parity could not be checked on an example input.

    Eager itself rejects the input, or every number that eager returns for it is NaN, or it returns no tensor at all:
    such an input compares nothing. Give inputs that the model accepts, one for each path that it can take.

    Before:
        import torch
        def model(x):
            return x.log()
        inputs = [(-torch.ones(3),)]

    After:
        import torch
        def model(x):
            return x.log()
        inputs = [(torch.ones(3),)]
    """

    code = "D2S502"
