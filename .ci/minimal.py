"""What an install without extras must do: load in no time, and say in one line what is missing."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

IMPORT, VERSION = 0.3, 0.4  # CPU seconds at most, which a busy machine leaves as they are
LOAD = "import time; t = time.process_time(); import declip; print(time.process_time() - t)"
declip = Path(sys.executable).with_name("declip")


def run(*command: object) -> subprocess.CompletedProcess[str]:
    """Run a command, and keep what it says."""
    return subprocess.run([*map(str, command)], capture_output=True, text=True)


def version() -> float:
    """Return the CPU seconds that `declip --version` takes."""
    before = os.times()
    run(declip, "--version").check_returncode()
    after = os.times()
    parts = ("children_user", "children_system")
    return sum(getattr(after, part) - getattr(before, part) for part in parts)


def missing(what: str, extra: str, *command: object) -> None:
    """Refuse anything but one line that names the extra."""
    ended = run(*command)
    last = ended.stderr.rstrip().splitlines()[-1:]
    if ended.returncode == 0 or not last or f"declip[{extra}]" not in last[0]:
        sys.exit(f"{what} without {extra}: exit code {ended.returncode}, {ended.stderr!r}")
    print(f"{what}: {last[0]}")


loaded = min(float(run(sys.executable, "-c", LOAD).stdout) for _ in range(5))
answered = min(version() for _ in range(5))
print(f"import declip: {loaded:.2f} s; declip --version: {answered:.2f} s (CPU)")
with TemporaryDirectory() as folder:
    file = Path(folder, "t.csv")
    file.write_text("id,a,b\nr1,1,<2\nr2,3,4\n")
    missing("declip check", "files", declip, "check", file)
    missing("declip app", "app", declip, "app")
    read = f"import declip; declip.read_table({str(file)!r})"
    missing("read_table", "files", sys.executable, "-c", read)
    missing("declip.dask", "dask", sys.executable, "-c", "import declip.dask; declip.dask.FroCMC")
if loaded > IMPORT or answered > VERSION:
    sys.exit(f"too slow: at most {IMPORT} s for the import, {VERSION} s for the version")
