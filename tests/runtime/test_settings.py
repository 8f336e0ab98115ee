"""Settings say which variable to set."""

import re

import pytest

from runtime.configuration.settings import Settings, SettingsError, load_settings

GOOD = {"DATABASE_URL": "postgresql://h/d", "WORKSPACE_SECRET_KEY": "s" * 32}


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    import os  # noqa: PLC0415

    for name in list(os.environ):
        if name.startswith(("WORKSPACE_", "TEMPORAL_", "DATABASE_URL")):
            monkeypatch.delenv(name)
    for name, value in GOOD.items():
        monkeypatch.setenv(name, value)


def test_settings_have_lists_and_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKSPACE_OUTBOUND_ALLOW", "localhost, 10.0.0.0/8 ,")
    monkeypatch.setenv("WORKSPACE_PLATFORM_ADMINS", "Root@Example.test")
    monkeypatch.setenv("TEMPORAL_ADDRESS", "temporal:7233")
    monkeypatch.setenv("WORKSPACE_SECRET_KEY", f"{'n' * 32},{'o' * 32}")
    monkeypatch.setenv("WORKSPACE_COUNTED_ATTRIBUTES", "region=eu|us, plan=free")
    settings = load_settings()
    assert settings.counted_attributes == {"region": ("eu", "us"), "plan": ("free",)}
    assert settings.outbound_allow == ("localhost", "10.0.0.0/8")
    assert settings.is_platform_admin("root@example.test")
    assert not settings.is_platform_admin(None)
    assert settings.temporal_address == "temporal:7233"
    assert settings.secret_keys == ("n" * 32, "o" * 32)
    assert "nnn" not in repr(settings)


def test_objects_are_kept_in_the_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKSPACE_STATE_DIR", "/var/lib/some where")
    assert load_settings().object_store == "file:///var/lib/some%20where/objects"
    monkeypatch.setenv("WORKSPACE_OBJECT_STORE", "s3://bucket/prefix")
    assert load_settings().object_store == "s3://bucket/prefix"


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("DATABASE_URL", None, "Set DATABASE_URL: the PostgreSQL database"),
        ("DATABASE_URL", "mysql://h/d", "Fix DATABASE_URL: must start with postgresql://"),
        ("WORKSPACE_SECRET_KEY", None, "Set WORKSPACE_SECRET_KEY"),
        ("WORKSPACE_SECRET_KEY", "short-secret", "Fix WORKSPACE_SECRET_KEY: must be at least"),
        ("WORKSPACE_OUTBOUND_ALLOW", "10.0.0.0/99", "Fix WORKSPACE_OUTBOUND_ALLOW"),
        (
            "WORKSPACE_OIDC_ISSUER",
            "https://i",
            "set WORKSPACE_OIDC_AUDIENCE and WORKSPACE_OIDC_JWKS",
        ),
        ("DATABASE_URL", "postgresql://u:p%zz@h/d", "Fix DATABASE_URL: must be a libpq URL"),
        ("TEMPORAL_ADDRESS", "temporal", "Fix TEMPORAL_ADDRESS: 'temporal' is not host:port"),
        ("WORKSPACE_LOG_FORMAT", "xml", "Fix WORKSPACE_LOG_FORMAT: must be 'json' or"),
        ("WORKSPACE_BODY_LIMIT", "many", "Fix WORKSPACE_BODY_LIMIT: must be a whole number."),
        ("WORKSPACE_TRASH_DAYS", "29", "Fix WORKSPACE_TRASH_DAYS: must be at least 30."),
        ("WORKSPACE_RUNNING_CAP", "100001", "RUNNING_CAP: must be at most 100000."),
        ("WORKSPACE_RATE_LIMIT_WEBHOOK", "-1", "RATE_LIMIT_WEBHOOK: must be at least 0."),
        ("WORKSPACE_RATE_LIMIT_WEBHOOK", "x", "RATE_LIMIT_WEBHOOK: must be a number."),
        ("WORKSPACE_COUNTED_ATTRIBUTES", "region", "COUNTED_ATTRIBUTES: must be key=value|value"),
        ("WORKSPACE_COUNTED_ATTRIBUTES", "region=eu|", "must be key=value|value"),
        ("WORKSPACE_COUNTED_ATTRIBUTES", "a=1,a=2", "must name each key once"),
        ("WORKSPACE_OBJECT_STORE", "/var/objects", "must be file:///directory or s3://"),
        ("WORKSPACE_OBJECT_STORE", "file://host/objects", "must be file:///directory or s3://"),
        ("WORKSPACE_OBJECT_STORE", "https://h/objects", "must be file:///directory or s3://"),
        ("WORKSPACE_OBJECT_STORE", "s3:///prefix", "must be file:///directory or s3://"),
    ],
)
def test_mistakes_name_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str | None, part: str
) -> None:
    if value is None:
        monkeypatch.delenv(name)
    else:
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as refused:
        load_settings()
    assert part in str(refused.value)
    assert "short-secret" not in str(refused.value)


@pytest.mark.parametrize("garbage", ["", "?", "-1", "1.5", "nan", "9" * 5000])
def test_mistakes_are_reported_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, garbage: str
) -> None:
    for name, field in Settings.model_fields.items():
        variable = field.validation_alias
        monkeypatch.setenv(
            variable if isinstance(variable, str) else f"WORKSPACE_{name.upper()}", garbage
        )
    with pytest.raises(SettingsError) as refused:
        load_settings()
    for sentence in str(refused.value).splitlines():
        assert re.match(r"(Set|Fix) [A-Z_]+: .*[^.]\.$", sentence), sentence
        assert not re.search("[Ii]nput|[Vv]alid|string|integer|cannot have", sentence), sentence
    assert "WORKSPACE_OBJECT_STORE" not in str(refused.value) or garbage


def test_mail_is_set_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().mail is None
    monkeypatch.setenv("WORKSPACE_SMTP_URL", "smtp://user:t0psecret@mail.test")
    with pytest.raises(SettingsError, match="WORKSPACE_SMTP_FROM"):
        load_settings()
    monkeypatch.setenv("WORKSPACE_SMTP_FROM", "Us <us@sender.test>")
    settings = load_settings()
    assert settings.mail is not None
    assert (settings.mail.host, settings.mail.sender) == ("mail.test", "us@sender.test")
    assert "t0psecret" not in repr(settings) + repr(settings.mail)
    monkeypatch.setenv("WORKSPACE_SMTP_URL", "smtp://user:t0p/secret@mail.test")
    with pytest.raises(SettingsError, match="WORKSPACE_SMTP_URL") as refused:
        load_settings()
    assert "t0p" not in str(refused.value)
