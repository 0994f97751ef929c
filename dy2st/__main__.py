"""``python -m dy2st``: the same as the ``dy2st`` command."""

from dy2st.cli.main import run

run()
