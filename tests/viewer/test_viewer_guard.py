"""Who may read: this machine by its own names, others with the token alone."""

import pytest
from browser import serving
from viewer_runs import evaluate, get


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guard")
    evaluate(folder / "run")
    return folder


@pytest.fixture(scope="module")
def local(run):
    with serving(run, cache=run / "cache") as address:
        yield address


@pytest.fixture(scope="module")
def remote(run):
    with serving(run, cache=run / "cache", token="t0ken", hosts=frozenset({"eval.example"})) as address:
        yield address


@pytest.mark.parametrize("host", ["localhost", "localhost:8420", "127.0.0.1:1", "[::1]:8420", "LOCALHOST"])
def test_the_names_of_this_machine_are_answered(local, host):
    assert get(local, Host=host)[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.7", "localhost.evil.example:8420"])
def test_another_name_for_this_machine_is_refused(local, host):
    status, _, body = get(f"{local}/api/runs", Host=host)
    assert status == 421
    assert "rows" not in body


def test_a_page_keeps_to_itself(local):
    _, headers, _ = get(local)
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/api/runs", "/assets/viewer.js", "/run/x", "/nowhere"])
def test_without_the_token_nothing_is_answered(remote, path):
    assert get(f"{remote}{path}")[0] == 403
    assert get(f"{remote}{path}", Authorization="Bearer wrong")[0] == 403
    assert get(f"{remote}{path}", Cookie="nel_view_1=t0ken; broken")[0] == 403


def test_the_token_of_the_address_becomes_a_cookie_and_leaves_the_address(remote):
    status, headers, _ = get(f"{remote}/run/x?token=t0ken&a=b%26c")
    assert (status, headers["location"]) == (303, "/run/x?a=b%26c")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert get(remote, Cookie=cookie.partition(";")[0])[0] == 200


def test_a_wrong_token_gets_no_cookie(remote):
    status, headers, _ = get(f"{remote}/?token=wrong")
    assert status == 403
    assert headers["set-cookie"] is None


def test_a_redirect_never_leads_to_another_host(remote):
    assert get(f"{remote}//evil.example/?token=t0ken")[1]["location"] == "/evil.example/"


def test_a_program_brings_the_token_in_a_header(remote):
    assert get(f"{remote}/api/runs", Authorization="Bearer t0ken")[0] == 200


@pytest.mark.parametrize(("host", "status"), [("eval.example", 200), ("192.0.2.7:80", 200), ("evil.example", 421)])
def test_with_a_token_numbers_and_the_given_name_are_answered(remote, host, status):
    assert get(f"{remote}/api/runs", Authorization="Bearer t0ken", Host=host)[0] == status


def test_nothing_can_be_changed(local):
    import urllib.error
    import urllib.request

    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(urllib.request.Request(local, method="POST", data=b"x"))
    with caught.value as error:
        assert error.code == 405
