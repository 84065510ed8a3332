# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter drives: what there is, what a profile says, and profiles made from DiskSim's files or from a data sheet."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem
from rich import box
from rich.table import Table
from rich.text import Text

import headwaiter
from headwaiter.base.errors import Problem, plain, shown
from headwaiter.base.outputs import distinct, writing
from headwaiter.base.parsing import parse_toml
from headwaiter.base.records import SCHEMA, like
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Group
from headwaiter.cli._options import Finite
from headwaiter.cli._output import output_option, output_options, write_json, write_text
from headwaiter.drives import Profile, bundled, find_drive, load
from headwaiter.drives.convert import convert, falls
from headwaiter.drives.datasheet import DataSheet, from_datasheet
from headwaiter.drives.params import Model, Param, models
from headwaiter.drives.profile import Toml, from_toml
from headwaiter.drives.sheet import from_iocost, from_sheet
from headwaiter.drives.volume import read_fio, volume
from headwaiter.drives.writing import toml_text
from headwaiter.engine.constants import SECTOR_BYTES, ParamType
from headwaiter.report.terminal import console
from headwaiter.study.schema import DriveDocument, DriveRow, DrivesDocument

_LARGEST = 10**18
_RATES = ("read", "write", "read_iops", "write_iops")
_GROUPS = {"Disks": "disk", "Flash": "flash", "Cloud volumes": "volume"}
_SIZES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


class _Group(Group):
    """A group whose first argument may also be a drive's name: that shows the drive."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["show", *args]
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands, and what `show` takes."""
        return [*complete.drive(ctx, self.params[0], incomplete), *super().shell_complete(ctx, incomplete)]


def _facts(p: Profile) -> DriveRow:
    sectors, depth, rotational = p.facts
    return DriveRow(
        drive=p.name,
        description=p.description,
        model=p.model.name,
        capacity_bytes=sectors * SECTOR_BYTES,
        queue_depth=depth,
        rotational=rotational,
    )


@click.group("drives", cls=_Group, invoke_without_command=True)
@output_options
@click.pass_context
def command(ctx: click.Context, as_json: bool, output: Path | None) -> None:
    """List the drives, show one (NAME or FILE.toml), and make profiles.

    `new`, `from` and `import` make a profile; `export` converts one for the kernel modules.
    """
    if ctx.invoked_subcommand:
        return
    known = [load(path) for path in bundled().values()]
    if as_json or output:
        write_json(DrivesDocument(drives=[_facts(one) for one in known]), output)
        return
    width = max(len(one.name) for one in known)
    out = console()
    for heading, kind in _GROUPS.items():
        out.print(heading, style="bold")
        for one in known:
            if one.kind == kind:
                out.print(f"{one.name:{width}}  {one.sectors * SECTOR_BYTES / 1e9:7.1f} GB  {one.description}", soft_wrap=True)


def _value(p: Param, data: Toml) -> str:
    """Return what a profile says of a parameter; '' if it leaves it at its default."""
    value: Any = data
    for part in p.key.split("."):
        if isinstance(value, list):
            value = [row.get(part, []) for row in value if isinstance(row, dict)]
            return f"{sum(len(v) for v in value)} rows"
        value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            return ""
    if p.type in (ParamType.LIST, ParamType.DRIVES):
        return f"{len(value)} rows" if p.type == ParamType.LIST else ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _param_table(m: Model, data: Toml | None) -> Table:
    t = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    heads = ("parameter", "unit", "default", "values", "meaning") if data is None else ("parameter", "value", "unit", "meaning")
    for head in heads:
        t.add_column(head, no_wrap=head == "parameter", justify="right" if head in ("value", "default") else "left")
    for p, name in m.rows():
        if data is None:
            t.add_row(name, p.unit, p.default_text, p.bounds, p.help)
        elif p is m.params.get(name):
            value = _value(p, data)
            t.add_row(name, plain(value) if value else Text(p.default_text, "dim"), p.unit, p.help)
    return t


@command.command("show")
@click.argument("name", shell_complete=complete.drive)
@output_options
def show(name: str, as_json: bool, output: Path | None) -> None:
    """Show a drive's parameters (short form: `headwaiter drives NAME`)."""
    p = find_drive(name)
    facts = _facts(p)
    if as_json or output:
        write_json(like(DriveDocument, facts, schema=SCHEMA, version=headwaiter.__version__, parameters=p.data), output)
        return
    out = console()
    out.print(Text.assemble((plain(p.name), "bold"), f": {plain(p.description)}"), soft_wrap=True)
    out.print(
        f"{p.model.name}: {p.model.summary}; {facts.capacity_bytes / 1e9:.1f} GB, queue depth {facts.queue_depth}",
        soft_wrap=True,
    )
    out.print(_param_table(p.model, p.data))


@command.command("export")
@click.argument("name", shell_complete=complete.drive)
@click.option(
    "--positions",
    is_flag=True,
    help="Write the positioning times for a scheduler instead: one line SECTORS NS for each distance.",
)
@output_option()
def export(name: str, positions: bool, output: Path | None) -> None:
    """Write a profile in the kernel modules' format: flat for headwaiter_disk, or --positions for queue/iosched."""
    p = find_drive(name)
    if positions:
        write_text(p.positions_text, output)
    elif output:
        with writing(output) as temporary:
            temporary.write_bytes(p.blob)
    elif sys.stdout.isatty():
        raise Problem("drives export: the profile is binary: use -o FILE or a pipe")
    else:
        click.echo(p.blob, nl=False)


@command.command("models")
@click.argument("name", required=False)
def models_(name: str | None) -> None:
    """Show every drive model, or one, with all parameters of its profiles."""
    if name is not None and name not in models():
        raise Problem(f"no such drive model '{shown(name)}' (known: {', '.join(models())})")
    out = console()
    for m in models().values():
        if name in (None, m.name):
            out.print(Text.assemble((m.name, "bold"), f": {m.summary}"), soft_wrap=True)
            out.print(_param_table(m, None))


def _made(data: Toml, notes: dict[str, str], name: str, what: str, by: str, output: Path | None) -> None:
    """Write a profile that was made from some numbers, and tell what was guessed."""
    data = {"model": data.pop("model"), "description": name or f"made from {what}", **data}
    _write(data, output, f"{name or 'A drive'}, from {what} by 'headwaiter drives {by}'.", notes)
    for key, note in notes.items():
        click.echo(f"{key}: {note}", err=True)


def _write(data: Toml, output: Path | None, heading: str, notes: dict[str, str]) -> None:
    where = str(output) if output else "profile"
    text = toml_text(data, heading, notes)
    from_toml(parse_toml(where, text.encode()), "", where)
    write_text(text, output)


@command.command("import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@output_option("DRIVE.toml")
@click.option("--as-disksim", is_flag=True, help="Interpret parameters as DiskSim does, even where real drives differ.")
def import_(file: Path, output: Path | None, as_disksim: bool) -> None:
    """Make a profile from DiskSim's parameters: FILE.parv or .diskspecs, with the files that it sources."""
    distinct({"FILE": file}, {"-o": output})
    data, name = convert(file, as_disksim)
    data = {"model": data.pop("model"), "description": name.replace("_", " "), **data}
    how = "\nParameters interpreted as in DiskSim." if as_disksim else ""
    try:
        _write(data, output, f"{name}, from {file.name} (DiskSim parameters).{how}", {})
    except Problem as e:
        raise Problem(f"{file}: {e}") from None
    for what in falls(data):
        click.echo(f"headwaiter: {file}: warning: {what}", err=True)


class _Size(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """80GB, 4T, 512000000: bytes; decimal multiples, as on data sheets."""
        m = re.fullmatch(r"(\d{1,20}(?:\.\d{1,20})?)\s*([kmgt]?)b?", str(value).strip().lower(), re.ASCII)
        size = round(float(m[1]) * _SIZES[m[2]]) if m else 0
        if not m or size > _LARGEST:
            self.fail(f"'{shown(str(value))}' is not a capacity such as 80GB")
        return size


_POSITIVE = Finite(0, 1e6, min_open=True)


@command.command("new")
@click.option("--name", default="", help="Name of the drive.")
@click.option("--kind", type=click.Choice(["disk", "flash", "volume"]), default="disk", show_default=True, help="What it is.")
@click.option("--rpm", type=Finite(100, 50000), help="Rotation speed of a disk.")
@click.option("--capacity", type=_Size(), required=True, metavar="SIZE", help="Capacity, such as 80GB.")
@click.option("--seek-average", type=_POSITIVE, metavar="MS", help="Average seek of reads, of a disk.")
@click.option("--seek-average-write", type=_POSITIVE, metavar="MS", help="Average seek of writes.")
@click.option("--seek-track", type=_POSITIVE, metavar="MS", help="Track-to-track seek.")
@click.option("--seek-full", type=_POSITIVE, metavar="MS", help="Full-stroke seek.")
@click.option("--rate-outer", type=_POSITIVE, metavar="MB/S", help="Sustained rate on the outermost tracks.")
@click.option("--rate-inner", type=_POSITIVE, metavar="MB/S", help="Sustained rate on the innermost tracks.")
@click.option("--surfaces", type=click.IntRange(1, 64), help="Number of heads.")
@click.option("--head-switch", type=_POSITIVE, metavar="MS", help="Head switch time.")
@click.option("--cache", "cache_mib", type=_POSITIVE, metavar="MIB", help="Buffer size.")
@click.option("--interface", "interface_rate", type=_POSITIVE, metavar="MB/S", help="Rate of the interface.")
@click.option("--queue-depth", type=click.IntRange(1, 1024), default=1, show_default=True, help="Depth of the command queue.")
@click.option("--write-cache/--no-write-cache", default=True, show_default=True, help="Report writes from the cache.")
@click.option("--read", type=_POSITIVE, metavar="MB/S", help="Sequential reads, of flash or a volume.")
@click.option("--write", type=_POSITIVE, metavar="MB/S", help="Sequential writes, of flash or a volume.")
@click.option("--read-iops", type=Finite(1, 1e9), metavar="N", help="Random reads of 4 KiB a second, of flash or a volume.")
@click.option("--write-iops", type=Finite(1, 1e9), metavar="N", help="Random writes of 4 KiB a second, of flash or a volume.")
@output_option("DRIVE.toml")
@click.pass_context
def new(ctx: click.Context, /, name: str, kind: str, output: Path | None, **given: Any) -> None:
    """Make a profile from the numbers of a data sheet. Guesses are listed on stderr and in the profile."""
    rates = {key: given.pop(key) for key in _RATES}
    if kind == "disk":
        for key in ("rpm", "seek_average"):
            if given[key] is None:
                raise Problem(f"drives new: --{key.replace('_', '-')} is missing (--kind flash or volume does not rotate)")
        if told := [key for key, value in rates.items() if value is not None]:
            raise Problem(f"drives new: --{told[0].replace('_', '-')} is of flash and volumes, not of a disk")
        data, notes = from_datasheet(DataSheet(**given))
    else:
        for key in given:
            if key not in ("capacity", "queue_depth") and ctx.get_parameter_source(key) is ParameterSource.COMMANDLINE:
                raise Problem(f"drives new: --{key.replace('_', '-')} is of a disk, not of --kind {kind}")
        words = [f"{key}={value}" for key, value in rates.items() if value is not None]
        if ctx.get_parameter_source("queue_depth") is ParameterSource.COMMANDLINE:
            words.append(f"depth={given['queue_depth']}")
        data, notes = from_sheet((f"kind={kind}", *words), given["capacity"], "drives new")
    _made(data, notes, name, "data-sheet numbers", "new", output)


@command.command("from")
@click.option("--fio", is_flag=True, help="FILE.json...: a sweep of depths and sizes, as `fio --output-format=json` writes it.")
@click.option("--iocost", metavar="LINE|MODEL", help="The kernel's io.cost.model line, or a drive of the public iocost database.")
@click.option(
    "--sheet", is_flag=True, help="KEY=VALUE...: kind, capacity, read and write in MB/s, read_iops, write_iops, plp, dram, ..."
)
@click.option("--capacity", type=_Size(), metavar="SIZE", help="Capacity, such as 1TB.")
@click.option("--name", default="", help="Name of the drive.")
@click.argument("given", nargs=-1, metavar="[FILE.json|KEY=VALUE]...")
@output_option("DRIVE.toml")
def from_(
    fio: bool, iocost: str | None, sheet: bool, capacity: int | None, name: str, given: tuple[str, ...], output: Path | None
) -> None:
    """Make a profile of flash or of a cloud volume from what fio measured, io.cost's six numbers, or a data sheet.

    Guesses are listed on stderr and in the profile.
    """
    if fio + bool(iocost) + sheet != 1:
        raise Problem("drives from: give one of --fio, --iocost and --sheet")
    if iocost is not None:
        if given:
            raise Problem(f"drives from --iocost: '{shown(given[0])}' is one argument too many (quote the line)")
        what, (data, notes) = "io.cost's numbers", from_iocost(iocost, capacity)
    elif not given:
        raise Problem(f"drives from: {'--fio takes files' if fio else '--sheet takes key=value pairs'}")
    elif fio:
        what, (data, notes) = "fio's figures", volume(read_fio([Path(one) for one in given]), capacity or 10**12)
        if capacity is None:
            notes["geometry.sectors"] = "guessed: 1 TB"
    else:
        what, (data, notes) = "a data sheet", from_sheet(given, capacity)
    _made(data, notes, name, what, "from", output)
