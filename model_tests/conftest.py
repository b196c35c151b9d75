"""Hypothesis profiles for all tests: ``ci`` unless the environment variable ``HYPOTHESIS_PROFILE`` names another."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")

# The machine is shared and tests must not depend on its speed, so no profile has a deadline.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow],
)
# Other examples each time, and twenty times as many. What fails is printed with the line that repeats it.
settings.register_profile(
    "deep",
    derandomize=False,
    deadline=None,
    database=None,
    print_blob=True,
    max_examples=2000,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(PROFILE)


def pytest_report_header(config: pytest.Config) -> str:  # noqa: ARG001  # pytest asks for this signature
    """Say once which profile runs."""
    return f"hypothesis profile of the tests: {PROFILE}"


@pytest.fixture(autouse=True, scope="session")
def _capsules_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Checks that fail on purpose leave nothing in the checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAILMARK_CAPSULES", str(tmp_path_factory.mktemp("capsules")))
        yield
