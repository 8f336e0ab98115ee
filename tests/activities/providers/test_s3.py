"""The adapter of buckets, against moto, which checks every signature."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import pytest_asyncio
from botocore.config import Config

from activities.providers.adapter import Listing, ProblemKind, ProviderAccess
from activities.providers.s3 import S3Adapter
from runtime.outbound.client import OutboundClient
from tests.support.authorization_server import process
from tests.support.endpoint import Serve, reply
from tests.support.provider_asking import access, listed_ids, named, problem_of

PROGRAM = """
import os
# Making the user and its key is not checked; everything after it is.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "3"
from werkzeug.serving import make_server
from moto.server import DomainDispatcherApplication, create_backend_app
app = DomainDispatcherApplication(create_backend_app)
server = make_server("127.0.0.1", 0, app, threaded=True)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
"""
ALL = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}'
OBJECTS = {
    "data/": b"",
    "data/Reports/plan.md": b"# Plan",
    "data/Reports/2025/prices 100%+~é.csv": b"a,b\n1,2\n",
    "data/photo.bin": b"\0" * 10,
    "data/../outside.txt": b"hostile",
    "outside.txt": b"not below the prefix",
    **{f"data/many/{number:05}": b"" for number in range(250)},
}


def _furnish(url: str) -> dict[str, str]:
    """A user with a key, and a bucket; the user's credentials."""
    session = botocore.session.Session()
    options: Any = {"endpoint_url": url, "region_name": "us-east-1"}
    anybody = {"aws_access_key_id": "x", "aws_secret_access_key": "y"}
    iam = session.create_client("iam", **options, **anybody)
    iam.create_user(UserName="ann")
    iam.put_user_policy(UserName="ann", PolicyName="all", PolicyDocument=ALL)
    key = iam.create_access_key(UserName="ann")["AccessKey"]
    config = Config(s3={"addressing_style": "path"})
    s3 = session.create_client(
        "s3",
        **options,
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
        config=config,
    )
    s3.create_bucket(Bucket="reports")
    for name, content in OBJECTS.items():
        s3.put_object(Bucket="reports", Key=name, Body=content)
    iam.close()
    s3.close()
    return {"accessKeyId": key["AccessKeyId"], "secretAccessKey": key["SecretAccessKey"]}


@pytest_asyncio.fixture(scope="module")
async def given() -> AsyncIterator[ProviderAccess]:
    async with process("-c", PROGRAM) as url:
        credentials = await asyncio.to_thread(_furnish, url)
        yield access({"bucket": "reports", "endpoint": url, "prefix": "data/"}, **credentials)


@pytest.fixture
def s3(outbound: OutboundClient) -> S3Adapter:
    return S3Adapter(outbound)


@pytest.mark.long
async def test_folders_are_listed(s3: S3Adapter, given: ProviderAccess) -> None:
    await s3.check(given)
    found = await listed_ids(s3, given)
    assert sorted(found) == ["Reports", "many", "photo.bin"]
    assert sorted(await listed_ids(s3, given, "Reports")) == ["Reports/2025", "Reports/plan.md"]
    many = await listed_ids(s3, given, "many", limit=100)
    assert many == [f"many/{number:05}" for number in range(250)]


@pytest.mark.long
async def test_contents_are_read(s3: S3Adapter, given: ProviderAccess, tmp_path: Path) -> None:
    page = await s3.browse(given, Listing("Reports/2025"))
    prices = await s3.describe(given, page.resources[0])
    assert prices.name == "prices 100%+~é.csv"
    assert prices.revision == page.resources[0].revision
    read = await s3.read(given, prices)
    assert (read.format.value, read.content) == ("csv", "a,b\n1,2\n")
    target = tmp_path / "file"
    done = await s3.download(given, prices, target, {})
    assert target.read_bytes() == b"a,b\n1,2\n"
    assert (await s3.download(given, prices, target, done.validators)).unchanged
    folder = await s3.describe(given, named("folder", "Reports"))
    assert folder.surface_kind.value == "folder"


@pytest.mark.long
async def test_a_folder_is_watched_with_all_below_it(s3: S3Adapter, given: ProviderAccess) -> None:
    top, reports = named("folder", "x").model_copy(update={"external_id": ""}), "Reports"
    folder = await s3.describe(given, named("folder", reports))
    assert "watch" in folder.capabilities
    first = await s3.watch(given, folder, None)
    assert first.changed
    assert not (await s3.watch(given, folder, first.mark)).changed
    assert (await s3.watch(given, top, first.mark)).changed, "it has other keys"


@pytest.mark.parametrize(
    ("external_type", "external_id", "kind"),
    [
        ("file", "../outside.txt", ProblemKind.INVALID),
        ("folder", "..", ProblemKind.INVALID),
        ("file", "missing", ProblemKind.GONE),
        ("folder", "missing", ProblemKind.GONE),
        ("file", "", ProblemKind.GONE),
    ],
)
async def test_ids_that_lead_elsewhere(
    s3: S3Adapter, given: ProviderAccess, external_type: str, external_id: str, kind: ProblemKind
) -> None:
    wanted = named(external_type, "x").model_copy(update={"external_id": external_id})
    assert await problem_of(s3.describe(given, wanted)) is kind


async def test_signatures_are_checked(s3: S3Adapter, given: ProviderAccess) -> None:
    key = given.credentials["accessKeyId"]
    wrong = access(given.config, accessKeyId=key, secretAccessKey="wrong")
    assert await problem_of(s3.check(wrong)) is ProblemKind.AUTH
    unknown = access(given.config, accessKeyId="AKIAUNKNOWN", secretAccessKey="wrong")
    assert await problem_of(s3.check(unknown)) is ProblemKind.AUTH
    elsewhere = access({**given.config, "bucket": "missing"}, **given.credentials)
    assert await problem_of(s3.check(elsewhere)) is ProblemKind.GONE


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply(503, b"<Error><Code>SlowDown</Code></Error>"), ProblemKind.RATE_LIMITED),
        (reply(301, b"<Error><Code>PermanentRedirect</Code></Error>"), ProblemKind.INVALID),
        (reply(302, b"", location="http://10.0.0.1/"), ProblemKind.INVALID),
        (reply(200, b"<ListBucketResult>"), ProblemKind.MALFORMED),
        (reply(200, b"<ListBucketResult/>" * 9)[:-3], ProblemKind.UNAVAILABLE),
    ],
)
async def test_any_answer_of_a_server_is_handled(
    s3: S3Adapter, serve: Serve, answer: bytes, kind: ProblemKind
) -> None:
    server = await serve(answer)
    config = {"bucket": "reports", "endpoint": server.url}
    given = access(config, accessKeyId="AKIA", secretAccessKey="s3-canary-33")
    assert await problem_of(s3.browse(given, Listing())) is kind
    assert "s3-canary-33" not in str(server.requests)
