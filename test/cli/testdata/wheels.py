# Packs pandas and its requirements, of Debian's packages, as wheels: wheels.py FOLDER
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path

from wheel.wheelfile import WheelFile

# Debian leaves the requirements out of the metadata.
REQUIRES = {"pandas": ["numpy", "python-dateutil", "pytz"], "python-dateutil": ["six"], "numpy": [], "pytz": [], "six": []}

python = f"cp{sys.version_info.major}{sys.version_info.minor}"
platform = sysconfig.get_platform().replace("-", "_")
for name, requires in REQUIRES.items():
    package = distribution(name)
    base = package.locate_file("")
    module = package.read_text("top_level.txt").strip()
    files = [f for f in (base / f"{module}.py", *(base / module).rglob("*")) if f.is_file()]
    native = any(f.suffix == ".so" for f in files)
    tag = f"{python}-{python}-{platform}" if native else "py3-none-any"
    stem = f"{name.replace('-', '_')}-{package.version}"
    with WheelFile(Path(sys.argv[1], f"{stem}-{tag}.whl"), "w") as wheel:  # adds RECORD
        for f in files:
            wheel.write(f, str(f.relative_to(base)))
        metadata = "".join(f"Requires-Dist: {r}\n" for r in requires)
        wheel.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {package.version}\n{metadata}")
        wheel.writestr(f"{stem}.dist-info/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: {str(not native).lower()}\nTag: {tag}\n")
