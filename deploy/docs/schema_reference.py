"""Reference of a protobuf package in Markdown, from the comments of its files.

protoc keeps the comments in the FileDescriptorSet, by the path of each element.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc_tools
from google.protobuf import descriptor_pb2 as descriptors
from grpc_tools import protoc

# Numbers of the fields in descriptor.proto, of which the path of an element consists.
_MESSAGE, _ENUM, _SERVICE, _SYNTAX = 4, 5, 6, 12
_FIELD, _VALUE, _METHOD = 2, 2, 2
_SCALARS = {
    number: name[5:].lower() for name, number in descriptors.FieldDescriptorProto.Type.items()
}
Comments = dict[tuple[int, ...], str]


def pages(root: Path, package: str) -> dict[str, str]:
    """Markdown by path: PACKAGE/FILE.md for every proto file of a directory of `root`."""
    names = sorted(str(path.relative_to(root)) for path in (root / package).glob("*.proto"))
    files = [file for file in _compile(root, names).file if file.name in names]
    places: dict[str, str] = {}
    for file in files:
        names_in_file = [message.name for message in file.message_type]
        names_in_file += [kind.name for kind in file.enum_type]
        for name in names_in_file:
            places[f".{file.package}.{name}"] = f"{Path(file.name).stem}.md#{name}"
    return {file.name.replace(".proto", ".md"): _page(file, places) for file in files}


def _compile(root: Path, names: list[str]) -> descriptors.FileDescriptorSet:
    bundled = Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.NamedTemporaryFile() as output:
        arguments = ["protoc", f"-I{root}", f"-I{bundled}", "--include_source_info"]
        if protoc.main([*arguments, f"--descriptor_set_out={output.name}", *names]) != 0:
            raise RuntimeError("protoc failed; see above")
        return descriptors.FileDescriptorSet.FromString(Path(output.name).read_bytes())


def _page(file: descriptors.FileDescriptorProto, places: dict[str, str]) -> str:
    comments: Comments = {
        tuple(location.path): location.leading_comments
        for location in file.source_code_info.location
        if location.leading_comments
    }
    parts = [f"# {Path(file.name).name}", _paragraphs(comments.get((_SYNTAX,), ""))]
    for i, service in enumerate(file.service):
        parts += _service(service, (_SERVICE, i), comments, places)
    for i, message in enumerate(file.message_type):
        parts += _message(message, (_MESSAGE, i), comments, places)
    for i, kind in enumerate(file.enum_type):
        parts += _enum(kind, (_ENUM, i), comments)
    return "\n\n".join(filter(None, parts)) + "\n"


def _message(
    message: descriptors.DescriptorProto,
    path: tuple[int, ...],
    comments: Comments,
    places: dict[str, str],
) -> Iterator[str]:
    yield f"## {message.name} {{#{message.name}}}"
    yield _paragraphs(comments.get(path, ""))
    if not message.field:
        return
    rows = ["| field | number | type | |", "|---|---|---|---|"]
    for i, field in enumerate(message.field):
        text = _line(comments.get((*path, _FIELD, i), ""))
        kind = _type(message, field, places)
        rows.append(f"| `{field.name}` | {field.number} | {kind} | {text} |")
    yield "\n".join(rows)


def _type(
    message: descriptors.DescriptorProto,
    field: descriptors.FieldDescriptorProto,
    places: dict[str, str],
) -> str:
    kind = _link(field.type_name, places) if field.type_name else f"`{_SCALARS[field.type]}`"
    if field.label == field.LABEL_REPEATED:
        return f"repeated {kind}"
    if field.proto3_optional:
        return f"optional {kind}"
    if field.HasField("oneof_index"):
        return f"{kind}, one of `{message.oneof_decl[field.oneof_index].name}`"
    return kind


def _enum(
    kind: descriptors.EnumDescriptorProto, path: tuple[int, ...], comments: Comments
) -> Iterator[str]:
    yield f"## {kind.name} {{#{kind.name}}}"
    yield _paragraphs(comments.get(path, ""))
    rows = ["| value | number | |", "|---|---|---|"]
    for i, value in enumerate(kind.value):
        text = _line(comments.get((*path, _VALUE, i), ""))
        rows.append(f"| `{value.name}` | {value.number} | {text} |")
    yield "\n".join(rows)


def _service(
    service: descriptors.ServiceDescriptorProto,
    path: tuple[int, ...],
    comments: Comments,
    places: dict[str, str],
) -> Iterator[str]:
    yield f"## {service.name} {{#{service.name}}}"
    yield _paragraphs(comments.get(path, ""))
    for i, method in enumerate(service.method):
        request = ("stream of " if method.client_streaming else "") + _link(
            method.input_type, places
        )
        answer = ("stream of " if method.server_streaming else "") + _link(
            method.output_type, places
        )
        yield f"### {method.name} {{#{service.name}.{method.name}}}"
        yield f"{request} → {answer}"
        yield _paragraphs(comments.get((*path, _METHOD, i), ""))


def _link(type_name: str, places: dict[str, str]) -> str:
    name = type_name.rpartition(".")[2]
    return f"[{name}]({places[type_name]})" if type_name in places else f"`{name}`"


def _paragraphs(comment: str) -> str:
    """A comment as paragraphs; its indented lines are formulas, which keep their layout."""
    blocks: list[tuple[bool, list[str]]] = []
    for line in comment.splitlines():
        line = line.removeprefix(" ")
        formula = line.startswith(" ")
        if not line.strip():
            blocks.append((False, []))
        elif blocks and blocks[-1][0] == formula:
            blocks[-1][1].append(line)
        else:
            blocks.append((formula, [line]))
    texts = [
        "\n".join(["```text", *lines, "```"]) if formula else _escape(" ".join(lines))
        for formula, lines in blocks
        if lines
    ]
    return "\n\n".join(texts)


def _line(comment: str) -> str:
    """A comment as the text of a cell."""
    return _escape(" ".join(comment.split())).replace("|", "\\|")


def _escape(text: str) -> str:
    """Escapes what Markdown would read as markup, outside of `code`."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([\\*_\[\]])", r"\\\1", part) for part in parts[::2]]
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)
