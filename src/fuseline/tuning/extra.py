"""What a search needs beside fuseline: the extra `tune`."""

from __future__ import annotations

from importlib.util import find_spec

from fuseline.errors import MissingPackageError


def require_optuna() -> None:
    """Raises MissingPackageError (E0503) where Optuna is not installed."""
    if find_spec("optuna") is None:
        message = "optuna is not installed, which searches with"
        raise MissingPackageError("E0503", message, node="optuna", hint="pip install 'fuseline[tune]'")


def quiet() -> None:
    """Optuna says nothing of its own: what goes on is for whoever runs the search to say."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
