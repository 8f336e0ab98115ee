"""Keys of pushes: read at the start of a process, refused with the name of the variable."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from joserfc.jwk import ECKey, RSAKey

from runtime import base64url
from runtime.configuration.settings import Settings, SettingsError, load_settings
from tests.support.browsers import VAPID

SCALAR = base64url.encode(bytes(range(1, 33)))
OLDER = base64url.encode(bytes(range(2, 34)))
SECRET = "a master secret that only tests use and that is long enough"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://localhost/w")
    monkeypatch.setenv("WORKSPACE_SECRET_KEY", SECRET)


def settings(monkeypatch: pytest.MonkeyPatch, **given: object) -> Settings:
    for name, value in given.items():
        monkeypatch.setenv(f"WORKSPACE_{name}", str(value))
    return load_settings()


def test_none_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = settings(monkeypatch)
    assert (found.vapid, found.fcm, found.apns) == (None, None, None)


def test_they_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    account, key = tmp_path / "account.json", tmp_path / "key.p8"
    pem = RSAKey.generate_key(2048).as_pem(private=True).decode()
    facts = {"project_id": "p", "client_email": "e", "token_uri": "https://t", "private_key": pem}
    account.write_text(json.dumps(facts), "utf-8")
    key.write_bytes(ECKey.generate_key("P-256").as_pem(private=True))
    found = settings(
        monkeypatch,
        VAPID_PRIVATE_KEY=f"{SCALAR}, {OLDER}",
        VAPID_SUBJECT=VAPID.subject,
        FCM_CREDENTIALS=account,
        APNS_KEY=key,
        APNS_KEY_ID="K",
        APNS_TEAM_ID="T",
        APNS_TOPIC="com.example",
    )
    assert found.vapid is not None
    assert found.vapid.public == VAPID.public
    assert len({key.public for key in found.vapid_keys}) == 2
    assert found.fcm is not None
    assert found.apns is not None
    shown = repr((found.vapid, found.fcm, found.apns, found))
    assert SCALAR not in shown
    assert OLDER not in shown
    assert "PRIVATE KEY" not in shown


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"VAPID_PRIVATE_KEY": SCALAR}, "WORKSPACE_VAPID_SUBJECT"),
        ({"VAPID_PRIVATE_KEY": SCALAR[:-2], "VAPID_SUBJECT": "mailto:a@b"}, "VAPID_PRIVATE_KEY"),
        ({"VAPID_PRIVATE_KEY": SCALAR, "VAPID_SUBJECT": "a@b"}, "WORKSPACE_VAPID_SUBJECT"),
        ({"FCM_CREDENTIALS": "/nowhere"}, "WORKSPACE_FCM_CREDENTIALS"),
        ({"FCM_CREDENTIALS": __file__}, "WORKSPACE_FCM_CREDENTIALS"),
        ({"FCM_URL": "https://host/path"}, "WORKSPACE_FCM_URL"),
        ({"APNS_KEY": __file__}, "WORKSPACE_APNS_KEY_ID"),
        ({"APNS_URL": "api.push.apple.com"}, "WORKSPACE_APNS_URL"),
        (
            {
                "APNS_KEY": __file__,
                "APNS_KEY_ID": "K",
                "APNS_TEAM_ID": "T",
                "APNS_TOPIC": "com.example",
            },
            "WORKSPACE_APNS_KEY",
        ),
    ],
)
def test_mistakes_name_the_variable(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], named: str
) -> None:
    with pytest.raises(SettingsError, match=named) as refused:
        settings(monkeypatch, **given)
    assert SCALAR[:-2] not in str(refused.value)


@pytest.mark.long
@pytest.mark.parametrize("module", ["cli.processes", "cli.worker_process"])
def test_a_process_without_pushes_starts_without_their_library(module: str) -> None:
    code = f"import sys, {module}; sys.exit('joserfc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
