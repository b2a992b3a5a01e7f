"""`dataclass` as the house uses it, made in a tenth of the time: a start makes five hundred of them.

The standard decorator writes six methods of each class as text and compiles them. For the form of the house,
`@dataclass(frozen=True, slots=True, kw_only=True)`, this one shares five of them and compiles `__init__` when
the first instance is made. What it gives is a dataclass to `fields`, `replace`, `is_dataclass` and type
checkers; any other form goes to the standard one.
"""

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, **more):  # noqa: ANN001, ANN003, ANN201
        """Return the class as a dataclass; as `dataclasses.dataclass`."""

        def make(kind: type) -> type:
            if frozen and slots and kw_only and not more and _is_plain(kind):
                return _frozen(kind)
            return dataclasses.dataclass(kind, frozen=frozen, slots=slots, kw_only=kw_only, **more)

        return make if cls is None else make(cls)


__all__ = ["dataclass"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """What the standard decorator writes on a class of this form."""

    field: int


_PARAMS = _Sample.__dataclass_params__  # type: ignore[attr-defined]
_A_FIELD = _Sample.__dataclass_fields__["field"]._field_type  # type: ignore[attr-defined]  # noqa: SLF001
_NOT_PLAIN = ("ClassVar", "InitVar", "KW_ONLY")
_Names = tuple[str, ...]
_compared: dict[type, _Names] = {}
_shown: dict[type, _Names] = {}


def _is_plain(kind: type) -> bool:
    """Whether it inherits nothing and has fields alone."""
    annotations = inspect.get_annotations(kind)
    return kind.__bases__ == (object,) and not any(
        word in str(hint) for hint in annotations.values() for word in _NOT_PLAIN
    )


def _frozen(kind: type) -> type:
    fields: dict[str, Field[object]] = {}
    members = dict(kind.__dict__)
    for name, hint in members.get("__annotations__", {}).items():
        default = members.pop(name, MISSING)
        item = default if isinstance(default, Field) else dataclasses.field(default=default)
        item.name, item.type, item.kw_only = name, hint, True
        setattr(item, "_field_type", _A_FIELD)  # noqa: B010 - private to the standard module
        fields[name] = item
    for name in ("__dict__", "__weakref__"):
        members.pop(name, None)
    members |= {
        "__slots__": tuple(fields),
        "__dataclass_fields__": fields,
        "__dataclass_params__": _PARAMS,
        "__match_args__": (),
        "__eq__": members.get("__eq__", _equal),
        "__hash__": members.get("__hash__") or _hash,
        "__repr__": members.get("__repr__", _repr),
        "__setattr__": _refuse_set,
        "__delattr__": _refuse_delete,
        "__getstate__": _state,
        "__setstate__": _set_state,
    }
    made = type(kind)(kind.__name__, kind.__bases__, members)
    made.__qualname__ = kind.__qualname__
    _compared[made] = tuple(name for name, item in fields.items() if item.compare)
    _shown[made] = tuple(name for name, item in fields.items() if item.repr)
    if "__init__" not in members:
        made.__init__ = _first_init(made)  # type: ignore[misc]
    return made


def _first_init(kind: type) -> Callable[..., None]:
    def __init__(self: object, **values: object) -> None:  # noqa: N807
        real = _compiled_init(kind)
        kind.__init__ = real  # type: ignore[misc]
        real(self, **values)

    return __init__


def _compiled_init(kind: type) -> Callable[..., None]:
    names: dict[str, object] = {"_set": object.__setattr__, "_missing": MISSING}
    parameters, lines = [], []
    for name, item in kind.__dataclass_fields__.items():  # type: ignore[attr-defined]
        value = name
        if item.default is not MISSING:
            names[f"_d_{name}"] = item.default
            parameters.append(f"{name}=_d_{name}")
        elif item.default_factory is not MISSING:
            names[f"_f_{name}"] = item.default_factory
            parameters.append(f"{name}=_missing")
            value = f"_f_{name}() if {name} is _missing else {name}"
        else:
            parameters.append(name)
        if not item.init:
            parameters.pop()
            value = f"_d_{name}" if item.default is not MISSING else f"_f_{name}()"
        lines.append(f" _set(self, {name!r}, {value})")
    if hasattr(kind, "__post_init__"):
        lines.append(" self.__post_init__()")
    star = "*, " if parameters else ""
    head = f"def __init__(self, {star}{', '.join(parameters)}):"
    text = "\n".join([head, *(lines or [" pass"])])
    scope: dict[str, Callable[..., None]] = {}
    exec(text, names, scope)  # noqa: S102 - the text is made of field names, as the standard decorator's is
    return scope["__init__"]


def _equal(self: object, other: object) -> object:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return all(bool(getattr(self, name) == getattr(other, name)) for name in _compared[self.__class__])


def _hash(self: object) -> int:
    return hash(tuple(getattr(self, name) for name in _compared[self.__class__]))


def _repr(self: object) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _shown[self.__class__])
    return f"{self.__class__.__qualname__}({shown})"


def _refuse_set(self: object, name: str, value: object) -> None:  # noqa: ARG001
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> None:  # noqa: ARG001
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: object) -> list[object]:
    return [getattr(self, name) for name in self.__class__.__dataclass_fields__]  # type: ignore[attr-defined]


def _set_state(self: object, state: list[object]) -> None:
    for name, value in zip(self.__class__.__dataclass_fields__, state, strict=True):  # type: ignore[attr-defined]
        object.__setattr__(self, name, value)
