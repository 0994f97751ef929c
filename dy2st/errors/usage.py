"""``D2S9xx``: wrong use."""

from __future__ import annotations

from dy2st.errors.base import Dy2stError


class UsageError(Dy2stError):
    """Wrong use: an option, an argument, a combination of them.

    Before:
        import dy2st, torch
        report = dy2st.check(torch.nn.Linear(3, 1), [(torch.ones(3),)], rtol=-1)

    After:
        import dy2st, torch
        report = dy2st.check(torch.nn.Linear(3, 1), [(torch.ones(3),)], rtol=1e-3)
    """

    code = "D2S901"


class TargetError(UsageError):
    """The target of a command can't be found, imported or called.

    A target is ``file.py:name`` or ``package.module:name``; the name is ``model`` if it is left out. It names an
    ``nn.Module``, an ``nn.Module`` class or a factory without required arguments, or a function.

    Before:
        import torch
        class Net(torch.nn.Linear):
            pass
        command = "dy2st check example.py:Net --input input=f32[3]"

    After:
        import torch
        def net():
            return torch.nn.Linear(3, 1)
        command = "dy2st check example.py:net --input input=f32[3]"
    """

    code = "D2S902"


class InputSpecError(UsageError):
    """An input spec does not parse, or does not fit the model's signature.

    A spec is ``name=dtype[dimensions]``: a number is a fixed size, a name a dynamic one; ``:low..high`` after a
    dimension bounds its size, after the bracket the values. A Python value is written as in Python: ``k=5``,
    ``mode="max"``, ``mask=None``.

    Before:
        def net(x):
            return x * 2
        command = "dy2st check example.py:net --input x=float[batch,3"

    After:
        def net(x):
            return x * 2
        command = "dy2st check example.py:net --input x=f32[batch:1..64,3]:0..1"
    """

    code = "D2S903"


class InputFileError(UsageError):
    """A file of inputs is missing, unreadable or of an unknown kind.

    ``--inputs`` takes ``.npz`` and ``.safetensors`` (one set of named tensors), ``.pt`` (the sets themselves: a list of
    tuples or dicts; loaded with ``weights_only=True``) and ``file.py:function``.

    Before:
        import torch
        def net(x):
            return x * 2
        torch.save(torch.nn.Linear(3, 1), "inputs.pt")
        command = "dy2st check example.py:net --inputs inputs.pt"

    After:
        import torch
        def net(x):
            return x * 2
        torch.save([(torch.ones(3),), (torch.zeros(3),)], "inputs.pt")
        command = "dy2st check example.py:net --inputs inputs.pt"
    """

    code = "D2S904"


class ExampleInputsError(UsageError):
    """The example inputs are missing or not of the right form.

    A set of inputs is a tuple of arguments or a dict of keyword arguments; the example inputs are an iterable of sets,
    or a dict that gives each set a name.

    Before:
        import torch
        def model(x):
            return x * 2
        inputs = torch.ones(3)

    After:
        import torch
        def model(x):
            return x * 2
        inputs = {"positive": (torch.ones(3),), "negative": (-torch.ones(3),)}
    """

    code = "D2S905"


class SettingsError(UsageError):
    r"""The settings in ``[tool.dy2st]`` of pyproject.toml are wrong.

    Of a run: ``targets`` (what ``dy2st check`` checks without arguments), ``jobs``, ``cache``, ``baseline``. Of all
    targets: ``opset``, ``opsets``, ``rtol``, ``atol``, ``search``, ``seed``, ``allow_uncovered``, ``timeout``,
    ``all_errors``, ``drop_guards``, ``optimization_levels``, ``providers``, ``runtimes``, like the options of ``dy2st
    check``. Of one, in a ``[[tool.dy2st.target]]`` that names it as ``target``: these, ``input``, ``inputs``,
    ``allow_specialize`` and ``save_inputs``.

    Before:
        import pathlib
        def net(x):
            return x * 2
        pathlib.Path("pyproject.toml").write_text("[tool.dy2st]\nopset = 'new'\n")
        command = "dy2st check example.py:net --input x=f32[3]"

    After:
        import pathlib
        def net(x):
            return x * 2
        pathlib.Path("pyproject.toml").write_text("[tool.dy2st]\nopset = 20\n")
        command = "dy2st check example.py:net --input x=f32[3]"
    """

    code = "D2S906"


class BaselineError(UsageError):
    """The baseline that a run is compared with is not there, can't be read, or is none.

    ``dy2st check --update-baseline`` writes it, to the file that ``--baseline`` or the settings name.

    Before:
        def net(x):
            return x * 2
        command = "dy2st check example.py:net --input x=f32[3] --baseline baseline.json"

    After:
        def net(x):
            return x * 2
        command = "dy2st check example.py:net --input x=f32[3] --baseline baseline.json --update-baseline"
    """

    code = "D2S907"


class ClusterError(UsageError):
    """The Dask cluster of ``--scheduler`` can't be used.

    Dask is not installed, the scheduler does not answer or has no workers, or a worker has other files, another dy2st
    or other libraries than there are here: what it would check is something else.

    Before:
        def net(x):
            return x * 2
        command = "dy2st check example.py:net --input x=f32[3] --scheduler nowhere"

    After:
        def net(x):
            return x * 2
        command = "dy2st check example.py:net --input x=f32[3]"
    """

    code = "D2S908"
