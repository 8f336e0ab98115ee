"""Which calls are genuine: the reference vector, both schemes, and every byte that counts."""

import base64
import hmac
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from models.automation.automations.rules.triggers.configs import parse_trigger_config, read_trigger
from models.automation.automations.rules.triggers.kinds import WebhookTrigger
from models.automation.webhooks.rules import Delivery, is_genuine, kept_call

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'
SENT = 1_614_265_330
NOW = datetime.fromtimestamp(SENT, UTC)
VECTOR = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": str(SENT),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
"""The example of the Standard Webhooks specification."""


def webhook(**config: Any) -> WebhookTrigger:
    trigger = read_trigger(parse_trigger_config({"kind": "webhook", **config}))
    assert isinstance(trigger, WebhookTrigger)
    return trigger


def delivery(headers: dict[str, str], body: bytes = BODY) -> Delivery:
    return Delivery("POST", [(name.lower(), text) for name, text in headers.items()], b"", body)


def genuine(
    trigger: WebhookTrigger,
    headers: dict[str, str],
    body: bytes = BODY,
    now: datetime = NOW,
    secrets: tuple[str, ...] = (SECRET,),
) -> bool:
    return is_genuine(trigger, secrets, delivery(headers, body), now)


def test_the_vector_of_the_specification_is_genuine() -> None:
    assert genuine(webhook(), VECTOR)


@pytest.mark.parametrize("name", VECTOR)
def test_no_header_may_be_missing_empty_or_sent_twice(name: str) -> None:
    rest = {other: text for other, text in VECTOR.items() if other != name}
    assert not genuine(webhook(), rest)
    assert not genuine(webhook(), {**VECTOR, name: ""})
    twice = Delivery("POST", [*VECTOR.items(), (name, VECTOR[name])], b"", BODY)
    assert not is_genuine(webhook(), [SECRET], twice, NOW)


@pytest.mark.parametrize("name", VECTOR)
def test_a_changed_character_of_a_header_is_noticed(name: str) -> None:
    text = VECTOR[name]
    for place in range(len(text)):
        other = "1" if text[place] != "1" else "2"
        changed = {**VECTOR, name: text[:place] + other + text[place + 1 :]}
        assert not genuine(webhook(), changed), place


def test_a_changed_byte_of_the_body_is_noticed() -> None:
    for place in range(len(BODY)):
        changed = BODY[:place] + bytes([BODY[place] ^ 1]) + BODY[place + 1 :]
        assert not genuine(webhook(), VECTOR, changed), place
    assert not genuine(webhook(), VECTOR, BODY.replace(b" ", b""))


@pytest.mark.parametrize(
    ("seconds", "accepted"), [(0, True), (300, True), (-300, True), (301, False), (-301, False)]
)
def test_the_tolerance_is_five_minutes_both_ways(seconds: int, accepted: bool) -> None:
    assert genuine(webhook(), VECTOR, now=NOW + timedelta(seconds=seconds)) is accepted


@pytest.mark.parametrize(
    "timestamp", [f"{SENT}.0", f" {SENT}", f"+{SENT}", "١٦١٤٢٦٥٣٣٠", "1e9", "-1", "9" * 400]
)
def test_a_timestamp_is_written_in_digits(timestamp: str) -> None:
    content = f"{VECTOR['webhook-id']}.{timestamp}.".encode() + BODY
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    signature = base64.b64encode(hmac.digest(key, content, "sha256")).decode()
    given = {**VECTOR, "webhook-timestamp": timestamp, "webhook-signature": f"v1,{signature}"}
    assert not genuine(webhook(), given)


def test_one_of_several_signatures_and_of_several_secrets_is_enough() -> None:
    several = f"v1a,xyz v1,AAAA {VECTOR['webhook-signature']} v2,BBBB"
    assert genuine(webhook(), {**VECTOR, "webhook-signature": several})
    assert genuine(webhook(), VECTOR, secrets=("whsec_b3RoZXI=", SECRET))
    assert not genuine(webhook(), VECTOR, secrets=("whsec_b3RoZXI=",))
    assert not genuine(webhook(), VECTOR, secrets=())


def test_a_signature_of_another_version_is_none() -> None:
    other = VECTOR["webhook-signature"].replace("v1,", "v1a,")
    assert not genuine(webhook(), {**VECTOR, "webhook-signature": other})


# ---- digests of the body, as GitHub, Shopify, Stripe and Slack send them


def hex_of(content: bytes, secret: str = SECRET) -> str:
    return hmac.digest(secret.encode(), content, "sha256").hex()


def hmac_hook(**signature: Any) -> WebhookTrigger:
    return webhook(signature={"scheme": "hmac_sha256", "header": "X-Signature", **signature})


@pytest.mark.parametrize("spelled", ["sha256={}", "{}", "v0={}"])
def test_a_hex_digest_of_the_body(spelled: str) -> None:
    hook = hmac_hook()
    right = spelled.format(hex_of(BODY))
    assert genuine(hook, {"X-Signature": right})
    assert genuine(hook, {"X-Signature": spelled.format(hex_of(BODY).upper())})
    assert not genuine(hook, {"X-Signature": right}, BODY + b" ")
    assert not genuine(hook, {"X-Signature": right}, secrets=("another",))
    assert not genuine(hook, {"X-Signature": right[:-1]})
    assert not genuine(hook, {"X-Other": right})


def test_a_base64_digest_of_the_body() -> None:
    text = base64.b64encode(hmac.digest(SECRET.encode(), BODY, "sha256")).decode()
    assert genuine(hmac_hook(encoding="base64"), {"X-Signature": text})
    assert not genuine(hmac_hook(), {"X-Signature": text})
    assert not genuine(hmac_hook(encoding="base64"), {"X-Signature": text.swapcase()})


@pytest.mark.parametrize("end", ["v0=", "v4=", "v8="])
def test_a_base64_digest_may_end_like_a_version(end: str) -> None:
    bodies = (str(number).encode() for number in range(1_000_000))
    signed = ((body, base64.b64encode(hmac.digest(b"key", body, "sha256"))) for body in bodies)
    body, text = next(found for found in signed if found[1].decode().endswith(end))
    headers = {"X-Signature": text.decode()}
    assert genuine(hmac_hook(encoding="base64"), headers, body, secrets=("key",))
    headers = {"X-Signature": f"v1={text.decode()}"}
    assert genuine(hmac_hook(encoding="base64"), headers, body, secrets=("key",))


def test_a_timestamp_beside_the_signature_is_signed_and_recent() -> None:
    hook = hmac_hook(
        header="X-Slack-Signature",
        timestampHeader="X-Slack-Request-Timestamp",
        signedContent="v0:{timestamp}:{body}",
    )
    signature = "v0=" + hex_of(f"v0:{SENT}:".encode() + BODY)
    given = {"X-Slack-Signature": signature, "X-Slack-Request-Timestamp": str(SENT)}
    assert genuine(hook, given)
    assert not genuine(hook, given, now=NOW + timedelta(seconds=301))
    assert not genuine(hook, {**given, "X-Slack-Request-Timestamp": str(SENT + 1)})
    assert not genuine(hook, {"X-Slack-Signature": signature})


def test_a_timestamp_within_the_signature_is_signed_and_recent() -> None:
    hook = hmac_hook(header="Stripe-Signature", timestampHeader="stripe-signature")
    right = hex_of(f"{SENT}.".encode() + BODY)
    assert genuine(hook, {"Stripe-Signature": f"t={SENT},v1={'0' * 64},v1={right},v0=x"})
    assert not genuine(hook, {"Stripe-Signature": f"t={SENT + 1},v1={right}"})
    assert not genuine(hook, {"Stripe-Signature": f"t={SENT},t={SENT},v1={right}"})
    assert not genuine(hook, {"Stripe-Signature": f"v1={right}"})
    late = NOW + timedelta(seconds=301)
    assert not genuine(hook, {"Stripe-Signature": f"t={SENT},v1={right}"}, now=late)


# ---- shared secrets


def basic(text: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}


def test_basic_takes_any_user_with_the_secret_as_password() -> None:
    hook = webhook(auth="basic")
    assert genuine(hook, basic(f"anybody:{SECRET}"))
    assert genuine(hook, basic(f":{SECRET}"))
    for wrong in (f"{SECRET}:", "anybody:", f"x:{SECRET} ", SECRET, ""):
        assert not genuine(hook, basic(wrong)), wrong
    for broken in ("Basic", "Basic !!", f"Bearer {SECRET}", "Basic \xfc"):
        assert not genuine(hook, {"Authorization": broken}), broken


def test_header_authentication_compares_the_secret() -> None:
    assert genuine(webhook(auth="header"), {"X-Webhook-Secret": SECRET})
    assert not genuine(webhook(auth="header"), {"X-Webhook-Secret": SECRET[:-1]})
    assert not genuine(webhook(auth="header"), {"X-Other": SECRET})
    named = webhook(auth="header", header="X-Gitlab-Token")
    assert genuine(named, {"X-Gitlab-Token": SECRET})
    assert not genuine(named, {"X-Webhook-Secret": SECRET})
    bearer = webhook(auth="header", header="Authorization")
    assert genuine(bearer, {"Authorization": f"Bearer {SECRET}"})
    assert genuine(bearer, {"Authorization": SECRET})


def test_without_authentication_every_call_is_accepted() -> None:
    assert genuine(webhook(auth="none"), {}, secrets=())


@pytest.mark.parametrize(("query", "body"), [(b"x=s3cret", b"{}"), (b"", b'{"x": "s3cret"}')])
def test_a_call_is_kept_without_a_secret_that_it_repeats(query: bytes, body: bytes) -> None:
    payload = {"headers": {"a": "s3cret"}, "query": {"x": "1"}, "body": {"password": "p", "n": 1}}
    kept = kept_call(payload, Delivery("POST", [], query, body), ["s3cret", ""])
    assert "s3cret" not in json.dumps(kept)
    assert kept["body"]["n"] == 1
    assert kept["body"]["password"] != "p"
    plain = kept_call(payload, Delivery("POST", [], b"", b""), ["s3cret", ""])
    encoded = {**payload, "body": "s3cretQ", "bodyEncoding": "base64"}
    assert kept_call(encoded, Delivery("POST", [], query, body), ["s3cret"])["body"] == "[redacted]"
    assert plain["headers"] == {"a": "s3cret"}
