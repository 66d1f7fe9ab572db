"""One registry per kind of thing: families, routing schemes, collectives, renderers.

Each thing is one module that registers itself under a name; the registry imports its modules
when it is first asked, so that ``import netplan`` stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Generic, TypeVar

from netplan.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from netplan.errors import NetplanError

T = TypeVar("T")


class Registry(Generic[T]):
    """Things of one kind by name.

    Parameters
    ----------
    word
        What the things are called in messages, such as ``routing``.
    package
        Package that the modules are in.
    modules
        Modules that register things, in the order in which they are listed.
    error
        Raised for a name that is not there.
    """

    def __init__(
        self, word: str, package: str, modules: tuple[str, ...], error: Callable[..., NetplanError]
    ) -> None:
        self._word = word
        self._modules = tuple(f"{package}.{module}" for module in modules)
        self._error = error
        self._items: dict[str, tuple[str, T]] = {}
        self._prefixes: dict[str, tuple[str, Callable[[str], T]]] = {}

    def add(self, name: str, module: str, item: T) -> None:
        """Register ``item``, defined in ``module``, under a name."""
        self._items[name] = (module, item)

    def add_prefix(self, prefix: str, form: str, find: Callable[[str], T]) -> None:
        """Let names ``prefix:...`` be found too, though not listed: of a higher layer, made on demand.

        Parameters
        ----------
        prefix
            What stands before the colon.
        form
            How such names look, for messages: ``opensm:ENGINE``.
        find
            Returns the thing of a whole name, or raises.
        """
        self._prefixes[prefix] = (form, find)

    def names(self) -> tuple[str, ...]:
        """Return all names, in the order of their modules, whichever was imported first."""
        for module in self._modules:
            importlib.import_module(module)
        place = {module: i for i, module in enumerate(self._modules)}
        return tuple(sorted(self._items, key=lambda name: place.get(self._items[name][0], len(place))))

    def find(self, name: str) -> T:
        """Return the thing of a name.

        Raises
        ------
        NetplanError
            There is none (of the class given to the registry); the message lists those there are.
        """
        prefix, colon, _ = name.partition(":")
        if colon and prefix in self._prefixes:
            return self._prefixes[prefix][1](name)
        names = self.names()
        if name not in names:
            forms = [form for form, _ in self._prefixes.values()]
            message = f"{self._word} {name!r} is not one of {', '.join((*names, *forms))}"
            raise self._error(message, hint=did_you_mean(name, names))
        return self._items[name][1]

    def __iter__(self) -> Iterator[T]:
        """Iterate over all things, in the order of `names`."""
        return iter([self._items[name][1] for name in self.names()])
