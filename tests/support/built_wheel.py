"""Build the wheel from a clean copy of the tree, look into it, and run the smoke tests against it outside the clone.

    python tests/support/built_wheel.py build DIST_FOLDER
    python tests/support/built_wheel.py smoke VENV_FOLDER [PYTEST ARGUMENTS]
    python tests/support/built_wheel.py requirements        what a test run needs, one requirement a line
    python tests/support/built_wheel.py lowest              the lowest versions that pyproject.toml promises

Only the standard library, `build` and `setuptools` are used: it runs in the development environment, also without git.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]

# Never copied: what earlier builds and tools left. A stale build/ brings deleted modules back into the wheel.
LEFTOVERS = {"build", "dist", "__pycache__", "node_modules"}

# Of the `dev` extra, what lints and builds: a test run does not need it.
NOT_FOR_TESTS = {"build", "import-linter", "mypy", "ruff", "setuptools"}


def project(root: Path = REPOSITORY) -> dict[str, Any]:
    """The contents of pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def clean_copy(root: Path, target: Path) -> Path:
    """Copy the sources of `root` to `target`, without what tools left there: hidden folders, builds, environments."""

    def left_out(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if _is_leftover(Path(folder) / name)}

    shutil.copytree(root, target, ignore=left_out, dirs_exist_ok=True)
    return target


def _is_leftover(path: Path) -> bool:
    if path.is_symlink() or not path.is_dir():
        return path.is_symlink() or path.suffix == ".pyc"
    hidden = path.name.startswith(".")
    return hidden or path.name in LEFTOVERS or path.name.endswith(".egg-info") or (path / "pyvenv.cfg").exists()


def build(dist: Path, root: Path = REPOSITORY) -> Path:
    """Build the wheel of `root` into the folder `dist` and return its path; what the build says is shown if it fails."""
    with tempfile.TemporaryDirectory(prefix="looptape-wheel-") as scratch:
        source = clean_copy(root, Path(scratch) / "source")
        # Without isolation: offline and quick. `build` still checks [build-system] requires against what is here.
        command = [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            str(dist.absolute()),
            str(source),
        ]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=scratch
        )
    if done.returncode:
        raise RuntimeError(f"the wheel could not be built:\n{done.stdout}")
    (wheel,) = dist.glob("*.whl")
    return wheel


def contents(wheel: Path) -> set[str]:
    """The files in the wheel, without its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name and not name.endswith("/")}


def distributions(names: Iterable[str]) -> list[importlib.metadata.Distribution]:
    """The installed distributions of these names and all that they need at run time (no extras)."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [_plain(name) for name in names]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # needed on another platform or Python only
        waiting += [_plain(line) for line in found[name].requires or () if "extra ==" not in line]
    return list(found.values())


def _plain(requirement: str) -> str:
    """`Foo_Bar[baz]>=1; marker` -> `foo-bar`."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement.strip())
    assert match, requirement
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def room(wheel: Path, folder: Path, beside: Iterable[str]) -> Path:
    """A folder for PYTHONPATH with the wheel (`--no-deps`) and, as links, only the distributions named in `beside`.

    With `python -S` nothing else can be imported: an environment made in a moment and without a download.
    """
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--target", str(folder)]
    subprocess.run([*command, str(wheel)], check=True, stdout=subprocess.DEVNULL)
    for distribution in distributions(beside):
        for file in distribution.files or ():
            if ".." in file.parts:
                continue  # a console script
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            if not (folder / file).exists():
                (folder / file).symlink_to(Path(str(distribution.locate_file(file))))
    return folder


def requirements_for_tests() -> list[str]:
    """The requirements of the `dev` extra that a test run needs."""
    extra: list[str] = project()["project"]["optional-dependencies"]["dev"]
    return [line for line in extra if _plain(line) not in NOT_FOR_TESTS]


def lowest() -> list[str]:
    """`name==bound` for every dependency at run time and for the openai extra."""
    declared = project()["project"]
    lines: list[str] = declared["dependencies"] + declared["optional-dependencies"]["openai"]
    return [re.sub(r">=([0-9.]+).*", r"==\1", line) for line in lines]


def smoke(environment: Path, arguments: list[str]) -> int:
    """Install the wheel into its own environment and run the tests marked `smoke` from a copy outside the clone."""
    python = environment.absolute() / "bin" / "python"
    with tempfile.TemporaryDirectory(prefix="looptape-smoke-") as scratch:
        outside = Path(scratch)
        wheel = build(outside / "dist")
        _install(environment, python, wheel)
        _tree_without_packages(outside)
        kept = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        where = subprocess.run(
            [str(python), "-c", "import looptape; print(looptape.__file__)"],
            cwd=outside, env=kept, check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
        assert Path(where).is_relative_to(environment.absolute() / "lib"), f"the smoke tests would test {where}"
        print(f"smoke: {wheel.name} as {where}", flush=True)
        kept["LOOPTAPE_UNDER_TEST"] = str(Path(where).parent)
        command = [str(python), "-m", "pytest", "-m", "smoke", "-p", "no:cacheprovider", *arguments]
        return subprocess.run(command, cwd=outside, env=kept, check=False).returncode


def _tree_without_packages(outside: Path) -> None:
    """Tests, documents and settings as in the clone, and none of the code: that can only come from the wheel."""
    clean_copy(REPOSITORY, outside)
    (outside / "__init__.py").unlink()
    for package in project()["tool"]["setuptools"]["packages"]:
        _, *path = package.split(".")
        if path:
            shutil.rmtree(outside.joinpath(*path), ignore_errors=True)


def _install(environment: Path, python: Path, wheel: Path) -> None:
    """Make the environment where it is missing or older than pyproject.toml; then only the wheel is put in anew."""
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    stamp = environment / ".looptape-wheel"
    wanted = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        venv.create(environment, clear=True, with_pip=True)
        subprocess.run([*pip, str(wheel), *requirements_for_tests()], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    else:
        subprocess.run([*pip, "--no-deps", "--force-reinstall", str(wheel)], check=True)


def main(arguments: list[str]) -> int:
    """The command line above."""
    match arguments:
        case ["build", dist]:
            print(build(Path(dist)))
        case ["smoke", environment, *rest]:
            return smoke(Path(environment), rest)
        case ["requirements"]:
            print("\n".join(requirements_for_tests()))
        case ["lowest"]:
            print("\n".join(lowest()))
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
