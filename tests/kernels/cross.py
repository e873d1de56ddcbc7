"""Compile the kernels for systems that are not this one: `make cross`.

Zig, which installs from PyPI, has the headers of all systems. Those of Python are the ones of this
machine; for Windows with a ``pyconfig.h`` that says what differs there. Nothing is linked or run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

KERNELS = Path(__file__).parents[2] / "src" / "declip" / "kernels"
ISAS = {
    "baseline": [],
    "avx2": ["-mavx2", "-mfma", "-mf16c"],
}
TARGETS = {
    "x86_64-windows-gnu": ISAS,
    "aarch64-windows-gnu": {"baseline": []},
    "x86_64-macos": ISAS,
    "aarch64-macos": {"baseline": []},
    "x86_64-linux-musl": ISAS,
    "aarch64-linux-gnu": {"baseline": []},
}
WINDOWS = {
    **dict.fromkeys(("MS_WINDOWS", "MS_WIN32", "MS_WIN64", "NT_THREADS", "HAVE_STDDEF_H"), 1),
    **{"SIZEOF_SHORT": 2, "SIZEOF_INT": 4, "SIZEOF_LONG": 4, "SIZEOF_LONG_LONG": 8},
    **{"SIZEOF_VOID_P": 8, "SIZEOF_SIZE_T": 8, "SIZEOF_TIME_T": 8, "SIZEOF_PID_T": 4},
    **{"SIZEOF_WCHAR_T": 2, "SIZEOF_FLOAT": 4, "SIZEOF_DOUBLE": 8},
    **{"ALIGNOF_LONG": 4, "ALIGNOF_SIZE_T": 8},
}


def python_headers(folder: Path, target: str) -> Path:
    """Return a folder with Python's headers as a system has them."""
    here = Path(sysconfig.get_path("include"))
    if "windows" not in target:
        return here
    copy = folder / "include"
    if not copy.exists():
        shutil.copytree(here, copy)
        lines = (f"#define {name} {value}\n" for name, value in WINDOWS.items())
        (copy / "pyconfig.h").write_text("".join(lines))
    return copy


def jobs(folder: Path) -> list[tuple[str, list[str]]]:
    """Return the name and the arguments of each compilation."""
    import nanobind  # here, since pytest reads this file where wheels are tested

    found = []
    for target, isas in TARGETS.items():
        common = ["-target", target, "-std=c++17", "-O0", "-Wall", "-Werror=return-type", "-c"]
        include = [f"-I{python_headers(folder, target)}", f"-I{nanobind.include_dir()}"]
        x86 = ["-DDECLIP_X86=1"] if len(isas) > 1 else []
        found.append((f"{target} module", [*common, *include, *x86, str(KERNELS / "module.cpp")]))
        for isa, flags in isas.items():
            source = [f"-DDECLIP_ISA={isa}", *flags, str(KERNELS / "isa.cpp")]
            found.append((f"{target} {isa}", [*common, *source]))
    return found


def compiled(folder: Path, name: str, arguments: list[str]) -> bool:
    output = folder / f"{name.replace(' ', '-')}.o"
    command = [sys.executable, "-m", "ziglang", "c++", *arguments, "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True)
    print(f"{name}: {'compiles' if done.returncode == 0 else done.stderr}", flush=True)
    return done.returncode == 0


def main() -> int:
    with TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
        folder = Path(name)
        good = pool.map(lambda job: compiled(folder, *job), jobs(folder))
        return 0 if all(list(good)) else 1


if __name__ == "__main__":
    sys.exit(main())
