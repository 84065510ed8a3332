# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Python interface as Markdown, from signatures and docstrings: the body of docs/api.md."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, get_type_hints

import headwaiter

FOREIGN = {"Trace", "Problem", "Conditions"}
"""Classes that users do not make by calling them with their fields: the docstring says what they are."""


def page() -> str:
    """A section for each name."""
    functions = [name for name in headwaiter.__all__ if not inspect.isclass(offered(name))]
    classes = [name for name in headwaiter.__all__ if name not in functions]
    return "\n".join(section(name) for name in (*functions, *classes))


def offered(name: str) -> Any:
    """What stands behind a name. drives is the function, and not the package that can be called in its place."""
    return importlib.import_module("headwaiter.drives").drives if name == "drives" else getattr(headwaiter, name)


def section(name: str) -> str:
    """A function, or a class with all that it has."""
    found = offered(name)
    out = [f"## headwaiter.{name}\n"]
    if not inspect.isclass(found):
        out.append(signature(name, found))
    out.append(prose(found))
    if inspect.isclass(found):
        out += members(name, found)
    return "\n".join(out)


def signature(name: str, function: Callable[..., Any]) -> str:
    """As it is called, a line for each parameter."""
    parsed = inspect.signature(function)
    parameters = [re.sub(r"^([^:]*: )'([^']*)'", r"\1\2", str(p)) for p in parsed.parameters.values()]
    returned = str(parsed.return_annotation).strip("'")
    one = f"headwaiter.{name}({', '.join(parameters)}) -> {returned}"
    if len(one) > 100:
        one = f"headwaiter.{name}(\n" + "".join(f"    {p},\n" for p in parameters) + f") -> {returned}"
    return f"```python\n{one}\n```\n"


def prose(found: Any) -> str:
    """A docstring, with its examples as code."""
    text = inspect.getdoc(found) or ""
    parts = re.split(r"((?:^>>> .*\n(?:(?!\n).+\n?)*\n?)+)", text + "\n", flags=re.M)
    return "\n".join(f"```pycon\n{part.strip()}\n```\n" if part.startswith(">>> ") else f"{part.strip()}\n"
                     for part in parts if part.strip())  # fmt: skip


def members(name: str, kind: type) -> Iterator[str]:
    """Fields, properties and methods of a class."""
    if name == "Conditions":
        rows = "".join(f"| `{key}` | `{plain(hint)}` |\n" for key, hint in get_type_hints(kind).items())
        yield f"| condition | type |\n| --- | --- |\n{rows}"
        return
    if name in FOREIGN:
        return
    said = attribute_docs(kind)
    for one in (f for f in dataclasses.fields(kind) if not f.name.startswith("_")):
        yield f"### {name}.{one.name}\n\n`{one.type}`. {said.get(one.name, '')}\n"
    for key, member in vars(kind).items():
        if isinstance(member, property):
            yield f"### {name}.{key}\n\n`{inspect.signature(member.fget).return_annotation}`. {prose(member)}"  # type: ignore[arg-type]
        elif isinstance(member, FunctionType) and member.__doc__ and not key.startswith("_"):
            called = str(inspect.signature(member)).replace("(self, ", "(").replace("(self)", "()").replace("'", "")
            yield f"### {name}.{key}\n\n```python\n{key}{called}\n```\n\n{prose(member)}"
        elif key == "__getitem__":
            yield f"### {name}[scheduler]\n\n{prose(member)}"


def attribute_docs(kind: type) -> dict[str, str]:
    """Return the string beneath each field."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        node.target.id: inspect.cleandoc(after.value.value)
        for node, after in zip(body.body, body.body[1:], strict=False)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
    }  # fmt: skip


def plain(hint: Any) -> str:
    """A type as people write it."""
    if isinstance(hint, type) and not getattr(hint, "__args__", ()):
        return hint.__name__
    return str(hint).replace("typing.", "").replace("collections.abc.", "")
