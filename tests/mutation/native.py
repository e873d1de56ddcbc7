"""Do the tests notice faults of the compiled loss? Each mutant is built apart and tested.

``python -m tests.mutation.native`` prints the mutants of ``loss.hpp`` that no test kills, and their
share; ``--share 0.5`` draws a sample.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADER = "src/declip/kernels/loss.hpp"
TESTS = [f"tests/kernels/test_{name}.py" for name in ("loss", "update_rows", "weights_and_centres")]
# What may be wrong with a piece of code, each once: an operator, a number, a function, a name.
FAULTS = [
    (r" < ", " >= "),
    (r" > ", " <= "),
    (r" <= ", " > "),
    (r" && ", " || "),
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r" \* ", " / "),
    (r" / ", " * "),
    (r"(?<=[(,{ ?:])-(?=[\w(])", ""),
    (r"\b\d+(\.\d*)?(e-?\d+)?\b(?!\w)", lambda m: f"({m[0]} * 1.5 + 1)"),
    (r"\bratio_a\b(?=[,;\) ])", "ratio_b"),
    (r"std::log\(", "std::log1p("),
    (r"std::exp\(", "std::expm1("),
    (r"fmax", "fmin"),
]


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--share", type=float, default=1.0, help="of the mutants, drawn by lot")
    ask.add_argument("--at-least", type=float, default=0.8, help="share to be killed")
    asked = ask.parse_args()
    source = (ROOT / HEADER).read_text()
    mutants = [m for m in mutants_of(source) if random.Random(str(m)).random() < asked.share]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for part in ("CMakeLists.txt", "src/declip/kernels"):
            target = place / part
            target.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, target)
        configure(place)
        if not passes(place):
            sys.exit("the tests fail without any mutant")
        killed = 0
        for line, start, end, new in mutants:
            (place / HEADER).write_text(source[:start] + new + source[end:])
            if passes(place):
                print(f"survives: loss.hpp:{line}: {source[start:end]!r} -> {new!r}", flush=True)
            else:
                killed += 1
    share = killed / len(mutants)
    print(f"loss.hpp {killed} of {len(mutants)} killed, {share:.1%}")
    sys.exit(share < asked.at_least)


def mutants_of(source) -> Iterator[tuple[int, int, int, str]]:
    """Yield (line, start, end, what stands there instead), comments and includes left alone."""
    at = 0
    for number, line in enumerate(source.splitlines(keepends=True), 1):
        code = "" if line.startswith("#") else line.split("//")[0]
        for pattern, new in FAULTS:
            for found in re.finditer(pattern, code):
                text = new(found) if callable(new) else new
                yield number, at + found.start(), at + found.end(), text
        at += len(line)


def configure(place):
    """Prepare a build without optimisation, for the plainest instruction set."""
    tools = Path(sys.executable).parent
    command = [tools / "cmake", "-S", place, "-B", place / "build", "-G", "Ninja"]
    command += [f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}", f"-DPython_EXECUTABLE={sys.executable}"]
    subprocess.run(
        [*command, "-DDECLIP_X86=OFF", "-DCMAKE_BUILD_TYPE=Debug"], check=True, capture_output=True
    )


def passes(place):
    """Return whether the tests pass; a mutant that does not compile or end does not."""
    build = [Path(sys.executable).parent / "cmake", "--build", place / "build"]
    if subprocess.run(build, capture_output=True, check=False).returncode != 0:
        return False
    kernels = next((place / "build").glob("_kernels*.so"))
    how = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *how, *TESTS],
            cwd=ROOT,
            env=os.environ | {"DECLIP_KERNELS": str(kernels)},
            capture_output=True,
            timeout=300,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


if __name__ == "__main__":
    main()
