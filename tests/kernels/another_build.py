"""Takes the kernels from another build, such as the sanitized one, if DECLIP_KERNELS names it.

To be imported before declip.
"""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location

if path := os.environ.get("DECLIP_KERNELS"):
    spec = spec_from_file_location("declip.kernels._kernels", path)
    sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[spec.name])
