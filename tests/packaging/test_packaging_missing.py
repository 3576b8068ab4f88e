"""What is said when a part is asked for whose extra is missing, and when somebody interrupts."""

import subprocess
import sys
from pathlib import Path

import pytest

INTERRUPT = """
import sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("package", "code", "extra"),
    [
        ("polars", "ompb.study", "report"),
        ("matplotlib", "ompb.report", "report"),
        ("matplotlib", "ompb.Run.plot(None)", "report"),
        ("scipy", "from ompb.metrics.shift import wasserstein; wasserstein([1.0], [2.0])", "report"),
        ("scoringrules", "from ompb.metrics.probabilistic import crps; crps([0.0], [1.0], [0.0])", "bench"),
        ("torch", "import ompb.forecasters.torch", "torch"),
        ("safetensors", "import ompb.forecasters.torch", "torch"),
        ("torch", "import ompb.gradient", "torch"),
        ("torch", "ompb.adapters.torch.wrap(None, context=2, horizon=1)", "torch"),
        ("typer", "import ompb.cli", "cli"),
        ("darts", "ompb.adapters.darts.wrap(None, context=4, horizon=2)", "adapters"),
        ("torch", "ompb.adapters.gluonts.same_draws().__enter__()", "adapters"),
        ("pandas", "from ompb.adapters.nixtla import any_stamps; any_stamps('h', 1, 2)", "adapters"),
        ("ray", "import ompb.bench.executors.ray", "ray"),
        ("ray", "ompb.ray", "ray"),
    ],
)
def test_a_missing_extra_says_what_to_install(package: str, code: str, extra: str) -> None:
    done = python(f"import sys; sys.modules[{package!r}] = None; import ompb; {code}")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ompb.errors.MissingExtraError: ")
    assert last.endswith(f"needs {package}, which is not installed; install it with: pip install 'ompb[{extra}]'")


@pytest.mark.parametrize("package", ["typer", "rich", "polars"])
def test_the_command_without_its_extra_is_one_line(package: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from ompb.__main__ import main; sys.exit(main([]))"
    done = python(code)
    expected = f"needs {package}, which is not installed; install it with: pip install 'ompb[cli]'"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"ompb: the command line {expected}\n")


@pytest.mark.parametrize("package", ["matplotlib", "scipy", "torch"])
def test_the_command_starts_without_what_other_extras_bring(package: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from ompb.__main__ import main; sys.exit(main(['--version']))"
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_that_draws_names_the_report_extra() -> None:
    code = "import sys; sys.modules['matplotlib'] = None; from ompb.__main__ import main; sys.exit(main(['demo']))"
    done = python(code)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "pip install 'ompb[report]'" in done.stderr


@pytest.mark.parametrize("module", ["typer", "polars", "matplotlib"])
def test_an_interrupt_during_imports_is_one_line(module: str) -> None:
    done = python(INTERRUPT.format(module=module) + "from ompb.__main__ import main; sys.exit(main(['demo']))")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "ompb: interrupted\n")


def test_an_interrupt_at_work_is_one_line(tmp_path: Path) -> None:
    code = "import ompb.cli.demo as demo\ndef stop(*_): raise KeyboardInterrupt\ndemo.demo_study = stop\n"
    done = python(
        code + f"import sys; from ompb.__main__ import main; sys.exit(main(['demo', '--out', {str(tmp_path)!r}]))"
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "ompb: interrupted\n")
