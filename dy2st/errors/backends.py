"""What a backend of ``to_static`` can't run as eager does.

A refusal of its own, since the same program is run by the backend ``"eager"`` and exported by ``dy2st.onnx.export``.
"""

from __future__ import annotations

from dy2st.errors.exporting import OnnxError


class BackendError(OnnxError):
    """The onnxruntime backend of ``to_static`` can't run a program as eager runs it.

    onnxruntime computes values on the CPU. It knows nothing of gradients, and draws random numbers from a generator of
    its own. So a call whose results would have gradients is refused, and so is code that draws random numbers
    (``torch.rand``, dropout in training mode), tensors on other devices, of other layouts and of dtypes that
    onnxruntime does not have, and a call whose arguments share memory that the code writes to.

    For inference, call it under ``torch.no_grad()`` or ``torch.inference_mode()``, and put modules into eval mode. To
    train, use the backend ``"eager"``, or write the step as a file of its own with ``dy2st.onnx.export_training``.

    Before:
        import dy2st, torch
        static = dy2st.to_static(torch.nn.Linear(3, 1), backend="onnxruntime")
        y = static(torch.ones(2, 3))

    After:
        import dy2st, torch
        static = dy2st.to_static(torch.nn.Linear(3, 1), backend="onnxruntime")
        with torch.no_grad():
            y = static(torch.ones(2, 3))
    """

    code = "D2S404"
