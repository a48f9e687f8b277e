"""Huge HLO texts: deep nesting, wide tuples, very many instructions, a fault in every line."""

from __future__ import annotations

BEGIN = "ENTRY e { x = f32[] parameter(0) y = "
A = "'a'=1,"
ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"


def vast(size: int) -> dict[str, str]:
    """By what is vast of it, each text of about so many characters."""
    lines, nines = size // 30, "9" * size
    return {
        "blanks": BEGIN + " " * size,
        "brackets": BEGIN + "(" * size,
        "closing brackets": BEGIN + "f32[] negate(x" + ")" * size,
        "braces": BEGIN + "f32[] negate(x), backend_config=" + "{" * size,
        "balanced braces": BEGIN + "f32[] negate(x), backend_config=" + "{" * (size // 2) + "}" * (size // 2) + " }",
        "nested operands": BEGIN + "f32[] negate(f32[] " * (size // 19),
        "nested tuples": BEGIN + "(" * (size // 2) + ")" * (size // 2) + " tuple() }",
        "wide tuple": BEGIN + "(" + "f32[], " * (size // 7) + "f32[]) tuple(x) }",
        "inline computations": BEGIN + "f32[] call(x), to_apply={ y = " * (size // 30),
        "comments": BEGIN + "/*" * (size // 2),
        "closed comments": BEGIN + "/**/" * (size // 4) + "f32[] negate(x) }",
        "line comments": BEGIN + "//\n" * (size // 3) + "f32[] negate(x) }",
        "escapes": BEGIN + '"\\' * (size // 2),
        "quotes": BEGIN + "f32[] negate(x), metadata={op_name=" + '"a" ' * (size // 4),
        "name": BEGIN + f"f32[] negate({'n' * size}) }}",
        "opcode": BEGIN + f"f32[] {'n' * size}(x) }}",
        "attribute": BEGIN + f"f32[] negate(x), {'n' * size}=1 }}",
        "string": BEGIN + f'f32[] negate(x), metadata={{op_name="{"a" * size}"}} }}',
        "extent": BEGIN + f"f32[{nines}] negate(x)",
        "rank": BEGIN + f"f32[{'1,' * (size // 2)}1] negate(x) }}",
        "layout": BEGIN + f"f32[2]{{{'0,' * (size // 2)}0}} negate(x) }}",
        "number": BEGIN + f"s32[] constant({nines})",
        "float": BEGIN + f"f64[] constant(0.{nines}e{nines}) }}",
        "elements": BEGIN + f"s8[{size // 2}] constant({{{'1,' * (size // 2 - 1)}1}}) }}",
        "elements without commas": BEGIN + f"s8[{size // 2}] constant({{{'1 ' * (size // 2)}}}) }}",
        "braces of a constant": BEGIN + "f32[] constant(" + "{" * size,
        "parameter": BEGIN + f"f32[] parameter({nines}) }}",
        "operands": BEGIN + "f32[] add(" + "x," * (size // 2),
        "operands of a tuple": BEGIN + "tuple(" + "x," * (size // 2) + "x) }",
        "dimensions": BEGIN + "f32[] transpose(x), dimensions={" + "0," * (size // 2) + "0} }",
        "slices": BEGIN + "f32[] slice(x), slice={" + "[0:1], " * (size // 7) + "[0:1]} }",
        "window": BEGIN + "f32[] reduce-window(x, x), window={size=" + "3x" * (size // 2) + "3}, to_apply=f }",
        "padding": BEGIN + "f32[] pad(x, x), padding=" + "0_0x" * (size // 4) + "0_0 }",
        "labels": BEGIN + f"f32[] convolution(x, x), dim_labels={'b' * size}_{'i' * size}->{'b' * size} }}",
        "groups": f"{ADD}{BEGIN}f32[] all-reduce(x), replica_groups={{{'{0},' * (size // 4)}{{0}}}}, to_apply=add }}",
        "iota": f"{ADD}{BEGIN}f32[] all-reduce(x), replica_groups=[1,1]<=[{'1,' * (size // 2)}1], to_apply=add }}",
        "mesh": f"{ADD}{BEGIN}f32[] all-reduce(x), replica_groups=mesh[{A * (size // 6)}'b'=1] {{}} }}",
        "pairs": BEGIN + "f32[] collective-permute(x), source_target_pairs={" + "{0,0}," * (size // 6) + "{0,0}} }",
        "sharding": BEGIN + "f32[] negate(x), sharding={devices=[" + "1," * (size // 2) + "1]0} }",
        "header": "HloModule m, " + "is_scheduled=true, " * (size // 19),
        "signature": "ENTRY e (" + "x: f32[], " * (size // 10),
        "arrows": "m {\n}\nx (" + "->" * (size // 2) + "\n",
        "tables": "HloModule m\nFileNames\n" + '1 "a"\n' * (size // 6) + BEGIN + "f32[] negate(x) }",
        "computations": "".join(f"c{n} {{ x = f32[] parameter(0) }}\n" for n in range(lines)),
        "computations of one name": "c { x = f32[] parameter(0) }\n" * lines,
        "empty computations": "".join(f"c{n} {{\n}}\n" for n in range(size // 10)),
        "instructions of one line": BEGIN + " ".join(f"a{n} = f32[] negate(x)" for n in range(lines)) + " }",
        "roots": BEGIN + "f32[] negate(x)\n" + "".join(f"ROOT a{n} = f32[] negate(x)\n" for n in range(lines)) + "}",
        "names that are near": BEGIN + "f32[] negate(x)\n"
        + "".join(f"name_{n} = f32[] negate(nam_{n})\n" for n in range(lines)) + "}",
        "opcodes that are near": BEGIN + "f32[] negate(x)\n"
        + "".join(f"a{n} = f32[] negat(x)\n" for n in range(lines)) + "}",
        "attributes that are near": BEGIN + "f32[] negate(x)\n"
        + "".join(f"a{n} = f32[1] reverse(x), dimension={{0}}\n" for n in range(lines)) + "}",
        "instructions with faults": "ENTRY e {\n" + "".join(f"  a{n} = f32[2] add(\n" for n in range(lines)),
        "nulls": "\x00" * size,
        "marks of the order of bytes": "\ufeff" * size,
        "lines that end in CR": BEGIN + "f32[] negate(x)\r\n" + "\r\n" * (size // 2) + "}",
        "large shapes": BEGIN + "f32[999999999999] constant({1}) z = f32[1000000000,1000000000] constant({{1}}) }",
        "large results": BEGIN + "f32[999999999999,999999] broadcast(x), dimensions={} "
        + " ".join(f"z{n} = f32[999999999999,999999] negate(y)" for n in range(lines)) + " }",
        "large counts": f"HloModule m, replica_count=1048576, num_partitions=1048576\n{BEGIN}f32[] negate(x) }}",
        "large numbers": f"HloModule m, replica_count=2147483647\n{BEGIN}f32[] negate(x) }}",
    }  # fmt: skip
