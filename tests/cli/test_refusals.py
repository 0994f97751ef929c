"""Models that can't be converted: the error names the user's line and says what to write instead. Exit code 2.

The full texts are kept as files in snapshots/.
"""

from __future__ import annotations

import pytest

from dy2st.capture.diagnosis import diagnosing
from dy2st.errors import RaisedError, StagingError
from dy2st.parity.inputs import describe

HEAD = """
import torch
from torch.export import Dim

def example_inputs():
    return [(torch.ones(4, 3),), (-torch.ones(4, 3),)]

"""

CASES = {
    "size_made_constant": "dynamic_shapes = {'x': {0: Dim('n')}}\n\ndef model(x):\n    return x.reshape(4, 3) * 2\n",
    "no_translation": "def model(x):\n    return torch.special.bessel_j0(x)\n",
    "raise_that_may_be_caught": (
        "def model(x):\n    try:\n        if x.sum() > 1e9:\n            raise ValueError('too large')\n"
        "    except ValueError:\n        return -x\n    finally:\n        print('done')\n    return x\n"
    ),
    "numpy": "import numpy as np\n\ndef model(x):\n    return torch.from_numpy(np.sin(x.numpy()))\n",
    "raises_when_traced": (
        "def model(x):\n    if torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE):\n"
        "        return x.no_such_name\n    return x\n"
    ),
    "tensor_or_text": (
        "def model(x):\n    if x.sum() > 0:\n        y = x\n    else:\n        y = 'none'\n    return x, y\n"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refusal(name, write, dy2st_command, snapshot):
    write("net.py", HEAD + CASES[name])
    done = dy2st_command("convert", "net.py", "-o", "net.onnx")
    assert done.code == 2
    assert done.out == ""
    assert "Traceback" not in done.err
    snapshot(f"refused_{name}", done.err)


def test_example_inputs_are_read_before_the_model_is_refused(write, dy2st_command):
    write("net.py", HEAD + CASES["numpy"] + "\nexample_inputs = None\n")
    assert "D2S905" in dy2st_command("convert", "net.py").err


def test_our_own_errors_pass_as_they_are():
    with pytest.raises(StagingError, match="as it is"), diagnosing():
        raise StagingError("as it is")


def test_an_exception_of_the_users_code_names_its_line():
    with pytest.raises(RaisedError) as caught, diagnosing():
        raise KeyError("h")
    assert caught.value.location.filename == __file__
    assert caught.value.location.text.strip() == 'raise KeyError("h")'
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_exception_of_our_own_code_is_a_defect():
    with pytest.raises(AttributeError), diagnosing():
        describe(None, None)
