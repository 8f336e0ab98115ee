"""What runs beside the requests of an API process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from api.kernel.services import Services
from runtime.worker_notifier import WorkerNotifier


@asynccontextmanager
async def worker_notifications(services: Services) -> AsyncIterator[None]:
    """Notify the workers after each commit that left something for them to do."""
    notifier = WorkerNotifier(services.settings.database_url.get_secret_value())
    services.database.notify_workers = notifier.notify
    task = asyncio.create_task(notifier.run(), name="worker-notifier")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
