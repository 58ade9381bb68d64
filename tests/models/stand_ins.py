"""Empty stand-ins for the CUDA libraries that torch's Linux wheel is linked to.

The wheel on the ordinary package index is the CUDA build. Its loader insists on a dozen CUDA
libraries, gigabytes of them, though a model that runs on the CPU calls none. So only the two
small ones that run when the wheel is loaded are installed for real (cudart, which registers the
kernels, and cupti); in place of the others this puts libraries of the right name with nothing in
them. They satisfy the loader as long as functions are looked up when first called (RTLD_LAZY, see
conftest.py beside this file). Everything that the tests are about is real: the library, its
tokenizer, torch's CPU kernels.

Run by the environment's own Python after `pip install --no-deps`. On platforms whose wheel has no
CUDA it does nothing; needs a C compiler as `cc`.
"""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

SITE_PACKAGES = Path(sysconfig.get_paths()["platlib"])
EMPTY = (
    "libcublas.so.13",
    "libcublasLt.so.13",
    "libcudnn.so.9",
    "libcufft.so.12",
    "libcufile.so.0",
    "libcusparse.so.12",
    "libcusparseLt.so.0",
    "libnccl.so.2",
    "libnvrtc.so.13",
)
# Two names of this one are looked up at once, whatever the flags.
NVSHMEM = "libnvshmem_host.so.3"
NVSHMEM_SOURCE = "int nvshmem_selected_device_transport; void nvshmem_init(void) {}"
NVSHMEM_VERSIONS = "NVSHMEM { global: *; };"


def main() -> None:
    cuda = runpy.run_path(str(SITE_PACKAGES / "torch" / "version.py"))["cuda"]
    if cuda is None:
        return
    if shutil.which("cc") is None:
        raise SystemExit("torch's wheel is the CUDA build: making stand-ins needs a C compiler, cc")
    folder = SITE_PACKAGES / "nvidia" / f"cu{cuda.partition('.')[0]}" / "lib"
    folder.mkdir(parents=True, exist_ok=True)
    for name in EMPTY:
        compile_library(folder / name, "")
    with tempfile.NamedTemporaryFile("w", suffix=".map") as versions:
        versions.write(NVSHMEM_VERSIONS)
        versions.flush()
        compile_library(folder / NVSHMEM, NVSHMEM_SOURCE, f"-Wl,--version-script={versions.name}")
    print(f"stand-ins for {len(EMPTY) + 1} CUDA libraries", file=sys.stderr)


def compile_library(path: Path, source: str, *flags: str) -> None:
    """A shared library of this name. One that is really installed is left alone."""
    if path.exists():
        return
    named = f"-Wl,-soname,{path.name}"
    subprocess.run(
        ["cc", "-shared", "-nostdlib", named, *flags, "-o", str(path), "-x", "c", "-"],
        input=source,
        text=True,
        check=True,
    )


if __name__ == "__main__":
    main()
