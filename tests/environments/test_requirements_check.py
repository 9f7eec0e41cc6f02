"""A benchmark's requirements are checked, and refused with the command that installs them."""

import pytest

from nel.core.errors import DataError, MissingDependencyError
from nel.environments.requirements import check_requirements


@pytest.mark.parametrize("requirements", [(), ["pytest"], ["PyTest>=1.0", "msgspec"], ["absent; python_version < '3'"]])
def test_what_is_installed_passes(requirements):
    check_requirements("mine", requirements, None)


def test_what_is_missing_or_too_old_is_refused_with_one_command():
    with pytest.raises(MissingDependencyError) as caught:
        check_requirements("mine", ["no-such-package", "pytest>=999", "msgspec"], None)
    assert caught.value.command == "pip install no-such-package 'pytest>=999'"
    assert "mine" in str(caught.value)


def test_a_requirements_file_is_read(tmp_path):
    (tmp_path / "requirements.txt").write_text("# needed\npytest  # the runner\nno-such-package==1.0\n")
    with pytest.raises(MissingDependencyError, match=r"no-such-package==1\.0"):
        check_requirements("mine", "requirements.txt", tmp_path)
    with pytest.raises(DataError, match="no such file"):
        check_requirements("mine", "sympy", tmp_path)


def test_what_is_no_requirement_is_refused():
    with pytest.raises(DataError, match="requirement 'a b c'"):
        check_requirements("mine", ["a b c"], None)
